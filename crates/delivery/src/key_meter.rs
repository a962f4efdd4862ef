//! What each key signed and how receivers answered, counted in memory and written now and then.
//!
//! ```text
//!  attempt ─► RingCounter of its endpoint (atomics) ── each minute, and at the end ─► KeyUsageStore
//! ```
//! A ring has one counter for each of its states, so attempts of different endpoints never touch the
//! same one. Memory is bounded by the endpoints that are configured: a counter goes once its ring has
//! moved on and its counts are written.

use metrics::counter;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::{MissedTickBehavior, timeout};
use tokio_util::sync::CancellationToken;
use turnbuckle_domain::{
    AnswerClass, AnswerCounts, EndpointId, KeyUsageStore, KeyUse, Revision, Signers, StoreError,
    TenantId, Timestamp, key_usage_limits::BATCH,
};

/// Longest wait for the store: counts are no reason to hold up a stop.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Requests signed by one set of keys.
#[derive(Default)]
struct Slot {
    signers: OnceLock<Signers>,
    accepted: AtomicU64,
    denied: AtomicU64,
    other: AtomicU64,
    last_used_us: AtomicI64,
}

/// Counts of one ring at one of its states. There one key signs or two: by the clock two become one.
pub(crate) struct RingCounter {
    tenant: TenantId,
    endpoint: EndpointId,
    revision: Revision,
    one: Slot,
    two: Slot,
}

impl Slot {
    fn add(&self, answers: AnswerCounts, at: Timestamp) {
        self.accepted.fetch_add(answers.accepted, Ordering::Relaxed);
        self.denied.fetch_add(answers.denied, Ordering::Relaxed);
        self.other.fetch_add(answers.other, Ordering::Relaxed);
        self.last_used_us.fetch_max(at.micros(), Ordering::Relaxed);
    }

    fn take(&self) -> AnswerCounts {
        AnswerCounts {
            accepted: self.accepted.swap(0, Ordering::Relaxed),
            denied: self.denied.swap(0, Ordering::Relaxed),
            other: self.other.swap(0, Ordering::Relaxed),
        }
    }
}

impl RingCounter {
    fn new(tenant: TenantId, endpoint: EndpointId, revision: Revision) -> Self {
        Self { tenant, endpoint, revision, one: Slot::default(), two: Slot::default() }
    }

    /// Counts one signed request.
    pub(crate) fn count(&self, signers: Signers, class: AnswerClass, at: Timestamp) {
        let mut answers = AnswerCounts::default();
        match class {
            AnswerClass::Accepted => answers.accepted = 1,
            AnswerClass::Denied => answers.denied = 1,
            AnswerClass::Other => answers.other = 1,
        }
        self.add(signers, answers, at);
    }

    fn add(&self, signers: Signers, answers: AnswerCounts, at: Timestamp) {
        let slot = if signers.second.is_some() { &self.two } else { &self.one };
        slot.signers.get_or_init(|| signers);
        slot.add(answers, at);
    }

    /// What was counted since the last time.
    fn take(&self) -> impl Iterator<Item = KeyUse> {
        [&self.two, &self.one].into_iter().filter_map(|slot| {
            let signers = *slot.signers.get()?;
            let answers = slot.take();
            (answers.total() > 0).then(|| KeyUse {
                tenant: self.tenant,
                endpoint: self.endpoint,
                revision: self.revision,
                signers,
                answers,
                last_used_at: Timestamp::from_micros(slot.last_used_us.load(Ordering::Relaxed)),
            })
        })
    }
}

/// The counters of all rings.
#[derive(Default)]
pub(crate) struct KeyMeter {
    rings: Mutex<HashMap<(EndpointId, Revision), Arc<RingCounter>>>,
}

impl KeyMeter {
    /// The counter of a ring's state, for whoever signs with it.
    pub(crate) fn ring(
        &self,
        tenant: TenantId,
        endpoint: EndpointId,
        revision: Revision,
    ) -> Arc<RingCounter> {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || Arc::new(RingCounter::new(tenant, endpoint, revision));
        Arc::clone(rings.entry((endpoint, revision)).or_insert_with(fresh))
    }

    /// Takes what was counted, and forgets counters that nobody counts with any more.
    fn take(&self) -> Vec<KeyUse> {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        let mut uses = Vec::new();
        rings.retain(|_, ring| {
            // Asked before it is emptied: what is counted in between is found the next time.
            let in_use = Arc::strong_count(ring) > 1;
            uses.extend(ring.take());
            in_use
        });
        uses
    }

    fn give_back(&self, uses: Vec<KeyUse>) {
        for one in uses {
            let ring = self.ring(one.tenant, one.endpoint, one.revision);
            ring.add(one.signers, one.answers, one.last_used_at);
        }
    }

    /// Writes what was counted. What the store does not take is kept for the next time.
    pub(crate) async fn write(&self, store: &dyn KeyUsageStore) {
        let mut left = self.take();
        while !left.is_empty() {
            let rest = left.split_off(left.len().min(BATCH));
            match timeout(WRITE_TIMEOUT, store.add_key_uses(&left)).await {
                Ok(Ok(())) => count_signatures(&left),
                Ok(Err(StoreError::Internal(cause))) => {
                    // Offering it again would fail again; losing counts harms no delivery.
                    tracing::error!(error = %cause, "counts of key use were refused and are lost");
                }
                Ok(Err(StoreError::Unavailable(_))) | Err(_) => {
                    tracing::warn!("counts of key use wait for the store");
                    self.give_back(left);
                    return self.give_back(rest);
                }
            }
            left = rest;
        }
    }

    /// Writes now and then until cancelled. The last counts are written by whoever ends the engine.
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
    }
}

fn count_signatures(uses: &[KeyUse]) {
    for one in uses {
        let total = one.answers.total();
        counter!("turnbuckle_signatures_total", "place" => "first").increment(total);
        if one.signers.second.is_some() {
            counter!("turnbuckle_signatures_total", "place" => "second").increment(total);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;
    use std::sync::atomic::AtomicBool;
    use turnbuckle_domain::{KeyId, KeyPlace, KeyTest, RingUsage};
    use uuid::Uuid;

    /// Keeps what it is given, or does not answer.
    #[derive(Default)]
    struct Kept {
        uses: Mutex<Vec<KeyUse>>,
        is_away: AtomicBool,
    }

    #[async_trait]
    impl KeyUsageStore for Kept {
        async fn add_key_uses(&self, uses: &[KeyUse]) -> Result<(), StoreError> {
            assert!(uses.len() <= BATCH);
            if self.is_away.load(Ordering::Relaxed) {
                return Err(StoreError::Unavailable("away".into()));
            }
            self.uses.lock().unwrap().extend_from_slice(uses);
            Ok(())
        }

        async fn note_key_test(&self, _: KeyPlace, _: &KeyTest) -> Result<(), StoreError> {
            Ok(())
        }

        async fn ring_usage(&self, _: TenantId, _: EndpointId) -> Result<RingUsage, StoreError> {
            Ok(RingUsage::default())
        }

        async fn add_key_verifications(
            &self,
            _: &[turnbuckle_domain::KeyVerifications],
        ) -> Result<(), StoreError> {
            Ok(())
        }

        async fn source_usage(
            &self,
            _: TenantId,
            _: turnbuckle_domain::SourceId,
        ) -> Result<RingUsage, StoreError> {
            Ok(RingUsage::default())
        }

        async fn open_rotations(
            &self,
            _: Timestamp,
            _: Option<EndpointId>,
            _: u16,
        ) -> Result<Vec<(TenantId, EndpointId)>, StoreError> {
            Ok(Vec::new())
        }

        async fn forget_answers(&self, _: Timestamp, _: Duration) -> Result<(), StoreError> {
            Ok(())
        }
    }

    fn uuid(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn ring(meter: &KeyMeter, endpoint: u128, revision: i64) -> Arc<RingCounter> {
        let endpoint = EndpointId::from_uuid(uuid(endpoint));
        meter.ring(TenantId::from_uuid(uuid(1)), endpoint, Revision(revision))
    }

    fn signers(first: u128, second: Option<u128>) -> Signers {
        Signers {
            first: KeyId::from_uuid(uuid(first)),
            second: second.map(uuid).map(KeyId::from_uuid),
        }
    }

    fn total(kept: &Kept) -> u64 {
        kept.uses.lock().unwrap().iter().map(|one| one.answers.total()).sum()
    }

    #[tokio::test]
    async fn every_signed_request_is_written_once_by_what_signed_it() {
        let (meter, kept) = (KeyMeter::default(), Kept::default());
        let counter = ring(&meter, 1, 7);
        let both = signers(2, Some(1));
        counter.count(both, AnswerClass::Accepted, Timestamp::from_micros(5));
        counter.count(both, AnswerClass::Denied, Timestamp::from_micros(4));
        counter.count(signers(2, None), AnswerClass::Other, Timestamp::from_micros(9));
        meter.write(&kept).await;
        meter.write(&kept).await;
        let uses = kept.uses.lock().unwrap().clone();
        assert_eq!(uses.len(), 2);
        assert_eq!((uses[0].signers, uses[0].last_used_at.micros()), (both, 5));
        assert_eq!(uses[0].answers, AnswerCounts { accepted: 1, denied: 1, other: 0 });
        assert_eq!(uses[1].answers, AnswerCounts { accepted: 0, denied: 0, other: 1 });
    }

    #[tokio::test]
    async fn nothing_is_lost_while_the_store_is_away_and_batches_are_bounded() {
        let (meter, kept) = (KeyMeter::default(), Kept::default());
        let many = BATCH as u128 * 2 + 7;
        for endpoint in 0..many {
            let counter = ring(&meter, endpoint, 1);
            counter.count(signers(endpoint, None), AnswerClass::Accepted, Timestamp::EPOCH);
        }
        kept.is_away.store(true, Ordering::Relaxed);
        meter.write(&kept).await;
        assert_eq!(total(&kept), 0);
        kept.is_away.store(false, Ordering::Relaxed);
        meter.write(&kept).await;
        assert_eq!(u128::from(total(&kept)), many);
        assert!(meter.rings.lock().unwrap().is_empty(), "nobody signs with these any more");
    }

    #[test]
    fn counting_from_many_threads_loses_nothing() {
        let meter = KeyMeter::default();
        let counter = ring(&meter, 1, 1);
        let taken: u64 = std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        counter.count(signers(1, None), AnswerClass::Accepted, Timestamp::EPOCH);
                    }
                });
            }
            (0..100).flat_map(|_| meter.take()).map(|one| one.answers.total()).sum()
        });
        let rest: u64 = meter.take().iter().map(|one| one.answers.total()).sum();
        assert_eq!(taken + rest, 40_000);
    }
}
