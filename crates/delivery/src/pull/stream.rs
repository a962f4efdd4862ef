//! One stream: the task between a consumer and the queue.

mod actions;

use super::{
    Puller, Terms,
    held::HeldSet,
    hub::{Claimed, Seat},
    limits::{ACTIONS_MAX, CLAIM_ROWS, FAREWELL, OUTBOX_MAX, POLL, STREAM_AGE, UNANSWERED_MAX},
    settle::{Action, Write, Written},
};
use actions::settlement;
use futures_util::{Stream, StreamExt as _};
use std::{collections::VecDeque, pin::Pin, sync::Arc, time::Duration};
use tokio::{sync::mpsc, time::Instant};
use turnbuckle_domain::{
    AttemptOutcome, DeliveryId, EndpointId, Error, Event, Next, PullClaim, StoreError, Timestamp,
};

/// What a consumer says of a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    Ack { lease_token: String },
    Return { lease_token: String, delay: Option<Duration> },
    Extend { lease_token: String, lease: Duration },
}

/// What comes in from a consumer.
pub(crate) enum Heard {
    Said(Vec<Said>),
    /// It said something that makes no sense: the stream ends with this.
    Malformed(Error),
    /// The connection is gone.
    Broken,
}

/// A delivery on its way to a consumer.
pub(crate) struct Pulled {
    pub(crate) delivery: DeliveryId,
    pub(crate) lease_token: String,
    pub(crate) expires_at: Timestamp,
    pub(crate) attempt: u32,
    pub(crate) event: Arc<Event>,
}

/// What a consumer is told.
pub(crate) enum Told {
    Opened(Terms),
    Deliveries(Vec<Pulled>),
    Results(Vec<Written>),
}

/// Why we end a stream.
#[derive(Debug)]
pub(crate) enum Farewell {
    /// The process stops.
    Stopping,
    Refused(Error),
}

/// How a stream ends.
enum Ending {
    /// The consumer has said all, or the stream has served its time.
    Closed,
    /// The consumer is gone.
    Broken,
    /// We end it.
    Told(Farewell),
}

type Claiming = Pin<Box<dyn Future<Output = Result<Claimed, StoreError>> + Send>>;

pub(super) struct PullStream {
    puller: Arc<Puller>,
    seat: Arc<Seat>,
    endpoint: EndpointId,
    /// As the consumer named it.
    name: String,
    terms: Terms,
    held: HeldSet,
    /// Acknowledgements and returns that are being written.
    writing: usize,
    /// Writes of every kind that were not answered yet.
    unanswered: usize,
    /// When the stream is to end, so that its caller is looked at again.
    retires_at: Instant,
    outbox: VecDeque<Told>,
    /// The store may have something for us.
    more: bool,
    claimed_at: Instant,
    reply: mpsc::Sender<Written>,
    written: mpsc::Receiver<Written>,
}

impl PullStream {
    pub(super) fn new(
        puller: Arc<Puller>,
        seat: Seat,
        endpoint: EndpointId,
        name: String,
        terms: Terms,
    ) -> Self {
        let (reply, written) = mpsc::channel(UNANSWERED_MAX);
        // Not all at once, when many were opened together.
        let age = STREAM_AGE + STREAM_AGE.mul_f64(puller.random.unit() / 2.0);
        Self {
            puller,
            seat: Arc::new(seat),
            endpoint,
            name,
            terms,
            held: HeldSet::default(),
            writing: 0,
            unanswered: 0,
            retires_at: Instant::now() + age,
            outbox: VecDeque::from([Told::Opened(terms)]),
            more: true,
            claimed_at: Instant::now(),
            reply,
            written,
        }
    }

    /// Runs until either side ends it; then gives back what is held.
    pub(super) async fn run(
        mut self,
        mut said: impl Stream<Item = Heard> + Send + Unpin,
        out: mpsc::Sender<Result<Told, Farewell>>,
    ) {
        let mut claiming: Option<Claiming> = None;
        let ending = self.serve(&mut said, &out, &mut claiming).await;
        if let Some(claiming) = claiming {
            // What it brings is leased: it must go back.
            if let Ok(Claimed { rows, .. }) = claiming.await {
                rows.into_iter().for_each(|row| self.take(row));
            }
        }
        self.finish(ending, &out).await;
    }

    async fn serve(
        &mut self,
        said: &mut (impl Stream<Item = Heard> + Send + Unpin),
        out: &mpsc::Sender<Result<Told, Farewell>>,
        claiming: &mut Option<Claiming>,
    ) -> Ending {
        let mut heard = self.seat.heard();
        let mut config = self.puller.config.clone();
        let stop = self.puller.stop.clone();
        loop {
            if claiming.is_none() && self.more && self.outbox.is_empty() && self.can_listen() {
                *claiming = self.claim();
            }
            if self.is_retired() {
                return Ending::Closed;
            }
            let wake_at = self.wake_at();
            tokio::select! {
                () = stop.cancelled() => return Ending::Told(Farewell::Stopping),
                () = out.closed() => return Ending::Broken,
                () = config.changed() => {}
                permit = out.reserve(), if !self.outbox.is_empty() => {
                    // I5: nothing leaves for an endpoint that was disabled meanwhile.
                    if let Err(error) = self.puller.target(self.endpoint, &self.name) {
                        return Ending::Told(Farewell::Refused(error));
                    }
                    if let (Ok(permit), Some(next)) = (permit, self.outbox.pop_front()) {
                        self.note_sent(&next);
                        permit.send(Ok(next));
                    }
                }
                next = said.next(), if self.can_listen() => match next {
                    None => return Ending::Closed,
                    Some(Heard::Said(actions)) => actions.into_iter().for_each(|one| self.act(one)),
                    Some(Heard::Malformed(error)) => return Ending::Told(Farewell::Refused(error)),
                    Some(Heard::Broken) => return Ending::Broken,
                },
                Some(written) = self.written.recv() => self.note_written(written),
                rows = ended(claiming) => {
                    *claiming = None;
                    self.claim_ended(rows);
                }
                // The hub's sender lives as long as our seat.
                _ = heard.changed() => self.more = true,
                () = tokio::time::sleep_until(wake_at) => self.more = true,
            }
            if let Err(error) = self.puller.target(self.endpoint, &self.name) {
                return Ending::Told(Farewell::Refused(error));
            }
            let expired = self.held.drop_expired(self.puller.clock.now());
            self.seat.gave(expired);
        }
    }

    /// When to look even if nothing comes in: a lease ends, or it is time to poll.
    fn wake_at(&self) -> Instant {
        // A claim that waits for room needs no poll.
        let poll = if self.more { Instant::now() } else { self.claimed_at } + POLL;
        let now = self.puller.clock.now();
        match self.held.next_expiry() {
            Some(at) => poll.min(Instant::now() + at.since(now)),
            None => poll,
        }
    }

    /// Whether the stream's time is over and nothing is out any more.
    fn is_retired(&self) -> bool {
        Instant::now() >= self.retires_at
            && self.held.len() == 0
            && self.unanswered == 0
            && self.outbox.is_empty()
    }

    /// Whether there is room for what the consumer says, and for the answers.
    fn can_listen(&self) -> bool {
        self.outbox.len() < OUTBOX_MAX && self.unanswered <= ACTIONS_MAX
    }

    /// How many deliveries may come.
    fn room(&self) -> usize {
        if Instant::now() >= self.retires_at {
            return 0;
        }
        let held = self.held.len() + self.writing;
        let room = usize::from(self.terms.max_outstanding).saturating_sub(held).min(CLAIM_ROWS);
        if self.held.len() == 0 {
            // One comes whatever its size, and whatever others hold.
            return if self.seat.is_crowded() { room.min(1) } else { room };
        }
        if self.seat.is_crowded() || self.held.bytes() >= self.terms.bytes {
            return 0;
        }
        // Judged by the payloads at hand.
        let weight = (self.held.bytes() / self.held.len()).max(1024);
        room.min(((self.terms.bytes - self.held.bytes()) / weight).max(1))
    }

    fn claim(&mut self) -> Option<Claiming> {
        let limit = u16::try_from(self.room()).unwrap_or(u16::MAX);
        if limit == 0 {
            return None;
        }
        let index = self.puller.config.load();
        let entry = index.endpoint(self.endpoint);
        if entry.is_some_and(|entry| entry.rule.is_none()) {
            // Tried again when the configuration changes.
            return None;
        }
        self.more = false;
        self.claimed_at = Instant::now();
        let target = entry.and_then(|entry| entry.endpoint.target.pull());
        let by_subject = target.is_some_and(|target| target.ordered_by_subject);
        let (puller, seat) = (Arc::clone(&self.puller), Arc::clone(&self.seat));
        let (endpoint, lease) = (self.endpoint, self.terms.lease);
        Some(Box::pin(async move {
            let clock = Arc::clone(&puller.clock);
            let wanted = move |after| {
                // Read when the turn has come, so that no part of the lease is spent waiting for it.
                let now = clock.now();
                PullClaim { endpoint, after, limit, by_subject, now, until: now + lease }
            };
            seat.claim(puller.queue.as_ref(), wanted).await
        }))
    }

    fn claim_ended(&mut self, claimed: Result<Claimed, StoreError>) {
        self.claimed_at = Instant::now();
        match claimed {
            Ok(Claimed { rows, more }) => {
                self.more |= more;
                rows.into_iter().for_each(|row| self.take(row));
            }
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "a consumer waits for the store"
                );
            }
        }
    }

    /// What was said is written and answered, what is held goes back.
    async fn finish(mut self, ending: Ending, out: &mpsc::Sender<Result<Told, Farewell>>) {
        let now = self.puller.clock.now();
        let is_broken = matches!(ending, Ending::Broken);
        for held in self.held.take_all() {
            self.seat.gave(held.bytes);
            if is_broken && held.is_sent {
                self.settle_own(&held, &AttemptOutcome::StreamBroken, now);
            } else {
                let settlement = settlement(&held, None, Next::Retry { due_at: now }, now);
                self.write(Write::Settle(Box::new(settlement)), Action::Own, String::new());
            }
        }
        self.outbox.retain(|told| matches!(told, Told::Results(_)));
        while self.unanswered > 0
            && let Some(written) = self.written.recv().await
        {
            self.note_written(written);
        }
        for told in std::mem::take(&mut self.outbox) {
            // A consumer that is gone needs no answer.
            drop(out.send_timeout(Ok(told), FAREWELL).await);
        }
        if let Ending::Told(farewell) = ending {
            drop(out.send_timeout(Err(farewell), FAREWELL).await);
        }
        // What went back is for the other streams of this process.
        self.puller.hub.wake(self.endpoint);
    }
}

/// Waits for a claim, for ever when there is none.
async fn ended(claiming: &mut Option<Claiming>) -> Result<Claimed, StoreError> {
    match claiming {
        Some(claiming) => claiming.await,
        None => std::future::pending().await,
    }
}
