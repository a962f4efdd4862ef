//! Paths into a JSON body: `data.id`, `items[0].id`, `items[*].id`, `["odd.name"].id`.

use std::fmt;
use std::str::FromStr;

use super::limits::{MAX_JSON_PATH_BYTES, MAX_JSON_STEPS};

/// A place in a JSON document.
///
/// Written as names with dots between them; `[3]` picks an element of an array (from 0), `[*]`
/// stands for every element, and `["a.b"]` is a name that is not made of letters, digits, `_`, `-`
/// and `$` alone. The text form and the value convert both ways without loss.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JsonPath {
    steps: Vec<JsonStep>,
}

/// One step of a [`JsonPath`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum JsonStep {
    /// The member of an object.
    Name(String),
    /// The element of an array, from 0.
    Index(u32),
    /// Every element of an array.
    Every,
}

/// A text that is no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonPathError {
    /// Nothing there, or more than the bounds allow.
    #[error(
        "a JSON path has 1 to {MAX_JSON_STEPS} steps and at most {MAX_JSON_PATH_BYTES} characters"
    )]
    Size,
    /// Not written as a path is.
    #[error(r#"a JSON path is written like data.id, items[0].id, items[*].id or ["odd.name"].id"#)]
    Syntax,
}

impl JsonPath {
    /// A path from its text.
    ///
    /// # Errors
    /// When the text is no path or longer than allowed.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        if text.is_empty() || text.len() > MAX_JSON_PATH_BYTES {
            return Err(JsonPathError::Size);
        }
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (step, after) = next_step(rest, steps.is_empty()).ok_or(JsonPathError::Syntax)?;
            steps.push(step);
            rest = after;
        }
        if steps.len() > MAX_JSON_STEPS {
            return Err(JsonPathError::Size);
        }
        Ok(Self { steps })
    }

    /// The steps from the root.
    #[must_use]
    pub fn steps(&self) -> &[JsonStep] {
        &self.steps
    }

    /// Whether the path stands for many places.
    #[must_use]
    pub fn is_plural(&self) -> bool {
        self.steps.contains(&JsonStep::Every)
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'$') || !byte.is_ascii()
}

/// The first step and the text behind it.
fn next_step(text: &str, first: bool) -> Option<(JsonStep, &str)> {
    if let Some(inside) = text.strip_prefix("[\"") {
        return quoted(inside);
    }
    if let Some(inside) = text.strip_prefix('[') {
        let (number, after) = inside.split_once(']')?;
        if number == "*" {
            return Some((JsonStep::Every, after));
        }
        let canonical = number == "0" || !number.starts_with('0');
        let digits = canonical && number.bytes().all(|byte| byte.is_ascii_digit());
        let index = number.parse().ok().filter(|_| digits)?;
        return Some((JsonStep::Index(index), after));
    }
    let text = if first { text } else { text.strip_prefix('.')? };
    let length = text.bytes().position(|byte| !is_plain(byte)).unwrap_or(text.len());
    let (name, after) = text.split_at(length);
    (!name.is_empty()).then(|| (JsonStep::Name(name.to_owned()), after))
}

/// A name in quotes, in which `\"` and `\\` stand for `"` and `\`.
fn quoted(text: &str) -> Option<(JsonStep, &str)> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    loop {
        match characters.next()? {
            (at, '"') => {
                let after = text.get(at..)?.strip_prefix("\"]")?;
                return Some((JsonStep::Name(name), after));
            }
            (_, '\\') => match characters.next()? {
                (_, escaped @ ('"' | '\\')) => name.push(escaped),
                _ => return None,
            },
            (_, other) => name.push(other),
        }
    }
}

impl FromStr for JsonPath {
    type Err = JsonPathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl TryFrom<String> for JsonPath {
    type Error = JsonPathError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<JsonPath> for String {
    fn from(path: JsonPath) -> Self {
        path.to_string()
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.steps.iter().enumerate() {
            match step {
                JsonStep::Index(index) => write!(f, "[{index}]")?,
                JsonStep::Every => f.write_str("[*]")?,
                JsonStep::Name(name) if !name.is_empty() && name.bytes().all(is_plain) => {
                    let dot = if position == 0 { "" } else { "." };
                    write!(f, "{dot}{name}")?;
                }
                JsonStep::Name(name) => {
                    let escaped = name.replace('\\', "\\\\").replace('"', "\\\"");
                    write!(f, "[\"{escaped}\"]")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str) -> Vec<JsonStep> {
        JsonPath::parse(text).unwrap().steps
    }

    #[test]
    fn a_path_is_read_and_printed_the_same() {
        for text in [
            "id",
            "event-data.id",
            "items[0].id",
            "items[*].NotificationRequestItem",
            "[*].sg_event_id",
            r#"["a.b"].c"#,
            r#"a["q\"u\\o"][12][*]"#,
            "größe.$ref",
            r#"[""]"#,
        ] {
            assert_eq!(JsonPath::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn the_steps_are_those_written() {
        let name = |text: &str| JsonStep::Name(text.to_owned());
        assert_eq!(steps("a[2].b"), [name("a"), JsonStep::Index(2), name("b")]);
        assert_eq!(steps(r#"["x y"][*]"#), [name("x y"), JsonStep::Every]);
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in ["", ".a", "a.", "a..b", "a[", "a[]", "a[-1]", "a[01]", "a[1", "a b", "a[1]b"] {
            assert!(JsonPath::parse(text).is_err(), "{text}");
        }
        for text in [r#"["a"#, r#"["a" ]"#, r#"["\x"]"#, "a[99999999999]", "a[+1]"] {
            assert!(JsonPath::parse(text).is_err(), "{text}");
        }
        assert_eq!(JsonPath::parse(&"a.".repeat(300)), Err(JsonPathError::Size));
        assert_eq!(JsonPath::parse(&["a"; 13].join(".")), Err(JsonPathError::Size));
    }
}
