//! How keys are used: what was signed with which and how receivers answered, and what verified what came.
//!
//! ```text
//!  attempt ─► counters of its ring (memory) ── at most once a minute ─► KeyUsageStore ─► RingUsage
//!  request of a sender ─► counter of the key that verified it ───────────────┘
//! ```
//! Counts are evidence, not accounts: a process that is killed loses its last minute, and a write
//! whose answer was lost may be counted twice.

use crate::{
    AttemptOutcome, EndpointId, KeyId, Revision, SourceId, StoreError, TenantId, Timestamp,
};
use async_trait::async_trait;
use std::{borrow::Cow, ops::AddAssign, time::Duration};

/// Bounds of usage records, each with its reason.
pub mod key_usage_limits {
    use std::time::Duration;

    /// How often counts are written at most; their readers decide over hours and days.
    pub const WRITE_EVERY: Duration = Duration::from_secs(60);
    /// How long counts of answers are kept: the longest overlap, and some days to compare it with.
    pub const ANSWERS_KEPT: Duration = Duration::from_secs(35 * 24 * 3600);
    /// Records written at once.
    pub const BATCH: usize = 500;
}

/// Signed requests by how receivers answered them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnswerCounts {
    /// 2xx.
    pub accepted: u64,
    /// 401 and 403, as a receiver answers that does not know the key.
    pub denied: u64,
    /// Any other answer, or none.
    pub other: u64,
}

impl AnswerCounts {
    /// Signed requests.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.judged().saturating_add(self.other)
    }

    /// Answers that say something about the signature.
    #[must_use]
    pub const fn judged(self) -> u64 {
        self.accepted.saturating_add(self.denied)
    }

    /// How many of 1,000 judged answers were denials; 0 when none was judged.
    #[must_use]
    pub const fn denied_per_mille(self) -> u64 {
        match self.judged() {
            0 => 0,
            judged => self.denied.saturating_mul(1_000) / judged,
        }
    }
}

impl AddAssign for AnswerCounts {
    fn add_assign(&mut self, more: Self) {
        self.accepted = self.accepted.saturating_add(more.accepted);
        self.denied = self.denied.saturating_add(more.denied);
        self.other = self.other.saturating_add(more.other);
    }
}

/// What an attempt says about the signature it carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerClass {
    /// 2xx.
    Accepted,
    /// 401 or 403.
    Denied,
    /// Anything else.
    Other,
}

impl AnswerClass {
    /// The class of an attempt; none when nothing was signed and sent.
    #[must_use]
    pub const fn of(outcome: &AttemptOutcome) -> Option<Self> {
        match outcome {
            AttemptOutcome::Delivered { .. } => Some(Self::Accepted),
            AttemptOutcome::Refused { status: 401 | 403, .. } => Some(Self::Denied),
            AttemptOutcome::Refused { .. }
            | AttemptOutcome::TimedOut { .. }
            | AttemptOutcome::Unreachable { .. } => Some(Self::Other),
            // The last four are of pull endpoints, which no key signs for.
            AttemptOutcome::Blocked
            | AttemptOutcome::Failed { .. }
            | AttemptOutcome::Acknowledged
            | AttemptOutcome::Returned { .. }
            | AttemptOutcome::LeaseLapsed
            | AttemptOutcome::StreamBroken => None,
        }
    }
}

/// The keys that sign a request, in the order of its signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signers {
    /// The first signature's.
    pub first: KeyId,
    /// The second's, during an overlap.
    pub second: Option<KeyId>,
}

impl Signers {
    /// These keys, the first one first; none when there is none.
    #[must_use]
    pub fn of(keys: &[KeyId]) -> Option<Self> {
        keys.first().map(|first| Self { first: *first, second: keys.get(1).copied() })
    }

    /// How many sign.
    #[must_use]
    pub const fn count(self) -> u8 {
        if self.second.is_some() { 2 } else { 1 }
    }

    /// The keys.
    pub fn keys(self) -> impl Iterator<Item = KeyId> {
        std::iter::once(self.first).chain(self.second)
    }
}

/// Requests signed by one set of keys at one state of their ring, since the last record of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyUse {
    /// Whose ring.
    pub tenant: TenantId,
    /// Whose ring.
    pub endpoint: EndpointId,
    /// The ring's revision.
    pub revision: Revision,
    /// What signed.
    pub signers: Signers,
    /// The answers.
    pub answers: AnswerCounts,
    /// When the last one was signed.
    pub last_used_at: Timestamp,
}

/// The result of a test of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyTest {
    /// When it was sent.
    pub at: Timestamp,
    /// As [`AttemptOutcome::class`].
    pub outcome: Cow<'static, str>,
    /// The receiver's status code.
    pub status: Option<u16>,
}

impl KeyTest {
    /// Whether the receiver took a request signed with this key alone.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

/// A key of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyPlace {
    /// Whose it is.
    pub tenant: TenantId,
    /// The endpoint.
    pub endpoint: EndpointId,
    /// The key.
    pub key: KeyId,
}

/// Requests that one key of a source verified, since the last record of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyVerifications {
    /// Whose it is.
    pub tenant: TenantId,
    /// The source.
    pub source: SourceId,
    /// The key.
    pub key: KeyId,
    /// How many.
    pub requests: u64,
    /// When the last one came.
    pub last_used_at: Timestamp,
}

/// What one key was used for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyTraffic {
    /// The key.
    pub key: KeyId,
    /// Requests that it signed, tests aside; of a key of a source, those that it verified.
    pub signatures: u64,
    /// When it last did.
    pub last_used_at: Option<Timestamp>,
    /// Its last test.
    pub last_test: Option<KeyTest>,
}

/// Answers to what one set of keys signed on one day, at one state of the ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedAnswers {
    /// The ring's revision.
    pub revision: Revision,
    /// What signed.
    pub signers: Signers,
    /// The day, as [`Timestamp::unix_day`].
    pub day: i64,
    /// The answers.
    pub answers: AnswerCounts,
    /// When the last one was signed.
    pub last_used_at: Timestamp,
}

/// What is known of the use of a ring.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RingUsage {
    /// Keys that were ever used or tested.
    pub keys: Vec<KeyTraffic>,
    /// In the order in which they were signed.
    pub answers: Vec<SignedAnswers>,
}

impl RingUsage {
    /// What is known of a key.
    #[must_use]
    pub fn of(&self, key: KeyId) -> Option<&KeyTraffic> {
        self.keys.iter().find(|traffic| traffic.key == key)
    }
}

/// Where the use of keys is kept. Not configuration: writing it makes no revision.
#[async_trait]
pub trait KeyUsageStore: Send + Sync + 'static {
    /// Adds counts. At most [`key_usage_limits::BATCH`] at once.
    async fn add_key_uses(&self, uses: &[KeyUse]) -> Result<(), StoreError>;

    /// Notes the last test of a key.
    async fn note_key_test(&self, place: KeyPlace, test: &KeyTest) -> Result<(), StoreError>;

    /// What is known of the use of a ring.
    async fn ring_usage(
        &self,
        tenant: TenantId,
        endpoint: EndpointId,
    ) -> Result<RingUsage, StoreError>;

    /// Adds counts of keys of sources. At most [`key_usage_limits::BATCH`] at once.
    async fn add_key_verifications(&self, uses: &[KeyVerifications]) -> Result<(), StoreError>;

    /// What is known of the use of a source's ring; its answers are empty.
    async fn source_usage(
        &self,
        tenant: TenantId,
        source: SourceId,
    ) -> Result<RingUsage, StoreError>;

    /// Endpoints whose ring has a retiring key that still signs at `now` and is not held, by id, after
    /// the one given.
    async fn open_rotations(
        &self,
        now: Timestamp,
        after: Option<EndpointId>,
        limit: u16,
    ) -> Result<Vec<(TenantId, EndpointId)>, StoreError>;

    /// Forgets answers older than `keep`, and the use of keys that no ring remembers.
    async fn forget_answers(&self, now: Timestamp, keep: Duration) -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Phase, RequestFault, Unreachable};

    #[test]
    fn only_what_was_signed_and_sent_has_a_class() {
        let refused = |status| AttemptOutcome::Refused { status, retry_after: None };
        let unreachable = AttemptOutcome::Unreachable { cause: Unreachable::Reset };
        for (outcome, class) in [
            (AttemptOutcome::Delivered { status: 204 }, Some(AnswerClass::Accepted)),
            (refused(401), Some(AnswerClass::Denied)),
            (refused(403), Some(AnswerClass::Denied)),
            (refused(400), Some(AnswerClass::Other)),
            (refused(500), Some(AnswerClass::Other)),
            (AttemptOutcome::TimedOut { phase: Phase::Dns }, Some(AnswerClass::Other)),
            (unreachable, Some(AnswerClass::Other)),
            (AttemptOutcome::Blocked, None),
            (AttemptOutcome::Failed { fault: RequestFault::Signing }, None),
        ] {
            assert_eq!(AnswerClass::of(&outcome), class, "{outcome:?}");
        }
    }
}
