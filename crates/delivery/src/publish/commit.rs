//! Group commit: publishes that wait at the same time share a transaction.
//!
//! There is no timer: a writer takes what has come in while the last commit was under way. One
//! caller alone waits for nobody; a thousand callers pay for a handful of commits.

use super::order;
use crate::engine::{Handoff, Input};
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc, oneshot};
use turnbuckle_domain::{Append, AppendResult, Error, EventLog, StoreError};

/// Requests that may wait for a commit. Past it callers wait for room: their latency is the
/// back-pressure.
const WAITING_MAX: usize = 4_096;
/// Rows of one transaction, events and deliveries. What comes in meanwhile waits for the next.
pub(super) const GROUP_ROWS: usize = 1_000;
/// Payload bytes of one transaction: bounds the memory of one statement.
const GROUP_BYTES: usize = 8 * 1024 * 1024;

type Answer = Result<Vec<AppendResult>, StoreError>;

struct Request {
    appends: Vec<Append>,
    reply: oneshot::Sender<Answer>,
}

/// Somebody who waits for a commit.
struct Waiting {
    events: usize,
    reply: oneshot::Sender<Answer>,
}

/// The way in.
#[derive(Clone)]
pub(crate) struct CommitQueue {
    requests: mpsc::Sender<Request>,
}

/// Takes requests in groups. Several may run: while one commits, another collects.
#[derive(Clone)]
pub(crate) struct Committer {
    requests: Arc<Mutex<mpsc::Receiver<Request>>>,
    log: Arc<dyn EventLog>,
    /// The dispatcher of this process.
    handoffs: mpsc::Sender<Input>,
    group_events: metrics::Histogram,
}

impl CommitQueue {
    pub(crate) fn new(log: Arc<dyn EventLog>, handoffs: mpsc::Sender<Input>) -> (Self, Committer) {
        let (requests, receiver) = mpsc::channel(WAITING_MAX);
        let requests_in = Arc::new(Mutex::new(receiver));
        let group_events = metrics::histogram!("turnbuckle_commit_group_events");
        (Self { requests }, Committer { requests: requests_in, log, handoffs, group_events })
    }

    /// Commits events together with whatever else waits. Durable when it returns `Ok`.
    pub(crate) async fn commit(&self, appends: Vec<Append>) -> Result<Vec<AppendResult>, Error> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(Request { appends, reply }).await.map_err(|_| stopping())?;
        Ok(answer.await.map_err(|_| stopping())??)
    }
}

impl Committer {
    /// Runs until every sender is gone and everything taken is answered.
    pub(crate) async fn run(self) {
        let mut group = Vec::new();
        while self.collect(&mut group).await {
            self.commit(&mut group).await;
        }
    }

    /// Fills a group; false at the end.
    async fn collect(&self, group: &mut Vec<Request>) -> bool {
        let mut requests = self.requests.lock().await;
        let Some(first) = requests.recv().await else {
            return false;
        };
        let (mut events, mut bytes) = size(&first);
        group.push(first);
        while events < GROUP_ROWS && bytes < GROUP_BYTES {
            let Ok(next) = requests.try_recv() else { break };
            let (more_events, more_bytes) = size(&next);
            events += more_events;
            bytes += more_bytes;
            group.push(next);
        }
        true
    }

    async fn commit(&self, group: &mut Vec<Request>) {
        let mut appends: Vec<Append> = Vec::new();
        let mut waiting: Vec<Waiting> = Vec::with_capacity(group.len());
        for Request { appends: own, reply } in group.drain(..) {
            waiting.push(Waiting { events: own.len(), reply });
            appends.extend(own);
        }
        self.group_events.record(appends.len() as f64);
        match self.log.append(&appends).await {
            Ok(results) => self.accept(waiting, appends, results).await,
            Err(StoreError::Internal(cause)) if waiting.len() > 1 => {
                // One request may be what the store refuses: alone it fails alone (I13).
                tracing::error!(error = %cause, "a group was refused; committing one by one");
                self.commit_each(waiting, appends).await;
            }
            Err(error) => fail(waiting, error),
        }
    }

    async fn commit_each(&self, waiting: Vec<Waiting>, mut appends: Vec<Append>) {
        for one in waiting {
            let rest = appends.split_off(one.events.min(appends.len()));
            let own = std::mem::replace(&mut appends, rest);
            match self.log.append(&own).await {
                Ok(results) => self.accept(vec![one], own, results).await,
                Err(error) => fail(vec![one], error),
            }
        }
    }

    async fn accept(
        &self,
        waiting: Vec<Waiting>,
        appends: Vec<Append>,
        results: Vec<AppendResult>,
    ) {
        // The hand-off first: the receiver may have the event before the publisher has its answer.
        self.hand_off(appends, &results).await;
        let mut results = results.into_iter();
        for Waiting { events, reply } in waiting {
            // The caller may have gone; what was stored stays stored.
            drop(reply.send(Ok(results.by_ref().take(events).collect())));
        }
    }

    async fn hand_off(&self, appends: Vec<Append>, results: &[AppendResult]) {
        let (mut handoffs, mut due) = (Vec::with_capacity(appends.len()), Vec::new());
        for (append, result) in appends.into_iter().zip(results) {
            match result {
                AppendResult::Accepted if !append.deliveries.is_empty() => {
                    let Append { event, deliveries, .. } = append;
                    handoffs.push(Handoff { event, deliveries });
                }
                AppendResult::Placed(placed) => {
                    order::hand_off(append, placed, &mut handoffs, &mut due);
                }
                _ => {}
            }
        }
        // When the dispatcher has ended, the next owner finds them in the store.
        if !handoffs.is_empty() {
            drop(self.handoffs.send(Input::HandedOff(handoffs)).await);
        }
        if !due.is_empty() {
            drop(self.handoffs.send(Input::Due(due)).await);
        }
    }
}

fn size(request: &Request) -> (usize, usize) {
    let bytes = request.appends.iter().map(|append| append.event.data.len()).sum();
    // A delivery is a row as an event is.
    let deliveries: usize = request.appends.iter().map(|append| append.deliveries.len()).sum();
    (request.appends.len() + deliveries, bytes)
}

/// Everybody who waited gets the kind of failure; the first one carries its cause to the log.
fn fail(waiting: Vec<Waiting>, error: StoreError) {
    let again = |error: &StoreError| match error {
        StoreError::Unavailable(_) => StoreError::Unavailable("it failed for a whole group".into()),
        StoreError::Internal(_) => StoreError::Internal("it failed for a whole group".into()),
    };
    let mut error = error;
    for Waiting { reply, .. } in waiting {
        let next = again(&error);
        // The caller may have gone.
        drop(reply.send(Err(std::mem::replace(&mut error, next))));
    }
}

fn stopping() -> Error {
    Error::Unavailable { retry_after: StoreError::RETRY_AFTER, cause: None }
}
