//! Free key-value pairs on resources.

use std::collections::BTreeMap;

/// Labels of a resource, checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels(BTreeMap<String, String>);

/// The labels break a rule.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum InvalidLabels {
    /// Too many.
    #[error("has {0} labels; at most {max} are kept", max = Labels::MAX)]
    TooMany(usize),
    /// A key or value is too long or has other characters.
    #[error(
        "label {0:?} is not kept: keys and values have up to 63 characters of A-Z a-z 0-9 . _ - /, \
         and keys are not empty"
    )]
    BadEntry(String),
}

impl Labels {
    /// Most labels of one resource.
    pub const MAX: usize = 64;
    const LENGTH_MAX: usize = 63;

    /// Checks and keeps pairs.
    ///
    /// # Errors
    /// When there are too many, or one is malformed.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Result<Self, InvalidLabels> {
        let map: BTreeMap<_, _> = pairs.into_iter().collect();
        if map.len() > Self::MAX {
            return Err(InvalidLabels::TooMany(map.len()));
        }
        let bad = map.iter().find(|(key, value)| key.is_empty() || !fits(key) || !fits(value));
        match bad {
            Some((key, _)) => Err(InvalidLabels::BadEntry(key.chars().take(64).collect())),
            None => Ok(Self(map)),
        }
    }

    /// The pairs, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

fn fits(text: &str) -> bool {
    text.len() <= Labels::LENGTH_MAX
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte))
}
