//! Bounds and timings of the engine.

use std::time::Duration;
use turnbuckle_domain::{dedup_limits, health_limits};

/// Attempts in flight in one process: 256 endpoints that hang with all of their default slots, at
/// some 20 KiB each. The process raises its limit of open files to carry them.
pub(super) const IN_FLIGHT_MAX: usize = 4_096;
/// Deliveries waiting in the memory of one lane. Past it they wait in the store.
pub(super) const LANE_QUEUE_MAX: usize = 512;
/// A lane asks for more when it has fallen to this, so that it does not run dry during a claim.
pub(super) const LANE_REFILL_AT: usize = LANE_QUEUE_MAX / 2;
/// Payload bytes waiting in the memory of one lane, so that few lanes cannot fill what all share.
pub(super) const LANE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A lane that holds nothing gets this many deliveries even when the shared memory is full: others
/// must not be able to stop it.
pub(super) const LANE_ROWS_MIN: usize = 2;
/// Deliveries in memory in one process, queued and in flight.
pub(super) const HELD_MAX: usize = 50_000;
/// Payload bytes in memory in one process.
pub(super) const HELD_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Results that may wait for the settle writer. Past it no attempt starts: a store that does not
/// answer must not be outrun.
pub(super) const UNSETTLED_MAX: usize = 20_000;
/// Results of one settle transaction.
pub(super) const SETTLE_BATCH: usize = 500;
/// Lanes of one claim.
pub(super) const CLAIM_LANES: usize = 64;
/// Deliveries of one claim.
pub(super) const CLAIM_ROWS: usize = 1_000;
/// Retry times remembered per lane. Later ones are found by discovery, at most its period late.
pub(super) const RETRY_TIMES_MAX: usize = 256;
/// A hand-off that is later than this after its commit is not on its way any more.
pub(super) const HANDOFF_LATE_MAX: Duration = Duration::from_secs(60);
/// Payload bytes that one claim should bring, judged by the payloads at hand.
pub(super) const CLAIM_BYTES: usize = 32 * 1024 * 1024;
/// First attempts of other nodes are taken this much early: their clocks may be ahead of ours.
pub(super) const CLOCK_SKEW: Duration = Duration::from_secs(1);
/// A result that the store refuses is offered again after this, for as long as its lease lasts.
pub(super) const REFUSED_RESULT_RETRY: Duration = Duration::from_secs(5);
/// Inputs waiting for the dispatcher.
pub(super) const INPUTS: usize = 8_192;
/// Inputs taken at once.
pub(super) const INPUT_BATCH: usize = 256;
/// Looking for pending deliveries that nobody handed over: other nodes', and those of a lost answer.
pub(super) const DISCOVERY_MIN: Duration = Duration::from_millis(1_000);
/// Discovery takes at most one part in this of the reader's time.
pub(super) const DISCOVERY_SHARE: u32 = 20;
/// Longest pause between two discoveries, however long the last one took: one that hung with its
/// database says nothing about the cost of the next, and deliveries may wait to be found.
pub(super) const DISCOVERY_MAX: Duration = Duration::from_secs(5);
/// A lane whose endpoint is unknown or has no key looks again after this.
pub(super) const SUSPENDED_RECHECK: Duration = Duration::from_secs(1);
/// First and longest wait of the loops that repeat a failed store call.
pub(super) const STORE_RETRY: (Duration, Duration) =
    (Duration::from_millis(50), Duration::from_secs(2));

/// Endpoints of other workers remembered for the next hint. The rest is found by their discovery.
pub(super) const FOREIGN_MAX: usize = 10_000;
/// Between two tries to hear other workers' hints.
pub(crate) const LISTEN_RETRY: Duration = Duration::from_secs(1);

/// What an operator can set.
#[derive(Debug, Clone, Copy)]
pub struct EngineSettings {
    /// How long a worker may be silent before others take its shards. 1 s to 5 min.
    pub lease: Duration,
    /// Time given to attempts in flight when the process is told to stop.
    pub grace: Duration,
    /// How long ids of published events are remembered. 1 h to 31 d.
    pub dedup_window: Duration,
    /// How long an endpoint fails all the time before it is disabled; none means never. 1 h to 30 d.
    pub disable_after: Option<Duration>,
}

impl Default for EngineSettings {
    /// A crash delays its deliveries by the lease; a pause shorter than the lease costs nothing. The
    /// grace time is the longest attempt.
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(15),
            grace: Duration::from_secs(30),
            dedup_window: dedup_limits::WINDOW_DEFAULT,
            disable_after: Some(health_limits::DISABLE_AFTER_DEFAULT),
        }
    }
}
