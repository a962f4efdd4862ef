//! Where the tokens come from: out of the configuration, on its way to whoever follows it.

use super::ApiTokens;
use async_trait::async_trait;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{Notify, watch},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use turnbuckle_domain::{
    Clock, ConfigDelta, ConfigPosition, ConfigSource, Propagation, Revision, SourcePosition,
    StoreError,
};

/// How often changes are looked for: a token that was revoked elsewhere is refused within this plus
/// one read.
const POLL: Duration = Duration::from_secs(1);

/// A writer waits at most this long for its own process to catch up; its write is durable anyway.
const APPLIED_WAIT: Duration = Duration::from_secs(5);

/// A source that shows the tokens in every change to [`ApiTokens`] before it hands the change on.
pub struct ObservedConfig {
    source: Arc<dyn ConfigSource>,
    tokens: ApiTokens,
    clock: Arc<dyn Clock>,
}

impl ObservedConfig {
    /// Watches what is read from this source. One reader only: its revisions are the tokens'.
    #[must_use]
    pub fn new(source: Arc<dyn ConfigSource>, tokens: ApiTokens, clock: Arc<dyn Clock>) -> Self {
        Self { source, tokens, clock }
    }
}

#[async_trait]
impl ConfigSource for ObservedConfig {
    async fn revision(&self) -> Result<Revision, StoreError> {
        self.source.revision().await
    }

    async fn changes_since(&self, known: Revision) -> Result<ConfigDelta, StoreError> {
        let delta = self.source.changes_since(known).await?;
        self.tokens.apply(known, &delta, self.clock.now());
        Ok(delta)
    }

    async fn position(&self) -> Result<SourcePosition, StoreError> {
        self.source.position().await
    }

    async fn changed(&self) {
        self.source.changed().await;
    }
}

/// Reads changes in a process where nobody else does.
pub struct ApiTokenFollower {
    source: ObservedConfig,
    applied: watch::Sender<ConfigPosition>,
    hint: Arc<Notify>,
}

/// Tells writers when this process uses their change.
#[derive(Clone)]
pub struct ApiTokenPropagation {
    applied: watch::Receiver<ConfigPosition>,
    hint: Arc<Notify>,
}

impl ApiTokenFollower {
    /// Reads all tokens once, so that no valid one is ever refused for not being known yet.
    ///
    /// # Errors
    /// When the source does not answer.
    pub async fn start(source: ObservedConfig) -> Result<(Self, ApiTokenPropagation), StoreError> {
        let (applied, receiver) = watch::channel(ConfigPosition::default());
        let follower = Self { source, applied, hint: Arc::default() };
        follower.catch_up().await?;
        let hint = Arc::clone(&follower.hint);
        Ok((follower, ApiTokenPropagation { applied: receiver, hint }))
    }

    /// Follows until cancelled. While the source does not answer, the last tokens stay in use.
    pub async fn run(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.hint.notified() => {}
                () = sleep(POLL) => {}
            }
            if let Err(error) = self.catch_up().await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "API tokens cannot be read; the last ones stay in use"
                );
            }
        }
    }

    async fn catch_up(&self) -> Result<(), StoreError> {
        let present = *self.applied.borrow();
        let newest = self.source.position().await?.at;
        if newest == present {
            return Ok(());
        }
        // Another epoch or a lower revision means another store, such as a restored one: read all anew.
        let goes_on = newest.epoch == present.epoch && newest.revision >= present.revision;
        let known = if goes_on { present.revision } else { Revision::ZERO };
        let mut delta = self.source.changes_since(known).await?;
        if delta.epoch != present.epoch && known != Revision::ZERO {
            // It was exchanged after it said where it stands.
            delta = self.source.changes_since(Revision::ZERO).await?;
        }
        let at = ConfigPosition { epoch: delta.epoch, revision: delta.revision };
        self.applied.send_replace(at);
        Ok(())
    }
}

#[async_trait]
impl Propagation for ApiTokenPropagation {
    async fn applied(&self, revision: Revision) {
        self.hint.notify_one();
        let mut applied = self.applied.clone();
        let reached = applied.wait_for(|known| known.revision >= revision);
        if timeout(APPLIED_WAIT, reached).await.is_err() {
            tracing::warn!(config.revision = revision.0, "configuration is not in use here yet");
        }
    }
}
