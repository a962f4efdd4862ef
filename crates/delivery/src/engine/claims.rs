//! Reads of the queue that run beside the dispatcher: claims and discovery.

use super::{
    input::Input,
    limits::{DISCOVERY_MIN, DISCOVERY_SHARE},
};
use std::{sync::Arc, time::Duration};
use tokio::{sync::mpsc, time::Instant};
use tokio_util::task::TaskTracker;
use turnbuckle_domain::{DeliveryQueue, EndpointId, LaneClaim, Shard, Timestamp};

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
            let rows = match queue.claim(&lanes, due_by).await {
                Ok(rows) => Some(rows),
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "claim failed");
                    None
                }
            };
            answer(&inputs, Input::Claimed { lanes, rows }).await;
        });
    }

    /// Looks for pending deliveries in these shards. `shared` says whether others publish too.
    pub(super) fn discover(&mut self, shards: Vec<Shard>, shared: bool) {
        self.discovering = Some(Instant::now());
        let (queue, inputs) = (Arc::clone(&self.queue), self.inputs.clone());
        self.tasks.spawn(async move {
            let lanes = match queue.pending(&shards).await {
                Ok(lanes) => lanes,
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "discovery failed");
                    Vec::new()
                }
            };
            answer(&inputs, Input::Discovered { lanes, shared }).await;
        });
    }

    /// Tells other workers about endpoints that are theirs. While one hint is on its way, the next
    /// collects, so that a flood of publishes makes few notifications.
    pub(super) fn hint(&mut self, endpoints: Vec<EndpointId>) {
        self.hinting = true;
        let (queue, inputs) = (Arc::clone(&self.queue), self.inputs.clone());
        self.tasks.spawn(async move {
            if let Err(error) = queue.hint(&endpoints).await {
                tracing::debug!(error = &error as &dyn std::error::Error, "hint not sent");
            }
            answer(&inputs, Input::Hinted).await;
        });
    }

    /// Schedules the next discovery so that it takes a bounded share of the reader's time.
    pub(super) fn discovered(&mut self) {
        let took = self.discovering.take().map_or(Duration::ZERO, |began| began.elapsed());
        self.next_discovery = Instant::now() + DISCOVERY_MIN.max(took * DISCOVERY_SHARE);
    }
}

async fn answer(inputs: &mpsc::WeakSender<Input>, input: Input) {
    if let Some(inputs) = inputs.upgrade() {
        // The dispatcher has ended: nobody needs the answer.
        drop(inputs.send(input).await);
    }
}
