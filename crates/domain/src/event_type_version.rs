//! Versions of event types: a schema each, and what a new one must keep.

use crate::{EventTypeId, EventTypeVersionId, Meta, Revision, TenantId, name::clip};
use std::fmt;

/// Bounds of versions, each with its reason.
pub mod version_limits {
    /// Versions of one event type: every worker keeps their schemas, and people read the list.
    pub const VERSIONS: usize = 100;
    /// Most bytes of schemas of one tenant: every delivery node of all tenants holds them in memory.
    pub const TENANT_SCHEMA_BYTES: usize = 64 * 1024 * 1024;
}

/// The name of a version of an event type, such as `2`. Events carry it in `event_version`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionName(String);

/// The text is no version.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("is {0:?}; use 1 to 64 characters of A-Z a-z 0-9 _ - .")]
pub struct InvalidVersionName(String);

impl VersionName {
    /// Longest version.
    pub const LENGTH_MAX: usize = crate::event_limits::VERSION_CHARS;

    /// Checks a version: what an event can carry, and not empty.
    ///
    /// # Errors
    /// When it is empty, too long, or has other characters.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidVersionName> {
        let text = text.into();
        let fits = (1..=Self::LENGTH_MAX).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
        if fits { Ok(Self(text)) } else { Err(InvalidVersionName(clip(&text))) }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for VersionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What the schema of a new version must keep of the latest version's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Compatibility {
    /// Anything may change.
    None,
    /// The new schema takes all data that the old one takes.
    #[default]
    Backward,
    /// Each of the two takes all data that the other takes.
    Full,
}

impl Compatibility {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::None, Self::Backward, Self::Full];

    /// The name stored and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Backward => "backward",
            Self::Full => "full",
        }
    }

    /// Reads the stored name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.as_str() == text)
    }
}

/// What becomes of events whose version is not among those of their type. Events are allowed by
/// default: types that had no versions before go on as they did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum UnknownVersion {
    /// They are accepted, and their payload is not checked.
    #[default]
    Allow,
    /// They are refused.
    Refuse,
}

impl UnknownVersion {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Allow, Self::Refuse];

    /// The name stored and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Refuse => "refuse",
        }
    }

    /// Reads the stored name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|choice| choice.as_str() == text)
    }
}

/// A version of an event type. It never changes; of two, the one with the higher revision is later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventTypeVersion {
    /// Unique for ever.
    pub id: EventTypeVersionId,
    /// Whose it is.
    pub tenant: TenantId,
    /// The event type it is a version of.
    pub event_type: EventTypeId,
    /// The version itself.
    pub version: VersionName,
    /// The JSON Schema, as it was sent.
    pub schema: String,
    /// For people.
    pub description: String,
    /// Times and revision.
    pub meta: Meta,
}

/// What a caller had before it when it judged that a new version may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionsSeen {
    /// Revision of the event type, which holds the rule.
    pub event_type: Revision,
    /// Its latest version.
    pub latest: Option<EventTypeVersionId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_what_events_can_carry() {
        for good in ["1", "2.0.1-rc_1", "2026-11-30", &"v".repeat(64)] {
            assert!(VersionName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "v 1", "1/2", "*", "ä", &"v".repeat(65)] {
            assert!(VersionName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn stored_names_are_read_back() {
        for rule in Compatibility::ALL {
            assert_eq!(Compatibility::parse(rule.as_str()), Some(rule));
        }
        for choice in UnknownVersion::ALL {
            assert_eq!(UnknownVersion::parse(choice.as_str()), Some(choice));
        }
        assert_eq!((Compatibility::parse(""), UnknownVersion::parse("x")), (None, None));
    }
}
