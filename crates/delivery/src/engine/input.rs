//! What the dispatcher hears.

use std::{sync::Arc, time::Duration};
use tokio::sync::oneshot;
use turnbuckle_domain::{
    AttemptOutcome, Claimed, DeliveryId, EndpointId, Event, LaneClaim, LiveDelivery, NewDelivery,
    PendingLane, Shard, ShardLease, Timestamp,
};

/// A committed event with its deliveries, handed over in memory.
pub(crate) struct Handoff {
    pub(crate) event: Arc<Event>,
    pub(crate) deliveries: Vec<NewDelivery>,
}

/// A delivery with its event, in a lane.
pub(crate) struct Job {
    pub(crate) delivery: LiveDelivery,
    pub(crate) event: Arc<Event>,
}

/// The result of an attempt.
pub(crate) struct Done {
    pub(crate) job: Job,
    pub(crate) lease: ShardLease,
    pub(crate) started_at: Timestamp,
    pub(crate) duration: Duration,
    pub(crate) outcome: AttemptOutcome,
}

/// Everything the dispatcher reacts to.
pub(crate) enum Input {
    /// Committed here just now.
    HandedOff(Vec<Handoff>),
    /// An attempt ended.
    Done(Box<Done>),
    /// A claim came back. On a failure the lanes ask again later.
    Claimed { lanes: Vec<LaneClaim>, rows: Option<Vec<Claimed>> },
    /// Discovery came back.
    Discovered { lanes: Vec<PendingLane>, shared: bool },
    /// These deliveries are settled, or no longer ours.
    Settled(Vec<(EndpointId, DeliveryId)>),
    /// What this worker holds now.
    Leases(Vec<ShardLease>),
    /// Finish what is in flight in these shards and start nothing more there.
    GiveBack { shards: Vec<Shard>, done: oneshot::Sender<()> },
    /// Nothing is known about our leases since too long: start nothing.
    LeasesUncertain,
    /// Other workers were told; the next hint may go.
    Hinted,
    /// Look at this endpoint.
    Wake(EndpointId),
}
