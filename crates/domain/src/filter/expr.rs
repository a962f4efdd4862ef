//! The parsed form of a filter, and how it prints.

use super::decimal::Decimal;
use std::fmt;

/// A condition. `All` and `Any` hold at least two members, and never one of their own kind directly:
/// that keeps one form for each meaning, which printing and reading preserve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expr {
    Constant(bool),
    Exists(Field),
    Compare(Field, Operator, Literal),
    In(Field, Vec<Literal>),
    Not(Box<Expr>),
    All(Vec<Expr>),
    Any(Vec<Expr>),
}

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    EventType,
    EventVersion,
    Source,
    Subject,
    Sequence,
    /// An index into the filter's paths.
    Data(usize),
}

impl Field {
    /// The fields outside the payload, by name.
    pub(super) const ENVELOPE: [(&'static str, Self); 5] = [
        ("event_type", Self::EventType),
        ("event_version", Self::EventVersion),
        ("source", Self::Source),
        ("subject", Self::Subject),
        ("sequence", Self::Sequence),
    ];
}

/// One step into a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    Key(String),
    Index(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Contains,
    StartsWith,
    EndsWith,
}

impl Operator {
    /// Every operator and its spelling; of two that begin alike the longer comes first.
    pub(super) const ALL: [(&'static str, Self); 9] = [
        ("==", Self::Equal),
        ("!=", Self::NotEqual),
        ("<=", Self::AtMost),
        (">=", Self::AtLeast),
        ("<", Self::Less),
        (">", Self::Greater),
        ("contains", Self::Contains),
        ("startsWith", Self::StartsWith),
        ("endsWith", Self::EndsWith),
    ];

    fn text(self) -> &'static str {
        Self::ALL.iter().find(|(_, operator)| *operator == self).map_or("", |(text, _)| text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Text(String),
    Number(Number),
}

/// A number and how it was written, which is how it prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) text: String,
    pub(super) value: Decimal,
}

/// Letters, digits, `_` and `-`: keys that need no quotes.
pub(super) fn is_plain_key(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(is_plain_byte)
}

pub(super) fn is_plain_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

impl Expr {
    pub(super) fn print(
        &self,
        paths: &[Box<[Segment]>],
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        match self {
            Self::Constant(value) => write!(f, "{value}"),
            Self::Exists(field) => {
                f.write_str("exists(")?;
                field.print(paths, f)?;
                f.write_str(")")
            }
            Self::Compare(field, operator, literal) => {
                field.print(paths, f)?;
                write!(f, " {} {literal}", operator.text())
            }
            Self::In(field, list) => {
                field.print(paths, f)?;
                f.write_str(" in [")?;
                for (index, literal) in list.iter().enumerate() {
                    write!(f, "{}{literal}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Self::Not(inner) => {
                f.write_str("!")?;
                let bare = matches!(**inner, Self::Constant(_) | Self::Exists(_) | Self::Not(_));
                inner.print_in(!bare, paths, f)
            }
            Self::All(members) => print_joined(members, " && ", paths, f),
            Self::Any(members) => print_joined(members, " || ", paths, f),
        }
    }

    fn print_in(
        &self,
        parentheses: bool,
        paths: &[Box<[Segment]>],
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        if !parentheses {
            return self.print(paths, f);
        }
        f.write_str("(")?;
        self.print(paths, f)?;
        f.write_str(")")
    }
}

fn print_joined(
    members: &[Expr],
    joint: &str,
    paths: &[Box<[Segment]>],
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    for (index, member) in members.iter().enumerate() {
        f.write_str(if index == 0 { "" } else { joint })?;
        // `Any` below `All` needs them; `All` below `Any` does not, because && binds tighter.
        member.print_in(matches!(member, Expr::Any(_)), paths, f)?;
    }
    Ok(())
}

impl Field {
    fn print(self, paths: &[Box<[Segment]>], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = Self::ENVELOPE.iter().find(|(_, field)| *field == self) {
            return f.write_str(name);
        }
        f.write_str("data")?;
        let Self::Data(index) = self else { return Ok(()) };
        paths.get(index).into_iter().flatten().try_for_each(|segment| match segment {
            Segment::Key(key) if is_plain_key(key) => write!(f, ".{key}"),
            Segment::Key(key) => write!(f, "[{}]", Quoted(key)),
            Segment::Index(index) => write!(f, "[{index}]"),
        })
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Text(text) => write!(f, "{}", Quoted(text)),
            Self::Number(number) => f.write_str(&number.text),
        }
    }
}

/// A JSON string.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self.0).map_err(|_| fmt::Error)?)
    }
}
