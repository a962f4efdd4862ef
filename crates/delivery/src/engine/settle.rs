//! The settle writer: results in groups, repeated until the store answers.

use super::{
    input::Input,
    limits::{REFUSED_RESULT_RETRY, SETTLE_BATCH, STORE_RETRY},
};
use std::{
    mem,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::{Notify, mpsc};
use turnbuckle_domain::{DeliveryQueue, EndpointId, Settled, Settlement, StoreError, WorkerId};

/// Results on their way to the store. Bounded by what the dispatcher lets start.
#[derive(Default)]
pub(crate) struct SettleQueue {
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Default)]
struct Waiting {
    results: Vec<(EndpointId, Settlement)>,
    closed: bool,
}

impl SettleQueue {
    pub(crate) fn push(&self, endpoint: EndpointId, settlement: Settlement) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.results.push((endpoint, settlement));
        if waiting.results.len() == 1 {
            self.arrived.notify_one();
        }
    }

    /// Lets the writer end once everything is written.
    pub(crate) fn close(&self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.arrived.notify_one();
    }

    async fn take(&self) -> Option<Vec<(EndpointId, Settlement)>> {
        loop {
            // Registered before looking, so that no arrival is missed.
            let arrived = self.arrived.notified();
            {
                let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                if !waiting.results.is_empty() {
                    return Some(mem::take(&mut waiting.results));
                }
                if waiting.closed {
                    return None;
                }
            }
            arrived.await;
        }
    }
}

/// The task that writes results.
pub(crate) struct SettleWriter {
    pub(crate) worker: WorkerId,
    pub(crate) queue: Arc<dyn DeliveryQueue>,
    pub(crate) results: Arc<SettleQueue>,
    pub(crate) inputs: mpsc::Sender<Input>,
}

impl SettleWriter {
    /// Writes until the queue is closed and empty.
    pub(crate) async fn run(self) {
        let mut refused: Vec<(EndpointId, Settlement)> = Vec::new();
        loop {
            let taken = if refused.is_empty() {
                self.results.take().await
            } else {
                // What the store refused is offered again now and then, beside everything else.
                let waited = tokio::time::timeout(REFUSED_RESULT_RETRY, self.results.take());
                waited.await.unwrap_or_else(|_| Some(mem::take(&mut refused)))
            };
            let Some(results) = taken else { break };
            let mut results = results.into_iter();
            while results.len() > 0 {
                let chunk: Vec<(EndpointId, Settlement)> =
                    results.by_ref().take(SETTLE_BATCH).collect();
                let left = self.write_all(chunk).await;
                refused.extend(left);
            }
        }
        if !refused.is_empty() {
            tracing::error!(
                count = refused.len(),
                "results the store refused are lost; sent again"
            );
        }
    }

    /// Writes a batch and tells the dispatcher; answers what the store refused. A delivery whose
    /// result is refused stays held: it must not be sent again and again.
    async fn write_all(
        &self,
        chunk: Vec<(EndpointId, Settlement)>,
    ) -> Vec<(EndpointId, Settlement)> {
        let (endpoints, batch): (Vec<EndpointId>, Vec<Settlement>) = chunk.into_iter().unzip();
        let outcomes = self.write(&batch).await;
        count(&outcomes);
        let (mut settled, mut refused) = (Vec::with_capacity(batch.len()), Vec::new());
        for ((endpoint, settlement), outcome) in endpoints.into_iter().zip(batch).zip(outcomes) {
            match outcome {
                Some(_) => settled.push((endpoint, settlement.delivery)),
                None => refused.push((endpoint, settlement)),
            }
        }
        // When the dispatcher has ended nobody needs to know; the rest is still worth writing.
        drop(self.inputs.send(Input::Settled(settled)).await);
        refused
    }

    /// Repeats until the store answers. Writing twice is harmless: the second time the rows have
    /// moved on. A batch the store refuses as a whole is split, so that one bad row cannot hold back
    /// the others (I13); one refused alone has no outcome.
    async fn write(&self, batch: &[Settlement]) -> Vec<Option<Settled>> {
        let mut wait = STORE_RETRY.0;
        loop {
            match self.queue.settle(self.worker, batch).await {
                Ok(outcomes) => return outcomes.into_iter().map(Some).collect(),
                Err(StoreError::Internal(cause)) if batch.len() > 1 => {
                    tracing::error!(error = %cause, "a settle batch was refused; writing it in halves");
                    let (left, right) = batch.split_at(batch.len() / 2);
                    let mut outcomes = Box::pin(self.write(left)).await;
                    outcomes.extend(Box::pin(self.write(right)).await);
                    return outcomes;
                }
                Err(StoreError::Internal(cause)) => {
                    let delivery = batch[0].delivery;
                    tracing::error!(error = %cause, delivery.id = %delivery, "a result was refused");
                    metrics::counter!("turnbuckle_settle_refused_total").increment(1);
                    return vec![None];
                }
                Err(StoreError::Unavailable(cause)) => {
                    tracing::warn!(error = %cause, "results wait for the store");
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(STORE_RETRY.1);
                }
            }
        }
    }
}

fn count(outcomes: &[Option<Settled>]) {
    let stale = outcomes.iter().filter(|outcome| **outcome == Some(Settled::Stale)).count();
    metrics::counter!("turnbuckle_settle_total").increment(outcomes.len() as u64);
    if stale > 0 {
        metrics::counter!("turnbuckle_settle_stale_total").increment(stale as u64);
    }
}
