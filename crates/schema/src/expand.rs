//! One form for both dialects: draft 2020-12 without references and without notes.

use crate::dialect::Dialect;
use serde_json::{Map, Value};

/// Keywords that assert something, in both dialects. All others are notes.
const ASSERTIONS: [&str; 33] = [
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "else",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "if",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "properties",
    "propertyNames",
    "required",
    "then",
    "type",
    "uniqueItems",
    "$ref",
    // Rewritten below.
    "dependencies",
    "additionalItems",
];

/// Assertions that draft 2020-12 has more.
const NEWER: [&str; 7] = [
    "dependentRequired",
    "dependentSchemas",
    "maxContains",
    "minContains",
    "prefixItems",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Rewrites a checked document: references form no loop, and the result is bounded.
pub(crate) fn expand(document: &Value, dialect: Dialect) -> Value {
    Expansion { document, dialect }.schema(document)
}

struct Expansion<'a> {
    document: &'a Value,
    dialect: Dialect,
}

impl Expansion<'_> {
    fn schema(&self, schema: &Value) -> Value {
        let Value::Object(schema) = schema else {
            // `true` says no more than `{}`.
            return if *schema == Value::Bool(false) {
                Value::Bool(false)
            } else {
                Value::Object(Map::new())
            };
        };
        let target = schema.get("$ref").map(|reference| self.target(reference));
        match (target, self.dialect) {
            // In draft 7 a reference silences its neighbours.
            (Some(target), Dialect::Draft7) => target,
            (Some(target), Dialect::Draft202012) => join(target, self.keywords(schema)),
            (None, _) => Value::Object(self.keywords(schema)),
        }
    }

    fn target(&self, reference: &Value) -> Value {
        let place = reference.as_str().and_then(|text| text.strip_prefix('#'));
        place
            .and_then(|place| self.document.pointer(place))
            .map_or(Value::Bool(false), |target| self.schema(target))
    }

    fn keywords(&self, schema: &Map<String, Value>) -> Map<String, Value> {
        let mut expanded = Map::new();
        for (keyword, value) in schema {
            let name = keyword.as_str();
            let newer = self.dialect == Dialect::Draft202012;
            if ASSERTIONS.contains(&name) || (newer && NEWER.contains(&name)) {
                self.add(name, value, schema, &mut expanded);
            }
        }
        expanded
    }

    fn add(
        &self,
        name: &str,
        value: &Value,
        neighbours: &Map<String, Value>,
        expanded: &mut Map<String, Value>,
    ) {
        let older = self.dialect == Dialect::Draft7;
        match name {
            "$ref" => {}
            "dependencies" => self.add_dependencies(value, expanded),
            "additionalItems" => {
                // Draft 7 only, and only beside a list.
                if older && neighbours.get("items").is_some_and(Value::is_array) {
                    expanded.insert("items".to_owned(), self.schema(value));
                }
            }
            "items" if value.is_array() => {
                expanded.insert("prefixItems".to_owned(), self.list(value));
            }
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                expanded.insert(name.to_owned(), self.list(value));
            }
            "properties" | "patternProperties" | "dependentSchemas" => {
                expanded.insert(name.to_owned(), self.named(value));
            }
            "additionalProperties"
            | "contains"
            | "else"
            | "if"
            | "items"
            | "not"
            | "propertyNames"
            | "then"
            | "unevaluatedItems"
            | "unevaluatedProperties" => {
                expanded.insert(name.to_owned(), self.schema(value));
            }
            _ => {
                expanded.insert(name.to_owned(), value.clone());
            }
        }
    }

    /// Draft 2020-12 has two keywords for this one, and still knows it.
    fn add_dependencies(&self, value: &Value, expanded: &mut Map<String, Value>) {
        let (mut required, mut schemas) = (Map::new(), Map::new());
        for (key, dependency) in value.as_object().into_iter().flatten() {
            if dependency.is_array() {
                required.insert(key.clone(), dependency.clone());
            } else {
                schemas.insert(key.clone(), self.schema(dependency));
            }
        }
        let parts = match self.dialect {
            Dialect::Draft7 => vec![("dependentRequired", required), ("dependentSchemas", schemas)],
            Dialect::Draft202012 => {
                // The two may stand beside it, so that it keeps its name.
                required.extend(schemas);
                vec![("dependencies", required)]
            }
        };
        for (name, part) in parts {
            if !part.is_empty() {
                expanded.insert(name.to_owned(), Value::Object(part));
            }
        }
    }

    fn list(&self, value: &Value) -> Value {
        value.as_array().into_iter().flatten().map(|schema| self.schema(schema)).collect()
    }

    fn named(&self, value: &Value) -> Value {
        let named = value.as_object().into_iter().flatten();
        Value::Object(named.map(|(key, schema)| (key.clone(), self.schema(schema))).collect())
    }
}

/// A reference and what stands beside it: both hold.
fn join(target: Value, mut beside: Map<String, Value>) -> Value {
    if beside.is_empty() {
        return target;
    }
    let mut all = vec![target];
    if let Some(Value::Array(others)) = beside.remove("allOf") {
        all.extend(others);
    }
    beside.insert("allOf".to_owned(), Value::Array(all));
    Value::Object(beside)
}
