//! What each key verified, counted in memory and written now and then.
//!
//! ```text
//!  verified request ─► counter of its key ── each minute, and at the end ─► KeyUsageStore
//! ```
//! Memory is bounded by the keys that are in use: a counter goes once nothing was counted between two
//! writes.

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::{MissedTickBehavior, timeout};
use tokio_util::sync::CancellationToken;
use turnbuckle_domain::{
    KeyId, KeyUsageStore, KeyVerifications, Source, SourceId, StoreError, TenantId, Timestamp,
    key_usage_limits::BATCH,
};

/// Longest wait for the store: counts are no reason to hold up a stop.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Requests of one key since the last write.
struct Counter {
    tenant: TenantId,
    source: SourceId,
    requests: AtomicU64,
    last_used_us: AtomicI64,
}

impl Counter {
    fn new(tenant: TenantId, source: SourceId) -> Self {
        Self { tenant, source, requests: AtomicU64::new(0), last_used_us: AtomicI64::new(0) }
    }

    fn add(&self, requests: u64, at: Timestamp) {
        self.requests.fetch_add(requests, Ordering::Relaxed);
        self.last_used_us.fetch_max(at.micros(), Ordering::Relaxed);
    }
}

/// The counters of all keys.
#[derive(Default)]
pub(crate) struct KeyMeter {
    /// Counted under the read lock and taken under the write lock, so that no count is lost between.
    keys: RwLock<HashMap<KeyId, Counter>>,
}

impl KeyMeter {
    /// Counts a request of this source that a key verified.
    pub(crate) fn count(&self, source: &Source, key: KeyId, at: Timestamp) {
        self.add((source.tenant, source.id, key), 1, at);
    }

    fn add(
        &self,
        (tenant, source, key): (TenantId, SourceId, KeyId),
        requests: u64,
        at: Timestamp,
    ) {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(counter) = keys.get(&key) {
            return counter.add(requests, at);
        }
        drop(keys);
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        keys.entry(key).or_insert_with(|| Counter::new(tenant, source)).add(requests, at);
    }

    /// Takes what was counted, and forgets keys that nobody uses any more.
    fn take(&self) -> Vec<KeyVerifications> {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        let mut uses = Vec::new();
        keys.retain(|key, counter| {
            let requests = counter.requests.swap(0, Ordering::Relaxed);
            if requests > 0 {
                let last = counter.last_used_us.load(Ordering::Relaxed);
                uses.push(KeyVerifications {
                    tenant: counter.tenant,
                    source: counter.source,
                    key: *key,
                    requests,
                    last_used_at: Timestamp::from_micros(last),
                });
            }
            requests > 0
        });
        uses
    }

    fn give_back(&self, uses: &[KeyVerifications]) {
        for one in uses {
            self.add((one.tenant, one.source, one.key), one.requests, one.last_used_at);
        }
    }

    /// Writes what was counted. What the store does not take for now is kept for the next time.
    async fn write(&self, store: &dyn KeyUsageStore) {
        let uses = self.take();
        for (place, batch) in uses.chunks(BATCH).enumerate() {
            match timeout(WRITE_TIMEOUT, store.add_key_verifications(batch)).await {
                Ok(Ok(())) => {}
                Ok(Err(StoreError::Internal(cause))) => {
                    // Offering it again would fail again; losing counts harms no request.
                    tracing::error!(error = %cause, "counts of key use were refused and are lost");
                }
                Ok(Err(StoreError::Unavailable(_))) | Err(_) => {
                    tracing::warn!("counts of key use wait for the store");
                    return self.give_back(uses.get(place * BATCH..).unwrap_or_default());
                }
            }
        }
    }

    /// Writes now and then, and once more when cancelled.
    pub(crate) async fn run(
        self: Arc<Self>,
        store: Arc<dyn KeyUsageStore>,
        every: Duration,
        stop: CancellationToken,
    ) {
        let mut ticks = tokio::time::interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            self.write(store.as_ref()).await;
        }
        self.write(store.as_ref()).await;
    }
}
