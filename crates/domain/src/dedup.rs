//! When an event is a repeat (I15).
//!
//! ```text
//!  id ───────► known within its window? ── same content ─► duplicate
//!                                       └─ other content ─► anomaly
//!  signed body under an id that is not signed ─► known within its short window? ─► replay
//! ```

use crate::SourceId;
use sha2::{Digest as _, Sha256};
use std::{borrow::Cow, time::Duration};

/// Bounds of dedup, each with its reason.
pub mod dedup_limits {
    use std::time::Duration;

    const HOUR: u64 = 3600;
    const DAY: u64 = 24 * HOUR;

    /// How long the id of a published event is remembered when nothing is chosen: longer than any
    /// publisher tries again.
    pub const WINDOW_DEFAULT: Duration = Duration::from_secs(7 * DAY);
    /// Shortest window of published events: an outbox that was down for an hour comes back.
    pub const WINDOW_MIN: Duration = Duration::from_secs(HOUR);
    /// Longest window: a sender that tries again for 30 days, and a day more.
    pub const WINDOW_MAX: Duration = Duration::from_secs(31 * DAY);
    /// How long anomalies are kept: as long as the receipts that explain them.
    pub const ANOMALY_KEPT: Duration = Duration::from_secs(30 * DAY);
    /// Rows taken away at once: a bound for the time of one statement, and for how long the embedded
    /// store's only writer waits.
    pub const PRUNED_AT_ONCE: u16 = 2_000;
}

/// How repeats of an event are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DedupRule {
    /// How long its id is remembered.
    pub window: Duration,
    /// Of an id that no signature covers: the signed body, which is remembered beside it.
    pub body: Option<SignedBody>,
    /// The source that it came through. Ids of a source are its own: no publisher that uses the source's
    /// name, and no later source of that name, meets them.
    pub scope: Option<SourceId>,
}

impl DedupRule {
    /// An id that is remembered for so long.
    #[must_use]
    pub const fn id(window: Duration) -> Self {
        Self { window, body: None, scope: None }
    }

    /// What its keys belong to, for an event of this source: `~` is in no source of an event.
    #[must_use]
    pub fn scope_of<'a>(&self, source: &'a str) -> Cow<'a, str> {
        match self.scope {
            Some(id) => Cow::Owned(format!("~{id}")),
            None => Cow::Borrowed(source),
        }
    }
}

/// A body that a signature covers while it does not cover the event id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignedBody {
    hash: [u8; 32],
    /// How long it is remembered: the same body is no new event under another id until then.
    pub window: Duration,
}

impl SignedBody {
    /// The body of a request, or its part of that number where a request has several events.
    #[must_use]
    pub fn of(body: &[u8], part: Option<usize>, window: Duration) -> Self {
        let mut hash = Sha256::new();
        hash.update(body);
        if let Some(part) = part {
            hash.update((part as u64).to_be_bytes());
        }
        Self { hash: hash.finalize().into(), window }
    }

    /// What it is remembered under, among the ids of its source: `~` is in no event id.
    #[must_use]
    pub fn key(&self) -> String {
        let mut key = String::with_capacity(6 + 2 * self.hash.len());
        key.push_str("~body:");
        for byte in self.hash {
            for digit in [byte >> 4, byte & 15] {
                key.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
            }
        }
        key
    }
}

/// The mark of an event id beside the body that came with it: tells its own repeat from a replay.
#[must_use]
pub fn id_mark(event_id: &str) -> [u8; 32] {
    Sha256::digest(event_id.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_body_are_remembered_apart_and_under_no_id() {
        let of = |body: &[u8], part| SignedBody::of(body, part, Duration::from_secs(1)).key();
        assert_eq!(of(b"a", None), of(b"a", None));
        assert_ne!(of(b"a", None), of(b"b", None));
        assert_ne!(of(b"a", None), of(b"a", Some(0)));
        assert_ne!(of(b"a", Some(1)), of(b"a", Some(0)));
        assert!(of(b"a", None).starts_with("~body:ca978112ca1bbdca"));
        assert_eq!(of(b"a", None).len(), 70);
    }
}
