//! Does the reader's schema take everything the writer's takes?

use super::keywords::{self, Types};
use super::objects;
use crate::dialect::Dialect;
use crate::schema_limits as limits;
use serde_json::{Map, Value};

pub(super) type Keywords = Map<String, Value>;

/// Where the reader may refuse, and why.
pub(super) fn differences(writer: &Value, reader: &Value) -> Vec<(String, String)> {
    let mut found = Differences::default();
    compare(writer, reader, &mut found);
    found.list
}

#[derive(Default)]
pub(super) struct Differences {
    list: Vec<(String, String)>,
    /// The pointer to the place being compared.
    path: String,
}

impl Differences {
    /// Notes a difference at a keyword of this place.
    pub(super) fn note(&mut self, keyword: &str, reason: impl Into<String>) {
        self.list.push((format!("{}/{keyword}", self.path), reason.into()));
    }

    /// Notes a difference of this place as a whole.
    fn note_here(&mut self, reason: &str) {
        self.list.push((self.path.clone(), reason.to_owned()));
    }

    /// Compares one step further down.
    pub(super) fn below(&mut self, step: &str, compare: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push('/');
        self.path.push_str(step);
        compare(self);
        self.path.truncate(length);
    }
}

/// `Value::Bool(false)` takes nothing, an object what its keywords take; there is no other form.
pub(super) fn compare(writer: &Value, reader: &Value, found: &mut Differences) {
    // More than is reported is not looked for: two large schemas may differ in a million places.
    if found.list.len() >= limits::REPORTED || writer == reader || *writer == Value::Bool(false) {
        return;
    }
    match (writer, reader) {
        (Value::Object(writer), Value::Object(reader)) => compare_keywords(writer, reader, found),
        _ => found.note_here("nothing is taken here any more"),
    }
}

fn compare_keywords(writer: &Keywords, reader: &Keywords, found: &mut Differences) {
    if reader.is_empty() {
        return;
    }
    let mixed = ["unevaluatedProperties", "unevaluatedItems"];
    if let Some(keyword) = mixed.iter().find(|keyword| reader.contains_key(**keyword)) {
        return found.note(keyword, "next to this, every change counts as incompatible");
    }
    if let Some(listed) = keywords::listed(writer) {
        return compare_listed(listed, reader, found);
    }
    for keyword in ["enum", "const"] {
        if reader.contains_key(keyword) {
            found.note(keyword, "only listed values are taken, where others were allowed");
        }
    }
    let types = Types::of(writer);
    let missing = types.without(Types::of(reader));
    if !missing.is_empty() {
        found.note("type", format!("{missing} not taken here any more"));
    }
    keywords::compare_opaque(writer, reader, types, found);
    keywords::compare_limits(writer, reader, types, found);
    if types.has("array") {
        compare_items(writer, reader, found);
    }
    if types.has("object") {
        objects::compare(writer, reader, found);
    }
}

/// The writer's values are all known: the reader is asked about each.
fn compare_listed(listed: Vec<&Value>, reader: &Keywords, found: &mut Differences) {
    let reader = Value::Object(reader.clone());
    let validator = crate::options(Dialect::Draft202012).build(&reader);
    let refused = match &validator {
        Ok(validator) => listed.iter().filter(|value| !validator.is_valid(value)).count(),
        Err(_) => listed.len(),
    };
    if refused > 0 {
        let keyword = ["enum", "const"].into_iter().find(|name| reader.get(name).is_some());
        let reason = format!("{refused} of {} listed values not taken any more", listed.len());
        match keyword {
            Some(keyword) => found.note(keyword, reason),
            None => found.note_here(&reason),
        }
    }
}

fn compare_items(writer: &Keywords, reader: &Keywords, found: &mut Differences) {
    let open = Value::Object(Map::new());
    let prefix = |schema: &'_ Keywords| match schema.get("prefixItems") {
        Some(Value::Array(list)) => list.clone(),
        _ => Vec::new(),
    };
    let (writer_prefix, reader_prefix) = (prefix(writer), prefix(reader));
    let writer_rest = writer.get("items").unwrap_or(&open);
    let reader_rest = reader.get("items").unwrap_or(&open);
    for index in 0..writer_prefix.len().max(reader_prefix.len()) {
        let before = writer_prefix.get(index).unwrap_or(writer_rest);
        match reader_prefix.get(index) {
            Some(after) => {
                found.below(&format!("prefixItems/{index}"), |found| compare(before, after, found))
            }
            None => found.below("items", |found| compare(before, reader_rest, found)),
        }
    }
    found.below("items", |found| compare(writer_rest, reader_rest, found));
}
