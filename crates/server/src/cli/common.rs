//! Arguments that several nouns share.

use super::{
    error::Usage,
    names::Collection,
    output::Output,
    resource::Resource,
    values::{parse_etag, parse_pair},
};
use anyhow::Context as _;
use prost_types::FieldMask;
use std::{
    collections::HashMap,
    io::{self, Read as _},
    path::Path,
};
use tonic::Status;

/// Largest page the server gives.
const PAGE_MAX: u32 = 1000;

/// Most bytes read from a file or stdin: above every limit of the server, so that it can say which
/// one is broken, and far below what would hurt this machine.
const INPUT_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// The resource a verb works on.
#[derive(Clone, Debug, clap::Args)]
pub struct Target {
    /// Name, short (`orders-hook`) or full (`tenants/acme/…/orders-hook`).
    pub name: String,
}

/// The resource a changing verb works on.
#[derive(Clone, Debug, clap::Args)]
pub struct GuardedTarget {
    /// Name, short (`orders-hook`) or full (`tenants/acme/…/orders-hook`).
    pub name: String,
    /// Fail unless the resource still has this etag.
    #[arg(long, default_value = "", hide_default_value = true, value_parser = parse_etag)]
    pub etag: String,
}

/// How much a list shows.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct ListArgs {
    /// Most rows to show.
    #[arg(long, default_value_t = 200, value_name = "N")]
    pub limit: u32,
}

/// Labels of a new resource.
#[derive(Clone, Debug, clap::Args)]
pub struct Labels {
    /// Free pair for your own bookkeeping; repeat for more.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub labels: Vec<(String, String)>,
}

impl Labels {
    pub(crate) fn map(self) -> HashMap<String, String> {
        self.labels.into_iter().collect()
    }
}

/// New labels of a resource.
#[derive(Clone, Debug, clap::Args)]
pub struct LabelChange {
    /// The labels from now on; repeat for more. They replace all labels before.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub labels: Vec<(String, String)>,
    /// Removes all labels.
    #[arg(long, conflicts_with = "labels")]
    pub clear_labels: bool,
}

/// Whether a change is meant.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct DryRun {
    /// Check everything and show what would be, but change nothing.
    #[arg(long)]
    pub dry_run: bool,
}

/// What a creation does with what is there.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct CreateMode {
    /// Change it to exactly these settings if it exists already, keys and secrets aside. Running the
    /// same command again changes nothing: for services that register themselves.
    #[arg(long)]
    pub upsert: bool,
    /// Whether it is meant.
    #[command(flatten)]
    pub dry: DryRun,
}

/// The whole of a resource.
pub(crate) fn everything() -> Option<FieldMask> {
    Some(FieldMask { paths: vec!["*".to_owned()] })
}

/// The name of what is to be there: one that the server makes cannot be found again.
pub(crate) fn upsert_name(collection: Collection, parent: &str, id: &str) -> Result<String, Usage> {
    if id.is_empty() {
        return Err(Usage("--upsert needs the id: without one, another is made each time".into()));
    }
    collection.name(parent, id)
}

/// Collects which fields an update changes.
#[derive(Debug, Default)]
pub(crate) struct Mask(Vec<String>);

impl Mask {
    /// Notes the field when there is a value, and gives the value or its default.
    pub(crate) fn take<T: Default>(&mut self, path: &str, value: Option<T>) -> T {
        if value.is_some() && !self.0.iter().any(|noted| noted == path) {
            self.0.push(path.to_owned());
        }
        value.unwrap_or_default()
    }

    /// The same for pairs that replace all pairs before.
    pub(crate) fn pairs(
        &mut self,
        path: &str,
        pairs: Vec<(String, String)>,
        clear: bool,
    ) -> HashMap<String, String> {
        self.take(path, (clear || !pairs.is_empty()).then(|| pairs.into_iter().collect()))
    }

    pub(crate) fn labels(&mut self, change: LabelChange) -> HashMap<String, String> {
        self.pairs("labels", change.labels, change.clear_labels)
    }

    /// Takes a field out again.
    pub(crate) fn drop(&mut self, path: &str) {
        self.0.retain(|noted| noted != path);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The mask for the request.
    pub(crate) fn finish(self) -> Result<Option<FieldMask>, Usage> {
        if self.is_empty() {
            return Err(Usage("nothing to change: give at least one option".to_owned()));
        }
        Ok(Some(FieldMask { paths: self.0 }))
    }
}

/// Fetches pages until the limit or the end, and shows them.
pub(crate) async fn show_pages<R: Resource>(
    output: &mut Output,
    limit: u32,
    mut page: impl AsyncFnMut(i32, String) -> Result<(Vec<R>, String), Status>,
) -> anyhow::Result<()> {
    let mut rows: Vec<R> = Vec::new();
    let mut token = String::new();
    loop {
        let left = limit.saturating_sub(u32::try_from(rows.len()).unwrap_or(u32::MAX));
        if left == 0 {
            break;
        }
        let size = i32::try_from(left.min(PAGE_MAX)).unwrap_or(i32::MAX);
        let (more, next) = page(size, token).await?;
        rows.extend(more);
        token = next;
        if token.is_empty() {
            break;
        }
    }
    output.many(&rows)?;
    if !token.is_empty() {
        output.note(&format!("note: there are more than {}; see more with --limit", rows.len()))?;
    }
    Ok(())
}

/// The content of a file, or of stdin for `-`.
pub(crate) fn read_input(path: &str) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if path == "-" {
        io::stdin().lock().take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    } else {
        std::fs::File::open(Path::new(path))
            .and_then(|file| file.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes))
            .with_context(|| format!("cannot read {path}"))?;
    }
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        return Err(Usage(format!("{path} has more than 8 MiB")).into());
    }
    Ok(bytes)
}

/// An argument that is the text itself, `@FILE`, or `-` for stdin.
pub(crate) fn literal_or_file(given: &str) -> anyhow::Result<Vec<u8>> {
    match given.strip_prefix('@') {
        Some(path) => read_input(path),
        None if given == "-" => read_input(given),
        None => Ok(given.as_bytes().to_vec()),
    }
}

/// A secret from a file or stdin: arguments are visible to other users of the machine.
pub(crate) fn read_secret(path: Option<&str>) -> anyhow::Result<String> {
    let Some(path) = path else {
        return Ok(String::new());
    };
    let text = String::from_utf8(read_input(path)?)
        .map_err(|_| Usage(format!("{path} holds no text secret")))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_names_exactly_the_given_fields() {
        let mut mask = Mask::default();
        assert_eq!(mask.take("display_name", Some("x".to_owned())), "x");
        assert_eq!(mask.take::<i32>("max_in_flight", None), 0);
        assert!(mask.pairs("labels", Vec::new(), true).is_empty());
        assert_eq!(mask.finish().unwrap().unwrap().paths, ["display_name", "labels"]);
    }

    #[test]
    fn an_update_without_a_change_is_wrong_usage() {
        assert!(Mask::default().finish().is_err());
    }

    #[test]
    fn an_argument_is_a_literal_or_a_file_and_never_changed() {
        assert_eq!(literal_or_file("{ \"a\" :1 }").unwrap(), b"{ \"a\" :1 }");
        let path = std::env::temp_dir().join(format!("turnbuckle-{}", uuid::Uuid::now_v7()));
        std::fs::write(&path, b"\xff\x00\n").unwrap();
        let given = format!("@{}", path.display());
        assert_eq!(literal_or_file(&given).unwrap(), b"\xff\x00\n");
        std::fs::remove_file(&path).unwrap();
        assert!(literal_or_file("@/nonexistent/file").is_err());
    }

    #[test]
    fn input_files_are_read_as_they_are_and_secrets_without_white_space() {
        let path = std::env::temp_dir().join(format!("turnbuckle-{}", uuid::Uuid::now_v7()));
        std::fs::write(&path, " whsec_x\n").unwrap();
        let given = path.to_str().unwrap();
        assert_eq!(read_input(given).unwrap(), b" whsec_x\n");
        assert_eq!(read_secret(Some(given)).unwrap(), "whsec_x");
        std::fs::remove_file(&path).unwrap();
        assert!(read_input(given).unwrap_err().to_string().contains(given));
    }
}
