//! Keeps this worker's share of the shards.
//!
//! Every worker takes its fair share of the 64 shards and gives back what is above it. A heartbeat
//! renews all of them at a third of the lease. Each success says until when the dispatcher may rely
//! on the leases: two thirds of the lease from when the renewal was asked for. After that it starts
//! nothing, whatever has become of this task; nobody else can take over before the last third.

use super::input::Input;
use std::{collections::HashSet, sync::Arc, time::Duration};
use tokio::{
    sync::{Notify, mpsc, watch},
    time::{Instant, timeout},
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
    /// Which of the shards to give back have nothing in flight.
    pub(crate) emptied: watch::Receiver<HashSet<Shard>>,
    /// Another worker gave shards back: look now.
    pub(crate) freed: Arc<Notify>,
}

impl LeaseKeeper {
    /// Beats until cancelled. Giving everything back at the end is the stop sequence's business:
    /// results are written under the leases first.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let period = self.lease / BEATS;
        loop {
            let began = Instant::now();
            match timeout(period, self.beat(began)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "leases not renewed");
                }
                Err(_) => tracing::warn!("leases not renewed: the store does not answer in time"),
            }
            let freed = Arc::clone(&self.freed);
            tokio::select! {
                () = stop.cancelled() => return,
                () = freed.notified() => {}
                () = tokio::time::sleep_until(began + period) => {}
            }
        }
    }

    async fn beat(&mut self, began: Instant) -> Result<(), StoreError> {
        let heartbeat = self.queue.heartbeat(self.worker, self.lease).await?;
        let valid_until = began + self.lease / BEATS * (BEATS - 1);
        let total = usize::try_from(Shard::COUNT).unwrap_or(usize::MAX);
        let share = total.div_ceil(heartbeat.workers.max(1));
        let mut leases = heartbeat.leases;
        // What was renewed counts, whatever happens below.
        self.tell(leases.clone(), valid_until).await;
        let surplus = self.surplus(&leases, share);
        let gone = self.give_back(surplus).await?;
        leases.retain(|lease| !gone.contains(&lease.shard));
        if leases.len() < share {
            let missing = share - leases.len();
            leases.extend(self.queue.acquire(self.worker, missing, self.lease).await?);
        }
        metrics::gauge!("turnbuckle_shards_held").set(leases.len() as f64);
        self.tell(leases, valid_until).await;
        Ok(())
    }

    /// The dispatcher may have ended while results are still written under the leases: beat on.
    async fn tell(&self, leases: Vec<ShardLease>, valid_until: Instant) {
        drop(self.inputs.send(Input::Leases { leases, valid_until }).await);
    }

    /// What is above the share: those that are empty already, then the last ones.
    fn surplus(&self, leases: &[ShardLease], share: usize) -> Vec<Shard> {
        let emptied = self.emptied.borrow();
        let mut shards: Vec<Shard> = leases.iter().map(|lease| lease.shard).collect();
        shards.sort_by_key(|shard| (emptied.contains(shard), *shard));
        shards.split_off(share.min(shards.len()))
    }

    /// Asks the dispatcher to finish what is in flight in these shards, so that giving them away
    /// repeats nothing, and releases those that are empty in time. The others follow with the next
    /// beats.
    async fn give_back(&mut self, surplus: Vec<Shard>) -> Result<HashSet<Shard>, StoreError> {
        let wanted: HashSet<Shard> = surplus.iter().copied().collect();
        if self.inputs.send(Input::GiveBack(surplus)).await.is_err() || wanted.is_empty() {
            return Ok(HashSet::new());
        }
        let all = self.emptied.wait_for(|emptied| wanted.is_subset(emptied));
        // In time or not: what is empty by now can go.
        drop(timeout(self.lease / BEATS / 2, all).await);
        let emptied: Vec<Shard> = wanted.intersection(&self.emptied.borrow()).copied().collect();
        if !emptied.is_empty() {
            self.queue.release(self.worker, Some(&emptied)).await?;
            tracing::info!(given = emptied.len(), "shares with another worker");
        }
        Ok(emptied.into_iter().collect())
    }
}
