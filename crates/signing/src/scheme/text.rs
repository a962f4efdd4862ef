//! The short text forms of places, templates and conditions, as preset files have them.
//!
//! | text | means |
//! |---|---|
//! | `header:x-id`, `query:id`, `form:id`, `json:data.id` | a value of the request |
//! | `headers:x-signature-1..100` | numbered headers |
//! | `authorization:Bearer` | credentials |
//! | `signature:t` | an entry of the signature header |
//! | `v0:{timestamp}:{body}` | a template; `{{` and `}}` are braces |
//! | `{json:reference?}` | a value that counts as empty when it is absent |

use std::fmt;
use std::str::FromStr;

use super::handshake::{Condition, Escape, Expected, Piece};
use super::json_path::JsonPath;
use super::locator::Locator;
use super::proof::Encoding;
use super::template::{Part, WhenAbsent};

/// A text that is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TextError(&'static str);

const PLACE: TextError = TextError(
    "a place is header:NAME, headers:PREFIX1..100, authorization:SCHEME, query:NAME, form:NAME, \
     json:PATH or signature:TAG",
);
const BRACES: TextError =
    TextError("braces come in pairs; `{{` and `}}` stand for the characters themselves");
const PART: TextError = TextError(
    "a part is {body}, {timestamp}, {id}, {method}, {url}, {secret}, {form}, {body_crc32}, \
     {body_sha256}, {setting:NAME} or a place, with `?` behind it if it may be absent",
);
const PIECE: TextError = TextError(
    "a piece is a place, a place with `|json` behind it, {setting:NAME}, {hmac-hex:PLACE} or \
     {hmac-base64:PLACE}",
);
const CONDITION: TextError = TextError(
    "a condition is method:GET, PLACE, PLACE == TEXT, PLACE == {setting:NAME}, PLACE == {key} or \
     empty:PATH",
);

impl FromStr for Locator {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, name) = text.split_once(':').ok_or(PLACE)?;
        if name.is_empty() {
            return Err(PLACE);
        }
        match kind {
            "header" => Ok(Self::Header(name.to_owned())),
            "headers" => {
                let (prefix, last) = name.split_once("1..").ok_or(PLACE)?;
                let last = last.parse().map_err(|_| PLACE)?;
                Ok(Self::NumberedHeader { prefix: prefix.to_owned(), last })
            }
            "authorization" => Ok(Self::Authorization(name.to_owned())),
            "query" => Ok(Self::Query(name.to_owned())),
            "form" => Ok(Self::Form(name.to_owned())),
            "json" => JsonPath::parse(name).map(Self::Json).map_err(|_| PLACE),
            "signature" => Ok(Self::SignatureField(name.to_owned())),
            _ => Err(PLACE),
        }
    }
}

impl fmt::Display for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header:{name}"),
            Self::NumberedHeader { prefix, last } => write!(f, "headers:{prefix}1..{last}"),
            Self::Authorization(scheme) => write!(f, "authorization:{scheme}"),
            Self::Query(name) => write!(f, "query:{name}"),
            Self::Form(name) => write!(f, "form:{name}"),
            Self::Json(path) => write!(f, "json:{path}"),
            Self::SignatureField(name) => write!(f, "signature:{name}"),
        }
    }
}

/// Text, or what stands between braces.
#[derive(Debug, PartialEq, Eq)]
enum Token<'t> {
    Text(String),
    Field(&'t str),
}

fn tokens(text: &str) -> Result<Vec<Token<'_>>, TextError> {
    let mut found = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        literal.push_str(before);
        if let Some(after) = from.strip_prefix("{{") {
            literal.push('{');
            rest = after;
        } else if let Some(after) = from.strip_prefix("}}") {
            literal.push('}');
            rest = after;
        } else {
            let inside = from.strip_prefix('{').ok_or(BRACES)?;
            let (field, after) = inside.split_once('}').ok_or(BRACES)?;
            if !literal.is_empty() {
                found.push(Token::Text(std::mem::take(&mut literal)));
            }
            found.push(Token::Field(field));
            rest = after;
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        found.push(Token::Text(literal));
    }
    Ok(found)
}

impl Part {
    /// The parts of a template in its text form.
    ///
    /// # Errors
    /// When braces do not match, or hold no part.
    pub fn parse_template(text: &str) -> Result<Vec<Self>, TextError> {
        tokens(text)?
            .into_iter()
            .map(|token| match token {
                Token::Text(text) => Ok(Self::Literal(text)),
                Token::Field(field) => part(field),
            })
            .collect()
    }
}

fn part(field: &str) -> Result<Part, TextError> {
    match field {
        "body" => return Ok(Part::Body),
        "timestamp" => return Ok(Part::Timestamp),
        "id" => return Ok(Part::MessageId),
        "method" => return Ok(Part::Method),
        "url" => return Ok(Part::Url),
        "secret" => return Ok(Part::Secret),
        "form" => return Ok(Part::SortedForm),
        "body_crc32" => return Ok(Part::BodyCrc32),
        "body_sha256" => return Ok(Part::BodySha256Hex),
        _ => {}
    }
    if let Some(name) = field.strip_prefix("setting:") {
        return Ok(Part::Setting(name.to_owned()));
    }
    let (place, when_absent) = match field.strip_suffix('?') {
        Some(place) => (place, WhenAbsent::Empty),
        None => (field, WhenAbsent::Refuse),
    };
    let at = place.parse().map_err(|_| PART)?;
    Ok(Part::Value { at, when_absent, before: String::new(), after: String::new() })
}

impl Piece {
    /// The pieces of an answer in its text form.
    ///
    /// # Errors
    /// When braces do not match, or hold no piece.
    pub fn parse_answer(text: &str) -> Result<Vec<Self>, TextError> {
        tokens(text)?
            .into_iter()
            .map(|token| match token {
                Token::Text(text) => Ok(Self::Literal(text)),
                Token::Field(field) => piece(field),
            })
            .collect()
    }
}

fn piece(field: &str) -> Result<Piece, TextError> {
    if let Some(name) = field.strip_prefix("setting:") {
        return Ok(Piece::Setting(name.to_owned()));
    }
    for (prefix, encoding) in [("hmac-hex:", Encoding::Hex), ("hmac-base64:", Encoding::Base64)] {
        if let Some(place) = field.strip_prefix(prefix) {
            return Ok(Piece::Hmac { of: place.parse().map_err(|_| PIECE)?, encoding });
        }
    }
    let (place, escape) = match field.strip_suffix("|json") {
        Some(place) => (place, Escape::Json),
        None => (field, Escape::Plain),
    };
    Ok(Piece::Echo { at: place.parse().map_err(|_| PIECE)?, escape })
}

impl FromStr for Condition {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(method) = text.strip_prefix("method:") {
            return Ok(Self::Method(method.to_owned()));
        }
        if let Some(path) = text.strip_prefix("empty:") {
            return JsonPath::parse(path).map(Self::EmptyArray).map_err(|_| CONDITION);
        }
        let Some((place, expected)) = text.split_once(" == ") else {
            return text.parse().map(Self::Present).map_err(|_| CONDITION);
        };
        let at = place.parse().map_err(|_| CONDITION)?;
        let expected = text_or_setting(expected).map_err(|_| CONDITION)?;
        Ok(Self::Equals { at, expected })
    }
}

/// A text, `{setting:NAME}` or `{key}`.
pub(crate) fn text_or_setting(text: &str) -> Result<Expected, TextError> {
    match tokens(text)?.as_slice() {
        [Token::Text(text)] => Ok(Expected::Text(text.clone())),
        [Token::Field("key")] => Ok(Expected::Key),
        [Token::Field(field)] => {
            let name = field.strip_prefix("setting:").ok_or(CONDITION)?;
            Ok(Expected::Setting(name.to_owned()))
        }
        _ => Err(CONDITION),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_and_printed_the_same() {
        for text in [
            "header:x-id",
            "headers:x-docusign-signature-1..100",
            "authorization:Basic",
            "query:hub.challenge",
            "form:MessageSid",
            "json:a.b[0]",
            "signature:t",
        ] {
            assert_eq!(text.parse::<Locator>().unwrap().to_string(), text);
        }
        for text in
            ["", "x-id", "header:", "json:a..b", "cookie:a", "headers:x-", "headers:x1..999"]
        {
            assert!(text.parse::<Locator>().is_err(), "{text}");
        }
    }

    #[test]
    fn templates_have_text_and_parts() {
        let parts = Part::parse_template("v0:{timestamp}:{{{json:a?}}}{body}").unwrap();
        let value = Part::Value {
            at: "json:a".parse().unwrap(),
            when_absent: WhenAbsent::Empty,
            before: String::new(),
            after: String::new(),
        };
        let expected = [
            Part::Literal("v0:".into()),
            Part::Timestamp,
            Part::Literal(":{".into()),
            value,
            Part::Literal("}".into()),
            Part::Body,
        ];
        assert_eq!(parts, expected);
        for text in ["{", "}", "{body", "body}", "{}", "{nothing}", "{body}}"] {
            assert!(Part::parse_template(text).is_err(), "{text}");
        }
    }

    #[test]
    fn conditions_and_answers_are_read() {
        let condition: Condition = "query:a == {setting:token}".parse().unwrap();
        let expected = Expected::Setting("token".into());
        assert_eq!(condition, Condition::Equals { at: "query:a".parse().unwrap(), expected });
        assert!("query:a == a{setting:b}".parse::<Condition>().is_err());
        let pieces = Piece::parse_answer(r#"{{"v":"{json:v|json}"}}"#).unwrap();
        let echo = Piece::Echo { at: "json:v".parse().unwrap(), escape: Escape::Json };
        let text = |text: &str| Piece::Literal(text.to_owned());
        assert_eq!(pieces, [text(r#"{"v":""#), echo, text(r#""}"#)]);
    }
}
