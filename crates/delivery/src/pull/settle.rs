//! The settler of a process: what consumers said, written in groups.

use super::limits::{SETTLE_BATCH, STORE_RETRY};
use std::{
    mem,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::{Notify, mpsc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use turnbuckle_domain::{
    LeaseExtension, PullQueue, PullSettlement, Settled, StoreError, Timestamp,
};

/// What an action was, for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// The consumer is done.
    Ack,
    /// The consumer gave it back.
    Return,
    /// The lease was prolonged up to this time.
    Extend(Timestamp),
    /// Of our own accord: nobody waits for an answer.
    Own,
}

/// One write.
pub(crate) enum Write {
    Settle(Box<PullSettlement>),
    Extend(LeaseExtension),
}

/// A write with where its answer goes.
pub(crate) struct Asked {
    pub(crate) write: Write,
    pub(crate) action: Action,
    pub(crate) lease_token: String,
    pub(crate) reply: mpsc::Sender<Written>,
}

/// Writes on their way to the store. Bounded by the number of streams, and by what each may have
/// unanswered.
#[derive(Default)]
pub(crate) struct PullWrites {
    waiting: Mutex<Vec<Asked>>,
    arrived: Notify,
}

impl PullWrites {
    pub(crate) fn push(&self, asked: Asked) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(asked);
        if waiting.len() == 1 {
            self.arrived.notify_one();
        }
    }

    /// Everything that waits, once something does.
    async fn take(&self) -> Vec<Asked> {
        loop {
            // Registered before looking, so that no arrival is missed.
            let arrived = self.arrived.notified();
            let taken = self.take_now();
            if !taken.is_empty() {
                return taken;
            }
            arrived.await;
        }
    }

    fn take_now(&self) -> Vec<Asked> {
        mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The answer: it is durable, or the lease had moved on.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) action: Action,
    pub(crate) lease_token: String,
    pub(crate) outcome: Settled,
}

/// The task that writes.
pub(crate) struct Settler {
    pub(crate) queue: Arc<dyn PullQueue>,
    pub(crate) writes: Arc<PullWrites>,
    /// The streams that ask.
    pub(crate) streams: TaskTracker,
}

impl Settler {
    /// Writes until the process stops and every stream has ended.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let streams = self.streams.clone();
        let ended = async move {
            stop.cancelled().await;
            streams.close();
            streams.wait().await;
        };
        tokio::pin!(ended);
        loop {
            tokio::select! {
                biased;
                taken = self.writes.take() => self.write_all(taken).await,
                () = &mut ended => break,
            }
        }
        self.write_all(self.writes.take_now()).await;
    }

    async fn write_all(&self, taken: Vec<Asked>) {
        let mut taken = taken.into_iter();
        while taken.len() > 0 {
            self.write(taken.by_ref().take(SETTLE_BATCH)).await;
        }
    }

    async fn write(&self, batch: impl Iterator<Item = Asked>) {
        let (mut settlements, mut extensions) = (Vec::new(), Vec::new());
        let (mut settled, mut extended) = (Vec::new(), Vec::new());
        for Asked { write, action, lease_token, reply } in batch {
            match write {
                Write::Settle(settlement) => {
                    settlements.push(*settlement);
                    settled.push((action, lease_token, reply));
                }
                Write::Extend(extension) => {
                    extensions.push(extension);
                    extended.push((action, lease_token, reply));
                }
            }
        }
        if !extensions.is_empty() {
            let outcomes = self.extend(&extensions).await;
            answer(extended, outcomes);
        }
        if !settlements.is_empty() {
            let outcomes = self.settle(&settlements).await;
            let stale = outcomes.iter().filter(|outcome| **outcome == Settled::Stale).count();
            metrics::counter!("turnbuckle_pull_settled_total").increment(outcomes.len() as u64);
            metrics::counter!("turnbuckle_pull_stale_total").increment(stale as u64);
            answer(settled, outcomes);
        }
    }

    /// Repeats until the store answers. After a lost answer the second writing finds the rows moved on
    /// and says so; the consumer may then get the delivery once more, never less. A batch that the store
    /// refuses is split, so that one bad row cannot hold back the others (I13).
    async fn settle(&self, batch: &[PullSettlement]) -> Vec<Settled> {
        let mut wait = STORE_RETRY.0;
        loop {
            match self.queue.settle(batch).await {
                Ok(outcomes) => return outcomes,
                Err(StoreError::Internal(cause)) if batch.len() > 1 => {
                    tracing::error!(error = %cause, "results of consumers were refused; writing them in halves");
                    let (left, right) = batch.split_at(batch.len() / 2);
                    let mut outcomes = Box::pin(self.settle(left)).await;
                    outcomes.extend(Box::pin(self.settle(right)).await);
                    return outcomes;
                }
                Err(StoreError::Internal(cause)) => {
                    tracing::error!(error = %cause, "a result of a consumer was refused");
                    return vec![Settled::Stale];
                }
                Err(StoreError::Unavailable(cause)) => {
                    tracing::warn!(error = %cause, "results of consumers wait for the store");
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(STORE_RETRY.1);
                }
            }
        }
    }

    /// Tried once: a lease that could not be prolonged may be prolonged again, while it lasts.
    async fn extend(&self, batch: &[LeaseExtension]) -> Vec<Settled> {
        self.queue.extend(batch).await.unwrap_or_else(|error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "leases were not prolonged");
            vec![Settled::Stale; batch.len()]
        })
    }
}

fn answer(asked: Vec<(Action, String, mpsc::Sender<Written>)>, outcomes: Vec<Settled>) {
    for ((action, lease_token, reply), outcome) in asked.into_iter().zip(outcomes) {
        // There is room for every answer that a stream may wait for. When it has ended, nobody waits.
        drop(reply.try_send(Written { action, lease_token, outcome }));
    }
}
