//! Keeps the index in step with the source.

use super::{ConfigIndex, index::Tools};
use crate::{egress::EgressGuard, key_meter::KeyMeter};
use arc_swap::ArcSwap;
use async_trait::async_trait;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use turnbuckle_domain::{
    ConfigPosition, ConfigSource, Propagation, Revision, SecretSealer, StoreError,
};

/// Polling is the truth: a change is in use everywhere within this plus one read.
const POLL: Duration = Duration::from_secs(1);
/// A writer waits at most this long for its own process to catch up; its write is durable anyway.
const APPLIED_WAIT: Duration = Duration::from_secs(5);

/// What readers hold: the present index, and a way to learn of the next one.
#[derive(Clone)]
pub struct ConfigHandle {
    index: Arc<ArcSwap<ConfigIndex>>,
    applied: watch::Receiver<Revision>,
    hint: Arc<Notify>,
    reads: Arc<ReadCounts>,
}

/// Reads of the source are numbered from one.
#[derive(Default)]
struct ReadCounts {
    begun: AtomicU64,
    completed: AtomicU64,
}

/// How far reading has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reads {
    /// Number of the last read that began.
    pub begun: u64,
    /// Number of the last read that completed: the index has everything committed before it began.
    pub completed: u64,
}

impl ConfigHandle {
    /// How far reading has come. Something committed before a moment is in the index once a read
    /// that began after that moment has completed; no clock is needed to tell.
    #[must_use]
    pub fn reads(&self) -> Reads {
        Reads {
            begun: self.reads.begun.load(Ordering::SeqCst),
            completed: self.reads.completed.load(Ordering::SeqCst),
        }
    }

    /// The revision in use.
    #[must_use]
    pub fn revision(&self) -> Revision {
        *self.applied.borrow()
    }

    /// Waits until a higher revision than this is in use.
    pub async fn above(&self, revision: Revision) {
        let mut applied = self.applied.clone();
        if applied.wait_for(|known| *known > revision).await.is_err() {
            // The follower has ended, which stops the process: nothing more will change.
            std::future::pending::<()>().await;
        }
    }

    /// The present index.
    #[must_use]
    pub fn load(&self) -> Arc<ConfigIndex> {
        self.index.load_full()
    }

    /// Waits until another revision is in use.
    pub async fn changed(&mut self) {
        if self.applied.changed().await.is_err() {
            // The follower has ended, which stops the process: nothing more will change.
            std::future::pending::<()>().await;
        }
    }

    /// Asks for a look at the source now.
    pub fn refresh(&self) {
        self.hint.notify_one();
    }
}

#[async_trait]
impl Propagation for ConfigHandle {
    async fn applied(&self, revision: Revision) {
        self.hint.notify_one();
        let mut applied = self.applied.clone();
        let reached = applied.wait_for(|known| *known >= revision);
        if timeout(APPLIED_WAIT, reached).await.is_err() {
            tracing::warn!(config.revision = revision.0, "configuration is not in use here yet");
        }
    }
}

/// The task that reads changes and swaps the index.
pub struct ConfigFollower {
    source: Arc<dyn ConfigSource>,
    tools: Tools,
    index: Arc<ArcSwap<ConfigIndex>>,
    applied: watch::Sender<Revision>,
    hint: Arc<Notify>,
    reads: Arc<ReadCounts>,
}

impl ConfigFollower {
    /// Reads all configuration once, so that whoever holds the handle never sees an empty index.
    ///
    /// # Errors
    /// When the source does not answer.
    pub(crate) async fn start(
        source: Arc<dyn ConfigSource>,
        guard: Arc<EgressGuard>,
        sealer: Arc<dyn SecretSealer>,
        meter: Arc<KeyMeter>,
    ) -> Result<(Self, ConfigHandle), StoreError> {
        let (applied, receiver) = watch::channel(Revision::ZERO);
        let follower = Self {
            source,
            tools: Tools { guard, sealer, meter },
            index: Arc::new(ArcSwap::from_pointee(ConfigIndex::default())),
            applied,
            hint: Arc::new(Notify::new()),
            reads: Arc::default(),
        };
        follower.catch_up().await?;
        let handle = ConfigHandle {
            index: Arc::clone(&follower.index),
            applied: receiver,
            hint: Arc::clone(&follower.hint),
            reads: Arc::clone(&follower.reads),
        };
        Ok((follower, handle))
    }

    /// Follows until cancelled. A source that does not answer leaves the last index in use.
    pub async fn run(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.hint.notified() => {}
                () = self.source.changed() => {}
                () = tokio::time::sleep(POLL) => {}
            }
            if let Err(error) = self.catch_up().await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "configuration cannot be read; the last one stays in use"
                );
            }
        }
    }

    async fn catch_up(&self) -> Result<(), StoreError> {
        let present = self.index.load_full();
        let number = self.reads.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let newest = self.source.position().await?;
        if newest.at != present.position() {
            self.move_to(present, newest.at).await?;
        }
        // Without the proof, what the index lacks may exist all the same.
        if newest.is_proven {
            self.reads.completed.store(number, Ordering::SeqCst);
        }
        Ok(())
    }

    async fn move_to(
        &self,
        present: Arc<ConfigIndex>,
        newest: ConfigPosition,
    ) -> Result<(), StoreError> {
        let known = present.position();
        // Another epoch or a lower revision means another store: one restored, or one that lost its
        // last changes in a fail-over; or one whose secrets are under another key. What was built
        // on the other is worth nothing then.
        let goes_on = newest.epoch == known.epoch && newest.revision >= known.revision;
        let mut base = if goes_on { present } else { Arc::default() };
        let mut delta = self.source.changes_since(base.revision()).await?;
        if delta.epoch != known.epoch && base.revision() != Revision::ZERO {
            // It was exchanged after it said where it stands.
            base = Arc::default();
            delta = self.source.changes_since(Revision::ZERO).await?;
        }
        let begins_anew = known.revision != Revision::ZERO && base.revision() == Revision::ZERO;
        let next = base.apply(delta, &self.tools);
        let revision = next.revision();
        if begins_anew {
            tracing::warn!(
                config.revision = revision.0,
                "another epoch of the configuration began: all of it was read anew"
            );
        }
        self.index.store(Arc::new(next));
        metrics::gauge!("turnbuckle_config_revision").set(revision.0 as f64);
        self.applied.send_replace(revision);
        Ok(())
    }
}
