//! One process's turn at one replay: a row of bounded steps.

use super::{ReplayParts, pace::Pace, runner::ReplayMetrics, skipped};
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use turnbuckle_domain::{
    EndpointId, Replay, ReplayEnd, ReplayLease, ReplayRow, ReplayStep, StepDone, StepPlan,
    StoreError, WakeHint as _, replay_limits,
};
use uuid::Uuid;

/// After this time other replays have their turn.
const SLICE: Duration = Duration::from_secs(10);
/// Wait when an endpoint has much pending, or the store did not answer.
const WAIT: Duration = Duration::from_secs(1);
/// Pause between pages of which nothing is chosen: looking is not to take the store for itself.
const WALK_PAUSE: Duration = Duration::from_millis(20);
/// Longest wait without a word to the store: a third of the lease.
const WORD: Duration = Duration::from_secs(5);
/// How long a look at an endpoint's backlog is believed.
const LOOK_KEPT: Duration = Duration::from_secs(1);
/// Refusals of the store in a row after which a replay has failed: a row that cannot be written must not
/// keep a process busy for ever.
const REFUSALS_MAX: u32 = 5;
/// What is said of such a replay.
const REFUSED: &str = "the store refused a step several times; the log of the server says why";

/// What comes after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    /// The next one, after so long.
    Next(Duration),
    /// The replay is finished.
    Finished,
    /// It was paused or cancelled, another process has it, or a step was done whose answer was lost: who
    /// takes it up next reads where it stands.
    Lost,
}

pub(super) struct Turn {
    parts: Arc<ReplayParts>,
    metrics: Arc<ReplayMetrics>,
    replay: Replay,
    lease: ReplayLease,
    position: Option<Uuid>,
    rows: VecDeque<ReplayRow>,
    pace: Pace,
    /// When an endpoint was last seen to have room.
    roomy: HashMap<EndpointId, Instant>,
    refusals: u32,
}

impl Turn {
    pub(super) fn new(
        parts: Arc<ReplayParts>,
        metrics: Arc<ReplayMetrics>,
        (replay, lease): (Replay, ReplayLease),
    ) -> Self {
        let (position, rate) = (replay.position, replay.rate);
        let pace = Pace::new(rate, Instant::now());
        let (rows, roomy) = (VecDeque::new(), HashMap::new());
        Self { parts, metrics, replay, lease, position, rows, pace, roomy, refusals: 0 }
    }

    /// Works until the replay is finished, others have waited long enough, or the process stops.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let ends = Instant::now() + SLICE;
        loop {
            let wait = match self.step().await {
                Ok(After::Next(wait)) => wait,
                Ok(After::Finished) => return,
                Ok(After::Lost) => break,
                Err(error) => match self.refused(error).await {
                    true => return,
                    false => WAIT,
                },
            };
            if stop.run_until_cancelled(self.rest(wait)).await.is_none() || Instant::now() >= ends {
                break;
            }
        }
        if let Err(error) = self.parts.store.release_replay(&self.lease).await {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                replay.id = %self.replay.id,
                "a replay was not given back; another process takes it when its lease has ended"
            );
        }
    }

    /// Waits, and keeps the lease meanwhile.
    async fn rest(&mut self, wait: Duration) {
        let until = Instant::now() + wait.max(self.pace.owed(Instant::now()));
        loop {
            let left = until.saturating_duration_since(Instant::now());
            sleep(left.min(WORD)).await;
            if left <= WORD {
                return;
            }
            let word = ReplayStep::empty(self.parts.clock.now());
            if !matches!(self.parts.store.step_replay(&self.lease, &word).await, Ok(Some(_))) {
                // The next step tells what has happened.
                return;
            }
        }
    }

    /// Notes that the store did not do a step. True when that was once too often.
    async fn refused(&mut self, error: StoreError) -> bool {
        self.rows.clear();
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            replay.id = %self.replay.id,
            "a step of a replay was not done; it is tried again"
        );
        self.refusals += u32::from(matches!(error, StoreError::Internal(_)));
        if self.refusals < REFUSALS_MAX {
            return false;
        }
        let end = ReplayEnd::Failed(REFUSED.to_owned());
        let step = ReplayStep { end: Some(end), ..ReplayStep::empty(self.parts.clock.now()) };
        let failed = self.parts.store.step_replay(&self.lease, &step).await.is_ok();
        if failed {
            self.metrics.failed.increment(1);
        }
        failed
    }

    async fn step(&mut self) -> Result<After, StoreError> {
        let plan = self.plan().await?;
        let now = self.parts.clock.now();
        let Some(position) = plan.position else {
            let step = ReplayStep { end: Some(ReplayEnd::Done), ..ReplayStep::empty(now) };
            let done = self.parts.store.step_replay(&self.lease, &step).await?;
            self.metrics.done.increment(u64::from(done.is_some()));
            return Ok(After::Finished);
        };
        if self.is_clogged(&plan).await? {
            self.rows.clear();
            let step = ReplayStep { waiting: true, ..ReplayStep::empty(now) };
            let done = self.parts.store.step_replay(&self.lease, &step).await?;
            return Ok(done.map_or(After::Lost, |_| After::Next(WAIT)));
        }
        let touched = plan.touched();
        let step = ReplayStep {
            reopen: plan.reopen,
            place: plan.place,
            states: self.replay.filter.states,
            counts: plan.counts,
            after: self.position,
            position: Some(position),
            ..ReplayStep::empty(now)
        };
        let Some(done) = self.parts.store.step_replay(&self.lease, &step).await? else {
            return Ok(After::Lost);
        };
        (self.position, self.refusals) = (Some(position), 0);
        self.pace.spend(touched, Instant::now());
        self.tell(&done).await;
        Ok(After::Next(if touched == 0 { WALK_PAUSE } else { Duration::ZERO }))
    }

    /// The next rows, as many as the pace allows. Without a position when there are no more.
    async fn plan(&mut self) -> Result<StepPlan, StoreError> {
        let mut plan = StepPlan::default();
        if self.rows.is_empty() {
            let (walk, page) = (self.replay.walk(), replay_limits::PAGE);
            self.rows = self.parts.store.replay_page(&walk, self.position, page).await?.into();
        }
        let quantum = self.pace.quantum();
        while plan.touched() < quantum
            && let Some(row) = self.rows.pop_front()
        {
            self.parts.plan(&self.replay, row, &mut plan).await?;
        }
        Ok(plan)
    }

    /// Whether one of the endpoints has so much pending that it gets no more.
    async fn is_clogged(&mut self, plan: &StepPlan) -> Result<bool, StoreError> {
        let now = Instant::now();
        self.roomy.retain(|_, seen| now.saturating_duration_since(*seen) < LOOK_KEPT);
        for endpoint in plan.endpoints() {
            if self.roomy.contains_key(&endpoint) {
                continue;
            }
            let most = replay_limits::PENDING;
            if self.parts.store.pending_at(endpoint, most).await? >= most {
                return Ok(true);
            }
            self.roomy.insert(endpoint, now);
        }
        Ok(false)
    }

    /// Wakes the lanes, here and elsewhere.
    async fn tell(&self, done: &StepDone) {
        self.metrics.reopened.increment(done.counts.reopened);
        self.metrics.made.increment(done.counts.made);
        self.metrics.skipped.increment(skipped(&done.counts));
        if done.endpoints.is_empty() {
            return;
        }
        for endpoint in &done.endpoints {
            self.parts.wake.wake(*endpoint);
        }
        // Only a hint: whoever misses it finds the deliveries by looking.
        drop(self.parts.queue.hint(&done.endpoints).await);
    }
}
