//! Receipts on their way to the store: collected for a moment, written in groups.
//!
//! A receipt follows its answer, and is lost when the process dies in between, or when the store is
//! away for long: the event is what matters, and it is in the store before the answer. A dead letter
//! is different: it is all that is left of a request, so its answer waits for it.

use crate::memory::Share;
use metrics::counter;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_util::sync::CancellationToken;
use turnbuckle_domain::{Clock, Receipt, ReceiptLog, receipt_limits};

/// Receipts that wait. Past it new ones are lost, and counted: a flood must not grow memory.
const WAITING_MAX: usize = 8_192;
/// Receipts that somebody waits for. They have a way of their own: no flood of others is before them.
const AWAITED_MAX: usize = 1_024;
/// Receipts of one transaction.
const GROUP_MAX: usize = 500;
/// Longest time that a receipt waits for others: costs an operator nothing, and saves the store a
/// commit for each.
const LINGER: Duration = Duration::from_millis(100);
/// Longest wait for the store; what it did not take by then is lost.
const WRITE_WAIT: Duration = Duration::from_secs(10);
/// How often old receipts are looked for.
const SWEEP: Duration = Duration::from_secs(60);

/// A receipt, with the memory its payload takes.
pub(crate) struct Entry {
    pub(crate) receipt: Receipt,
    pub(crate) share: Option<Arc<Share>>,
}

struct Waiting {
    entry: Entry,
    /// Somebody whose answer waits for it.
    written: Option<oneshot::Sender<bool>>,
}

/// The way in.
#[derive(Clone)]
pub(crate) struct ReceiptQueue {
    left: mpsc::Sender<Waiting>,
    awaited: mpsc::Sender<Waiting>,
}

/// Writes them down.
pub(crate) struct ReceiptWriter {
    waiting: mpsc::Receiver<Waiting>,
    linger: Duration,
    log: Arc<dyn ReceiptLog>,
}

impl ReceiptQueue {
    /// The queue, the writer of what is left in it, and the writer of what is waited for.
    pub(crate) fn new(log: Arc<dyn ReceiptLog>) -> (Self, ReceiptWriter, ReceiptWriter) {
        let (left, waiting) = mpsc::channel(WAITING_MAX);
        let writer = ReceiptWriter { waiting, linger: LINGER, log: Arc::clone(&log) };
        let (awaited, waiting) = mpsc::channel(AWAITED_MAX);
        let prompt = ReceiptWriter { waiting, linger: Duration::ZERO, log };
        (Self { left, awaited }, writer, prompt)
    }

    /// Leaves a receipt to be written soon.
    pub(crate) fn leave(&self, entry: Entry) {
        if self.left.try_send(Waiting { entry, written: None }).is_err() {
            counter!("turnbuckle_ingress_receipts_lost_total", "reason" => "full").increment(1);
        }
    }

    /// Waits until a receipt is durable; false when it may not be.
    pub(crate) async fn write(&self, entry: Entry) -> bool {
        let (written, answer) = oneshot::channel();
        let sent = self.awaited.send(Waiting { entry, written: Some(written) }).await;
        sent.is_ok() && answer.await.unwrap_or(false)
    }
}

impl ReceiptWriter {
    /// Runs until every sender is gone and everything taken is written.
    pub(crate) async fn run(mut self) {
        let mut group: Vec<Waiting> = Vec::new();
        while let Some(first) = self.waiting.recv().await {
            group.push(first);
            if !self.linger.is_zero() {
                let collecting = async {
                    while group.len() < GROUP_MAX {
                        let Some(next) = self.waiting.recv().await else { return };
                        group.push(next);
                    }
                };
                // Whatever has come by then is written.
                drop(timeout(self.linger, collecting).await);
            }
            while group.len() < GROUP_MAX {
                let Ok(next) = self.waiting.try_recv() else { break };
                group.push(next);
            }
            self.write(&mut group).await;
        }
    }

    async fn write(&self, group: &mut Vec<Waiting>) {
        let mut receipts = Vec::with_capacity(group.len());
        let mut replies = Vec::new();
        // Memory is given back when the group is written.
        let mut shares = Vec::with_capacity(group.len());
        for Waiting { entry, written } in group.drain(..) {
            receipts.push(entry.receipt);
            shares.push(entry.share);
            replies.extend(written);
        }
        let count = receipts.len() as u64;
        let ok = match timeout(WRITE_WAIT, self.log.record_receipts(&receipts)).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    receipts = count,
                    "receipts were not written"
                );
                false
            }
            Err(_) => false,
        };
        if ok {
            counter!("turnbuckle_ingress_receipts_total").increment(count);
        } else {
            counter!("turnbuckle_ingress_receipts_lost_total", "reason" => "store")
                .increment(count);
        }
        for reply in replies {
            if reply.send(ok).is_err() {
                tracing::debug!("whoever waited for a receipt has gone");
            }
        }
    }
}

/// Takes old receipts away until told to stop.
pub(crate) async fn sweep(
    log: Arc<dyn ReceiptLog>,
    clock: Arc<dyn Clock>,
    kept: Duration,
    stop: CancellationToken,
) {
    let mut ticks = interval(SWEEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(ticks.tick()).await.is_some() {
        // As many bounded runs as it takes.
        loop {
            let now = clock.now();
            match log.prune_receipts(now - kept, now).await {
                Ok(pruned) if pruned >= u64::from(receipt_limits::PRUNED_AT_ONCE) => {}
                Ok(_) => break,
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "old receipts were not taken away");
                    break;
                }
            }
        }
    }
}
