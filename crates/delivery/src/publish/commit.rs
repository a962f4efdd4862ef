//! Group commit: publishes that wait at the same time share a transaction.
//!
//! There is no timer: a writer takes what has come in while the last commit was under way. One
//! caller alone waits for nobody; a thousand callers pay for a handful of commits.

use crate::engine::{Handoff, Input};
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc, oneshot};
use turnbuckle_domain::{Append, AppendResult, Error, EventLog, StoreError};

/// Requests that may wait for a commit. Past it callers wait for room: their latency is the
/// back-pressure.
const WAITING_MAX: usize = 4_096;
/// Events of one transaction.
const GROUP_EVENTS: usize = 500;
/// Payload bytes of one transaction: bounds the memory of one statement.
const GROUP_BYTES: usize = 8 * 1024 * 1024;

type Answer = Result<Vec<AppendResult>, StoreError>;

struct Request {
    appends: Vec<Append>,
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
}

impl CommitQueue {
    pub(crate) fn new(log: Arc<dyn EventLog>, handoffs: mpsc::Sender<Input>) -> (Self, Committer) {
        let (requests, receiver) = mpsc::channel(WAITING_MAX);
        let requests_in = Arc::new(Mutex::new(receiver));
        (Self { requests }, Committer { requests: requests_in, log, handoffs })
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
        let Some(first) = requests.recv().await else { return false };
        let (mut events, mut bytes) = size(&first);
        group.push(first);
        while events < GROUP_EVENTS && bytes < GROUP_BYTES {
            let Ok(next) = requests.try_recv() else { break };
            let (more_events, more_bytes) = size(&next);
            events += more_events;
            bytes += more_bytes;
            group.push(next);
        }
        true
    }

    async fn commit(&self, group: &mut Vec<Request>) {
        let appends: Vec<Append> =
            group.iter().flat_map(|request| request.appends.iter().cloned()).collect();
        metrics::histogram!("turnbuckle_commit_group_events").record(appends.len() as f64);
        match self.log.append(&appends).await {
            Ok(results) => self.accept(group, &appends, results).await,
            Err(error) if group.len() == 1 => reply(group.pop(), Err(error)),
            Err(StoreError::Internal(cause)) => {
                // One request may be what the store refuses: alone it fails alone (I13).
                tracing::error!(error = %cause, "a group was refused; committing one by one");
                for request in group.drain(..) {
                    let answer = self.log.append(&request.appends).await;
                    if let Ok(results) = &answer {
                        self.hand_off(&request.appends, results).await;
                    }
                    reply(Some(request), answer);
                }
            }
            Err(StoreError::Unavailable(cause)) => {
                tracing::warn!(error = %cause, "events were not stored");
                for request in group.drain(..) {
                    reply(Some(request), Err(StoreError::Unavailable("see the first".into())));
                }
            }
        }
    }

    async fn accept(
        &self,
        group: &mut Vec<Request>,
        appends: &[Append],
        results: Vec<AppendResult>,
    ) {
        // The hand-off first: the receiver may have the event before the publisher has its answer.
        self.hand_off(appends, &results).await;
        let mut results = results.into_iter();
        for request in group.drain(..) {
            let own = results.by_ref().take(request.appends.len()).collect();
            reply(Some(request), Ok(own));
        }
    }

    async fn hand_off(&self, appends: &[Append], results: &[AppendResult]) {
        let handoffs: Vec<Handoff> = appends
            .iter()
            .zip(results)
            .filter(|(append, result)| {
                **result == AppendResult::Accepted && !append.deliveries.is_empty()
            })
            .map(|(append, _)| Handoff {
                event: Arc::clone(&append.event),
                deliveries: append.deliveries.clone(),
            })
            .collect();
        if !handoffs.is_empty() {
            // When the dispatcher has ended, the next owner finds them in the store.
            drop(self.handoffs.send(Input::HandedOff(handoffs)).await);
        }
    }
}

fn size(request: &Request) -> (usize, usize) {
    let bytes = request.appends.iter().map(|append| append.event.data.len()).sum();
    (request.appends.len(), bytes)
}

fn reply(request: Option<Request>, answer: Answer) {
    if let Some(request) = request {
        // The caller may have gone; what was stored stays stored.
        drop(request.reply.send(answer));
    }
}

fn stopping() -> Error {
    Error::Unavailable { retry_after: StoreError::RETRY_AFTER, cause: None }
}
