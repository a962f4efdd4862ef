//! What an application changes, field by field.

use super::kind::Kind;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Longest value shown in a line.
const SHOWN_CHARS: usize = 60;

/// One field that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Change {
    /// `http.url`.
    pub(super) path: String,
    /// Its value before; none when it was not set.
    pub(super) before: Option<Value>,
    /// Its value after.
    pub(super) after: Option<Value>,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (before, after) = (shown(self.before.as_ref()), shown(self.after.as_ref()));
        write!(f, "{}: {before} -> {after}", self.path)
    }
}

/// The declared fields that differ, by path.
pub(super) fn changes(
    kind: &Kind,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Vec<Change> {
    let (mut old, mut new) = (BTreeMap::new(), BTreeMap::new());
    flatten(kind, before, &mut old);
    flatten(kind, after, &mut new);
    let mut paths: Vec<&String> = old.keys().chain(new.keys()).collect();
    paths.sort_unstable();
    paths.dedup();
    let differing = paths.into_iter().filter(|path| old.get(*path) != new.get(*path));
    let change = |path: &String| Change {
        path: path.clone(),
        before: old.get(path).map(|value| (*value).clone()),
        after: new.get(path).map(|value| (*value).clone()),
    };
    differing.map(change).collect()
}

fn flatten<'v>(
    kind: &Kind,
    resource: &'v Map<String, Value>,
    into: &mut BTreeMap<String, &'v Value>,
) {
    for (field, value) in resource.iter().filter(|(field, _)| kind.declares(field)) {
        flatten_value(field.clone(), value, into);
    }
}

fn flatten_value<'v>(path: String, value: &'v Value, into: &mut BTreeMap<String, &'v Value>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                flatten_value(format!("{path}.{field}"), value, into);
            }
        }
        _ => {
            into.insert(path, value);
        }
    }
}

fn shown(value: Option<&Value>) -> String {
    let text = value.map_or_else(|| "(none)".to_owned(), Value::to_string);
    if text.chars().count() <= SHOWN_CHARS {
        return text;
    }
    let start: String = text.chars().take(SHOWN_CHARS).collect();
    format!("{start}…")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    #[test]
    fn only_declared_fields_that_differ_are_changes() {
        let kind = Kind::named("Endpoint").unwrap();
        let before = object(json!({
            "name": "tenants/a/endpoints/x", "etag": "\"1\"", "state": "ENDPOINT_STATE_DISABLED",
            "http": {"url": "https://a.example", "timeout": "5s"}, "labels": {"team": "a"},
        }));
        let after = object(json!({
            "name": "tenants/a/endpoints/x", "etag": "\"2\"",
            "http": {"url": "https://b.example", "timeout": "5s"}, "maxInFlight": 4,
        }));
        let changes: Vec<String> =
            changes(kind, &before, &after).iter().map(Change::to_string).collect();
        assert_eq!(
            changes,
            [
                "http.url: \"https://a.example\" -> \"https://b.example\"",
                "labels.team: \"a\" -> (none)",
                "maxInFlight: (none) -> 4",
            ]
        );
    }
}
