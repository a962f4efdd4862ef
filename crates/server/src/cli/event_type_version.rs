//! `turnbuckle event-type version …`

use super::{
    common::{CreateMode, ListArgs, literal_or_file, show_pages},
    error::Usage,
    global::Session,
    names::{self, Collection},
    values::parse_etag,
};
use turnbuckle_proto::v1;

/// What can be done with versions of event types.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Verb {
    /// Registers a version with its JSON Schema. It never changes: a new schema is a new version.
    Create(CreateArgs),
    /// Shows one version.
    Get(GetArgs),
    /// Lists the versions of an event type.
    List(FindArgs),
    /// Deletes a version. The latest one stays while the event type asks for compatibility.
    Delete(DeleteArgs),
}

/// Which version.
#[derive(Clone, Debug, clap::Args)]
pub struct VersionArgs {
    /// Event type, such as order.paid.
    pub event_type: String,
    /// The version, such as 2: what events carry.
    pub version: String,
}

/// Options of `event-type version create`.
#[derive(Clone, Debug, clap::Args)]
pub struct CreateArgs {
    /// Which one.
    #[command(flatten)]
    pub version: VersionArgs,
    /// JSON Schema: the text itself, @FILE, or - for stdin. Kept byte for byte.
    #[arg(long)]
    pub schema: String,
    /// What is new, for people.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub description: String,
    /// What if it exists: with the same schema it is left as it is, with another it is refused.
    #[command(flatten)]
    pub mode: CreateMode,
}

/// Options of `event-type version get`.
#[derive(Clone, Debug, clap::Args)]
pub struct GetArgs {
    /// Which one.
    #[command(flatten)]
    pub version: VersionArgs,
    /// Writes the schema alone, byte for byte.
    #[arg(long)]
    pub schema: bool,
}

/// Options of `event-type version list`.
#[derive(Clone, Debug, clap::Args)]
pub struct FindArgs {
    /// Event type, such as order.paid.
    pub event_type: String,
    /// How many.
    #[command(flatten)]
    pub list: ListArgs,
}

/// Options of `event-type version delete`.
#[derive(Clone, Debug, clap::Args)]
pub struct DeleteArgs {
    /// Which one.
    #[command(flatten)]
    pub version: VersionArgs,
    /// Fail unless the version still has this etag.
    #[arg(long, default_value = "", hide_default_value = true, value_parser = parse_etag)]
    pub etag: String,
}

pub(super) async fn run(verb: Verb, session: &mut Session) -> anyhow::Result<()> {
    let mut versions = session.client.event_type_versions();
    let event_type = |given: &str| Collection::EventTypes.name(&session.parent, given);
    let full = |given: &VersionArgs| -> Result<String, Usage> {
        names::version(&event_type(&given.event_type)?, &given.version)
    };
    match verb {
        Verb::Create(args) => {
            let dry_run = args.mode.dry.dry_run;
            let request = create(event_type(&args.version.event_type)?, args)?;
            let made = session.client.create_event_type_version(request).await?;
            session.output.one(&made)?;
            session.output.note_dry_run(dry_run)
        }
        Verb::Get(args) => {
            let request = v1::GetEventTypeVersionRequest { name: full(&args.version)? };
            let version = versions.get_event_type_version(request).await?.into_inner();
            match args.schema {
                true => session.output.raw(version.schema.as_bytes()),
                false => session.output.one(&version),
            }
        }
        Verb::List(args) => {
            let parent = event_type(&args.event_type)?;
            let limit = args.list.limit;
            show_pages(&mut session.output, limit, async |page_size, page_token| {
                let parent = parent.clone();
                let request = v1::ListEventTypeVersionsRequest { parent, page_size, page_token };
                let page = versions.list_event_type_versions(request).await?.into_inner();
                Ok((page.event_type_versions, page.next_page_token))
            })
            .await
        }
        Verb::Delete(args) => {
            let name = full(&args.version)?;
            let request = v1::DeleteEventTypeVersionRequest { name: name.clone(), etag: args.etag };
            versions.delete_event_type_version(request).await?;
            session.output.removed(&name)
        }
    }
}

fn create(parent: String, args: CreateArgs) -> anyhow::Result<v1::CreateEventTypeVersionRequest> {
    let schema = String::from_utf8(literal_or_file(&args.schema)?)
        .map_err(|_| Usage("--schema is no text: a JSON Schema is JSON in UTF-8".to_owned()))?;
    Ok(v1::CreateEventTypeVersionRequest {
        parent,
        event_type_version_id: args.version.version,
        event_type_version: Some(v1::EventTypeVersion {
            schema,
            description: args.description,
            ..Default::default()
        }),
        validate_only: args.mode.dry.dry_run,
        allow_existing: args.mode.upsert,
        ..Default::default()
    })
}
