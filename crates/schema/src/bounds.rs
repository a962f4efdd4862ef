//! What keeps a schema harmless: size, depth, references, patterns, and the size of the expanded form.

use crate::dialect::{KEPT, inside};
use crate::{SchemaError, schema_limits as limits};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Keywords that rename parts of a document or let a reference depend on who asks. Without them a
/// reference means one place, which can be checked.
const REFUSED: [&str; 7] = [
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$schema",
];
/// Those that are welcome at the root.
const ROOT_ONLY: [&str; 2] = ["$id", "$schema"];

/// A text this long counts as one more value.
const TEXT_UNIT_BYTES: usize = 64;

pub(crate) fn read(text: &[u8]) -> Result<Value, SchemaError> {
    if text.len() > limits::TEXT_BYTES {
        let message = format!("has {} bytes; at most {} are taken", text.len(), limits::TEXT_BYTES);
        return Err(SchemaError::new("", message));
    }
    let document: Value = serde_json::from_slice(text).map_err(|error| {
        let message =
            format!("is not valid JSON (line {}, column {})", error.line(), error.column());
        SchemaError::new("", message)
    })?;
    if depth(&document) > limits::DEPTH {
        let message = format!(
            "is nested deeper than {} levels: move inner parts to $defs and refer to them",
            limits::DEPTH
        );
        return Err(SchemaError::new("", message));
    }
    if document.is_object() || document.is_boolean() {
        return Ok(document);
    }
    Err(SchemaError::new("", "must be an object or a boolean"))
}

/// Safe to recurse: the reader refuses more than 128 levels.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Checks everything that needs no compiler.
pub(crate) fn check(document: &Value) -> Result<(), SchemaError> {
    let mut schemas = BTreeMap::new();
    gather(document, String::new(), &mut schemas);
    for (path, schema) in &schemas {
        let Value::Object(schema) = schema else { continue };
        check_keywords(path, schema)?;
        if let Some(target) = schema.get("$ref") {
            check_reference(path, target, &schemas)?;
        }
    }
    check_patterns(&schemas)?;
    let mut measured = BTreeMap::new();
    for path in schemas.keys() {
        measure(path, 0, &schemas, &mut measured)?;
    }
    let size = measured.get("").copied().flatten().unwrap_or_default();
    if size.schemas > limits::SUBSCHEMAS || size.values > limits::VALUES {
        let message = format!(
            "is too large once every $ref is replaced by what it names: at most {} subschemas and {} values",
            limits::SUBSCHEMAS,
            limits::VALUES
        );
        return Err(SchemaError::new("", message));
    }
    Ok(())
}

/// Every place of the document that is a schema.
type Schemas<'a> = BTreeMap<String, &'a Value>;

fn gather<'a>(schema: &'a Value, path: String, schemas: &mut Schemas<'a>) {
    if let Value::Object(map) = schema {
        for (_, below, inner) in inside(map) {
            gather(inner, format!("{path}{below}"), schemas);
        }
    }
    schemas.insert(path, schema);
}

fn check_keywords(path: &str, schema: &Map<String, Value>) -> Result<(), SchemaError> {
    let refused = REFUSED.iter().find(|keyword| {
        schema.contains_key(**keyword) && !(path.is_empty() && ROOT_ONLY.contains(keyword))
    });
    match refused {
        Some(keyword) => Err(SchemaError::new(
            format!("{path}/{keyword}"),
            "is not supported here: refer by place, as in {\"$ref\": \"#/$defs/money\"}",
        )),
        None => Ok(()),
    }
}

/// The place a reference names, as a pointer.
fn place(reference: &Value) -> Option<String> {
    let pointer = reference.as_str()?.strip_prefix('#')?;
    // Percent signs would need decoding, and names that need them can be changed.
    (!pointer.contains('%')).then(|| pointer.to_owned())
}

fn check_reference(path: &str, target: &Value, schemas: &Schemas<'_>) -> Result<(), SchemaError> {
    let message = match (target.as_str(), place(target)) {
        (Some(text), _) if !text.starts_with('#') => {
            "refers to another document: copy that one into $defs and refer to it there"
        }
        (_, Some(place)) if schemas.contains_key(&place) => return Ok(()),
        _ => "refers to no schema of this document: use a place such as #/$defs/money",
    };
    Err(SchemaError::new(format!("{path}/$ref"), message))
}

fn check_patterns(schemas: &Schemas<'_>) -> Result<(), SchemaError> {
    let mut patterns = 0;
    for (path, schema) in schemas {
        let own = schema.get("pattern").and_then(Value::as_str).into_iter();
        let named = schema.get("patternProperties").and_then(Value::as_object);
        for pattern in own.chain(named.into_iter().flat_map(|map| map.keys().map(String::as_str))) {
            patterns += 1;
            if pattern.len() > limits::PATTERN_BYTES {
                let message = format!("has a pattern of more than {} bytes", limits::PATTERN_BYTES);
                return Err(SchemaError::new(path, message));
            }
        }
    }
    if patterns > limits::PATTERNS {
        let message = format!("has {patterns} patterns; at most {} are taken", limits::PATTERNS);
        return Err(SchemaError::new("", message));
    }
    Ok(())
}

/// The size of a schema once its references are replaced.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    levels: usize,
    schemas: usize,
    values: usize,
}

/// Measures a schema; `None` in `measured` marks one that is being measured, so that meeting it again
/// is a loop.
fn measure(
    path: &str,
    above: usize,
    schemas: &Schemas<'_>,
    measured: &mut BTreeMap<String, Option<Size>>,
) -> Result<Size, SchemaError> {
    match measured.get(path) {
        Some(Some(size)) => return Ok(*size),
        Some(None) => {
            return Err(SchemaError::new(
                path,
                "refers to itself: spell out as many levels as you need and end with true",
            ));
        }
        None => {}
    }
    measured.insert(path.to_owned(), None);
    let mut size = Size { levels: 1, schemas: 1, values: 1 };
    if above > limits::DEPTH {
        return Err(too_deep(path));
    }
    if let Some(Value::Object(schema)) = schemas.get(path) {
        size.values = weight(schema);
        let below = inside(schema)
            .into_iter()
            .filter(|(keyword, ..)| !KEPT.contains(keyword))
            .map(|(_, below, _)| format!("{path}{below}"));
        for part in below.chain(schema.get("$ref").and_then(place)) {
            let part = measure(&part, above + 1, schemas, measured)?;
            size.levels = size.levels.max(part.levels + 1);
            size.schemas = size.schemas.saturating_add(part.schemas);
            size.values = size.values.saturating_add(part.values);
        }
    }
    if size.levels > limits::DEPTH {
        return Err(too_deep(path));
    }
    measured.insert(path.to_owned(), Some(size));
    Ok(size)
}

fn too_deep(path: &str) -> SchemaError {
    let message = format!(
        "is nested deeper than {} levels once every $ref is replaced by what it names",
        limits::DEPTH
    );
    SchemaError::new(path, message)
}

/// Values of a schema without the schemas inside it.
fn weight(schema: &Map<String, Value>) -> usize {
    let inner: usize = inside(schema).iter().map(|(_, _, inner)| weight_of(inner)).sum();
    let all: usize = schema.iter().map(|(key, value)| weight_of_text(key) + weight_of(value)).sum();
    1 + all.saturating_sub(inner)
}

fn weight_of(value: &Value) -> usize {
    match value {
        Value::String(text) => weight_of_text(text),
        Value::Array(list) => 1 + list.iter().map(weight_of).sum::<usize>(),
        Value::Object(map) => {
            1 + map.iter().map(|(key, value)| weight_of_text(key) + weight_of(value)).sum::<usize>()
        }
        _ => 1,
    }
}

fn weight_of_text(text: &str) -> usize {
    1 + text.len() / TEXT_UNIT_BYTES
}

/// Names of properties anywhere in a schema.
pub(crate) fn property_names(expanded: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    add_names(expanded, &mut names);
    names
}

fn add_names(schema: &Value, names: &mut BTreeSet<String>) {
    let Value::Object(schema) = schema else { return };
    if let Some(Value::Object(properties)) = schema.get("properties") {
        names.extend(properties.keys().cloned());
    }
    for (_, _, inner) in inside(schema) {
        add_names(inner, names);
    }
}
