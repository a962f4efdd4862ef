//! Channels: names that events carry and subscriptions ask for.

use crate::{Violations, name::clip};
use std::{cmp::Ordering, fmt};

/// Where an event belongs, such as `project/7`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel(String);

/// The text is no channel.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("is {0:?}; use 1 to 128 characters of A-Z a-z 0-9 _ - . : /")]
pub struct InvalidChannel(String);

impl Channel {
    /// Longest channel: a name, not a document.
    pub const LENGTH_MAX: usize = 128;

    /// Checks a channel.
    ///
    /// # Errors
    /// When it is empty, too long, or has other characters.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidChannel> {
        let text = text.into();
        let fits = (1..=Self::LENGTH_MAX).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte));
        if fits { Ok(Self(text)) } else { Err(InvalidChannel(clip(&text))) }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A set of channels: sorted, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Channels(Vec<Channel>);

impl Channels {
    /// Reads at most `max` names; what is wrong is noted under `field`.
    pub fn read(
        texts: Vec<String>,
        max: usize,
        field: &str,
        violations: &mut Violations,
    ) -> Option<Self> {
        if texts.len() > max {
            violations.add(field, format!("has {} channels; use at most {max}", texts.len()));
            return None;
        }
        let mut all_good = true;
        let take = |(index, text): (usize, String)| {
            let channel = violations.take(&format!("{field}[{index}]"), Channel::new(text));
            all_good &= channel.is_some();
            channel
        };
        let channels: Self = texts.into_iter().enumerate().filter_map(take).collect();
        all_good.then_some(channels)
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The channels in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Channel> {
        self.0.iter()
    }

    /// Whether one channel is in both.
    #[must_use]
    pub fn share_any(&self, other: &Self) -> bool {
        let (mut mine, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(one), Some(another)) = (mine.peek(), theirs.peek()) {
            match one.cmp(another) {
                Ordering::Equal => return true,
                Ordering::Less => drop(mine.next()),
                Ordering::Greater => drop(theirs.next()),
            }
        }
        false
    }
}

impl FromIterator<Channel> for Channels {
    fn from_iter<I: IntoIterator<Item = Channel>>(channels: I) -> Self {
        let mut sorted: Vec<Channel> = channels.into_iter().collect();
        sorted.sort_unstable();
        sorted.dedup();
        Self(sorted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channels(names: &[&str]) -> Channels {
        names.iter().map(|name| Channel::new(*name).unwrap()).collect()
    }

    fn read(names: &[&str], max: usize) -> Result<Channels, String> {
        let mut violations = Violations::new();
        let texts = names.iter().map(|name| (*name).to_owned()).collect();
        let read = Channels::read(texts, max, "event.channels", &mut violations);
        match read.filter(|_| violations.is_empty()) {
            Some(channels) => Ok(channels),
            None => Err(violations.into_error().to_string()),
        }
    }

    #[test]
    fn channels_are_names_of_few_characters() {
        for good in ["a", "project/7", "eu:gold", "A-Z_0.9", &"c".repeat(128)] {
            assert!(Channel::new(good).is_ok(), "{good}");
        }
        for bad in ["", "a b", "a,b", "ä", "*", "\"", &"c".repeat(129)] {
            assert!(Channel::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_set_is_sorted_and_names_each_once() {
        assert_eq!(read(&["b", "a", "b"], 3), Ok(channels(&["a", "b"])));
        assert_eq!(read(&[], 3), Ok(Channels::default()));
    }

    #[test]
    fn every_bad_name_is_told_by_its_place() {
        let error = read(&["a b", "ok", "c,d"], 3).unwrap_err();
        assert!(error.contains("event.channels[0]: is \"a b\""), "{error}");
        assert!(error.contains("event.channels[2]: is \"c,d\""), "{error}");
        let error = read(&["a", "b"], 1).unwrap_err();
        assert!(error.contains("event.channels: has 2 channels; use at most 1"), "{error}");
    }

    #[test]
    fn one_common_channel_is_enough() {
        for (one, other, expected) in [
            (&["a"][..], &["a"][..], true),
            (&["a", "c", "e"], &["b", "d", "e"], true),
            (&["a", "c"], &["b", "d"], false),
            (&["ab"], &["a"], false),
            (&[], &["a"], false),
            (&[], &[], false),
        ] {
            assert_eq!(channels(one).share_any(&channels(other)), expected, "{one:?} {other:?}");
            assert_eq!(channels(other).share_any(&channels(one)), expected, "{one:?} {other:?}");
        }
    }
}
