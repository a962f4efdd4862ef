//! Keeps the index of sources in step with the configuration.

use super::SourceIndex;
use arc_swap::ArcSwap;
use async_trait::async_trait;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use turnbuckle_domain::{ConfigPosition, ConfigSource, Propagation, Revision, StoreError};

/// Polling is the truth: a change is in use everywhere within this plus one read.
const POLL: Duration = Duration::from_secs(1);
/// A writer waits at most this long for its own process to catch up; its write is durable anyway.
const APPLIED_WAIT: Duration = Duration::from_secs(5);

/// What readers hold: the present index, and a way to learn of the next one.
#[derive(Clone)]
pub struct SourceHandle {
    index: Arc<ArcSwap<SourceIndex>>,
    applied: watch::Receiver<Revision>,
    hint: Arc<Notify>,
}

impl SourceHandle {
    /// The present index.
    #[must_use]
    pub fn load(&self) -> Arc<SourceIndex> {
        self.index.load_full()
    }

    /// Waits until another revision is in use.
    pub async fn changed(&mut self) {
        if self.applied.changed().await.is_err() {
            // The follower has ended, which stops the process: nothing more will change.
            std::future::pending::<()>().await;
        }
    }
}

#[async_trait]
impl Propagation for SourceHandle {
    async fn applied(&self, revision: Revision) {
        self.hint.notify_one();
        let mut applied = self.applied.clone();
        let reached = applied.wait_for(|known| *known >= revision);
        if timeout(APPLIED_WAIT, reached).await.is_err() {
            tracing::warn!(config.revision = revision.0, "sources are not in use here yet");
        }
    }
}

/// The task that reads changes and swaps the index.
pub(crate) struct SourceFollower {
    config: Arc<dyn ConfigSource>,
    index: Arc<ArcSwap<SourceIndex>>,
    applied: watch::Sender<Revision>,
    hint: Arc<Notify>,
}

impl SourceFollower {
    /// Reads all sources once, so that no known one is ever answered as unknown.
    pub(crate) async fn start(
        config: Arc<dyn ConfigSource>,
    ) -> Result<(Self, SourceHandle), StoreError> {
        let (applied, receiver) = watch::channel(Revision::ZERO);
        let follower =
            Self { config, index: Arc::default(), applied, hint: Arc::new(Notify::new()) };
        follower.catch_up().await?;
        let handle = SourceHandle {
            index: Arc::clone(&follower.index),
            applied: receiver,
            hint: Arc::clone(&follower.hint),
        };
        Ok((follower, handle))
    }

    /// Follows until cancelled. A configuration that does not answer leaves the last index in use.
    pub(crate) async fn run(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.hint.notified() => {}
                () = self.config.changed() => {}
                () = tokio::time::sleep(POLL) => {}
            }
            if let Err(error) = self.catch_up().await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "sources cannot be read; the last ones stay in use"
                );
            }
        }
    }

    async fn catch_up(&self) -> Result<(), StoreError> {
        let present = self.index.load_full();
        let newest = self.config.position().await?;
        if newest.at != present.position() {
            self.move_to(present, newest.at).await?;
        }
        Ok(())
    }

    async fn move_to(
        &self,
        present: Arc<SourceIndex>,
        newest: ConfigPosition,
    ) -> Result<(), StoreError> {
        let known = present.position();
        // Another epoch or a lower revision means another store: what was built on it counts no more.
        let goes_on = newest.epoch == known.epoch && newest.revision >= known.revision;
        let mut base = if goes_on { Arc::clone(&present) } else { Arc::default() };
        let mut delta = self.config.changes_since(base.revision()).await?;
        if delta.epoch != known.epoch && base.revision() != Revision::ZERO {
            // It was exchanged after it said where it stands.
            base = Arc::default();
            delta = self.config.changes_since(Revision::ZERO).await?;
        }
        let next = base.apply(delta).keeping(&present);
        let revision = next.revision();
        self.index.store(Arc::new(next));
        metrics::gauge!("turnbuckle_ingress_config_revision").set(revision.0 as f64);
        self.applied.send_replace(revision);
        Ok(())
    }
}
