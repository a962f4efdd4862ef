//! Where the store stands: asked once for all streams of a process.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout},
};
use turnbuckle_domain::{
    ConfigPosition, ConfigSource, Epoch, IdGenerator, NodeReports, StoreError,
};

/// Polling is the truth: what another control plane wrote is seen within this.
const POLL: Duration = Duration::from_secs(1);
/// Longest wait for a read: then the store counts as silent, and the next read is tried.
const READ_WAIT: Duration = Duration::from_secs(5);
/// Longest wait of somebody who needs a read that begins now: it may have to wait for another one.
const FRESH_WAIT: Duration = Duration::from_secs(11);

/// What nodes claim begins an epoch at most this often: one suffices, since it brings every node to
/// what the store has, and a node that is wrong must not make all others read everything again and
/// again.
const CLAIM_GAP: Duration = Duration::from_secs(60);

/// The store did not answer in time.
#[derive(Debug, thiserror::Error)]
#[error("the position of the configuration was not read in time")]
struct NotRead;

/// What was read last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Where the store stood; none before the first answer.
    pub(super) at: Option<ConfigPosition>,
    /// Number of the read that told so. A higher number is a later read.
    pub(super) read: u64,
}

pub(super) struct Tailer {
    source: Arc<dyn ConfigSource>,
    nodes: Arc<dyn NodeReports>,
    ids: IdGenerator,
    hint: Notify,
    /// Number of the last read that began.
    begun: AtomicU64,
    seen: watch::Sender<Seen>,
    claims: Claims,
}

/// How often nodes are believed.
#[derive(Default)]
struct Claims {
    followed_at: Mutex<Option<Instant>>,
}

impl Claims {
    /// Whether a claim that comes now is followed; notes it when it is.
    fn follows(&self, now: Instant) -> bool {
        let mut last = self.followed_at.lock().unwrap_or_else(PoisonError::into_inner);
        let follows = last.is_none_or(|last| now.duration_since(last) >= CLAIM_GAP);
        if follows {
            *last = Some(now);
        }
        follows
    }
}

impl Tailer {
    pub(super) fn new(
        source: Arc<dyn ConfigSource>,
        nodes: Arc<dyn NodeReports>,
        ids: IdGenerator,
    ) -> Self {
        let (hint, begun, seen) = (Notify::new(), AtomicU64::new(0), watch::Sender::default());
        Self { source, nodes, ids, hint, begun, seen, claims: Claims::default() }
    }

    pub(super) fn hint(&self) {
        self.hint.notify_one();
    }

    /// Number of the last read that began.
    pub(super) fn begun(&self) -> u64 {
        self.begun.load(Ordering::SeqCst)
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Seen> {
        self.seen.subscribe()
    }

    /// Follows until dropped.
    pub(super) async fn run(&self) {
        let mut is_silent = false;
        loop {
            match self.read().await {
                Ok(()) => is_silent = false,
                Err(error) if !is_silent => {
                    is_silent = true;
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "the configuration cannot be read; nodes go on with what they have"
                    );
                }
                Err(_) => {}
            }
            // Either way it is time to look.
            drop(timeout(POLL, self.hint.notified()).await);
        }
    }

    async fn read(&self) -> Result<(), StoreError> {
        let read = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let position = timeout(READ_WAIT, self.source.position()).await;
        let at = position.map_err(|_| StoreError::Unavailable(NotRead.into()))??.at;
        let before = self.seen.borrow().at;
        if let Some(before) = before
            && before.epoch == at.epoch
            && before.revision > at.revision
        {
            return self.set_back(before, at).await;
        }
        self.seen.send_replace(Seen { at: Some(at), read });
        Ok(())
    }

    /// The newest state that a read tells which begins after the call.
    pub(super) async fn fresh(&self) -> Result<ConfigPosition, StoreError> {
        let wanted = self.begun() + 1;
        let mut seen = self.subscribe();
        self.hint();
        let not_read = || StoreError::Unavailable(NotRead.into());
        let told = timeout(FRESH_WAIT, seen.wait_for(|seen| seen.read >= wanted)).await;
        let seen = *told.map_err(|_| not_read())?.map_err(|_| not_read())?;
        seen.at.ok_or_else(not_read)
    }

    /// As [`Tailer::set_back`], by the word of a node.
    pub(super) async fn claimed(
        &self,
        known: ConfigPosition,
        now: ConfigPosition,
    ) -> Result<(), StoreError> {
        match self.claims.follows(Instant::now()) {
            true => self.set_back(known, now).await,
            false => Ok(()),
        }
    }

    /// Somebody has seen a higher revision of this epoch than the store has now: it was restored, or
    /// lost its last changes in a fail-over. Revisions that come would be taken for ones that are
    /// known, so another epoch begins, and every node reads everything anew.
    pub(super) async fn set_back(
        &self,
        known: ConfigPosition,
        now: ConfigPosition,
    ) -> Result<(), StoreError> {
        tracing::error!(
            config.revision = now.revision.0,
            known.revision = known.revision.0,
            "the store was set back: another epoch of the configuration begins"
        );
        self.nodes.begin_epoch(known.epoch, Epoch::from_uuid(self.ids.uuid())).await?;
        self.hint();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_claim_is_followed_and_the_next_only_after_a_while() {
        let (claims, begun) = (Claims::default(), Instant::now());
        assert!(claims.follows(begun));
        assert!(!claims.follows(begun + Duration::from_secs(1)));
        assert!(!claims.follows(begun + CLAIM_GAP / 2));
        assert!(claims.follows(begun + CLAIM_GAP));
        assert!(!claims.follows(begun + CLAIM_GAP));
    }
}
