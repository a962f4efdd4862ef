//! Reads files: YAML or JSON documents, each the declaration of one resource.
//!
//! ```yaml
//! kind: Endpoint
//! name: orders-hook
//! http:
//!   url: https://example.org/hooks
//! labels: {managed-by: git}
//! ```

use super::kind::{KINDS, Kind};
use crate::cli::{common::read_input, error::Usage, names};
use anyhow::Context as _;
use serde::Deserialize as _;
use serde_json::{Map, Value};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

/// Folders inside each other; more is a mistake, or a link that leads back.
const DEPTH_MAX: usize = 8;
/// Documents of one call: each costs two requests.
const DOCUMENTS_MAX: usize = 10_000;
/// Ends of the names of files that are read in a folder.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// One declared resource.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) kind: &'static Kind,
    /// `tenants/{tenant}/…`.
    pub(super) name: String,
    /// The resource in its JSON form, without its name.
    pub(super) body: Map<String, Value>,
    /// Where it stands, for messages.
    pub(super) place: String,
}

impl Document {
    /// `tenants/{tenant}` of whatever it is.
    pub(super) fn tenant(&self) -> &str {
        let end = self.name.match_indices('/').nth(1).map_or(self.name.len(), |(at, _)| at);
        &self.name[..end]
    }

    /// Its labels.
    pub(super) fn label(&self, key: &str) -> Option<&str> {
        self.body.get("labels")?.get(key)?.as_str()
    }
}

/// Everything declared below the paths, in the order in which it can be made.
pub(super) fn read(paths: &[String], parent: &str) -> anyhow::Result<Vec<Document>> {
    let mut documents = Vec::new();
    let mut wrong = Vec::new();
    for file in files(paths)? {
        let text = String::from_utf8(read_input(&file)?)
            .map_err(|_| Usage(format!("{file} is no UTF-8 text")))?;
        for (index, parsed) in parse(&text).into_iter().enumerate() {
            let place = format!("{file}, document {}", index + 1);
            match parsed.and_then(|value| document(value, parent, place.clone())) {
                Ok(Some(document)) => documents.push(document),
                Ok(None) => {}
                Err(error) => wrong.push(format!("{place}: {error}")),
            }
        }
    }
    wrong.extend(repeated(&documents));
    if documents.len() > DOCUMENTS_MAX {
        let found = documents.len();
        wrong.push(format!("{found} documents: apply at most {DOCUMENTS_MAX} at once"));
    }
    match wrong.is_empty() {
        true => {
            documents.sort_by_key(|document| document.kind.rank());
            Ok(documents)
        }
        false => Err(Usage(wrong.join("\n")).into()),
    }
}

/// The files meant: those named, and those in the folders named, sorted by path.
fn files(paths: &[String]) -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    for path in paths {
        let named = Path::new(path);
        if path != "-" && named.is_dir() {
            let mut found = Vec::new();
            walk(named, 0, &mut found)?;
            if found.is_empty() {
                let ends = EXTENSIONS.join(", .");
                return Err(Usage(format!("{path} has no file that ends in .{ends}")).into());
            }
            found.sort();
            files.extend(found.into_iter().map(|file| file.to_string_lossy().into_owned()));
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

fn walk(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if depth > DEPTH_MAX {
        let text = format!("{} is more than {DEPTH_MAX} folders deep", folder.display());
        return Err(Usage(text).into());
    }
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("cannot read the folder {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let is_ours = || {
            let end = path.extension().and_then(|end| end.to_str());
            end.is_some_and(|end| EXTENSIONS.contains(&end))
        };
        if hidden {
            continue;
        }
        if path.is_dir() {
            walk(&path, depth + 1, found)?;
        } else if is_ours() {
            found.push(path);
        }
    }
    Ok(())
}

/// The documents of a text; what follows a broken one cannot be read.
fn parse(text: &str) -> Vec<Result<Value, String>> {
    let mut parsed = Vec::new();
    for document in serde_norway::Deserializer::from_str(text) {
        let value = Value::deserialize(document).map_err(|error| error.to_string());
        let broken = value.is_err();
        parsed.push(value);
        if broken {
            break;
        }
    }
    parsed
}

/// None for an empty document, such as the one behind a last `---`.
fn document(value: Value, parent: &str, place: String) -> Result<Option<Document>, String> {
    let mut body = match value {
        Value::Null => return Ok(None),
        Value::Object(body) => body,
        _ => return Err("is no mapping of fields".into()),
    };
    let kind = text(&mut body, "kind")?;
    let kind = Kind::named(&kind).ok_or_else(|| {
        let known: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        format!("kind {kind:?} is unknown: use {}", known.join(", "))
    })?;
    let given = text(&mut body, "name")?;
    let parent = match body.remove("tenant") {
        None => parent.to_owned(),
        Some(Value::String(tenant)) => names::tenant(&tenant).map_err(|error| error.to_string())?,
        Some(_) => return Err("tenant is no text".into()),
    };
    let name = full_name(kind, &parent, &given)?;
    let mut document = Document { kind, name, body, place };
    expand_references(&mut document);
    Ok(Some(document))
}

fn text(body: &mut Map<String, Value>, field: &str) -> Result<String, String> {
    match body.remove(field) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        Some(Value::String(_)) | None => Err(format!("{field} is missing")),
        Some(_) => Err(format!("{field} is no text")),
    }
}

fn full_name(kind: &Kind, parent: &str, given: &str) -> Result<String, String> {
    if kind.is_tenant() {
        return names::tenant(given).map_err(|error| error.to_string());
    }
    names::full(kind.segment, parent, given).map_err(|error| error.to_string())
}

/// Short names of other resources become full ones of the same tenant.
fn expand_references(document: &mut Document) {
    let tenant = document.tenant().to_owned();
    for (field, segment) in document.kind.references {
        for written in [(*field).to_owned(), snake_case(field)] {
            if let Some(Value::String(name)) = document.body.get_mut(&written)
                && !name.is_empty()
                && !name.contains('/')
            {
                *name = format!("{tenant}/{segment}/{name}");
            }
        }
    }
}

/// `retry_policy` of `retryPolicy`: both are read.
pub(super) fn snake_case(json_name: &str) -> String {
    let mut name = String::with_capacity(json_name.len() + 4);
    for c in json_name.chars() {
        if c.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

/// Two documents of one resource contradict each other, whatever they say.
fn repeated(documents: &[Document]) -> Vec<String> {
    let mut first: HashMap<&str, &str> = HashMap::new();
    let mut wrong = Vec::new();
    for document in documents {
        if let Some(before) = first.insert(&document.name, &document.place) {
            wrong.push(format!(
                "{}: {} is declared before, in {before}",
                document.place, document.name
            ));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<Document>, String> {
        let file = std::env::temp_dir().join(format!("turnbuckle-{}.yaml", uuid::Uuid::now_v7()));
        std::fs::write(&file, text).unwrap();
        let path = file.to_str().unwrap().to_owned();
        let documents = read(std::slice::from_ref(&path), "tenants/acme");
        std::fs::remove_file(&file).unwrap();
        documents.map_err(|error| error.to_string().replace(&path, "FILE"))
    }

    #[test]
    fn documents_come_in_the_order_in_which_they_can_be_made() {
        let documents = read_text(
            "kind: Subscription\nname: paid\nendpoint: hook\n---\n\
             kind: Endpoint\nname: hook\nretry_policy: patient\n---\n\
             kind: Tenant\nname: acme\n---\n",
        )
        .unwrap();
        let names: Vec<&str> = documents.iter().map(|document| document.name.as_str()).collect();
        let subscription = "tenants/acme/subscriptions/paid";
        assert_eq!(names, ["tenants/acme", "tenants/acme/endpoints/hook", subscription]);
        assert_eq!(documents[2].body["endpoint"], "tenants/acme/endpoints/hook");
        assert_eq!(documents[1].body["retry_policy"], "tenants/acme/retryPolicies/patient");
        assert_eq!(documents[1].tenant(), "tenants/acme");
        assert_eq!(documents[0].tenant(), "tenants/acme");
    }

    #[test]
    fn a_document_can_name_its_tenant() {
        let documents = read_text("kind: Endpoint\ntenant: other\nname: hook\n").unwrap();
        assert_eq!(documents[0].name, "tenants/other/endpoints/hook");
        let documents = read_text("kind: Endpoint\nname: tenants/other/endpoints/hook\n").unwrap();
        assert_eq!(documents[0].tenant(), "tenants/other");
    }

    #[test]
    fn everything_wrong_is_said_at_once_with_its_place() {
        let error = read_text(
            "kind: Endpont\nname: a\n---\nname: b\n---\nkind: Endpoint\n---\n- a\n---\n\
             kind: Tenant\nname: t\n---\nkind: Tenant\nname: t\n",
        )
        .unwrap_err();
        let lines: Vec<&str> = error.lines().collect();
        assert_eq!(lines.len(), 5, "{error}");
        assert!(lines[0].starts_with("FILE, document 1: kind \"Endpont\" is unknown: use Tenant"));
        assert_eq!(lines[1], "FILE, document 2: kind is missing");
        assert_eq!(lines[2], "FILE, document 3: name is missing");
        assert_eq!(lines[3], "FILE, document 4: is no mapping of fields");
        assert!(lines[4].contains("tenants/t is declared before, in FILE, document 5"), "{error}");
    }

    #[test]
    fn a_broken_file_is_named() {
        let error = read_text("kind: Endpoint\nname: a\n---\nx: [\n").unwrap_err();
        assert!(error.starts_with("FILE, document 2: "), "{error}");
    }
}
