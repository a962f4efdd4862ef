//! The queue as consumers of pull endpoints use it.
//!
//! ```text
//!  pending ── claim ──► leased until T ─┬─ ack ───────────────► delivered
//!     ▲                                 ├─ nack, broken stream ► pending at T′, or dead
//!     │                                 ├─ extend ─────────────► leased until T″
//!     │                                 └─ T passes ─► the next claim settles the lapsed lease
//!     └────────── release ──────────────┘
//! ```
//! The lease is on the row: while it lasts, the delivery is not due, so no other claim finds it. Every
//! claim gives the row another token, and every write names the token it was made under (I4).

use crate::{
    Attempt, DeliveryId, EndpointId, Event, LiveDelivery, Next, Settled, Shard, StoreError,
    TenantId, Timestamp,
};
use async_trait::async_trait;
use std::{sync::Arc, time::Duration};

/// Bounds of pulling, each with its reason.
pub mod pull_limits {
    use std::time::Duration;

    /// A lease ends this long after its claim, however often it was extended: half a day is a stuck
    /// consumer.
    pub const LEASE_TOTAL: Duration = Duration::from_hours(12);
    /// Longest delay that a consumer can ask for when it gives a delivery back.
    pub const RETURN_DELAY_MAX: Duration = Duration::from_hours(24);
}

/// Names one lease of one delivery. A later lease of the same delivery has a greater token, also after
/// the delivery was finished and opened again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseToken(pub i64);

/// A consumer's wish for due deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PullClaim {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// Only deliveries after this one in `(due_at, id)` order, where the last claim ended; a claim by
    /// subject begins at the first one all the same.
    pub after: (Timestamp, DeliveryId),
    /// Most to take.
    pub limit: u16,
    /// Whether of deliveries with the same subject only the earliest may be out.
    pub by_subject: bool,
    /// What is due by now.
    pub now: Timestamp,
    /// When the leases end.
    pub until: Timestamp,
}

impl PullClaim {
    /// Before every delivery.
    pub const START: (Timestamp, DeliveryId) =
        (Timestamp::from_micros(i64::MIN), DeliveryId::from_uuid(uuid::Uuid::nil()));

    /// The endpoint's shard: where its deliveries stand in the queue.
    #[must_use]
    pub fn shard(&self) -> Shard {
        Shard::of(self.endpoint)
    }
}

/// A lease that ended without a word from its consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lapsed {
    /// When it began.
    pub leased_at: Timestamp,
    /// When it ended.
    pub expired_at: Timestamp,
}

/// A delivery leased to a consumer.
#[derive(Debug, Clone)]
pub struct Leased {
    /// The live row; it was due at [`Leased::was_due_at`].
    pub delivery: LiveDelivery,
    /// Where it stood in the queue before.
    pub was_due_at: Timestamp,
    /// Its event; none when retention took it first.
    pub event: Option<Arc<Event>>,
    /// The lease.
    pub token: LeaseToken,
    /// The lease before this one, when it lapsed: it counts as an attempt and is to be settled first.
    pub lapsed: Option<Lapsed>,
}

/// What becomes of a leased delivery.
#[derive(Debug, Clone)]
pub struct PullSettlement {
    /// Whose it is.
    pub tenant: TenantId,
    /// Which delivery.
    pub delivery: DeliveryId,
    /// The lease it was under.
    pub token: LeaseToken,
    /// Attempts before: the row must still say so.
    pub attempts_before: u32,
    /// The attempt made; none when the delivery is given back without one.
    pub attempt: Option<Attempt>,
    /// Where it goes from here.
    pub next: Next,
    /// When.
    pub at: Timestamp,
}

impl PullSettlement {
    /// Attempts after this.
    #[must_use]
    pub const fn attempts_after(&self) -> u32 {
        match self.attempt {
            Some(_) => self.attempts_before.saturating_add(1),
            None => self.attempts_before,
        }
    }
}

/// A lease to be made longer, or shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseExtension {
    /// Whose it is.
    pub tenant: TenantId,
    /// Which delivery.
    pub delivery: DeliveryId,
    /// The lease.
    pub token: LeaseToken,
    /// When it ends now.
    pub until: Timestamp,
}

/// The queue of pull endpoints. Any process may claim from any endpoint; no two get the same delivery.
#[async_trait]
pub trait PullQueue: Send + Sync + 'static {
    /// Leases due deliveries of an endpoint, the oldest first.
    async fn claim(&self, claim: &PullClaim) -> Result<Vec<Leased>, StoreError>;

    /// Writes what became of leased deliveries in one transaction and answers in its order.
    async fn settle(&self, batch: &[PullSettlement]) -> Result<Vec<Settled>, StoreError>;

    /// Moves the ends of leases that still hold and answers in order.
    async fn extend(&self, batch: &[LeaseExtension]) -> Result<Vec<Settled>, StoreError>;
}

/// When an extended lease ends: `for_next` from now, but never later than the total allows.
#[must_use]
pub fn extended_until(leased_at: Timestamp, now: Timestamp, for_next: Duration) -> Timestamp {
    (now + for_next).min(leased_at + pull_limits::LEASE_TOTAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_lease_outlives_its_total() {
        let at = |seconds: u64| Timestamp::EPOCH + Duration::from_secs(seconds);
        let longest = Duration::from_mins(10);
        assert_eq!(extended_until(at(0), at(5), longest), at(605));
        assert_eq!(extended_until(at(0), at(43_000), longest), at(43_200));
    }
}
