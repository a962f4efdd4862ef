//! Properties of objects.

use super::subset::{self, Differences, Keywords};
use crate::dialect::escape;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

pub(super) fn compare(writer: &Keywords, reader: &Keywords, found: &mut Differences) {
    compare_required(writer, reader, found);
    let open = Value::Object(Map::new());
    let sides =
        Sides { writer: Object::of(writer, &open), reader: Object::of(reader, &open), open: &open };
    sides.compare(found);
}

fn compare_required(writer: &Keywords, reader: &Keywords, found: &mut Differences) {
    let names = |schema: &Keywords| -> BTreeSet<String> {
        let list = schema.get("required").and_then(Value::as_array);
        list.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
    };
    let before = names(writer);
    for name in names(reader).difference(&before) {
        found.note("required", format!("{name:?} is required now"));
    }
}

/// The parts of a schema that say what a property may hold.
struct Object<'a> {
    properties: Option<&'a Map<String, Value>>,
    patterns: Option<&'a Map<String, Value>>,
    additional: &'a Value,
}

impl<'a> Object<'a> {
    fn of(schema: &'a Keywords, open: &'a Value) -> Self {
        let map =
            |name: &str| schema.get(name).and_then(Value::as_object).filter(|map| !map.is_empty());
        Self {
            properties: map("properties"),
            patterns: map("patternProperties"),
            additional: schema.get("additionalProperties").unwrap_or(open),
        }
    }

    fn property(&self, name: &str) -> Option<&'a Value> {
        self.properties?.get(name)
    }

    fn names(&self) -> impl Iterator<Item = &'a str> {
        self.properties.into_iter().flat_map(|map| map.keys().map(String::as_str))
    }
}

struct Sides<'a> {
    writer: Object<'a>,
    reader: Object<'a>,
    open: &'a Value,
}

impl Sides<'_> {
    fn compare(&self, found: &mut Differences) {
        let (writer, reader) = (&self.writer, &self.reader);
        let same_patterns = writer.patterns == reader.patterns;
        let reader_is_open = reader.additional == self.open;
        let may_drop = reader.patterns.is_none() && reader_is_open;
        if !same_patterns && !may_drop {
            found.note(
                "patternProperties",
                "has changed: it may only be dropped from an open object",
            );
        }
        let names: BTreeSet<&str> = writer.names().chain(reader.names()).collect();
        for name in names {
            self.compare_property(name, found);
        }
        found.below("additionalProperties", |found| {
            subset::compare(writer.additional, reader.additional, found);
        });
    }

    fn compare_property(&self, name: &str, found: &mut Differences) {
        let (before, after) = (self.writer.property(name), self.reader.property(name));
        let place = format!("properties/{}", escape(name));
        match (before, after) {
            (Some(before), Some(after)) => {
                found.below(&place, |found| subset::compare(before, after, found));
            }
            (None, Some(after)) => {
                // A pattern of the writer may have let anything through under this name.
                let known = self.writer.patterns.is_none();
                let before = if known { self.writer.additional } else { self.open };
                if before == self.open && after != self.open {
                    let reason = "is new, and the open object may carry it already with any value";
                    return found.note(&place, reason);
                }
                found.below(&place, |found| subset::compare(before, after, found));
            }
            (Some(before), None) => {
                let closed = *self.reader.additional == Value::Bool(false);
                if closed && *before != Value::Bool(false) {
                    let reason = "was removed, and no other properties are allowed";
                    return found.note(&place, reason);
                }
                found.below("additionalProperties", |found| {
                    subset::compare(before, self.reader.additional, found);
                });
            }
            (None, None) => {}
        }
    }
}
