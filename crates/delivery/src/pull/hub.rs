//! What the streams of one process share: who is there, what was heard, and turns at the store.

use super::limits::{
    CLAIMS_AT_ONCE, ENDPOINT_STREAMS_MAX, FROM_START, POLL, PROCESS_BYTES_MAX, STREAMS_MAX,
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{
    sync::{Mutex as Turn, Semaphore, watch},
    time::Instant,
};
use turnbuckle_domain::{
    DeliveryId, EndpointId, Error, Leased, PullClaim, PullQueue, StoreError, Timestamp,
};

/// Streams of this process by endpoint.
pub(crate) struct PullHub {
    feeds: Mutex<HashMap<EndpointId, Arc<Feed>>>,
    claims: Semaphore,
    /// Payload bytes on their way to consumers.
    bytes: AtomicUsize,
    streams: metrics::Gauge,
}

impl Default for PullHub {
    fn default() -> Self {
        Self {
            feeds: Mutex::default(),
            claims: Semaphore::new(CLAIMS_AT_ONCE),
            bytes: AtomicUsize::new(0),
            streams: metrics::gauge!("turnbuckle_pull_streams"),
        }
    }
}

/// What the streams of one endpoint share.
pub(crate) struct Feed {
    /// Counts what was heard, so that nothing heard during a claim is lost.
    heard: watch::Sender<u64>,
    turn: Turn<Place>,
    streams: AtomicUsize,
}

/// Where claims stand.
struct Place {
    after: (Timestamp, DeliveryId),
    from_start_at: Instant,
    /// When the last claim found less than it asked for, and what had been heard when it began.
    exhausted: Option<(Instant, u64)>,
}

/// A stream's place in the hub; leaving it frees the place.
pub(crate) struct Seat {
    hub: Arc<PullHub>,
    endpoint: EndpointId,
    feed: Arc<Feed>,
}

/// What a turn brought.
pub(crate) struct Claimed {
    pub(crate) rows: Vec<Leased>,
    /// There may be more.
    pub(crate) more: bool,
}

impl PullHub {
    /// Something may be due for this endpoint.
    pub(crate) fn wake(&self, endpoint: EndpointId) {
        let feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = feeds.get(&endpoint) {
            feed.wake();
        }
    }

    /// Takes a place for a stream.
    ///
    /// # Errors
    /// When there are too many.
    pub(crate) fn join(self: &Arc<Self>, endpoint: EndpointId) -> Result<Seat, Error> {
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = feeds.values().map(|feed| feed.streams.load(Ordering::Relaxed)).sum();
        let own = feeds.get(&endpoint).map_or(0, |feed| feed.streams.load(Ordering::Relaxed));
        if own >= ENDPOINT_STREAMS_MAX || all >= STREAMS_MAX {
            return Err(Error::Exhausted {
                message: format!(
                    "this process serves at most {ENDPOINT_STREAMS_MAX} streams of one endpoint and \
                     {STREAMS_MAX} in all: close one, or raise the number of deliveries a stream holds"
                ),
                retry_after: StoreError::RETRY_AFTER,
            });
        }
        let feed = Arc::clone(feeds.entry(endpoint).or_insert_with(|| Arc::new(Feed::new())));
        feed.streams.fetch_add(1, Ordering::Relaxed);
        self.streams.increment(1.0);
        Ok(Seat { hub: Arc::clone(self), endpoint, feed })
    }
}

impl Feed {
    fn new() -> Self {
        let place = Place {
            after: PullClaim::START,
            from_start_at: Instant::now() + FROM_START,
            exhausted: None,
        };
        Self { heard: watch::Sender::new(0), turn: Turn::new(place), streams: AtomicUsize::new(0) }
    }

    fn wake(&self) {
        self.heard.send_modify(|count| *count += 1);
    }
}

impl Seat {
    /// Changes when something was heard.
    pub(crate) fn heard(&self) -> watch::Receiver<u64> {
        self.feed.heard.subscribe()
    }

    pub(crate) fn wake(&self) {
        self.feed.wake();
    }

    /// Notes payload bytes that a stream has taken.
    pub(crate) fn took(&self, bytes: usize) {
        self.hub.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes payload bytes that a stream holds no longer.
    pub(crate) fn gave(&self, bytes: usize) {
        self.hub.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether others hold so much that this stream has to be modest.
    pub(crate) fn is_crowded(&self) -> bool {
        self.hub.bytes.load(Ordering::Relaxed) >= PROCESS_BYTES_MAX
    }

    /// Claims in this stream's turn. Asks nothing of the store when another stream has just found that
    /// nothing is left and nothing was heard since.
    pub(crate) async fn claim(
        &self,
        queue: &dyn PullQueue,
        wanted: impl FnOnce((Timestamp, DeliveryId)) -> PullClaim + Send,
    ) -> Result<Claimed, StoreError> {
        let mut place = self.feed.turn.lock().await;
        let heard = *self.feed.heard.borrow();
        let is_known =
            place.exhausted.is_some_and(|(at, known)| known == heard && at.elapsed() < POLL);
        if is_known {
            return Ok(Claimed { rows: Vec::new(), more: false });
        }
        let now = Instant::now();
        let after = if now >= place.from_start_at { PullClaim::START } else { place.after };
        let claim = wanted(after);
        let rows = {
            // Closed never: the hub lives as long as its seats.
            let _permit = self.hub.claims.acquire().await;
            queue.claim(&claim).await?
        };
        if after == PullClaim::START {
            place.from_start_at = now + FROM_START;
        }
        if let Some(last) = rows.last() {
            place.after = (last.was_due_at, last.delivery.id);
        }
        // Less than asked for behind a cursor says nothing of what lies before it.
        let is_short = rows.len() < usize::from(claim.limit);
        if is_short {
            place.after = PullClaim::START;
        }
        let is_empty = is_short && after == PullClaim::START;
        place.exhausted = is_empty.then_some((now, heard));
        Ok(Claimed { rows, more: !is_empty })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut feeds = self.hub.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        if self.feed.streams.fetch_sub(1, Ordering::Relaxed) == 1 {
            feeds.remove(&self.endpoint);
        }
        self.hub.streams.decrement(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;
    use turnbuckle_domain::{LeaseExtension, PullSettlement, Settled};
    use uuid::Uuid;

    /// Has nothing, and counts how often it was asked.
    #[derive(Default)]
    struct Empty(AtomicUsize);

    #[async_trait]
    impl PullQueue for Empty {
        async fn claim(&self, _: &PullClaim) -> Result<Vec<Leased>, StoreError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Vec::new())
        }

        async fn settle(&self, _: &[PullSettlement]) -> Result<Vec<Settled>, StoreError> {
            Ok(Vec::new())
        }

        async fn extend(&self, _: &[LeaseExtension]) -> Result<Vec<Settled>, StoreError> {
            Ok(Vec::new())
        }
    }

    #[tokio::test]
    async fn an_empty_endpoint_is_asked_again_only_when_something_was_heard() {
        let hub = Arc::new(PullHub::default());
        let endpoint = EndpointId::from_uuid(Uuid::from_u128(1));
        let (one, other) = (hub.join(endpoint).ok().unwrap(), hub.join(endpoint).ok().unwrap());
        let store = Empty::default();
        let now = Timestamp::EPOCH;
        let wish =
            |after| PullClaim { endpoint, after, limit: 9, by_subject: false, now, until: now };
        for seat in [&one, &other, &one] {
            let claimed = seat.claim(&store, wish).await.unwrap();
            assert!(claimed.rows.is_empty() && !claimed.more);
        }
        assert_eq!(store.0.load(Ordering::Relaxed), 1);
        hub.wake(EndpointId::from_uuid(Uuid::from_u128(2)));
        hub.wake(endpoint);
        for seat in [&other, &one] {
            seat.claim(&store, wish).await.unwrap();
        }
        assert_eq!(store.0.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn places_are_bounded_and_come_back() {
        let hub = Arc::new(PullHub::default());
        let endpoint = |number| EndpointId::from_uuid(Uuid::from_u128(number));
        let mut seats: Vec<Seat> = Vec::new();
        for _ in 0..ENDPOINT_STREAMS_MAX {
            seats.push(hub.join(endpoint(1)).ok().unwrap());
        }
        assert!(matches!(hub.join(endpoint(1)), Err(Error::Exhausted { .. })));
        seats.pop();
        seats.push(hub.join(endpoint(1)).ok().unwrap());
        for number in 2.. {
            match hub.join(endpoint(number)) {
                Ok(seat) => seats.push(seat),
                Err(_) => break,
            }
        }
        assert_eq!(seats.len(), STREAMS_MAX);
        seats.clear();
        assert!(hub.feeds.lock().unwrap().is_empty());
    }
}
