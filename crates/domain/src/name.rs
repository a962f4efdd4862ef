//! Ids that callers choose: checked once, then carried as types.

use std::fmt;

/// Last part of a resource name: yours, or the text form of a server-made id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId(String);

/// The text is no resource id.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("is {0:?}; use 1 to 63 characters of a-z, 0-9, - and _, starting with a letter")]
pub struct InvalidResourceId(String);

impl ResourceId {
    /// Longest id: fits a DNS label.
    pub const LENGTH_MAX: usize = 63;

    /// Checks an id.
    ///
    /// # Errors
    /// When it is empty, too long, or has other characters.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidResourceId> {
        let text = text.into();
        let mut bytes = text.bytes();
        let fits = text.len() <= Self::LENGTH_MAX
            && bytes.next().is_some_and(|first| first.is_ascii_lowercase())
            && bytes.all(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_'
            });
        if fits { Ok(Self(text)) } else { Err(InvalidResourceId(clip(&text))) }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of an event type, such as `order.paid`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeName(String);

/// The text is no event type.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "is {0:?}; use 1 to 128 characters in segments of A-Z, a-z, 0-9, _ and -, separated by single dots"
)]
pub struct InvalidTypeName(String);

impl TypeName {
    /// Longest event type.
    pub const LENGTH_MAX: usize = 128;

    /// Checks an event type.
    ///
    /// # Errors
    /// When it is empty, too long, has an empty segment or other characters.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidTypeName> {
        let text = text.into();
        if text.len() <= Self::LENGTH_MAX && text.split('.').all(is_segment) {
            Ok(Self(text))
        } else {
            Err(InvalidTypeName(clip(&text)))
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub(crate) fn is_segment(segment: &str) -> bool {
    !segment.is_empty()
        && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// Enough of a bad value to recognise it, and no more.
pub(crate) fn clip(text: &str) -> String {
    text.chars().take(70).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_ids_keep_to_the_alphabet() {
        for good in ["a", "acme", "orders-2", "ep_01h", &"a".repeat(63)] {
            assert!(ResourceId::new(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "9a", "A", "a.b", "a/b", "ä", &"a".repeat(64)] {
            assert!(ResourceId::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn event_types_have_no_empty_segments() {
        for good in ["order", "order.paid", "Order_2.item-added.x"] {
            assert!(TypeName::new(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "order.", ".order", "a..b", "order.*", "a b", &"a".repeat(129)] {
            assert!(TypeName::new(bad).is_err(), "{bad}");
        }
    }
}
