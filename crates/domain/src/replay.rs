//! Replays: what was delivered, has failed or was wanted by nobody is delivered once more, chosen by a
//! filter, at a bounded rate, as an operation that can be watched, paused and cancelled.
//!
//! ```text
//!             claimed            walked to the end
//!  pending ──────────► running ─────────────────────► done
//!     ▲  │               │ │ └─ the store refuses ──► failed
//!     │  └── pause ──────┤ └── cancel ──────────────► cancelled
//!     └──── resume ◄── paused
//! ```
//!
//! A replay walks finished deliveries or events in the order of their ids, which is that of their
//! acceptance. Where it stands is written in the transaction that opens deliveries again, so each row is
//! looked at once, whatever crashes.

mod plan;
mod store;

pub use plan::{Looked, ReplayRow, StepPlan};
pub use store::{
    Reopening, ReplayCreated, ReplayEnd, ReplayLease, ReplayStep, ReplayStore, ReplayTurned,
    ReplayWalk, Rerouted, StepDone,
};

use crate::{
    DeliveryState, EndpointId, EventUid, FinishReason, ReplayId, TenantId, Timestamp, TypePattern,
};
use std::ops::{Add, AddAssign};
use uuid::Uuid;

/// Bounds of replays, each with its reason.
pub mod replay_limits {
    use std::time::Duration;

    /// Deliveries a second when the caller names none: what a receiver that has just come back can take
    /// beside its live traffic.
    pub const RATE_DEFAULT: u32 = 100;
    /// Most deliveries a second. Steps of [`STEP`] rows; above it replays would take the queue's share.
    pub const RATE_MAX: u32 = 5_000;
    /// Replays of one tenant that are not finished: each walks and waits on its own, in every process.
    pub const OPEN_PER_TENANT: u32 = 5;
    /// Rows looked at in one read.
    pub const PAGE: u16 = 500;
    /// Rows opened or made in one transaction: short enough that nobody waits for its locks, and what a
    /// cancelled replay may still do.
    pub const STEP: u32 = 250;
    /// Pending deliveries of an endpoint above which a replay waits before it adds to them.
    pub const PENDING: u32 = 1_000;
    /// Event types of one filter.
    pub const EVENT_TYPES: usize = 50;
    /// Named events of one filter.
    pub const EVENTS: usize = 1_000;
    /// Longest reason of a caller: one line of a record.
    pub const REASON_CHARS: usize = 500;
    /// A count before a replay goes no further: it answers a person who waits.
    pub const COUNTED: u32 = 10_000;
    /// Reads of such a count, for the same reason: it looks at no more than these times [`PAGE`].
    pub const COUNTED_PAGES: u32 = 100;
    /// How long a finished replay is kept.
    pub const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
    /// Finished replays taken away at once.
    pub const PRUNED_AT_ONCE: u32 = 500;
    /// A process's right to a replay lasts so long after its last step: a dead one is replaced after it.
    pub const LEASE: Duration = Duration::from_secs(15);
}

/// What a replay walks over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReplayScope {
    /// Finished deliveries: those chosen are opened for another round.
    Deliveries,
    /// Events: each is routed again as things are today. Deliveries that were never made are made, and
    /// those that are finished are opened again where their state is chosen.
    Events,
}

impl ReplayScope {
    /// The name stored and recorded.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deliveries => "deliveries",
            Self::Events => "events",
        }
    }

    /// Reads the stored name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Deliveries, Self::Events].into_iter().find(|scope| scope.as_str() == text)
    }
}

/// Which finished deliveries are opened again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReopenedStates {
    /// Those that the receiver took.
    pub delivered: bool,
    /// Dead letters.
    pub dead: bool,
    /// Those that were cancelled.
    pub cancelled: bool,
}

impl ReopenedStates {
    /// What never arrived. A delivery that arrived is sent again only when somebody says so.
    pub const FAILED: Self = Self { delivered: false, dead: true, cancelled: true };

    /// Whether deliveries in this state are opened again.
    #[must_use]
    pub const fn has(self, state: DeliveryState) -> bool {
        match state {
            DeliveryState::Pending => false,
            DeliveryState::Delivered => self.delivered,
            DeliveryState::Dead => self.dead,
            DeliveryState::Cancelled => self.cancelled,
        }
    }

    /// The chosen states.
    pub fn iter(self) -> impl Iterator<Item = DeliveryState> {
        [DeliveryState::Delivered, DeliveryState::Dead, DeliveryState::Cancelled]
            .into_iter()
            .filter(move |state| self.has(*state))
    }
}

/// What a replay is about. Every part narrows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayFilter {
    /// Only to this endpoint.
    pub endpoint: Option<EndpointId>,
    /// Only events of these types; empty for all.
    pub event_types: Vec<TypePattern>,
    /// Only events of this source.
    pub source: Option<String>,
    /// Only these events, sorted; empty for all.
    pub events: Vec<EventUid>,
    /// Only events accepted at this time or later, to the millisecond.
    pub from: Option<Timestamp>,
    /// Only events accepted before this time, to the millisecond. Never later than the replay was made,
    /// so that it ends.
    pub until: Timestamp,
    /// Which finished deliveries are opened again.
    pub states: ReopenedStates,
    /// Only deliveries that ended for one of these reasons; empty for all.
    pub reasons: Vec<FinishReason>,
}

impl ReplayFilter {
    /// The first and the last id that the walk can meet, of events and of deliveries alike: both begin
    /// with the time of acceptance.
    #[must_use]
    pub fn range(&self) -> (Uuid, Uuid) {
        let first = self.from.map_or(0, |from| millis(from.micros().div_euclid(1_000)) << 80);
        let end = millis(self.until.micros().saturating_add(999).div_euclid(1_000)) << 80;
        let (mut first, mut last) = (first, end.saturating_sub(1));
        if let (Some(lowest), Some(highest)) = (self.events.first(), self.events.last()) {
            // Deliveries share the first 64 bits with their event.
            first = first.max(lowest.uuid().as_u128() >> 64 << 64);
            last = last.min(highest.uuid().as_u128() | u128::from(u64::MAX));
        }
        (Uuid::from_u128(first), Uuid::from_u128(last))
    }
}

fn millis(number: i64) -> u128 {
    // 48 bits of an id carry milliseconds.
    u128::try_from(number).unwrap_or(0).min((1 << 48) - 1)
}

/// Where a replay stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReplayState {
    /// Waits for a process.
    Pending,
    /// Some process works at it.
    Running,
    /// Stands still until it is resumed.
    Paused,
    /// It has looked at everything.
    Done,
    /// Somebody ended it.
    Cancelled,
    /// It could not go on.
    Failed,
}

impl ReplayState {
    /// All states.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Running, Self::Paused, Self::Done, Self::Cancelled, Self::Failed];

    /// The name stored.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }

    /// Reads the stored name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Whether it will never go on.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Cancelled | Self::Failed)
    }

    /// Whether somebody may put a replay from this state into that one.
    #[must_use]
    pub const fn may_become(self, to: Self) -> bool {
        match to {
            Self::Cancelled => !self.is_final(),
            Self::Paused => matches!(self, Self::Pending | Self::Running),
            // Resuming.
            Self::Pending => matches!(self, Self::Paused),
            Self::Running | Self::Done | Self::Failed => false,
        }
    }
}

/// How much a replay has done. Of each event or delivery one counter of what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplayCounts {
    /// Rows looked at.
    pub looked_at: u64,
    /// Rows that the filter chose.
    pub matched: u64,
    /// Finished deliveries opened again.
    pub reopened: u64,
    /// Deliveries made that were not there before.
    pub made: u64,
    /// Left alone, since it is pending already.
    pub skipped_pending: u64,
    /// Left alone, since its endpoint is disabled or deleted.
    pub skipped_inactive: u64,
    /// Left alone, since the event is no longer kept.
    pub skipped_gone: u64,
    /// Left alone, since it is finished in a state that was not chosen.
    pub skipped_finished: u64,
    /// Events that nobody wants today.
    pub skipped_unwanted: u64,
}

impl Add for ReplayCounts {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            looked_at: self.looked_at + more.looked_at,
            matched: self.matched + more.matched,
            reopened: self.reopened + more.reopened,
            made: self.made + more.made,
            skipped_pending: self.skipped_pending + more.skipped_pending,
            skipped_inactive: self.skipped_inactive + more.skipped_inactive,
            skipped_gone: self.skipped_gone + more.skipped_gone,
            skipped_finished: self.skipped_finished + more.skipped_finished,
            skipped_unwanted: self.skipped_unwanted + more.skipped_unwanted,
        }
    }
}

impl AddAssign for ReplayCounts {
    fn add_assign(&mut self, more: Self) {
        *self = *self + more;
    }
}

/// A replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// Its id.
    pub id: ReplayId,
    /// Whose it is.
    pub tenant: TenantId,
    /// What it walks over.
    pub scope: ReplayScope,
    /// What it chooses.
    pub filter: ReplayFilter,
    /// Name of the endpoint it is bound to as it was called then; empty for none.
    pub endpoint_slug: String,
    /// Deliveries a second.
    pub rate: u32,
    /// Why, as the caller said.
    pub reason: String,
    /// Who made it.
    pub created_by: String,
    /// When.
    pub created_at: Timestamp,
    /// Where it stands.
    pub state: ReplayState,
    /// How much it has done.
    pub counts: ReplayCounts,
    /// The last row it looked at; none before the first.
    pub position: Option<Uuid>,
    /// Whether it waits for an endpoint that has much pending.
    pub waiting: bool,
    /// When a process first took it up.
    pub started_at: Option<Timestamp>,
    /// When anything last changed about it.
    pub updated_at: Timestamp,
    /// When it was finished.
    pub finished_at: Option<Timestamp>,
    /// Why it failed; empty otherwise.
    pub failure: String,
}

impl Replay {
    /// The walk of this replay.
    #[must_use]
    pub fn walk(&self) -> ReplayWalk {
        let (first, last) = self.filter.range();
        // Of an endpoint's failed deliveries there is an index.
        let failed_only = !self.filter.states.delivered && self.scope == ReplayScope::Deliveries;
        ReplayWalk {
            tenant: self.tenant,
            scope: self.scope,
            failures_of: self.filter.endpoint.filter(|_| failed_only),
            first,
            last,
        }
    }

    /// When the last row that it looked at was accepted.
    #[must_use]
    pub fn position_time(&self) -> Option<Timestamp> {
        self.position.map(|id| crate::DeliveryId::from_uuid(id).time())
    }
}

#[cfg(test)]
mod tests;
