//! What the dispatcher hears.

use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use turnbuckle_domain::{
    AttemptOutcome, Claimed, DeliveryId, EndpointId, Event, LaneClaim, LiveDelivery, NewDelivery,
    PendingLane, Shard, ShardLease, Timestamp,
};

/// A committed event with its deliveries, handed over in memory.
pub(crate) struct Handoff {
    pub(crate) event: Arc<Event>,
    pub(crate) deliveries: Vec<NewDelivery>,
}

/// An endpoint with something in the store that was not handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) endpoint: EndpointId,
    /// When it is due; none: now.
    pub(crate) at: Option<Timestamp>,
}

/// A delivery with its event, in a lane.
pub(crate) struct Job {
    pub(crate) delivery: LiveDelivery,
    pub(crate) event: Arc<Event>,
    /// Its share of the payload's bytes: deliveries of one publish share one copy.
    pub(crate) weight: usize,
}

/// The result of an attempt.
pub(crate) struct Done {
    pub(crate) job: Job,
    pub(crate) lease: ShardLease,
    pub(crate) started_at: Timestamp,
    pub(crate) duration: Duration,
    /// None when nothing was sent, because the endpoint changed in the last moment.
    pub(crate) outcome: Option<AttemptOutcome>,
}

/// Everything the dispatcher reacts to.
pub(crate) enum Input {
    /// Committed here just now.
    HandedOff(Vec<Handoff>),
    /// Committed or moved here just now, for these times.
    Due(Vec<Due>),
    /// An attempt ended.
    Done(Box<Done>),
    /// A claim came back. On a failure the lanes ask again later.
    Claimed { lanes: Vec<LaneClaim>, rows: Option<Vec<Claimed>> },
    /// Discovery came back.
    Discovered { lanes: Vec<PendingLane>, shared: bool },
    /// These deliveries are settled, or no longer ours.
    Settled(Vec<(EndpointId, DeliveryId)>),
    /// What this worker holds now, and until when it may rely on that.
    Leases { leases: Vec<ShardLease>, valid_until: Instant },
    /// These shards are to go to other workers: finish what is in flight there, start nothing more.
    GiveBack(Vec<Shard>),
    /// Other workers were told; the next hint may go.
    Hinted,
    /// Somebody cancelled this delivery; its row is gone.
    Cancelled(EndpointId, DeliveryId),
    /// Look at this endpoint.
    Wake(EndpointId),
}
