//! May one version of a schema follow another?
//!
//! | rule | asks | so that |
//! |---|---|---|
//! | `none` | nothing | |
//! | `backward` | the new schema takes everything the old one takes | who reads with the new schema can read old data |
//! | `full` | that, and the old schema takes everything the new one takes | readers of either can read data of either |
//!
//! These are Confluent's meanings. The check compares structure and is conservative:
//!
//! | keyword | accepted when going from the writer's schema to the reader's |
//! |---|---|
//! | `type` | the same types or more; `integer` may become `number` |
//! | `enum`, `const` | the reader takes every listed value; none may be added where there was none |
//! | `minimum` … `maxProperties`, `uniqueItems` | the same or looser; `multipleOf` the same or a divisor |
//! | `required` | the same names or fewer |
//! | `properties` | each by these rules; one only the reader names is compared with the writer's `additionalProperties`, one only the writer names with the reader's |
//! | `additionalProperties`, `items`, `prefixItems` | by these rules |
//! | `patternProperties` | equal, or dropped where the reader takes any further property |
//! | `pattern`, `propertyNames`, `contains`, `dependencies`, `dependentRequired`, `dependentSchemas`, `allOf`, `anyOf`, `oneOf`, `not`, `if` | equal, or dropped |
//! | `unevaluatedProperties`, `unevaluatedItems` | the schema that has it stays as it is |
//!
//! A rule about a type that the writer's schema excludes does not matter. `$ref` is replaced by what it
//! names first, and notes (`title`, `format`, unknown keywords) are ignored.
//!
//! To add optional properties under `backward`, close the object (`additionalProperties: false`): an
//! open one may carry that name with any value already. Under `full`, give `additionalProperties` the
//! schema that later properties will have.

mod keywords;
mod objects;
mod subset;

use crate::{Schema, schema_limits as limits};
use std::fmt;

/// What a new version must keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compatibility {
    /// Anything may change.
    None,
    /// The new schema takes all data the old one takes.
    #[default]
    Backward,
    /// Each takes all data the other takes.
    Full,
}

/// Whose data is refused by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The new schema may refuse data of the old one.
    OldDataNewSchema,
    /// The old schema may refuse data of the new one.
    NewDataOldSchema,
}

/// One reason why a version may not follow another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incompatibility {
    /// JSON pointer to the rule that may refuse, in the reading schema with every `$ref` replaced.
    pub path: String,
    /// What changed.
    pub reason: String,
    /// Who refuses.
    pub direction: Direction,
}

impl fmt::Display for Incompatibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = match self.direction {
            Direction::OldDataNewSchema => "old data may be refused by the new schema",
            Direction::NewDataOldSchema => "new data may be refused by the old schema",
        };
        write!(
            f,
            "{}: {} ({who})",
            if self.path.is_empty() { "/" } else { &self.path },
            self.reason
        )
    }
}

/// Checks that `new` may follow `old`.
///
/// # Errors
/// The first [`limits::REPORTED`] incompatibilities.
pub fn check_compatibility(
    rule: Compatibility,
    old: &Schema,
    new: &Schema,
) -> Result<(), Vec<Incompatibility>> {
    let mut found = Vec::new();
    if rule != Compatibility::None {
        found.extend(refusals(old, new, Direction::OldDataNewSchema));
    }
    if rule == Compatibility::Full {
        found.extend(refusals(new, old, Direction::NewDataOldSchema));
    }
    found.truncate(limits::REPORTED);
    if found.is_empty() { Ok(()) } else { Err(found) }
}

fn refusals(
    writer: &Schema,
    reader: &Schema,
    direction: Direction,
) -> impl Iterator<Item = Incompatibility> {
    subset::differences(&writer.expanded, &reader.expanded)
        .into_iter()
        .map(move |(path, reason)| Incompatibility { path, reason, direction })
}
