//! The task that keeps one issuer's keys current.

use super::{
    JwksError,
    cache::State,
    document::{self, KeySet},
    source::{Reading, Source},
};
use crate::auth::config::IssuerConfig;
use jsonwebtoken::Algorithm;
use metrics::{counter, gauge};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use turnbuckle_domain::Clock;

/// First pause after a read that failed; it doubles each time.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// Longest pause after reads that failed.
const RETRY_MAX: Duration = Duration::from_secs(300);

/// Keeps one issuer's keys current: run it in a supervised task.
pub struct JwksRefresher {
    issuer: String,
    algorithm: Algorithm,
    source: Source,
    state: watch::Sender<State>,
    wish: Arc<Notify>,
    clock: Arc<dyn Clock>,
    failures: u32,
    next: Instant,
}

impl JwksRefresher {
    pub(super) fn new(
        issuer: &IssuerConfig,
        source: Source,
        state: watch::Sender<State>,
        wish: Arc<Notify>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            issuer: issuer.issuer.clone(),
            algorithm: issuer.algorithm,
            source,
            state,
            wish,
            clock,
            failures: 0,
            next: Instant::now(),
        }
    }

    /// Reads the keys when they are due or wished for, until the process stops.
    ///
    /// # Errors
    /// Never; a read that fails is logged, and the last good keys stay.
    pub async fn run(mut self, stop: CancellationToken) -> Result<(), Infallible> {
        while stop.run_until_cancelled(self.turn()).await.is_some() {}
        Ok(())
    }

    async fn turn(&mut self) {
        self.due().await;
        let started = Instant::now();
        self.state.send_modify(|state| {
            state.is_reading = true;
            state.started_at = Some(started);
        });
        let outcome = self.read().await;
        let (keys, pause) = match outcome {
            Ok((keys, fresh_for)) => (keys, fresh_for),
            Err(error) => (None, self.failed(&error)),
        };
        self.next = Instant::now() + pause;
        self.state.send_modify(|state| {
            state.is_reading = false;
            state.rounds = state.rounds.wrapping_add(1);
            if let Some(keys) = keys {
                state.keys = keys;
            }
        });
    }

    /// Waits until a read is due. A wish that was left from before the last read is none.
    async fn due(&self) {
        let begun = self.state.borrow().started_at;
        let wished_from = begun.map_or_else(Instant::now, |begun| begun + self.source.cooldown());
        loop {
            tokio::select! {
                () = sleep_until(self.next) => return,
                () = self.wish.notified() => {
                    if Instant::now() >= wished_from {
                        return;
                    }
                }
            }
        }
    }

    /// New keys, if there is something new, and how long they may be used.
    async fn read(&mut self) -> Result<(Option<KeySet>, Duration), JwksError> {
        let Reading { document, fresh_for } = self.source.read().await?;
        let keys =
            document.map(|document| document::parse(&document, self.algorithm)).transpose()?;
        self.source.accept();
        self.succeeded(keys.as_ref());
        Ok((keys, fresh_for))
    }

    fn succeeded(&mut self, keys: Option<&KeySet>) {
        self.count("ok");
        let issuer = self.issuer.clone();
        gauge!("turnbuckle_jwks_read_timestamp_seconds", "issuer" => issuer.clone())
            .set(self.clock.now().micros() as f64 / 1e6);
        if self.failures > 0 {
            tracing::info!(issuer, place = self.source.place(), "keys can be read again");
        }
        self.failures = 0;
        let Some(keys) = keys else {
            return;
        };
        if keys.is_empty() {
            let place = self.source.place();
            tracing::warn!(
                issuer,
                place,
                "the issuer publishes no key that can be used: its tokens are refused"
            );
        }
        gauge!("turnbuckle_jwks_keys", "issuer" => issuer).set(keys.len() as f64);
    }

    /// Says it once, counts it always, and tells how long to wait.
    fn failed(&mut self, error: &JwksError) -> Duration {
        self.count("failed");
        if self.failures == 0 {
            let (issuer, place) = (&self.issuer, self.source.place());
            tracing::warn!(issuer, place, %error, "keys cannot be read; the last good ones stay");
        }
        let pause = RETRY_FIRST.saturating_mul(2_u32.saturating_pow(self.failures));
        self.failures = self.failures.saturating_add(1);
        pause.min(RETRY_MAX)
    }

    fn count(&self, outcome: &'static str) {
        let issuer = self.issuer.clone();
        counter!("turnbuckle_jwks_reads_total", "issuer" => issuer, "outcome" => outcome)
            .increment(1);
    }
}
