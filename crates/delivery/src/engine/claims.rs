//! Reads of the queue that run beside the dispatcher: claims and discovery.

use super::{
    input::Input,
    limits::{DISCOVERY_MAX, DISCOVERY_MIN, DISCOVERY_SHARE},
};
use futures_util::FutureExt as _;
use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio::{sync::mpsc, time::Instant};
use tokio_util::task::TaskTracker;
use turnbuckle_domain::{DeliveryQueue, EndpointId, LaneClaim, Shard, StoreError, Timestamp};

/// Starts reads whose answers come back as inputs. At most one of each kind is under way.
pub(super) struct Reads {
    pub(super) queue: Arc<dyn DeliveryQueue>,
    pub(super) inputs: mpsc::WeakSender<Input>,
    pub(super) tasks: TaskTracker,
    pub(super) claiming: bool,
    pub(super) hinting: bool,
    pub(super) discovering: Option<Instant>,
    pub(super) next_discovery: Instant,
}

impl Reads {
    pub(super) fn claim(&mut self, lanes: Vec<LaneClaim>, due_by: Timestamp) {
        self.claiming = true;
        let (queue, inputs) = (Arc::clone(&self.queue), self.inputs.clone());
        self.tasks.spawn(async move {
            let rows = ended("claim", queue.claim(&lanes, due_by)).await;
            answer(&inputs, Input::Claimed { lanes, rows }).await;
        });
    }

    /// Looks for pending deliveries in these shards. `shared` says whether others publish too.
    pub(super) fn discover(&mut self, shards: Vec<Shard>, shared: bool) {
        self.discovering = Some(Instant::now());
        let (queue, inputs) = (Arc::clone(&self.queue), self.inputs.clone());
        self.tasks.spawn(async move {
            let lanes = ended("discovery", queue.pending(&shards)).await.unwrap_or_default();
            answer(&inputs, Input::Discovered { lanes, shared }).await;
        });
    }

    /// Tells other workers about endpoints that are theirs. While one hint is on its way, the next
    /// collects, so that a flood of publishes makes few notifications.
    pub(super) fn hint(&mut self, endpoints: Vec<EndpointId>) {
        self.hinting = true;
        let (queue, inputs) = (Arc::clone(&self.queue), self.inputs.clone());
        self.tasks.spawn(async move {
            ended("hint", queue.hint(&endpoints)).await;
            answer(&inputs, Input::Hinted).await;
        });
    }

    /// Schedules the next discovery so that it takes a bounded share of the reader's time.
    pub(super) fn discovered(&mut self) {
        let took = self.discovering.take().map_or(Duration::ZERO, |began| began.elapsed());
        self.next_discovery =
            Instant::now() + (took * DISCOVERY_SHARE).clamp(DISCOVERY_MIN, DISCOVERY_MAX);
    }
}

/// A read that always comes to an end, whatever happens to it: the dispatcher waits for its answer
/// before it asks again.
async fn ended<T>(
    what: &'static str,
    read: impl Future<Output = Result<T, StoreError>>,
) -> Option<T> {
    match AssertUnwindSafe(read).catch_unwind().await {
        Ok(Ok(answer)) => Some(answer),
        Ok(Err(error)) => {
            tracing::warn!(error = &error as &dyn std::error::Error, what, "the store failed");
            None
        }
        Err(_) => {
            tracing::error!(what, "reading the store panicked");
            None
        }
    }
}

async fn answer(inputs: &mpsc::WeakSender<Input>, input: Input) {
    if let Some(inputs) = inputs.upgrade() {
        // The dispatcher has ended: nobody needs the answer.
        drop(inputs.send(input).await);
    }
}
