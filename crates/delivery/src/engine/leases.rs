//! Keeps this worker's share of the shards.
//!
//! Every worker takes its fair share of the 64 shards and gives back what is above it. A heartbeat
//! renews all of them at a third of the lease; when none has succeeded for two thirds of it, the
//! dispatcher is told to start nothing more, before anybody else can take over.

use super::input::Input;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use turnbuckle_domain::{DeliveryQueue, Shard, ShardLease, StoreError, WorkerId};

/// Heartbeats per lease.
const BEATS: u32 = 3;

pub(crate) struct LeaseKeeper {
    pub(crate) worker: WorkerId,
    pub(crate) queue: Arc<dyn DeliveryQueue>,
    pub(crate) lease: Duration,
    pub(crate) inputs: mpsc::Sender<Input>,
}

impl LeaseKeeper {
    /// Beats until cancelled. Giving the shards back is the stop sequence's business: results are
    /// written under them first.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let period = self.lease / BEATS;
        let mut last_success = Instant::now();
        loop {
            let began = Instant::now();
            let input = match tokio::time::timeout(period, self.beat()).await {
                Ok(Ok(leases)) => {
                    last_success = began;
                    Some(Input::Leases(leases))
                }
                Ok(Err(error)) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "leases not renewed");
                    None
                }
                Err(_) => {
                    tracing::warn!("leases not renewed: the store does not answer in time");
                    None
                }
            };
            let uncertain = last_success.elapsed() >= period * (BEATS - 1);
            let input = input.or_else(|| uncertain.then_some(Input::LeasesUncertain));
            if let Some(input) = input
                && self.inputs.send(input).await.is_err()
            {
                return;
            }
            let next = began + period;
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep_until(next) => {}
            }
        }
    }

    async fn beat(&self) -> Result<Vec<ShardLease>, StoreError> {
        let heartbeat = self.queue.heartbeat(self.worker, self.lease).await?;
        let total = usize::try_from(Shard::COUNT).unwrap_or(usize::MAX);
        let share = total.div_ceil(heartbeat.workers.max(1));
        let mut leases = heartbeat.leases;
        if leases.len() < share {
            let missing = share - leases.len();
            leases.extend(self.queue.acquire(self.worker, missing, self.lease).await?);
        } else if leases.len() > share {
            let surplus: Vec<Shard> = leases[share..].iter().map(|lease| lease.shard).collect();
            if self.empty(surplus.clone()).await {
                self.queue.release(self.worker, Some(&surplus)).await?;
                leases.truncate(share);
                tracing::info!(kept = leases.len(), "shares with another worker");
            }
        }
        metrics::gauge!("turnbuckle_shards_held").set(leases.len() as f64);
        Ok(leases)
    }

    /// Asks the dispatcher to finish what is in flight in these shards, so that giving them away
    /// repeats nothing. False when it takes too long; the next beat asks again.
    async fn empty(&self, shards: Vec<Shard>) -> bool {
        let (done, emptied) = oneshot::channel();
        if self.inputs.send(Input::GiveBack { shards, done }).await.is_err() {
            return false;
        }
        let bound = self.lease / BEATS / 2;
        matches!(tokio::time::timeout(bound, emptied).await, Ok(Ok(())))
    }
}
