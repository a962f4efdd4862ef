//! Paths into JSON documents, as sources use them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A place in a JSON document, such as `data.items[0]["odd key"]`. Names of letters, digits, `_`, `-`
/// and `$` follow a dot; any other name stands in brackets and quotes, where `\"` and `\\` stand for
/// `"` and `\`; indexes count from 0; `[*]` is every element. The same form as in verification schemes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JsonPath {
    text: String,
    steps: Vec<JsonStep>,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JsonStep {
    /// Into an object.
    Name(String),
    /// Into an array.
    Index(u32),
    /// Into an array, to each of its elements.
    Every,
}

/// The text is no path.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum InvalidJsonPath {
    /// There is nothing.
    #[error("is empty; name a field, such as data.id")]
    Empty,
    /// It is too long.
    #[error("has {0} bytes; use at most {max}", max = JsonPath::LENGTH_MAX)]
    TooLong(usize),
    /// It has too many steps.
    #[error("has more than {max} steps; use a shorter path", max = JsonPath::STEPS_MAX)]
    TooDeep,
    /// Something else stands where a step must begin.
    #[error(
        "has no field name at byte {0}; use a.b, a[0] or a[\"odd name\"] without spaces between"
    )]
    Syntax(usize),
}

impl JsonPath {
    /// Longest path: far beyond the ones that providers document.
    pub const LENGTH_MAX: usize = 256;
    /// Most steps: payloads of providers have what matters near the top.
    pub const STEPS_MAX: usize = 12;

    /// Reads a path.
    ///
    /// # Errors
    /// When the text is empty, too long, or no path.
    pub fn parse(text: &str) -> Result<Self, InvalidJsonPath> {
        if text.is_empty() {
            return Err(InvalidJsonPath::Empty);
        }
        if text.len() > Self::LENGTH_MAX {
            return Err(InvalidJsonPath::TooLong(text.len()));
        }
        let mut steps = Vec::new();
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            if steps.len() == Self::STEPS_MAX {
                return Err(InvalidJsonPath::TooDeep);
            }
            let (step, length) = step(rest, at == 0).ok_or(InvalidJsonPath::Syntax(at))?;
            steps.push(step);
            at += length;
        }
        Ok(Self { text: text.to_owned(), steps })
    }

    /// The steps from the root.
    #[must_use]
    pub fn steps(&self) -> &[JsonStep] {
        &self.steps
    }

    /// Whether it stands for many places.
    #[must_use]
    pub fn is_plural(&self) -> bool {
        self.steps.contains(&JsonStep::Every)
    }

    /// The text it was read from.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// The next step and how many bytes it takes.
fn step(rest: &str, first: bool) -> Option<(JsonStep, usize)> {
    if rest.starts_with("[\"") {
        return quoted(rest);
    }
    if let Some(inner) = rest.strip_prefix('[') {
        let end = inner.find(']')?;
        return Some((index(inner.get(..end)?)?, end + 2));
    }
    let dot = usize::from(!first);
    let name = if first { rest } else { rest.strip_prefix('.')? };
    let end = name.find(|c: char| !is_plain(c)).unwrap_or(name.len());
    let name = name.get(..end).filter(|name| !name.is_empty())?;
    Some((JsonStep::Name(name.to_owned()), dot + end))
}

fn index(text: &str) -> Option<JsonStep> {
    if text == "*" {
        return Some(JsonStep::Every);
    }
    // One spelling for each index: neither signs nor zeros in front.
    let canonical = text == "0" || !text.starts_with('0');
    let digits = canonical && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).map(JsonStep::Index)
}

/// A name in brackets and quotes.
fn quoted(rest: &str) -> Option<(JsonStep, usize)> {
    let mut name = String::new();
    let mut characters = rest.char_indices().skip(2);
    loop {
        match characters.next()? {
            (at, '"') => {
                let closed = rest.get(at + 1..)?.starts_with(']');
                return closed.then_some((JsonStep::Name(name), at + 2));
            }
            (_, '\\') => match characters.next()? {
                (_, escaped @ ('"' | '\\')) => name.push(escaped),
                _ => return None,
            },
            (_, other) => name.push(other),
        }
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$') || !c.is_ascii()
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for JsonPath {
    type Error = InvalidJsonPath;

    fn try_from(text: String) -> Result<Self, InvalidJsonPath> {
        Self::parse(&text)
    }
}

impl From<JsonPath> for String {
    fn from(path: JsonPath) -> Self {
        path.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> JsonStep {
        JsonStep::Name(text.to_owned())
    }

    #[test]
    fn paths_are_keys_and_indexes() {
        for (text, steps) in [
            ("id", vec![name("id")]),
            ("data.object.id", vec![name("data"), name("object"), name("id")]),
            ("[0].sg_event_id", vec![JsonStep::Index(0), name("sg_event_id")]),
            (
                r#"a[12]["x.y\" ]"].$b[*]"#,
                vec![name("a"), JsonStep::Index(12), name("x.y\" ]"), name("$b"), JsonStep::Every],
            ),
            ("größe", vec![name("größe")]),
        ] {
            let path = JsonPath::parse(text).unwrap();
            assert_eq!(path.steps(), steps, "{text}");
            assert_eq!(path.to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_refused_with_a_place() {
        let syntax = InvalidJsonPath::Syntax;
        for (text, error) in [
            ("", InvalidJsonPath::Empty),
            (".a", syntax(0)),
            ("a.", syntax(1)),
            ("a..b", syntax(1)),
            ("a b", syntax(1)),
            ("a[", syntax(1)),
            ("a[]", syntax(1)),
            ("a[+1]", syntax(1)),
            ("a[99999999999]", syntax(1)),
            ("a[01]", syntax(1)),
            ("a[\"b]", syntax(1)),
            ("a[\"b\"", syntax(1)),
            ("a[*]b", syntax(4)),
            ("@a", syntax(0)),
        ] {
            assert_eq!(JsonPath::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn paths_are_bounded() {
        let deep = ["a"; JsonPath::STEPS_MAX].join(".");
        assert!(JsonPath::parse(&deep).is_ok());
        assert_eq!(JsonPath::parse(&format!("{deep}.a")), Err(InvalidJsonPath::TooDeep));
        let long = "a".repeat(JsonPath::LENGTH_MAX + 1);
        assert_eq!(JsonPath::parse(&long), Err(InvalidJsonPath::TooLong(long.len())));
    }

    #[test]
    fn a_path_is_stored_as_its_text() {
        let path = JsonPath::parse("a[\"b c\"]").unwrap();
        let stored = serde_json::to_string(&path).unwrap();
        assert_eq!(stored, r#""a[\"b c\"]""#);
        assert_eq!(serde_json::from_str::<JsonPath>(&stored).unwrap(), path);
        assert!(serde_json::from_str::<JsonPath>("\"a..b\"").is_err());
    }
}
