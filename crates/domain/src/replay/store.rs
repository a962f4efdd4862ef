//! The port that keeps replays and does their steps.

use super::{
    ReopenedStates, Replay, ReplayCounts, ReplayRow, ReplayScope, ReplayState, replay_limits,
};
use crate::{
    DeliveryId, EndpointId, EventUid, NewDelivery, ReplayId, RequestKey, StoreError, TenantId,
    Timestamp, WorkerId,
};
use async_trait::async_trait;
use std::time::Duration;
use uuid::Uuid;

/// A process's right to a replay, with a token: whoever has an older one changes nothing (I4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayLease {
    /// Whose replay it is.
    pub tenant: TenantId,
    /// Which replay.
    pub replay: ReplayId,
    /// Greater with every claim.
    pub token: i64,
}

/// What a replay walks over, and in which bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayWalk {
    /// Whose rows.
    pub tenant: TenantId,
    /// Which rows.
    pub scope: ReplayScope,
    /// Only what failed at this endpoint, by its own index.
    pub failures_of: Option<EndpointId>,
    /// The first id.
    pub first: Uuid,
    /// The last id.
    pub last: Uuid,
}

/// A finished delivery to be opened for another round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reopening {
    /// Which one.
    pub delivery: DeliveryId,
    /// Where it goes.
    pub endpoint: EndpointId,
}

/// An event that an endpoint is to have: its delivery is opened again, or made when there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rerouted {
    /// The event.
    pub event: EventUid,
    /// The delivery to be made, when there is none of this event at this endpoint.
    pub delivery: NewDelivery,
}

/// How a replay ends by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayEnd {
    /// It has looked at everything.
    Done,
    /// It cannot go on.
    Failed(String),
}

/// One transaction of a replay: some rows, and where it stands after them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayStep {
    /// Finished deliveries to be opened again.
    pub reopen: Vec<Reopening>,
    /// Events to be placed with an endpoint.
    pub place: Vec<Rerouted>,
    /// States in which deliveries are opened; another that they have got meanwhile is left.
    pub states: ReopenedStates,
    /// What was counted while looking; what is opened and made is added by the store.
    pub counts: ReplayCounts,
    /// Where the replay stood when this was planned. A step with a position is done only from there: one
    /// whose answer was lost may have been done already, and what it opened may have ended again.
    pub after: Option<Uuid>,
    /// The last row looked at; none leaves it where it was.
    pub position: Option<Uuid>,
    /// Whether it waits for an endpoint that has much pending.
    pub waiting: bool,
    /// Set when this is the last step.
    pub end: Option<ReplayEnd>,
    /// When this is; what is opened is due then.
    pub now: Timestamp,
    /// The lease ends so long after it.
    pub lease: Duration,
}

impl ReplayStep {
    /// A step that touches no row.
    #[must_use]
    pub fn empty(now: Timestamp) -> Self {
        Self {
            reopen: Vec::new(),
            place: Vec::new(),
            states: ReopenedStates::FAILED,
            counts: ReplayCounts::default(),
            after: None,
            position: None,
            waiting: false,
            end: None,
            now,
            lease: replay_limits::LEASE,
        }
    }
}

/// What a step did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepDone {
    /// The counters of this step, with what was opened and made.
    pub counts: ReplayCounts,
    /// Endpoints that have something due now, each once.
    pub endpoints: Vec<EndpointId>,
}

/// What became of a wish for a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayCreated {
    /// It is there now.
    Made,
    /// The same request made this one before.
    Again(Box<Replay>),
    /// The id of the request was used for another one.
    RequestIdReused,
    /// The tenant has as many unfinished ones as it may.
    TooMany,
}

/// What became of a wish to pause, resume or cancel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayTurned {
    /// It is in that state now; whether it was before.
    Turned(Replay, bool),
    /// It is in a state that does not allow it.
    Refused(Replay),
    /// There is no such replay.
    Missing,
}

/// Keeps replays, and does their steps. One method is one transaction.
#[async_trait]
pub trait ReplayStore: Send + Sync + 'static {
    /// Keeps a new replay. Of concurrent repeats of a request one makes it; the number of unfinished
    /// ones is exact.
    async fn create_replay(
        &self,
        replay: &Replay,
        request: Option<&RequestKey>,
    ) -> Result<ReplayCreated, StoreError>;

    /// What this request made; none when it is new.
    async fn replay_of_request(
        &self,
        tenant: TenantId,
        request: &RequestKey,
    ) -> Result<Option<ReplayCreated>, StoreError>;

    /// One replay.
    async fn replay(&self, tenant: TenantId, id: ReplayId) -> Result<Option<Replay>, StoreError>;

    /// Replays, newest first; `after` is the id of the last one seen.
    async fn replays(
        &self,
        tenant: TenantId,
        state: Option<ReplayState>,
        after: Option<ReplayId>,
        limit: u16,
    ) -> Result<Vec<Replay>, StoreError>;

    /// Unfinished replays of a tenant.
    async fn open_replays(&self, tenant: TenantId) -> Result<u32, StoreError>;

    /// Pauses, resumes or cancels. When it returns, no step that began before writes anything more.
    async fn turn_replay(
        &self,
        tenant: TenantId,
        id: ReplayId,
        to: ReplayState,
        now: Timestamp,
    ) -> Result<ReplayTurned, StoreError>;

    /// Takes the replay that has waited longest and that no other process has, if there is one.
    async fn claim_replay(
        &self,
        worker: WorkerId,
        now: Timestamp,
        lease: Duration,
    ) -> Result<Option<(Replay, ReplayLease)>, StoreError>;

    /// Gives a replay back, so that another process may take it at once.
    async fn release_replay(&self, lease: &ReplayLease) -> Result<(), StoreError>;

    /// The next rows of a walk, in the order of their ids. Cost grows with the rows answered alone.
    async fn replay_page(
        &self,
        walk: &ReplayWalk,
        after: Option<Uuid>,
        limit: u16,
    ) -> Result<Vec<ReplayRow>, StoreError>;

    /// Pending deliveries of an endpoint, counted up to this many.
    async fn pending_at(&self, endpoint: EndpointId, most: u32) -> Result<u32, StoreError>;

    /// Does a step: rows, counters and position together or not at all. None when the lease is another's
    /// by now, the replay was paused or ended, or it stands elsewhere than the step begins.
    async fn step_replay(
        &self,
        lease: &ReplayLease,
        step: &ReplayStep,
    ) -> Result<Option<StepDone>, StoreError>;

    /// Takes away replays that were finished before this time, the oldest first. Says how many.
    async fn prune_replays(&self, finished_before: Timestamp) -> Result<u64, StoreError>;
}
