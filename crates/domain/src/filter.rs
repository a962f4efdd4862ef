//! The filter language of subscriptions: small, total and bounded.
//!
//! ```text
//! data.total >= 100 && data.currency in ["EUR", "CHF"] && !exists(data.test)
//!
//! filter     = "" | or                          an empty filter matches every event
//! or         = and { "||" and }
//! and        = not { "&&" not }                 && binds tighter than ||
//! not        = "!" not | "(" or ")" | "true" | "false" | "exists" "(" field ")" | comparison
//! comparison = field ( == | != | < | <= | > | >= | contains ) literal
//!            | field ( startsWith | endsWith ) string
//!            | field in "[" literal { "," literal } "]"
//! field      = event_type | event_version | source | subject | sequence | data key { key | index }
//! key        = "." name | "[" string "]"        name: A-Z a-z 0-9 _ -
//! index      = "[" digits "]"
//! literal    = string | number | true | false | null       as in JSON
//! ```
//! `!` stands before a parenthesis, `exists`, a constant or another `!`, never before a comparison,
//! so that nobody has to know how tightly it binds.
//!
//! # Meaning
//! Evaluation never fails. What a field holds decides:
//!
//! | field holds | `==`, `in` | `!=` | `< <= > >=` | `contains` | `startsWith`, `endsWith` | `exists` |
//! |---|---|---|---|---|---|---|
//! | nothing (missing) | no | **yes** | no | no | no | no |
//! | a string | same text | not the same | by code point, against a string | has the substring | has the affix | yes |
//! | a number | same value, exact | not the same | by value, exact, against a number | no | no | yes |
//! | `true`, `false`, `null` | same value | not the same | no | no | no | yes |
//! | an array | no | yes | no | has an equal element | no | yes |
//! | an object | no | yes | no | no | no | yes |
//!
//! - `!=` is always the opposite of `==`; values of different types are not equal.
//! - Numbers are compared as decimals of any length: `18446744073709551616` and
//!   `18446744073709551617` differ, `1.0` equals `1`, `1e400` is just a big number.
//! - `null` is a value: `exists` sees it, and only `== null` equals it.
//! - A payload that is not a JSON object has no fields below `data`. Media types are not consulted.
//! - Of repeated keys in one object the last counts.

mod decimal;
mod eval;
mod expr;
mod parser;
mod payload;
#[cfg(test)]
mod properties_tests;
#[cfg(test)]
mod table_tests;

use expr::{Expr, Segment};
use std::fmt;

/// Bounds of filters, each with its reason.
pub mod filter_limits {
    /// Longest text, as given and as printed: filters are read by people and kept in memory by every
    /// worker.
    pub const TEXT_BYTES: usize = 4 * 1024;
    /// Deepest nesting of `(` and `!`: parser and evaluation recurse that far.
    pub const DEPTH: usize = 32;
    /// Conditions, operators and list elements: bounds the work for one event.
    pub const NODES: usize = 256;
    /// Values of one list.
    pub const LIST_LENGTH: usize = 100;
    /// Keys and indexes after `data`: an object on the way is scanned once for each.
    pub const PATH_SEGMENTS: usize = 16;
}

/// A checked filter. `Display` prints text that parses to an equal filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    expr: Expr,
    /// Every distinct path below `data`, in order of appearance: all are looked up in one pass.
    paths: Vec<Box<[Segment]>>,
}

/// The text is no filter.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("is wrong at column {column}: {message}")]
pub struct FilterError {
    /// Where, counted in characters from 1.
    pub column: usize,
    /// What was expected there, and the remedy.
    pub message: String,
}

/// What a filter may look at.
#[derive(Clone, Copy)]
pub struct FilterInput<'a> {
    /// `event_type`.
    pub event_type: &'a str,
    /// `event_version`.
    pub event_version: &'a str,
    /// `source`.
    pub source: &'a str,
    /// `subject`; missing when there is none.
    pub subject: Option<&'a str>,
    /// `sequence`; missing when there is none.
    pub sequence: Option<i64>,
    /// The payload, byte for byte.
    pub data: &'a [u8],
}

/// The payload stays out of logs.
impl fmt::Debug for FilterInput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterInput")
            .field("event_type", &self.event_type)
            .field("event_version", &self.event_version)
            .field("source", &self.source)
            .field("data_bytes", &self.data.len())
            .finish_non_exhaustive()
    }
}

impl<'a> From<&'a crate::Event> for FilterInput<'a> {
    fn from(event: &'a crate::Event) -> Self {
        Self {
            event_type: event.event_type.as_str(),
            event_version: &event.event_version,
            source: &event.source,
            subject: event.subject.as_deref(),
            sequence: event.sequence,
            data: &event.data,
        }
    }
}

impl Filter {
    /// Reads a filter. An empty text is the filter that matches every event.
    ///
    /// # Errors
    /// When the text does not follow the grammar or exceeds a bound of [`filter_limits`].
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let filter = parser::parse(text)?;
        if filter.to_string().len() > filter_limits::TEXT_BYTES {
            return Err(parser::too_long());
        }
        Ok(filter)
    }

    /// Whether the filter wants this event. Never fails: see the table of this module.
    #[must_use]
    pub fn matches(&self, input: &FilterInput<'_>) -> bool {
        eval::matches(self, input)
    }

    /// Whether every event passes, as if there were no filter.
    #[must_use]
    pub fn matches_everything(&self) -> bool {
        matches!(self.expr, Expr::Constant(true))
    }

    /// Whether the payload matters: if not, [`FilterInput::data`] may be empty.
    #[must_use]
    pub fn uses_data(&self) -> bool {
        !self.paths.is_empty()
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expr.print(&self.paths, f)
    }
}
