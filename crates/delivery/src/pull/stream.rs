//! One stream: the task between a consumer and the queue.

use super::{
    Puller, Terms,
    held::{Held, HeldSet, parse_lease_token},
    hub::{Claimed, Seat},
    limits::{ACTIONS_MAX, CLAIM_ROWS, FAREWELL, MESSAGE_BYTES, OUTBOX_MAX, POLL, STREAM_AGE},
    settle::{Action, Asked, Write, Written},
};
use futures_util::{Stream, StreamExt as _};
use std::{collections::VecDeque, pin::Pin, sync::Arc, time::Duration};
use tokio::{sync::mpsc, time::Instant};
use turnbuckle_domain::{
    Attempt, AttemptOutcome, Decision, DeliveryId, DeliveryState, EndpointId, Error, Event,
    FinishReason, LeaseExtension, LeaseToken, Leased, LiveDelivery, Next, Progress, PullClaim,
    PullSettlement, RetryRule, Settled, StoreError, Timestamp, extended_until,
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
    reply: mpsc::UnboundedSender<Written>,
    written: mpsc::UnboundedReceiver<Written>,
}

impl PullStream {
    pub(super) fn new(
        puller: Arc<Puller>,
        seat: Seat,
        endpoint: EndpointId,
        name: String,
        terms: Terms,
    ) -> Self {
        let (reply, written) = mpsc::unbounded_channel();
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
            if claiming.is_none() && self.more && self.outbox.is_empty() {
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
        self.more = false;
        self.claimed_at = Instant::now();
        let index = self.puller.config.load();
        let target = index.endpoint(self.endpoint).and_then(|entry| entry.endpoint.target.pull());
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

    /// Takes a leased row in: what lapsed before is settled first, what has no event ends here.
    fn take(&mut self, row: Leased) {
        let Leased { delivery, event, token, lapsed, .. } = row;
        let now = self.puller.clock.now();
        let expires_at = delivery.due_at;
        let bytes = event.as_ref().map_or(0, |event| event.data.len());
        let held = Held { delivery, token, leased_at: now, expires_at, bytes, is_sent: false };
        if let Some(lapsed) = lapsed {
            let before = Held { leased_at: lapsed.leased_at, ..held };
            self.settle_own(&before, &AttemptOutcome::LeaseLapsed, lapsed.expired_at);
            return;
        }
        let Some(event) = event else {
            let next =
                Next::Finish { state: DeliveryState::Dead, reason: Some(FinishReason::EventGone) };
            self.puller.metrics.finished(DeliveryState::Dead);
            let settlement = settlement(&held, None, next, now);
            return self.write(Write::Settle(Box::new(settlement)), Action::Own, String::new());
        };
        let pulled = Pulled {
            delivery: held.delivery.id,
            lease_token: held.lease_token(),
            expires_at,
            attempt: held.delivery.attempts + 1,
            event,
        };
        self.seat.took(bytes);
        self.held.insert(held);
        self.put_out(pulled, bytes);
    }

    /// Adds to the last message while it stays small enough.
    fn put_out(&mut self, pulled: Pulled, bytes: usize) {
        if let Some(Told::Deliveries(last)) = self.outbox.back_mut() {
            let weight: usize = last.iter().map(|one| one.event.data.len()).sum();
            if weight + bytes <= MESSAGE_BYTES {
                last.push(pulled);
                return;
            }
        }
        self.outbox.push_back(Told::Deliveries(vec![pulled]));
    }

    fn note_sent(&mut self, told: &Told) {
        if let Told::Deliveries(deliveries) = told {
            deliveries.iter().for_each(|one| self.held.mark_sent(one.delivery));
        }
    }

    fn act(&mut self, said: Said) {
        let now = self.puller.clock.now();
        match said {
            Said::Ack { lease_token } => match self.release(&lease_token) {
                Some(held) => {
                    let settlement = self.attempt(&held, &AttemptOutcome::Acknowledged, now);
                    self.writing += 1;
                    self.write(Write::Settle(Box::new(settlement)), Action::Ack, lease_token);
                }
                None => self.tell(stale(Action::Ack, lease_token)),
            },
            Said::Return { lease_token, delay } => match self.release(&lease_token) {
                Some(held) => {
                    let settlement = self.attempt(&held, &AttemptOutcome::Returned { delay }, now);
                    self.writing += 1;
                    self.write(Write::Settle(Box::new(settlement)), Action::Return, lease_token);
                }
                None => self.tell(stale(Action::Return, lease_token)),
            },
            Said::Extend { lease_token, lease } => {
                let named = parse_lease_token(&lease_token);
                let Some(held) = named.and_then(|(id, token)| self.held.get(id, token)) else {
                    return self.tell(stale(Action::Extend(now), lease_token));
                };
                let until = extended_until(held.leased_at, now, lease);
                let (tenant, delivery) = (held.delivery.tenant, held.delivery.id);
                let extension = LeaseExtension { tenant, delivery, token: held.token, until };
                self.write(Write::Extend(extension), Action::Extend(until), lease_token);
            }
        }
    }

    /// Takes a delivery out whose lease holds.
    fn release(&mut self, lease_token: &str) -> Option<Held> {
        let (id, token): (DeliveryId, LeaseToken) = parse_lease_token(lease_token)?;
        let held = self.held.take(id, token)?;
        self.seat.gave(held.bytes);
        Some(held)
    }

    fn note_written(&mut self, written: Written) {
        self.unanswered -= 1;
        let ordered = self.puller.target(self.endpoint, &self.name);
        let is_ordered = ordered.is_ok_and(|target| target.ordered_by_subject);
        match written.action {
            Action::Own => return self.seat.wake(),
            Action::Extend(until) => {
                if written.outcome == Settled::Applied
                    && let Some((id, token)) = parse_lease_token(&written.lease_token)
                {
                    self.held.extend(id, token, until);
                }
            }
            Action::Ack | Action::Return => {
                self.writing -= 1;
                // A return may be due at once, and the next of a subject may follow.
                if is_ordered || written.action == Action::Return {
                    self.seat.wake();
                }
            }
        }
        self.tell(written);
    }

    fn tell(&mut self, written: Written) {
        match self.outbox.back_mut() {
            Some(Told::Results(last)) if last.len() < ACTIONS_MAX => last.push(written),
            _ => self.outbox.push_back(Told::Results(vec![written])),
        }
    }

    fn write(&mut self, write: Write, action: Action, lease_token: String) {
        self.unanswered += 1;
        let reply = self.reply.clone();
        // The settler outlives every stream.
        drop(self.puller.asked.send(Asked { write, action, lease_token, reply }));
    }

    fn settle_own(&mut self, held: &Held, outcome: &AttemptOutcome, ended_at: Timestamp) {
        let settlement = self.attempt(held, outcome, ended_at);
        self.write(Write::Settle(Box::new(settlement)), Action::Own, String::new());
    }

    /// The end of an attempt, by the endpoint's present policy.
    fn attempt(
        &self,
        held: &Held,
        outcome: &AttemptOutcome,
        ended_at: Timestamp,
    ) -> PullSettlement {
        let LiveDelivery { attempts, round_start, round_at, .. } = held.delivery;
        let progress = Progress { attempts: (attempts + 1).saturating_sub(round_start), round_at };
        let (index, random) = (self.puller.config.load(), self.puller.random.unit());
        let decision = match index.endpoint(self.endpoint) {
            Some(entry) => entry.rule.decide(progress, outcome, ended_at, random),
            None => RetryRule::default().decide(progress, outcome, ended_at, random),
        };
        let attempt = Attempt {
            number: attempts + 1,
            started_at: held.leased_at,
            duration: ended_at.since(held.leased_at),
            outcome: outcome.class().into(),
            status: None,
            detail: outcome.detail().into(),
            retry_delay: decision.delay(),
            retry_after_honoured: false,
        };
        self.puller.metrics.attempt(outcome);
        let next = next_of(decision, ended_at);
        if let Next::Finish { state, .. } = next {
            self.puller.metrics.finished(state);
        }
        settlement(held, Some(attempt), next, ended_at)
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

const fn stale(action: Action, lease_token: String) -> Written {
    Written { action, lease_token, outcome: Settled::Stale }
}

fn settlement(held: &Held, attempt: Option<Attempt>, next: Next, at: Timestamp) -> PullSettlement {
    PullSettlement {
        tenant: held.delivery.tenant,
        delivery: held.delivery.id,
        token: held.token,
        attempts_before: held.delivery.attempts,
        attempt,
        next,
        at,
    }
}

fn next_of(decision: Decision, ended_at: Timestamp) -> Next {
    match decision {
        Decision::Delivered => Next::Finish { state: DeliveryState::Delivered, reason: None },
        Decision::Retry { delay, .. } => Next::Retry { due_at: ended_at + delay },
        Decision::Dead(reason) => Next::Finish { state: DeliveryState::Dead, reason: Some(reason) },
    }
}
