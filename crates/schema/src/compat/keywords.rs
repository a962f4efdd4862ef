//! Types, limits, and keywords that are only compared for equality.

use super::subset::{Differences, Keywords};
use serde_json::{Number, Value};
use std::cmp::Ordering;
use std::fmt;

/// The types a schema takes, as bits. `number` has two: whole ones and the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Types(u8);

const TYPES: [(&str, u8); 7] = [
    ("null", 1),
    ("boolean", 2),
    ("object", 4),
    ("array", 8),
    ("string", 16),
    // Before `number`, which includes it.
    ("integer", 32),
    ("number", 96),
];
const ALL_TYPES: u8 = 127;

impl Types {
    pub(super) fn of(schema: &Keywords) -> Self {
        let bits = |name: &Value| {
            TYPES.iter().find(|(known, _)| name == known).map_or(0, |(_, bits)| *bits)
        };
        match schema.get("type") {
            None => Self(ALL_TYPES),
            Some(Value::Array(names)) => Self(names.iter().map(bits).fold(0, |all, one| all | one)),
            Some(name) => Self(bits(name)),
        }
    }

    pub(super) fn has(self, name: &str) -> bool {
        TYPES.iter().any(|(known, bits)| *known == name && self.0 & bits != 0)
    }

    pub(super) fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.0 & 32 != 0;
        let other = self.0 & 64 != 0;
        let mut names: Vec<&str> = TYPES[..5]
            .iter()
            .filter(|(_, bits)| self.0 & bits != 0)
            .map(|(name, _)| *name)
            .collect();
        match (whole, other) {
            (true, true) => names.push("number"),
            (true, false) => names.push("integer"),
            (false, true) => names.push("numbers with a fraction"),
            (false, false) => {}
        }
        f.write_str(&names.join(", "))
    }
}

/// The only values a schema can take, when it lists them.
pub(super) fn listed(schema: &Keywords) -> Option<Vec<&Value>> {
    if let Some(value) = schema.get("const") {
        return Some(vec![value]);
    }
    Some(schema.get("enum")?.as_array()?.iter().collect())
}

/// Keywords that must stay as they are or go, and the type they are about (empty: any).
const OPAQUE: [(&str, &str); 10] = [
    ("allOf", ""),
    ("anyOf", ""),
    ("oneOf", ""),
    ("not", ""),
    ("pattern", "string"),
    ("propertyNames", "object"),
    ("dependencies", "object"),
    ("dependentRequired", "object"),
    ("dependentSchemas", "object"),
    ("multipleOf", "number"),
];
/// As [`OPAQUE`], but these mean something only together.
const OPAQUE_GROUPS: [([&str; 3], &str); 2] =
    [(["if", "then", "else"], ""), (["contains", "minContains", "maxContains"], "array")];

pub(super) fn compare_opaque(
    writer: &Keywords,
    reader: &Keywords,
    types: Types,
    found: &mut Differences,
) {
    for (keyword, about) in OPAQUE {
        let relevant = about.is_empty() || types.has(about);
        let (before, after) = (writer.get(keyword), reader.get(keyword));
        if !relevant || after.is_none() || before == after {
            continue;
        }
        if keyword == "multipleOf" && is_multiple(before, after) {
            continue;
        }
        found.note(keyword, changed(before));
    }
    for (group, about) in OPAQUE_GROUPS {
        let relevant = about.is_empty() || types.has(about);
        let same = group.iter().all(|keyword| writer.get(*keyword) == reader.get(*keyword));
        if relevant && reader.contains_key(group[0]) && !same {
            found.note(group[0], changed(writer.get(group[0])));
        }
    }
}

fn changed(before: Option<&Value>) -> &'static str {
    if before.is_some() { "has changed: it may only be dropped" } else { "is new" }
}

/// Whether multiples of the first are multiples of the second, as far as whole numbers show.
fn is_multiple(before: Option<&Value>, after: Option<&Value>) -> bool {
    let whole = |value: Option<&Value>| value.and_then(Value::as_u64).filter(|number| *number > 0);
    matches!((whole(before), whole(after)), (Some(before), Some(after)) if before % after == 0)
}

/// Limits, the type they are about, and whether they bound from below.
const LIMITS: [(&str, &str, bool); 6] = [
    ("minLength", "string", true),
    ("maxLength", "string", false),
    ("minItems", "array", true),
    ("maxItems", "array", false),
    ("minProperties", "object", true),
    ("maxProperties", "object", false),
];

pub(super) fn compare_limits(
    writer: &Keywords,
    reader: &Keywords,
    types: Types,
    found: &mut Differences,
) {
    for (keyword, about, lower) in LIMITS {
        let Some(after) = reader.get(keyword).filter(|_| types.has(about)) else { continue };
        // A lower bound of zero refuses nothing.
        let vacuous = lower && after.as_f64() == Some(0.0);
        if !vacuous && !writer.get(keyword).is_some_and(|before| within(before, after, lower, true))
        {
            found.note(keyword, tightened(writer.get(keyword), after));
        }
    }
    if types.has("number") {
        for (inclusive, exclusive, lower) in
            [("minimum", "exclusiveMinimum", true), ("maximum", "exclusiveMaximum", false)]
        {
            compare_range(writer, reader, [inclusive, exclusive], lower, found);
        }
    }
    let unique = |schema: &Keywords| schema.get("uniqueItems") == Some(&Value::Bool(true));
    if types.has("array") && unique(reader) && !unique(writer) {
        found.note("uniqueItems", "is new");
    }
}

/// Each bound of the reader must follow from one of the writer's.
fn compare_range(
    writer: &Keywords,
    reader: &Keywords,
    [inclusive, exclusive]: [&str; 2],
    lower: bool,
    found: &mut Differences,
) {
    for keyword in [inclusive, exclusive] {
        let Some(after) = reader.get(keyword) else { continue };
        let implied = [inclusive, exclusive].iter().any(|name| {
            // Only an inclusive bound does not imply the exclusive one at the same place.
            let may_touch = keyword == inclusive || *name == exclusive;
            writer.get(*name).is_some_and(|before| within(before, after, lower, may_touch))
        });
        if !implied {
            found.note(keyword, tightened(writer.get(keyword), after));
        }
    }
}

fn tightened(before: Option<&Value>, after: &Value) -> String {
    match before {
        Some(before) => format!("is now {after}, was {before}"),
        None => format!("is now {after}, was not limited"),
    }
}

/// Whether the bound `before` is as tight as `after` or tighter. What cannot be told is not.
fn within(before: &Value, after: &Value, lower: bool, may_touch: bool) -> bool {
    let (Value::Number(before), Value::Number(after)) = (before, after) else { return false };
    match order(before, after) {
        Some(Ordering::Equal) => may_touch,
        Some(Ordering::Greater) => lower,
        Some(Ordering::Less) => !lower,
        None => false,
    }
}

/// Integers beyond this are not all 64-bit floats.
const EXACT_IN_FLOAT: i128 = 1 << 53;

fn order(left: &Number, right: &Number) -> Option<Ordering> {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        (Some(whole), None) | (None, Some(whole)) if whole.abs() > EXACT_IN_FLOAT => None,
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}
