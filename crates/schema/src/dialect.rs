//! The two dialects, and where a schema holds other schemas.

use crate::SchemaError;
use jsonschema::Draft;
use serde_json::{Map, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Draft7,
    Draft202012,
}

const DRAFT_7: &str = "http://json-schema.org/draft-07/schema";
const DRAFT_2020_12: &str = "https://json-schema.org/draft/2020-12/schema";

impl Dialect {
    pub(crate) fn of(document: &Value) -> Result<Self, SchemaError> {
        let Some(named) = document.get("$schema") else { return Ok(Self::Draft202012) };
        match named.as_str().map(|name| name.strip_suffix('#').unwrap_or(name)) {
            Some(DRAFT_7) => Ok(Self::Draft7),
            Some(DRAFT_2020_12) => Ok(Self::Draft202012),
            _ => Err(SchemaError::new(
                "/$schema",
                format!("names no dialect we know: use {DRAFT_2020_12} or {DRAFT_7}#"),
            )),
        }
    }

    pub(crate) fn draft(self) -> Draft {
        match self {
            Self::Draft7 => Draft::Draft7,
            Self::Draft202012 => Draft::Draft202012,
        }
    }
}

/// Keywords whose value is a schema (or, for `items` of draft 7, a list of them).
const ONE: [&str; 12] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value is a list of schemas.
const LIST: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value has a schema under each name (`dependencies`: or a list of names).
const NAMED: [&str; 4] = ["dependencies", "dependentSchemas", "patternProperties", "properties"];
/// Schemas that are only kept for `$ref`.
pub(crate) const KEPT: [&str; 2] = ["$defs", "definitions"];

/// The schemas directly inside one: keyword, JSON pointer from there, schema.
pub(crate) fn inside(schema: &Map<String, Value>) -> Vec<(&str, String, &Value)> {
    let mut found = Vec::new();
    for (keyword, value) in schema {
        let name = keyword.as_str();
        match value {
            Value::Array(list) if LIST.contains(&name) || name == "items" => {
                found.extend(
                    list.iter()
                        .enumerate()
                        .map(|(index, schema)| (name, format!("/{name}/{index}"), schema)),
                );
            }
            Value::Object(map) if NAMED.contains(&name) || KEPT.contains(&name) => {
                found.extend(
                    map.iter()
                        .map(|(key, schema)| (name, format!("/{name}/{}", escape(key)), schema)),
                );
            }
            _ if ONE.contains(&name) => {
                found.push((name, format!("/{name}"), value));
            }
            _ => {}
        }
    }
    found.retain(|(_, _, schema)| schema.is_object() || schema.is_boolean());
    found
}

/// One token of a JSON pointer.
pub(crate) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
