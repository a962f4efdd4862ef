//! The task that takes replays up.

use super::{ReplayParts, turn::Turn};
use metrics::{Counter, Gauge, counter, gauge};
use std::{sync::Arc, time::Duration};
use tokio::{sync::Notify, task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;
use turnbuckle_domain::{Replay, ReplayLease, replay_limits};

/// Replays under way in one process: each waits most of the time, and none may starve the engine.
pub(super) const AT_ONCE: usize = 4;
/// How often a process looks for replays that nobody works at.
const POLL: Duration = Duration::from_secs(1);

/// Metrics of replays.
pub(super) struct ReplayMetrics {
    pub(super) reopened: Counter,
    pub(super) made: Counter,
    pub(super) skipped: Counter,
    pub(super) done: Counter,
    pub(super) failed: Counter,
    running: Gauge,
}

impl ReplayMetrics {
    fn new() -> Self {
        let rows = |what: &'static str| counter!("turnbuckle_replay_rows_total", "result" => what);
        let ended = |state: &'static str| counter!("turnbuckle_replays_total", "state" => state);
        Self {
            reopened: rows("reopened"),
            made: rows("made"),
            skipped: rows("skipped"),
            done: ended("done"),
            failed: ended("failed"),
            running: gauge!("turnbuckle_replays_running"),
        }
    }
}

/// Takes replays up and works at them, a few at a time.
pub(crate) struct Runner {
    parts: Arc<ReplayParts>,
    metrics: Arc<ReplayMetrics>,
    nudged: Arc<Notify>,
}

impl Runner {
    pub(super) fn new(parts: Arc<ReplayParts>, nudged: Arc<Notify>) -> Self {
        Self { parts, metrics: Arc::new(ReplayMetrics::new()), nudged }
    }

    /// Runs until the process stops; then what is under way ends with its step.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let mut turns = JoinSet::new();
        while !stop.is_cancelled() {
            while turns.len() < AT_ONCE
                && let Some(claimed) = self.claim().await
            {
                let turn = Turn::new(Arc::clone(&self.parts), Arc::clone(&self.metrics), claimed);
                turns.spawn(turn.run(stop.clone()));
            }
            self.show(turns.len());
            tokio::select! {
                () = stop.cancelled() => break,
                Some(ended) = turns.join_next() => report(ended),
                () = self.nudged.notified() => {}
                () = sleep(POLL) => {}
            }
        }
        while let Some(ended) = turns.join_next().await {
            report(ended);
        }
        self.show(0);
    }

    fn show(&self, running: usize) {
        self.metrics.running.set(u32::try_from(running).unwrap_or(u32::MAX));
    }

    async fn claim(&self) -> Option<(Replay, ReplayLease)> {
        let (worker, now) = (self.parts.worker, self.parts.clock.now());
        match self.parts.store.claim_replay(worker, now, replay_limits::LEASE).await {
            Ok(claimed) => claimed,
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::debug!(error, "replays cannot be looked for now");
                None
            }
        }
    }
}

/// A turn that panicked leaves its lease to its end; then the replay goes on where it was.
fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(error = &error as &dyn std::error::Error, "a turn at a replay broke off");
    }
}
