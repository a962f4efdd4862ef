//! Ports: what the planes need from storage and from each other.
//!
//! One port method is one transaction. Hot methods take batches only. Nothing here assumes SQL: a
//! claim may be a pull, a lease an acknowledgement deadline, a settle an acknowledgement.

use crate::{
    Attempt, Delivery, DeliveryId, DeliveryState, EndpointId, Error, Event, EventUid, FinishReason,
    LiveDelivery, OrderInstruction, PayloadFormat, Placed, Revision, Shard, TenantId, Timestamp,
    TypeName, WorkerId,
};
use async_trait::async_trait;
use std::{sync::Arc, time::Duration};

/// A store did not do what was asked. Nothing was changed, unless the answer to a commit was lost.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It does not answer, or refused for a passing reason. Try again.
    #[error("the store does not answer")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A bug, or a row that no code of ours wrote.
    #[error("the store failed")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// How long a caller should wait before trying again.
    pub const RETRY_AFTER: Duration = Duration::from_secs(1);
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(cause) => {
                Self::Unavailable { retry_after: StoreError::RETRY_AFTER, cause: Some(cause) }
            }
            StoreError::Internal(cause) => Self::Internal { cause },
        }
    }
}

/// A delivery to be made with its event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelivery {
    /// Its id.
    pub id: DeliveryId,
    /// Where it goes.
    pub endpoint: EndpointId,
    /// What its body looks like.
    pub format: PayloadFormat,
}

/// An event with its deliveries, to be stored together or not at all.
#[derive(Debug, Clone)]
pub struct Append {
    /// The event.
    pub event: Arc<Event>,
    /// [`Event::content_hash`], computed outside the writer.
    pub content_hash: [u8; 32],
    /// Whether the sender chose the event id. An id made by us cannot be a repeat.
    pub dedup: bool,
    /// One for each endpoint that wants it.
    pub deliveries: Vec<NewDelivery>,
    /// What is to be done about its order; none: nothing. Its event has subject and sequence then.
    pub order: Option<OrderInstruction>,
}

/// What became of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendResult {
    /// Stored.
    Accepted,
    /// Stored, with an instruction about its order.
    Placed(Placed),
    /// The same event was stored before; nothing new happened.
    Duplicate {
        /// The first one.
        uid: EventUid,
        /// When it was accepted.
        accepted_at: Timestamp,
    },
    /// The id was used for other content; recorded, not processed.
    Anomaly,
    /// The id was used before, but the store did not say for what. Nothing new was stored; asking
    /// again tells.
    Unknown,
}

/// The event log: the one entrance of both planes.
#[async_trait]
pub trait EventLog: Send + Sync + 'static {
    /// Stores a batch in one transaction and answers in its order. When it returns `Ok`, everything
    /// accepted is durable (I1); once something may be durable, a later failure is told per event. Dedup by (tenant, source, event id), inside the batch too (I15).
    /// Events with an [`OrderInstruction`] are put into the order of their subject in the same
    /// transaction, in the order of the batch, whoever else writes; a repeat changes nothing there.
    async fn append(&self, batch: &[Append]) -> Result<Vec<AppendResult>, StoreError>;
}

/// A worker's right to a shard. The epoch is the lease token: it changes with every owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShardLease {
    /// The shard.
    pub shard: Shard,
    /// The token.
    pub epoch: i64,
}

/// Answer to a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Heartbeat {
    /// What this worker still holds, renewed.
    pub leases: Vec<ShardLease>,
    /// Live workers, this one counted.
    pub workers: usize,
}

/// A lane's wish for due deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneClaim {
    /// The lane's endpoint.
    pub endpoint: EndpointId,
    /// The endpoint's shard.
    pub shard: Shard,
    /// Only deliveries after this one in `(due_at, id)` order: where the last claim ended, so that
    /// a claim never walks over rows that were settled behind it.
    pub after: (Timestamp, DeliveryId),
    /// Room in the lane.
    pub limit: u16,
}

/// A due delivery with its event.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The live row.
    pub delivery: LiveDelivery,
    /// Its event; none when retention took it first.
    pub event: Option<Arc<Event>>,
}

/// An endpoint that has pending deliveries, and the first of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingLane {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// When its first pending delivery is due.
    pub due_at: Timestamp,
    /// Which one that is.
    pub first: DeliveryId,
}

/// Where a delivery goes from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Pending again.
    Retry {
        /// When.
        due_at: Timestamp,
    },
    /// Finished.
    Finish {
        /// A terminal state.
        state: DeliveryState,
        /// Why, unless delivered.
        reason: Option<FinishReason>,
    },
}

/// The result of a delivery's turn, to be written under its lease.
#[derive(Debug, Clone)]
pub struct Settlement {
    /// Whose it is.
    pub tenant: TenantId,
    /// Which delivery.
    pub delivery: DeliveryId,
    /// The lease it ran under.
    pub lease: ShardLease,
    /// Attempts before this turn: the row must still say so.
    pub attempts_before: u32,
    /// The attempt made; none when the turn ended without one.
    pub attempt: Option<Attempt>,
    /// Where it goes from here.
    pub next: Next,
    /// When the turn ended.
    pub at: Timestamp,
}

impl Settlement {
    /// Attempts after this turn.
    #[must_use]
    pub const fn attempts_after(&self) -> u32 {
        match self.attempt {
            Some(_) => self.attempts_before.saturating_add(1),
            None => self.attempts_before,
        }
    }
}

/// What became of a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// Written.
    Applied,
    /// The lease or the row had moved on; the delivery was not changed (I4).
    Stale,
}

/// The delivery queue.
#[async_trait]
pub trait DeliveryQueue: Send + Sync + 'static {
    /// Says that the worker lives, renews its leases for `ttl`, and tells what it holds.
    async fn heartbeat(&self, worker: WorkerId, ttl: Duration) -> Result<Heartbeat, StoreError>;

    /// Takes up to `count` free or expired shards, each with a fresh epoch.
    async fn acquire(
        &self,
        worker: WorkerId,
        count: usize,
        ttl: Duration,
    ) -> Result<Vec<ShardLease>, StoreError>;

    /// Gives shards back at once; all of the worker's when `shards` is none, with its registration.
    async fn release(&self, worker: WorkerId, shards: Option<&[Shard]>) -> Result<(), StoreError>;

    /// Endpoints of these shards that have pending deliveries. Cost grows with their number, not
    /// with the backlog.
    async fn pending(&self, shards: &[Shard]) -> Result<Vec<PendingLane>, StoreError>;

    /// Due deliveries of several lanes in one statement, oldest first within a lane.
    async fn claim(&self, lanes: &[LaneClaim], now: Timestamp) -> Result<Vec<Claimed>, StoreError>;

    /// Tells other workers that these endpoints have something due. Only a hint: whoever misses it
    /// finds the deliveries by [`DeliveryQueue::pending`]. A store of one process tells nobody.
    async fn hint(&self, _endpoints: &[EndpointId]) -> Result<(), StoreError> {
        Ok(())
    }

    /// Passes the hints of other workers on, until the connection breaks. Call it again then.
    async fn listen(&self, _to: Arc<dyn WakeHint>) -> Result<(), StoreError> {
        std::future::pending().await
    }

    /// Writes results in one transaction and answers in their order. Attempts are recorded as long
    /// as the lease is valid, even when the delivery was finished meanwhile.
    async fn settle(
        &self,
        worker: WorkerId,
        batch: &[Settlement],
    ) -> Result<Vec<Settled>, StoreError>;
}

/// Which events to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Only with this sender's id.
    pub event_id: Option<String>,
    /// Only of this type.
    pub event_type: Option<TypeName>,
}

/// Which deliveries to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    /// Only to this endpoint.
    pub endpoint: Option<EndpointId>,
    /// Only of this event.
    pub event: Option<EventUid>,
    /// Only in this state.
    pub state: Option<DeliveryState>,
}

/// A delivery with what a reader wants to see of its event and endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryView {
    /// The delivery.
    pub delivery: Delivery,
    /// The sender's event id.
    pub event_id: String,
    /// The event's type.
    pub event_type: String,
    /// Last part of the endpoint's name; also of a deleted one.
    pub endpoint_slug: String,
}

/// What a cancel or retry found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finished {
    /// Done as asked.
    Changed,
    /// There is no such delivery.
    Missing,
    /// It is in a state that does not allow it.
    Refused,
}

/// Reads of what happened, and what operators do about it. Lists are newest first; `after` is the
/// id of the last row seen.
#[async_trait]
pub trait History: Send + Sync + 'static {
    /// One event with its payload.
    async fn event(&self, tenant: TenantId, uid: EventUid) -> Result<Option<Event>, StoreError>;

    /// Events without their payloads.
    async fn events(
        &self,
        tenant: TenantId,
        filter: &EventFilter,
        after: Option<EventUid>,
        limit: u16,
    ) -> Result<Vec<Event>, StoreError>;

    /// One delivery.
    async fn delivery(
        &self,
        tenant: TenantId,
        id: DeliveryId,
    ) -> Result<Option<DeliveryView>, StoreError>;

    /// Deliveries, live and finished.
    async fn deliveries(
        &self,
        tenant: TenantId,
        filter: &DeliveryFilter,
        after: Option<DeliveryId>,
        limit: u16,
    ) -> Result<Vec<DeliveryView>, StoreError>;

    /// Attempts of a delivery with higher numbers than this, first one first.
    async fn attempts(
        &self,
        tenant: TenantId,
        id: DeliveryId,
        after: u32,
        limit: u16,
    ) -> Result<Vec<Attempt>, StoreError>;

    /// Makes a delivery due now. A pending one keeps its remaining automatic attempts; a finished
    /// one is opened for a new round. [`Finished::Refused`] when its event is gone.
    async fn retry(
        &self,
        tenant: TenantId,
        id: DeliveryId,
        now: Timestamp,
    ) -> Result<Finished, StoreError>;

    /// Ends a pending delivery. [`Finished::Refused`] when it is finished.
    async fn cancel(
        &self,
        tenant: TenantId,
        id: DeliveryId,
        now: Timestamp,
    ) -> Result<Finished, StoreError>;
}

/// Lets a writer wait until this process uses what it wrote, so that the next publish sees it.
#[async_trait]
pub trait Propagation: Send + Sync + 'static {
    /// Returns when the revision is in use here, or after a bound: the write itself is durable
    /// either way.
    async fn applied(&self, revision: Revision);
}

/// Tells the worker of this process that an endpoint has something due. A hint: polling is the truth.
pub trait WakeHint: Send + Sync + 'static {
    /// Look at this endpoint soon.
    fn wake(&self, endpoint: EndpointId);

    /// Another worker gave shards back: somebody should take them.
    fn shards_freed(&self);
}

/// Judges a receiver's URL before anything is stored: scheme, port, user information, literal
/// addresses, special names. Names are judged again after resolution, at every send.
pub trait TargetPolicy: Send + Sync + 'static {
    /// `Err` says in one sentence what is wrong and what to do; it never repeats the URL.
    ///
    /// # Errors
    /// When the URL is refused.
    fn check_url(&self, url: &str) -> Result<(), String>;
}
