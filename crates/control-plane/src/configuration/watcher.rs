//! One stream: what its node knows, and what it is told next.

use super::{Distribution, outgoing::Outgoing, tailer::Seen};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{OwnedSemaphorePermit, watch},
    time::{Instant, sleep_until},
};
use turnbuckle_domain::{ConfigPosition, Error, NodeRole, Revision};
use turnbuckle_proto::v1::{Checkpoint, WatchResponse, watch_response::Message};

/// A stream ends after this, give or take a fifth, so that nodes spread anew over control planes.
const LIFE: Duration = Duration::from_secs(30 * 60);
/// How much earlier or later.
const LIFE_JITTER: f64 = 0.2;
/// Nothing new is told this often, after a read that found nothing: well inside the 5 s that the
/// contract promises, with a poll in between.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(3);

/// Feeds one stream. It works only when it is asked: a slow node finds one larger step.
pub(crate) struct Watcher {
    distribution: Arc<Distribution>,
    role: NodeRole,
    known: Option<ConfigPosition>,
    outgoing: Option<Outgoing>,
    seen: watch::Receiver<Seen>,
    /// Number of the read that the node was last told of.
    told: u64,
    /// Reads above this number began after the node had what it knows.
    known_since: u64,
    checkpoint_at: Instant,
    end_at: Instant,
    _slot: OwnedSemaphorePermit,
}

impl Watcher {
    pub(super) fn new(
        distribution: Arc<Distribution>,
        role: NodeRole,
        known: Option<ConfigPosition>,
        slot: OwnedSemaphorePermit,
    ) -> Self {
        let seen = distribution.tailer.subscribe();
        // What was read before the call came proves nothing to this node.
        let begun = distribution.tailer.begun();
        distribution.hint();
        let spread = 1.0 + LIFE_JITTER * (2.0 * distribution.random.unit() - 1.0);
        let now = Instant::now();
        metrics::gauge!("turnbuckle_watch_streams").increment(1.0);
        Self {
            distribution,
            role,
            known,
            outgoing: None,
            seen,
            told: begun,
            known_since: begun,
            checkpoint_at: now,
            end_at: now + LIFE.mul_f64(spread),
            _slot: slot,
        }
    }

    /// The next message; none when the stream is to end.
    pub(crate) async fn next(&mut self) -> Result<Option<WatchResponse>, Error> {
        let stop = self.distribution.stop.clone();
        let message = stop.run_until_cancelled(self.message()).await.transpose()?.flatten();
        if let Some(message) = &message {
            metrics::counter!("turnbuckle_watch_messages_total", "kind" => kind(message))
                .increment(1);
        }
        Ok(message.map(|message| WatchResponse { message: Some(message) }))
    }

    async fn message(&mut self) -> Result<Option<Message>, Error> {
        loop {
            if let Some(outgoing) = &mut self.outgoing {
                if let Some(message) = outgoing.next() {
                    return Ok(Some(message));
                }
                self.outgoing = None;
            }
            if Instant::now() >= self.end_at {
                return Ok(None);
            }
            let seen = *self.seen.borrow_and_update();
            // A step that the store does not give is tried again with the next read.
            if let Some(at) = seen.at.filter(|_| seen.read > self.told)
                && let Some(message) = self.look(at, seen.read).await
            {
                return Ok(Some(message));
            }
            if self.outgoing.is_none() && !self.wait().await {
                return Ok(None);
            }
        }
    }

    /// Compares what the node knows with where the store stands. Prepares a step, or gives the
    /// message that there is none.
    async fn look(&mut self, at: ConfigPosition, read: u64) -> Option<Message> {
        let step = match self.known {
            Some(known) if known.epoch == at.epoch && known.revision == at.revision => {
                if Instant::now() < self.checkpoint_at {
                    return None;
                }
                self.is_told(read);
                return Some(Message::Checkpoint(Checkpoint { revision: at.revision.0 }));
            }
            Some(known) if known.epoch == at.epoch && known.revision > at.revision => {
                // An older read may end later. One that began after the node had its revision
                // tells that the store has less than it once had.
                if read <= self.known_since {
                    return None;
                }
                self.distribution.tailer.claimed(known, at).await.map(|()| None)
            }
            Some(known) if known.epoch == at.epoch => self.changes(known, at).await.map(Some),
            Some(_) => self.snapshot(at, Some("another epoch has begun")).await.map(Some),
            None => self.snapshot(at, None).await.map(Some),
        };
        match step {
            Ok(step) => {
                self.is_told(read);
                self.known_since = self.distribution.tailer.begun();
                self.outgoing = step;
            }
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "changes of the configuration cannot be read; the node goes on with what it has"
                );
            }
        }
        None
    }

    async fn changes(
        &mut self,
        known: ConfigPosition,
        at: ConfigPosition,
    ) -> Result<Outgoing, turnbuckle_domain::StoreError> {
        let changes = &self.distribution.changes;
        let encoded = changes.since(self.role, known.revision, at).await?;
        if encoded.at.epoch != known.epoch {
            return self.snapshot(encoded.at, Some("another epoch has begun")).await;
        }
        self.known = Some(encoded.at);
        Ok(Outgoing::changes(encoded, known.revision))
    }

    async fn snapshot(
        &mut self,
        at: ConfigPosition,
        reason: Option<&str>,
    ) -> Result<Outgoing, turnbuckle_domain::StoreError> {
        let changes = &self.distribution.changes;
        let encoded = changes.since(self.role, Revision::ZERO, at).await?;
        self.known = Some(encoded.at);
        Ok(Outgoing::snapshot(encoded, reason))
    }

    fn is_told(&mut self, read: u64) {
        self.told = read;
        self.checkpoint_at = Instant::now() + CHECKPOINT_EVERY;
    }

    /// Waits for another read, or the end. False when nothing more will be read.
    async fn wait(&mut self) -> bool {
        tokio::select! {
            read = self.seen.changed() => read.is_ok(),
            () = sleep_until(self.end_at) => true,
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        metrics::gauge!("turnbuckle_watch_streams").decrement(1.0);
    }
}

const fn kind(message: &Message) -> &'static str {
    match message {
        Message::ResyncRequired(_) => "resync",
        Message::SnapshotBegin(_) => "snapshot-begin",
        Message::SnapshotChunk(_) => "snapshot-chunk",
        Message::SnapshotEnd(_) => "snapshot-end",
        Message::Changes(_) => "changes",
        Message::Checkpoint(_) => "checkpoint",
    }
}
