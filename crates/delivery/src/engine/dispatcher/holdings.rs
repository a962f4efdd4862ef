//! What this worker holds: shards gained, lost, and given to others.

use super::Dispatcher;
use std::collections::{HashMap, HashSet};
use tokio::time::Instant;
use turnbuckle_domain::{EndpointId, Shard, ShardLease, Timestamp};

impl Dispatcher {
    pub(super) fn is_usable(&self, shard: Shard) -> bool {
        self.leases.contains_key(&shard) && !self.leaving.contains(&shard)
    }

    /// Nothing may start once the last sign that the leases are ours is too old.
    pub(super) fn is_certain(&self) -> bool {
        Instant::now() < self.valid_until
    }

    pub(super) fn leases_renewed(&mut self, leases: Vec<ShardLease>, valid_until: Instant) {
        self.valid_until = valid_until;
        let next: HashMap<Shard, ShardLease> =
            leases.into_iter().map(|lease| (lease.shard, lease)).collect();
        let now = self.clock.now();
        let is_new = |shard: &Shard, lease: &ShardLease| self.leases.get(shard) != Some(lease);
        let gained: Vec<Shard> = next
            .iter()
            .filter(|(shard, lease)| is_new(shard, lease))
            .map(|(shard, _)| *shard)
            .collect();
        let lost: HashSet<Shard> = self
            .leases
            .iter()
            .filter(|(shard, lease)| next.get(shard) != Some(*lease))
            .map(|(shard, _)| *shard)
            .collect();
        self.leases = next;
        self.leaving.retain(|shard| self.leases.contains_key(shard));
        self.drain_lanes(&lost);
        if !gained.is_empty() {
            self.gained_at.extend(gained.into_iter().map(|shard| (shard, now)));
            // What the owner before left behind: look at once.
            self.reads.next_discovery = Instant::now();
        }
        let waiting: Vec<EndpointId> = self
            .lanes
            .values()
            .filter(|lane| lane.queued() > 0)
            .map(|lane| lane.endpoint)
            .collect();
        waiting.into_iter().for_each(|endpoint| self.mark_ready(endpoint));
    }

    /// Whether an event was accepted while the shard was still another worker's, who may have sent
    /// it already.
    pub(super) fn predates_lease(&self, shard: Shard, accepted_at: Timestamp) -> bool {
        self.gained_at.get(&shard).is_none_or(|gained| accepted_at <= *gained)
    }

    /// Other workers want these shards. An empty list: they want none any more.
    pub(super) fn give_back(&mut self, shards: Vec<Shard>) {
        let wanted: HashSet<Shard> = shards.into_iter().collect();
        if !self.leaving.is_subset(&wanted) {
            // Some stay after all; what was drained from their lanes is in the store.
            self.reads.next_discovery = Instant::now();
        }
        self.drain_lanes(&wanted);
        self.leaving = wanted;
        self.tell_emptied();
    }

    /// Tells the keeper which of the leaving shards have nothing in flight. A busy one keeps only
    /// itself: the others go at once.
    pub(super) fn tell_emptied(&self) {
        if self.leaving.is_empty() {
            return;
        }
        let busy: HashSet<Shard> = self
            .lanes
            .values()
            .filter(|lane| lane.held() > lane.queued())
            .map(|lane| lane.shard)
            .collect();
        let emptied: HashSet<Shard> = self.leaving.difference(&busy).copied().collect();
        self.emptied.send_if_modified(|known| {
            let changed = *known != emptied;
            *known = emptied;
            changed
        });
    }

    /// Empties the lanes of shards that go: what is in flight ends, the rest belongs to the next owner.
    fn drain_lanes(&mut self, shards: &HashSet<Shard>) {
        if shards.is_empty() {
            return;
        }
        let (mut freed, mut freed_bytes) = (0, 0);
        self.lanes.retain(|_, lane| {
            if !shards.contains(&lane.shard) {
                return true;
            }
            let (count, bytes) = lane.drain();
            freed += count;
            freed_bytes += bytes;
            !lane.is_idle()
        });
        self.held -= freed;
        self.held_bytes -= freed_bytes;
    }
}
