//! What is said about a value that breaks a rule: the rule, never the value.

use crate::dialect::escape;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::paths::LocationSegment;
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;
use std::{collections::BTreeSet, fmt};

/// One rule a payload breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaViolation {
    /// JSON pointer into the payload, empty for the whole; keys the schema does not name are `*`.
    pub path: String,
    /// The rule.
    pub message: String,
}

impl fmt::Display for SchemaViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "payload" } else { &self.path };
        write!(f, "{path} {}", self.message)
    }
}

/// Longest text of the schema that a message repeats.
const QUOTED_CHARS: usize = 80;

impl SchemaViolation {
    pub(crate) fn of_payload(error: &ValidationError<'_>, names: &BTreeSet<String>) -> Self {
        let mut path = String::new();
        for segment in error.instance_path().segments() {
            path.push('/');
            match segment {
                LocationSegment::Index(index) => path.push_str(&index.to_string()),
                LocationSegment::Property(name) if names.contains(&*name) => {
                    path.push_str(&escape(&name));
                }
                // A key may be as private as a value.
                LocationSegment::Property(_) => path.push('*'),
            }
        }
        // A schema without `properties` reports the object, not the property.
        let refuses_property = matches!(error.kind(), Kind::FalseSchema)
            && error.schema_path().as_str().ends_with("/additionalProperties");
        let message = if refuses_property {
            "has a property the schema does not allow".to_owned()
        } else {
            describe(error.kind())
        };
        Self { path, message }
    }
}

pub(crate) fn not_json(error: &serde_json::Error) -> Vec<SchemaViolation> {
    let message =
        format!("cannot be read as JSON (line {}, column {})", error.line(), error.column());
    vec![SchemaViolation { path: String::new(), message }]
}

/// The broken rule in words. Only texts and limits of the schema are repeated.
pub(crate) fn describe(kind: &Kind) -> String {
    match kind {
        Kind::Type { kind } => format!("must be {}", types(kind)),
        Kind::Required { property } => format!("lacks the required property {}", quote(property)),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            format!("has {} the schema does not allow", count(unexpected.len(), "property", "properties"))
        }
        Kind::AdditionalItems { limit } => {
            format!("has more than the {} allowed", count(*limit, "item", "items"))
        }
        Kind::UnevaluatedItems { unexpected } => {
            format!("has {} the schema does not allow", count(unexpected.len(), "item", "items"))
        }
        Kind::Enum { .. } => "is none of the values the schema lists".to_owned(),
        Kind::Constant { .. } => "is not the one value the schema allows".to_owned(),
        Kind::FalseSchema => "must not be there".to_owned(),
        Kind::Contains => "has not the number of matching items the schema asks for".to_owned(),
        Kind::UniqueItems => "has an item twice".to_owned(),
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => {
            "follows none of the alternatives".to_owned()
        }
        Kind::OneOfMultipleValid { .. } => "follows more than one of the alternatives".to_owned(),
        Kind::Not { .. } => "follows a schema it must not follow".to_owned(),
        Kind::PropertyNames { error } => {
            format!("has a property name that {}", describe(error.kind()))
        }
        Kind::Pattern { pattern } => format!("does not match the pattern {}", clip(pattern)),
        Kind::Format { format } if format == "regex" => {
            "is no usable pattern: look-around, back-references and very large repetitions are refused"
                .to_owned()
        }
        Kind::Referencing(_) => "refers to something that is not in the schema".to_owned(),
        other => limit(other)
            .unwrap_or_else(|| format!("breaks the rule {} of the schema", other.keyword())),
    }
}

/// Rules that compare with a number.
fn limit(kind: &Kind) -> Option<String> {
    Some(match kind {
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be greater than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("must have at least {limit} characters"),
        Kind::MaxLength { limit } => format!("must have at most {limit} characters"),
        Kind::MinItems { limit } => format!("must have at least {limit} items"),
        Kind::MaxItems { limit } => format!("must have at most {limit} items"),
        Kind::MinProperties { limit } => format!("must have at least {limit} properties"),
        Kind::MaxProperties { limit } => format!("must have at most {limit} properties"),
        _ => return None,
    })
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => with_article(*one).to_owned(),
        TypeKind::Multiple(several) => {
            several.iter().map(with_article).collect::<Vec<_>>().join(" or ")
        }
    }
}

fn with_article(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Array => "an array",
        JsonType::Boolean => "a boolean",
        JsonType::Integer => "an integer",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "a string",
    }
}

fn count(number: usize, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}

fn quote(text: &Value) -> String {
    clip(&text.to_string())
}

fn clip(text: &str) -> String {
    let mut clipped: String = text.chars().filter(|c| !c.is_control()).take(QUOTED_CHARS).collect();
    if clipped.len() < text.len() {
        clipped.push('…');
    }
    clipped
}
