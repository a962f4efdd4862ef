//! JSON Schemas of event types: is a schema sound, does a payload follow it, may one version follow
//! another.
//!
//! ```text
//!  schema text ──► Schema::parse ──► Schema ──► validate(payload) ──► SchemaViolation …
//!                  │ size, depth         │
//!                  │ dialect, $ref       └────► check_compatibility(rule, old, new) ──► Incompatibility …
//!                  │ patterns                   (on the expanded form: one dialect, no $ref)
//!                  └ expanded size
//! ```
//!
//! A schema is compiled once per (event type, version); everything after that is read-only.
//!
//! # Invariants
//! - Nothing is fetched: a schema refers to nothing outside itself, and no resolver is compiled in.
//! - Work is bounded: references form no loop, the expanded form is limited ([`schema_limits`]), and
//!   patterns run on an engine that is linear in the text. So a payload costs at most its size times
//!   the schema's.
//! - No value and no unknown key of a payload appears in a violation.
//! - Compatibility is never claimed wrongly: when a change is accepted, every payload the writer's
//!   schema takes is taken by the reader's. The other way round it may refuse what is in fact
//!   compatible, and says why.
//!
//! # Dialects
//! Draft 2020-12 (also when `$schema` is missing) and draft 7. `format`, `contentEncoding` and
//! `contentMediaType` are notes for readers and refuse nothing, in both. Whole numbers are exact up
//! to 64 bits, all others are compared as 64-bit floats.

mod bounds;
mod compat;
mod dialect;
mod expand;
mod violation;

pub use compat::{Compatibility, Direction, Incompatibility, check_compatibility};
pub use violation::SchemaViolation;

use dialect::Dialect;
use jsonschema::{PatternOptions, ValidationOptions, Validator};
use serde_json::Value;
use std::{collections::BTreeSet, fmt};

/// Bounds of schemas, each with its reason.
pub mod schema_limits {
    /// Longest schema text: schemas are kept compiled in memory.
    pub const TEXT_BYTES: usize = 64 * 1024;
    /// Deepest nesting, of the document and of subschemas behind each other: the checks recurse that
    /// far.
    pub const DEPTH: usize = 64;
    /// Subschemas once every `$ref` is replaced by what it names: each may look at each value of a
    /// payload.
    pub const SUBSCHEMAS: usize = 2_000;
    /// JSON values once every `$ref` is replaced (long texts count more): the memory of that form.
    pub const VALUES: usize = 20_000;
    /// Patterns of one schema: each is an automaton in memory.
    pub const PATTERNS: usize = 100;
    /// Longest pattern.
    pub const PATTERN_BYTES: usize = 512;
    /// Compiled size of one pattern: nested repetitions multiply.
    pub const PATTERN_COMPILED_BYTES: usize = 256 * 1024;
    /// Most violations and incompatibilities listed: people read them.
    pub const REPORTED: usize = 25;
}

/// A checked and compiled schema.
pub struct Schema {
    validator: Validator,
    /// The schema in one dialect, without `$ref` and notes.
    expanded: Value,
    /// Property names that may appear in violations.
    names: BTreeSet<String>,
}

/// The text is no schema we take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", At(.path))]
pub struct SchemaError {
    /// JSON pointer into the schema; empty for the whole.
    pub path: String,
    /// What is wrong, and the remedy.
    pub message: String,
}

struct At<'a>(&'a str);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "at {}: ", self.0) }
    }
}

impl SchemaError {
    fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").field("names", &self.names.len()).finish_non_exhaustive()
    }
}

impl Schema {
    /// Checks and compiles a schema.
    ///
    /// # Errors
    /// When the text is not JSON, not a schema of a known dialect, refers to something outside itself,
    /// or exceeds a bound of [`schema_limits`].
    pub fn parse(text: &[u8]) -> Result<Self, SchemaError> {
        let document = bounds::read(text)?;
        let dialect = Dialect::of(&document)?;
        bounds::check(&document)?;
        let expanded = expand::expand(&document, dialect);
        let validator = compile(document, dialect)?;
        let names = bounds::property_names(&expanded);
        Ok(Self { validator, expanded, names })
    }

    /// Checks a payload.
    ///
    /// # Errors
    /// The first [`schema_limits::REPORTED`] violations; values of the payload are not repeated.
    pub fn validate(&self, payload: &[u8]) -> Result<(), Vec<SchemaViolation>> {
        let payload = serde_json::from_slice(payload).map_err(|e| violation::not_json(&e))?;
        if self.validator.is_valid(&payload) {
            return Ok(());
        }
        let errors = self.validator.iter_errors(&payload).take(schema_limits::REPORTED);
        Err(errors.map(|error| SchemaViolation::of_payload(&error, &self.names)).collect())
    }
}

fn compile(mut document: Value, dialect: Dialect) -> Result<Validator, SchemaError> {
    if let Some(root) = document.as_object_mut() {
        // The document's own name could be that of one built in, which references would then find.
        root.remove("$id");
    }
    options(dialect).build(&document).map_err(|error| {
        SchemaError::new(error.instance_path().as_str(), violation::describe(error.kind()))
    })
}

/// The same rules wherever a schema is compiled.
fn options<'a>(dialect: Dialect) -> ValidationOptions<'a> {
    let patterns = PatternOptions::regex().size_limit(schema_limits::PATTERN_COMPILED_BYTES);
    jsonschema::options()
        .with_draft(dialect.draft())
        .with_pattern_options(patterns)
        .should_validate_formats(false)
        .without_content_encoding_support("base64")
        .without_content_media_type_support("application/json")
}
