//! `turnbuckle apply` and `turnbuckle export`: configuration as files.
//!
//! ```text
//!  files ──► documents, in order ──► get ──► update (allow_missing, or validate_only) ──► what changed
//!                                                            └── --prune ──► delete what bears the label
//! ```
//! The server decides what a declaration means; this only asks it, one resource after the other.

mod diff;
mod export;
mod kind;
mod manifest;
mod remote;
mod report;

pub(super) use export::{ExportArgs, export};

use super::{
    error::{Report, Usage},
    global::Session,
    values::parse_pair,
};
use anyhow::Context as _;
use kind::KINDS;
use manifest::Document;
use remote::{Remote, Update};
use report::{Action, Outcome};
use serde_json::Value;
use std::{
    collections::{BTreeSet, HashSet},
    fs::{File, OpenOptions},
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
};
use tonic::{Code, Status};
use turnbuckle_client::ApiError;

/// Options of `apply`.
#[derive(Clone, Debug, clap::Args)]
pub struct ApplyArgs {
    /// File with YAML or JSON documents, a folder of such files, or - for stdin; repeat for more.
    #[arg(short, long = "file", required = true, value_name = "PATH")]
    files: Vec<String>,
    /// Show what would change, field by field, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Set only the fields that the documents have. Without it a document is the whole resource: what it
    /// leaves out goes back to its default.
    #[arg(long)]
    partial: bool,
    /// Delete resources that bear the labels of --label and are in no document. Tenants are never
    /// deleted.
    #[arg(long, requires = "labels")]
    prune: bool,
    /// Label of what --prune may delete; repeat for more, all must be there.
    #[arg(short = 'l', long = "label", value_name = "KEY=VALUE", value_parser = parse_pair)]
    labels: Vec<(String, String)>,
    /// File for the signing secrets of endpoints that this makes, one `NAME SECRET` a line. They are
    /// shown once: without it, make new ones with `turnbuckle key rotate`.
    #[arg(long, value_name = "FILE")]
    secrets_file: Option<String>,
}

/// Whether the server found nothing wrong but that something is not there: every other fault is one of
/// the document, also while what it refers to is not made.
fn misses_only(document: &Document, status: &Status) -> bool {
    if status.code() == Code::NotFound {
        return true;
    }
    let field = document.kind.field;
    let references = document.kind.references.iter();
    let names: Vec<String> =
        references.map(|(json, _)| format!("{field}.{}", snake_case(json))).collect();
    let violations = ApiError::new(status).violations;
    status.code() == Code::InvalidArgument
        && !violations.is_empty()
        && violations.iter().all(|found| names.contains(&found.field))
}

/// `retry_policy` of `retryPolicy`: violations have the names of the contract.
fn snake_case(json_name: &str) -> String {
    json_name.chars().fold(String::new(), |mut name, c| {
        if c.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
        name
    })
}

/// An application under way.
struct Apply<'a> {
    args: &'a ApplyArgs,
    remote: Remote,
    outcomes: Vec<Outcome>,
    /// Names that a dry run would have made by now.
    planned: HashSet<String>,
    secrets: Secrets,
    failure: Option<Status>,
}

pub(super) async fn apply(args: ApplyArgs, session: &mut Session) -> anyhow::Result<()> {
    let documents = manifest::read(&args.files, &session.parent)?;
    let remote = Remote::new(&session.client)?;
    check_all(&remote, &documents)?;
    // Before anything is made: a secret that cannot be kept is lost.
    let secrets = Secrets::open(args.secrets_file.as_deref().filter(|_| !args.dry_run))?;
    let mut apply = Apply {
        args: &args,
        remote,
        outcomes: Vec::with_capacity(documents.len()),
        planned: HashSet::new(),
        secrets,
        failure: None,
    };
    for document in &documents {
        if let Err(status) = apply.one(document).await {
            let told = Report::of(&status.clone().into()).text;
            session.output.note(&format!("{} ({}):", document.name, document.place))?;
            session.output.note(told.trim_end())?;
            apply.failure.get_or_insert(status);
        }
    }
    if args.prune {
        note_unlabelled(&documents, &args.labels, session)?;
    }
    let pruned = match (args.prune, &apply.failure) {
        (true, None) => apply.prune(&documents, &session.parent).await,
        _ => Ok(()),
    };
    let Apply { outcomes, secrets, failure, .. } = apply;
    secrets.tell(&args, session)?;
    report::show(&mut session.output, &outcomes, args.dry_run)?;
    pruned?;
    match failure {
        None => Ok(()),
        Some(status) => Err(unfinished(&documents, &outcomes, &args, &status)),
    }
}

/// Everything that no server needs to be asked about, at once and before anything is changed.
fn check_all(remote: &Remote, documents: &[Document]) -> Result<(), Usage> {
    let wrong: Vec<String> = documents
        .iter()
        .filter_map(|document| {
            let error = remote.check(document).err()?;
            Some(format!("{}: {}: {error}", document.place, document.name))
        })
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(Usage(wrong.join("\n"))) }
}

impl Apply<'_> {
    async fn one(&mut self, document: &Document) -> Result<(), Status> {
        let before = self.remote.get(document.kind, &document.name).await;
        let before = match before {
            // The tenant is not there yet: a dry run goes on.
            Err(status) if self.is_planned(document, &status) => None,
            before => before?,
        };
        let update = Update {
            exists: before.is_some(),
            partial: self.args.partial,
            validate_only: self.args.dry_run,
        };
        let after = match self.remote.update(document, update).await {
            Err(status) if before.is_none() && self.is_planned(document, &status) => None,
            after => Some(after?),
        };
        let name = document.name.clone();
        let changes = match (&before, &after) {
            (Some(before), Some(after)) => diff::changes(document.kind, before, after),
            _ => Vec::new(),
        };
        let same = |key| {
            before.as_ref().and_then(|old| old.get(key))
                == after.as_ref().and_then(|new| new.get(key))
        };
        let action = match before {
            None => Action::Created,
            Some(_) if changes.is_empty() && (self.args.dry_run || same("revision")) => {
                Action::Unchanged
            }
            Some(_) => Action::Changed,
        };
        if action == Action::Created {
            self.planned.insert(name.clone());
        }
        let secret = after.and_then(|mut after| after.remove("signingSecret"));
        let kept = match secret {
            Some(Value::String(secret)) => self.secrets.keep(&name, &secret),
            _ => Ok(()),
        };
        self.outcomes.push(Outcome { name, action, changes });
        kept.map_err(|error| Status::unknown(error.to_string()))
    }

    /// Whether the server refuses only because a dry run has not made what the document needs.
    fn is_planned(&self, document: &Document, status: &Status) -> bool {
        self.args.dry_run
            && misses_only(document, status)
            && (self.planned.contains(document.tenant())
                || document
                    .body
                    .values()
                    .any(|value| value.as_str().is_some_and(|text| self.planned.contains(text))))
    }

    /// What refers goes before what is referred to.
    async fn prune(&mut self, documents: &[Document], parent: &str) -> Result<(), Status> {
        let declared: HashSet<&str> = documents.iter().map(|it| it.name.as_str()).collect();
        let mut tenants: BTreeSet<&str> = documents.iter().map(Document::tenant).collect();
        if documents.is_empty() {
            tenants.insert(parent);
        }
        for tenant in tenants.into_iter().filter(|tenant| !self.planned.contains(*tenant)) {
            for kind in KINDS.iter().rev().filter(|kind| !kind.is_tenant()) {
                for row in self.remote.list(kind, tenant).await? {
                    let Some(Value::String(name)) = row.get("name") else { continue };
                    let labels = row.get("labels");
                    let bears = self.args.labels.iter().all(|(key, value)| {
                        labels.and_then(|labels| labels.get(key))
                            == Some(&Value::from(value.as_str()))
                    });
                    if bears && !declared.contains(name.as_str()) {
                        if !self.args.dry_run {
                            self.remote.delete(kind, name).await?;
                        }
                        let (name, changes) = (name.clone(), Vec::new());
                        self.outcomes.push(Outcome { name, action: Action::Deleted, changes });
                    }
                }
            }
        }
        Ok(())
    }
}

/// What does not bear the labels stays when its document goes: that is easily overlooked.
fn note_unlabelled(
    documents: &[Document],
    labels: &[(String, String)],
    session: &mut Session,
) -> anyhow::Result<()> {
    let bears =
        |document: &&Document| labels.iter().all(|(key, value)| document.label(key) == Some(value));
    let others = documents.iter().filter(|document| !document.kind.is_tenant());
    let without = others.filter(|document| !bears(document)).count();
    if without == 0 {
        return Ok(());
    }
    session.output.note(&format!(
        "note: {without} documents do not bear the labels of --prune; once they leave the files, their \
         resources stay"
    ))
}

/// Secrets that the server shows once. Each is on the disk before the next document is applied.
struct Secrets {
    file: Option<File>,
    made: usize,
}

impl Secrets {
    /// Opens the file, for its owner's eyes only, if there is to be one.
    fn open(path: Option<&str>) -> anyhow::Result<Self> {
        let open = |path: &str| {
            let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
            file.with_context(|| format!("cannot write --secrets-file {path}"))
        };
        Ok(Self { file: path.map(open).transpose()?, made: 0 })
    }

    fn keep(&mut self, name: &str, secret: &str) -> anyhow::Result<()> {
        self.made += 1;
        let Some(file) = &mut self.file else { return Ok(()) };
        let written = writeln!(file, "{name} {secret}").and_then(|()| file.sync_all());
        written.with_context(|| {
            format!("{name} was made, but its secret was not kept: run `turnbuckle key rotate`")
        })
    }

    /// Says what became of them.
    fn tell(&self, args: &ApplyArgs, session: &mut Session) -> anyhow::Result<()> {
        let made = match self.made {
            0 => return Ok(()),
            1 => "1 signing secret".to_owned(),
            count => format!("{count} signing secrets"),
        };
        match &args.secrets_file {
            Some(path) => session.output.note(&format!("note: added to {path}: {made}")),
            None => session.output.note(&format!(
                "note: made and not shown: {made}; give --secrets-file to keep such secrets, or make \
                 others with `turnbuckle key rotate`"
            )),
        }
    }
}

fn unfinished(
    documents: &[Document],
    outcomes: &[Outcome],
    args: &ApplyArgs,
    first: &Status,
) -> anyhow::Error {
    let failed = documents.len() - outcomes.len().min(documents.len());
    let rest = if args.prune { "; nothing was pruned" } else { "" };
    let text = format!("{failed} of {} documents were not applied{rest}", documents.len());
    // The first failure's kind decides the exit code; its details were told above.
    Status::new(first.code(), text).into()
}
