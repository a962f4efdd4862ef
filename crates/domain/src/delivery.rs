//! Deliveries: one event for one endpoint.
//!
//! ```text
//!            settle(retry)
//!              ┌──────┐
//!  append ──► pending ─┴─ settle(2xx) ──────────► delivered ─┐
//!                │ ├──── settle(final, exhausted) ► dead ────┼─ manual retry ──► pending
//!                │ └──── disable, delete, cancel ► cancelled ┘
//! ```

use crate::{DeliveryId, EndpointId, EventUid, PayloadFormat, TenantId, Timestamp};

/// Where a delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeliveryState {
    /// Waits for its next attempt, or is being tried.
    Pending,
    /// The receiver took it.
    Delivered,
    /// Will not be tried again by itself.
    Dead,
    /// Ended without success because its endpoint went away or somebody cancelled it.
    Cancelled,
}

impl DeliveryState {
    /// The number stored for it.
    #[must_use]
    pub const fn code(self) -> i16 {
        match self {
            Self::Pending => 0,
            Self::Delivered => 1,
            Self::Dead => 2,
            Self::Cancelled => 3,
        }
    }

    /// Reads the stored number.
    #[must_use]
    pub const fn from_code(code: i16) -> Option<Self> {
        match code {
            0 => Some(Self::Pending),
            1 => Some(Self::Delivered),
            2 => Some(Self::Dead),
            3 => Some(Self::Cancelled),
            _ => None,
        }
    }

    /// The name used in metrics and output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Why a delivery ended other than by success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FinishReason {
    /// The policy's attempts are used up.
    AttemptsExhausted,
    /// The next attempt would start after the policy's horizon.
    HorizonPassed,
    /// The receiver's answer is final.
    FinalAnswer,
    /// The receiver answered 410.
    Gone,
    /// The egress guard refused the target.
    EgressBlocked,
    /// The endpoint was disabled.
    EndpointDisabled,
    /// The endpoint was deleted.
    EndpointDeleted,
    /// Somebody cancelled it.
    CancelledByCaller,
    /// Its event was removed by retention before it could be sent.
    EventGone,
    /// While it waited for its turn, its subject reached a final state that comes before it.
    AfterFinal,
}

impl FinishReason {
    const ALL: [Self; 10] = [
        Self::AttemptsExhausted,
        Self::HorizonPassed,
        Self::FinalAnswer,
        Self::Gone,
        Self::EgressBlocked,
        Self::EndpointDisabled,
        Self::EndpointDeleted,
        Self::CancelledByCaller,
        Self::EventGone,
        Self::AfterFinal,
    ];

    /// The name stored and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AttemptsExhausted => "ATTEMPTS_EXHAUSTED",
            Self::HorizonPassed => "HORIZON_PASSED",
            Self::FinalAnswer => "FINAL_ANSWER",
            Self::Gone => "ENDPOINT_GONE",
            Self::EgressBlocked => "EGRESS_BLOCKED",
            Self::EndpointDisabled => "ENDPOINT_DISABLED",
            Self::EndpointDeleted => "ENDPOINT_DELETED",
            Self::CancelledByCaller => "CANCELLED_BY_CALLER",
            Self::EventGone => "EVENT_GONE",
            Self::AfterFinal => "AFTER_FINAL",
        }
    }

    /// Reads the stored name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text)
    }
}

/// A slice of all endpoints that one worker leases as a whole. An endpoint never changes its shard,
/// so exactly one worker sends to it at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(i16);

impl Shard {
    /// Number of shards, fixed for the life of a database. Enough for 64 workers to share evenly,
    /// few enough that a worker renews all of its leases in one small statement.
    pub const COUNT: i16 = 64;

    /// The shard of an endpoint: from the random tail of its id, so that shards fill evenly.
    #[must_use]
    pub fn of(endpoint: EndpointId) -> Self {
        let tail = endpoint.uuid().into_bytes()[15];
        Self(i16::from(tail) % Self::COUNT)
    }

    /// A stored number.
    #[must_use]
    pub const fn from_number(number: i16) -> Self {
        Self(number)
    }

    /// The number stored.
    #[must_use]
    pub const fn number(self) -> i16 {
        self.0
    }

    /// Every shard.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(Self)
    }
}

/// A pending delivery, as narrow as its live row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveDelivery {
    /// Its id.
    pub id: DeliveryId,
    /// Whose it is.
    pub tenant: TenantId,
    /// Where it goes.
    pub endpoint: EndpointId,
    /// The endpoint's shard.
    pub shard: Shard,
    /// What its body looks like; fixed when it was made, so that every attempt sends the same bytes.
    pub format: PayloadFormat,
    /// When its next attempt is due.
    pub due_at: Timestamp,
    /// Attempts so far.
    pub attempts: u32,
    /// Attempts before the present round of the policy began.
    pub round_start: u32,
    /// When the present round began: acceptance, or a manual retry of a finished delivery.
    pub round_at: Timestamp,
}

/// A delivery as it is shown: live or finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its id.
    pub id: DeliveryId,
    /// Whose it is.
    pub tenant: TenantId,
    /// Where it goes.
    pub endpoint: EndpointId,
    /// The event.
    pub event: EventUid,
    /// Where it stands.
    pub state: DeliveryState,
    /// Attempts so far.
    pub attempts: u32,
    /// When the next attempt is due, while pending.
    pub due_at: Option<Timestamp>,
    /// When it was finished.
    pub finished_at: Option<Timestamp>,
    /// Why it is dead or cancelled.
    pub reason: Option<FinishReason>,
}
