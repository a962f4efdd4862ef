//! Type patterns of subscriptions.

use crate::{
    OperationalEvent,
    name::{clip, is_segment},
};
use std::fmt;

/// Which event types a subscription wants.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TypePattern {
    /// `*`: every type but those of operational events, which are wanted by name.
    Any,
    /// `order.*`: types that start with `order.`, at any depth.
    Prefix(String),
    /// `order.paid`: this type.
    Exact(String),
}

/// The text is no pattern.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("is {0:?}; use an event type (order.paid), a prefix (order.*) or *")]
pub struct InvalidPattern(String);

impl TypePattern {
    /// Longest pattern: an event type and `.*`.
    pub const LENGTH_MAX: usize = 130;

    /// Reads a pattern.
    ///
    /// # Errors
    /// When it is neither a type, nor a prefix, nor `*`.
    pub fn parse(text: &str) -> Result<Self, InvalidPattern> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let stem = text.strip_suffix(".*").unwrap_or(text);
        if text.len() > Self::LENGTH_MAX || !stem.split('.').all(is_segment) {
            return Err(InvalidPattern(clip(text)));
        }
        Ok(if stem.len() == text.len() {
            Self::Exact(text.to_owned())
        } else {
            Self::Prefix(stem.to_owned())
        })
    }

    /// Whether the pattern wants this type.
    #[must_use]
    pub fn matches(&self, event_type: &str) -> bool {
        match self {
            Self::Any => !event_type.starts_with(OperationalEvent::TYPES),
            Self::Prefix(stem) => {
                event_type.strip_prefix(stem.as_str()).is_some_and(|rest| rest.starts_with('.'))
            }
            Self::Exact(exact) => exact == event_type,
        }
    }
}

impl fmt::Display for TypePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Prefix(stem) => write!(f, "{stem}.*"),
            Self::Exact(exact) => f.write_str(exact),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_documented() {
        for (pattern, event_type, expected) in [
            ("*", "order.paid", true),
            ("*", "turnbuckle.anomaly", false),
            ("turnbuckle.*", "turnbuckle.anomaly", true),
            ("order.paid", "order.paid", true),
            ("order.paid", "order.paid.late", false),
            ("order.*", "order.paid", true),
            ("order.*", "order.item.added", true),
            ("order.*", "order", false),
            ("order.*", "orders.paid", false),
        ] {
            let parsed = TypePattern::parse(pattern).unwrap();
            assert_eq!(parsed.matches(event_type), expected, "{pattern} {event_type}");
            assert_eq!(parsed.to_string(), pattern);
        }
    }

    #[test]
    fn malformed_patterns_are_refused() {
        for bad in ["", "**", "order*", "*.paid", "order.*.paid", ".*", "order.", "a b"] {
            assert!(TypePattern::parse(bad).is_err(), "{bad}");
        }
    }
}
