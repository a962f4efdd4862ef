//! `turnbuckle source …`

use super::{
    common::{
        CreateMode, DryRun, GuardedTarget, LabelChange, Labels, ListArgs, Mask, everything,
        read_input, read_secret, show_pages, upsert_name,
    },
    deleted::{FindArgs, FindTarget, UndeleteArgs},
    error::Usage,
    global::Session,
    names::Collection,
    source_file::{self, SourceFile},
    values::{Span, parse_pair},
};
use turnbuckle_proto::v1;

/// What can be done with sources.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Verb {
    /// Creates a source. The answer shows the path its sender posts to, and a secret that was made
    /// here, once.
    Create(CreateArgs),
    /// Shows one source.
    Get(FindTarget),
    /// Lists the tenant's sources.
    List(FindArgs),
    /// Changes a source.
    Update(UpdateArgs),
    /// Deletes a source: its path is unknown and its keys verify nothing. It can be undeleted for 30 days.
    /// Events that were received stay.
    Delete(GuardedTarget),
    /// Brings a deleted source back, with its keys and its path.
    Undelete(UndeleteArgs),
    /// Takes requests again.
    Enable(GuardedTarget),
    /// Takes nothing for now: senders are answered 503 and asked to come again.
    Disable(DisableArgs),
    /// Gives a source another path; the present one is taken until the overlap ends.
    RotatePath(RotatePathArgs),
    /// Tries a correctly signed sample, or a captured request, and says of each step of the pipeline what
    /// it found. Nothing is stored without --deliver.
    Test(super::source_test::TestArgs),
    /// Lists what is known about providers, or shows one of them.
    Presets(PresetArgs),
}

/// Options that `source create` and `source update` share.
#[derive(Clone, Debug, clap::Args)]
pub struct Settings {
    /// Name for people.
    #[arg(long)]
    pub display_name: Option<String>,
    /// How requests are verified: a provider that `source presets` lists.
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// TOML, YAML or JSON file with a scheme of your own, in the form of presets; - for stdin. Without
    /// the ending .toml it is read as YAML or JSON.
    #[arg(long, value_name = "FILE", conflicts_with = "preset")]
    pub scheme_file: Option<String>,
    /// Text that the scheme asks for, such as webhook_id=…; repeat for more. An update replaces all
    /// texts before.
    #[arg(long = "scheme-setting", value_name = "NAME=TEXT", value_parser = parse_pair)]
    pub scheme_settings: Vec<(String, String)>,
    /// URL that the sender calls, where its signatures cover it.
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,
    /// YAML or JSON file with everything else, as `source get -o yaml` shows it; - for stdin. Options
    /// count more than the file.
    #[arg(long, value_name = "FILE")]
    pub file: Option<String>,
}

/// Options of `source create`.
#[derive(Clone, Debug, clap::Args)]
pub struct CreateArgs {
    /// Id of the new source. The server makes one when it is missing.
    #[arg(default_value = "", hide_default_value = true)]
    pub id: String,
    /// What it is.
    #[command(flatten)]
    pub settings: Settings,
    /// File with the first key, a secret or a public key, as the sender shows it; - for stdin.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["upsert", "generate_secret"])]
    pub secret_file: Option<String>,
    /// Make the first key here, for senders that take the secret from you.
    #[arg(long, conflicts_with = "upsert")]
    pub generate_secret: bool,
    /// Labels.
    #[command(flatten)]
    pub labels: Labels,
    /// What if it exists.
    #[command(flatten)]
    pub mode: CreateMode,
}

/// Options of `source update`.
#[derive(Clone, Debug, clap::Args)]
pub struct UpdateArgs {
    /// Which one.
    #[command(flatten)]
    pub target: GuardedTarget,
    /// What it is from now on.
    #[command(flatten)]
    pub settings: Settings,
    /// Labels.
    #[command(flatten)]
    pub labels: LabelChange,
    /// Whether it is meant.
    #[command(flatten)]
    pub dry: DryRun,
}

/// Options of `source disable`.
#[derive(Clone, Debug, clap::Args)]
pub struct DisableArgs {
    /// Which one.
    #[command(flatten)]
    pub target: GuardedTarget,
    /// Why, for whoever looks later.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub reason: String,
}

/// Options of `source rotate-path`.
#[derive(Clone, Debug, clap::Args)]
pub struct RotatePathArgs {
    /// Which one.
    #[command(flatten)]
    pub target: GuardedTarget,
    /// How long the present path is taken, 0 to 30d [default: 72h].
    #[arg(long, value_name = "DURATION")]
    pub overlap: Option<Span>,
}

/// Options of `source presets`.
#[derive(Clone, Debug, clap::Args)]
pub struct PresetArgs {
    /// The one to show, with its scheme.
    pub name: Option<String>,
    /// How many.
    #[command(flatten)]
    pub list: ListArgs,
}

pub(super) async fn run(verb: Verb, session: &mut Session) -> anyhow::Result<()> {
    let dry_run = match &verb {
        Verb::Create(args) => args.mode.dry.dry_run,
        Verb::Update(args) => args.dry.dry_run,
        Verb::Undelete(args) => args.dry.dry_run,
        _ => false,
    };
    let mut sources = session.client.sources();
    let parent = session.parent.clone();
    let full = |given: &str| Collection::Sources.name(&parent, given);
    let source = match verb {
        Verb::Create(args) if args.mode.upsert => {
            sources.update_source(upsert(create(parent, args)?)?).await?.into_inner()
        }
        Verb::Create(args) => Box::pin(session.client.create_source(create(parent, args)?)).await?,
        Verb::Get(target) => {
            let (name, show_deleted) = (full(&target.name)?, target.show_deleted);
            sources.get_source(v1::GetSourceRequest { name, show_deleted }).await?.into_inner()
        }
        Verb::Enable(target) => {
            let (name, etag) = (full(&target.name)?, target.etag);
            sources.enable_source(v1::EnableSourceRequest { name, etag }).await?.into_inner()
        }
        Verb::Disable(args) => {
            let request = v1::DisableSourceRequest {
                name: full(&args.target.name)?,
                etag: args.target.etag,
                reason: args.reason,
            };
            sources.disable_source(request).await?.into_inner()
        }
        Verb::Undelete(args) => {
            let request = v1::UndeleteSourceRequest {
                name: full(&args.target.name)?,
                uid: args.uid,
                etag: args.target.etag,
                validate_only: args.dry.dry_run,
            };
            sources.undelete_source(request).await?.into_inner()
        }
        Verb::Update(args) => {
            let name = full(&args.target.name)?;
            sources.update_source(update(name, args)?).await?.into_inner()
        }
        Verb::RotatePath(args) => {
            let request = v1::RotateIngestPathRequest {
                name: full(&args.target.name)?,
                etag: args.target.etag,
                overlap: args.overlap.map(Span::to_proto),
                ..Default::default()
            };
            session.client.rotate_ingest_path(request).await?
        }
        Verb::List(args) => return list(args, session).await,
        Verb::Delete(target) => {
            let name = full(&target.name)?;
            let request = v1::DeleteSourceRequest { name: name.clone(), etag: target.etag };
            sources.delete_source(request).await?;
            return session.output.removed(&name);
        }
        Verb::Test(args) => return super::source_test::run(args, session).await,
        Verb::Presets(args) => return presets(args, session).await,
    };
    session.output.one(&source)?;
    session.output.note_dry_run(dry_run)?;
    session.output.note_secret(&source.verification_secret)
}

async fn list(args: FindArgs, session: &mut Session) -> anyhow::Result<()> {
    let mut sources = session.client.sources();
    let (parent, show_deleted) = (session.parent.clone(), args.show_deleted);
    show_pages(&mut session.output, args.list.limit, async |page_size, page_token| {
        let parent = parent.clone();
        let request = v1::ListSourcesRequest { parent, page_size, page_token, show_deleted };
        let page = sources.list_sources(request).await?.into_inner();
        Ok((page.sources, page.next_page_token))
    })
    .await
}

async fn presets(args: PresetArgs, session: &mut Session) -> anyhow::Result<()> {
    let mut sources = session.client.sources();
    if let Some(given) = args.name {
        let id = given.strip_prefix("sourcePresets/").unwrap_or(&given);
        let name = format!("sourcePresets/{id}");
        let preset = sources.get_source_preset(v1::GetSourcePresetRequest { name }).await?;
        return session.output.one(preset.get_ref());
    }
    show_pages(&mut session.output, args.list.limit, async |page_size, page_token| {
        let request = v1::ListSourcePresetsRequest { page_size, page_token };
        let page = sources.list_source_presets(request).await?.into_inner();
        Ok((page.source_presets, page.next_page_token))
    })
    .await
}

fn create(parent: String, args: CreateArgs) -> anyhow::Result<v1::CreateSourceRequest> {
    let mut mask = Mask::default();
    let mut source = settings(&mut mask, args.settings)?;
    source.labels.extend(args.labels.map());
    Ok(v1::CreateSourceRequest {
        parent,
        source_id: args.id,
        source: Some(source),
        secret: read_secret(args.secret_file.as_deref())?,
        generate_secret: args.generate_secret,
        validate_only: args.mode.dry.dry_run,
        ..Default::default()
    })
}

/// The same as an update of everything, which creates what is missing.
fn upsert(request: v1::CreateSourceRequest) -> Result<v1::UpdateSourceRequest, Usage> {
    let v1::CreateSourceRequest { parent, source_id, source, validate_only, .. } = request;
    let name = upsert_name(Collection::Sources, &parent, &source_id)?;
    Ok(v1::UpdateSourceRequest {
        source: source.map(|source| v1::Source { name, etag: String::new(), ..source }),
        update_mask: everything(),
        allow_missing: true,
        validate_only,
    })
}

fn update(name: String, args: UpdateArgs) -> anyhow::Result<v1::UpdateSourceRequest> {
    let mut mask = Mask::default();
    let mut source = settings(&mut mask, args.settings)?;
    source.name = name;
    source.etag = args.target.etag;
    let labels = args.labels;
    if labels.clear_labels || !labels.labels.is_empty() {
        source.labels = mask.labels(labels);
    }
    Ok(v1::UpdateSourceRequest {
        source: Some(source),
        update_mask: mask.finish()?,
        validate_only: args.dry.dry_run,
        ..Default::default()
    })
}

/// What the file says, with the options in their places.
fn settings(mask: &mut Mask, settings: Settings) -> anyhow::Result<v1::Source> {
    let SourceFile { mut source, fields } = match &settings.file {
        Some(path) => SourceFile::parse(path, &read_input(path)?)?,
        None => SourceFile::default(),
    };
    for field in fields {
        mask.take(&field, Some(()));
    }
    if let Some(display_name) = settings.display_name {
        source.display_name = mask.take("display_name", Some(display_name));
    }
    if let Some(preset) = settings.preset {
        mask.drop("scheme");
        let preset = mask.take("preset", Some(preset));
        source.verification = Some(v1::source::Verification::Preset(preset));
    }
    if let Some(path) = &settings.scheme_file {
        mask.drop("preset");
        mask.take("scheme", Some(()));
        let scheme = source_file::scheme(path, &read_input(path)?)?;
        source.verification = Some(v1::source::Verification::Scheme(scheme));
    }
    if let Some(url) = settings.public_url {
        source.public_url = mask.take("public_url", Some(url));
    }
    if !settings.scheme_settings.is_empty() {
        source.scheme_settings = mask.pairs("scheme_settings", settings.scheme_settings, false);
    }
    Ok(source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Root {
        #[command(subcommand)]
        verb: Verb,
    }

    fn parsed(line: &str) -> Verb {
        Root::try_parse_from(line.split(' ')).unwrap().verb
    }

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn an_update_masks_what_the_file_and_the_options_say() {
        let file = file("answers: {acceptedStatus: 200}\nscheme: {settings: [a]}\nname: x\n");
        let line =
            format!("x update shop --file {} --preset github --label a=b", file.path().display());
        let Verb::Update(args) = parsed(&line) else { panic!("not an update") };
        let request = update("tenants/acme/sources/shop".to_owned(), args).unwrap();
        let mut paths = request.update_mask.unwrap().paths;
        paths.sort_unstable();
        assert_eq!(paths, ["answers", "labels", "name", "preset"]);
        let source = request.source.unwrap();
        assert_eq!(source.name, "tenants/acme/sources/shop");
        assert_eq!(source.answers.unwrap().accepted_status, 200);
        let preset = v1::source::Verification::Preset("github".to_owned());
        assert_eq!(source.verification, Some(preset));
    }

    #[test]
    fn create_carries_options_and_secret() {
        let secret = file("hunter2\n");
        let line = format!(
            "x create shop --preset github --secret-file {} --scheme-setting webhook_id=1",
            secret.path().display()
        );
        let Verb::Create(args) = parsed(&line) else { panic!("not a create") };
        let request = create("tenants/acme".into(), args).unwrap();
        assert_eq!((request.source_id.as_str(), request.secret.as_str()), ("shop", "hunter2"));
        assert_eq!(request.source.unwrap().scheme_settings["webhook_id"], "1");
    }

    #[test]
    fn a_scheme_file_has_the_form_of_presets() {
        let toml = "[signature]\nat = [\"header:x-s\"]\nencoding = \"hex\"\ntemplate = \"{body}\"\n\
                    [[signature.algorithms]]\nalgorithm = \"hmac-sha256\"\n\
                    key = { encoding = \"utf8\", min_bytes = 8 }\n";
        let scheme = source_file::scheme("own.toml", toml.as_bytes()).unwrap();
        let json = r#"{"signature":{"at":["header:x-s"],"encoding":"hex","template":"{body}",
            "algorithms":[{"algorithm":"hmac-sha256","key":{"encoding":"utf8","min_bytes":8}}]}}"#;
        assert_eq!(source_file::scheme("own.json", json.as_bytes()).unwrap(), scheme);
        for bad in ["[signature]", "x", "{"] {
            assert!(source_file::scheme("own.toml", bad.as_bytes()).unwrap_err().is::<Usage>());
            assert!(source_file::scheme("-", bad.as_bytes()).unwrap_err().is::<Usage>());
        }
        let path = file(json).path().with_extension("json");
        std::fs::write(&path, json).unwrap();
        let Verb::Update(args) = parsed(&format!("x update shop --scheme-file {}", path.display()))
        else {
            panic!("not an update")
        };
        let request = update("tenants/acme/sources/shop".to_owned(), args).unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!(request.update_mask.unwrap().paths, ["scheme"]);
    }

    #[test]
    fn an_update_without_a_change_is_wrong_usage() {
        let Verb::Update(args) = parsed("x update shop") else { panic!("not an update") };
        assert!(update("tenants/acme/sources/shop".to_owned(), args).is_err());
    }
}
