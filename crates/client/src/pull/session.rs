//! One stream of a consumer, from its opening to its end.

use super::{Consumer, Delivery, Reply, told_to_stop};
use crate::proto::{
    PullActions, PullExtension, PullOpen, PullReturn, PullStreamRequest, PullStreamResponse,
    PulledDelivery, pull_stream_request::Message as Out, pull_stream_response::Message as In,
};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, watch},
    task::{Id, JoinError, JoinSet},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

/// Messages on their way to the server. Handlers wait past it.
const WAITING: usize = 64;
/// Time for the server to answer what was said last.
const FAREWELL: Duration = Duration::from_secs(10);
/// A lease is prolonged when this part of it has passed.
const PROLONG_AFTER: f64 = 0.5;

pub(super) struct Session {
    said: mpsc::Sender<PullStreamRequest>,
    told: Streaming<PullStreamResponse>,
    lease: Duration,
}

/// How a session ended.
pub(super) enum Ended {
    /// As it was asked to.
    Stopped,
    Broken {
        status: Status,
        /// Whether deliveries came before.
        has_served: bool,
    },
}

/// The handlers that run, with the leases they work under.
#[derive(Default)]
struct Handlers {
    tasks: JoinSet<(String, Reply)>,
    leases: HashMap<Id, String>,
}

impl Session {
    pub(super) async fn open(consumer: &Consumer) -> Result<Self, Status> {
        let (said, messages) = mpsc::channel(WAITING);
        let open = PullOpen {
            endpoint: consumer.endpoint.clone(),
            max_outstanding: consumer.concurrency.into(),
            lease: consumer.lease.map(duration),
            ..PullOpen::default()
        };
        // The channel is empty: there is room.
        drop(said.try_send(PullStreamRequest { message: Some(Out::Open(open)) }));
        let stream = consumer.client.pulls().stream(ReceiverStream::new(messages)).await?;
        let mut told = stream.into_inner();
        let first = told.message().await?.and_then(|first| first.message);
        let Some(In::Opened(opened)) = first else {
            return Err(Status::unavailable("the server ended the stream before it was open"));
        };
        let lease = opened.lease.unwrap_or_default();
        let lease = Duration::try_from(lease).unwrap_or_default().max(Duration::from_secs(1));
        Ok(Self { said, told, lease })
    }

    pub(super) async fn serve<H, F>(
        mut self,
        handler: &Arc<H>,
        stopped: &mut watch::Receiver<bool>,
    ) -> Ended
    where
        H: Fn(Delivery) -> F + Send + Sync + 'static,
        F: Future<Output = Reply> + Send + 'static,
    {
        let mut handlers = Handlers::default();
        let mut is_stopping = false;
        let mut has_served = false;
        loop {
            if is_stopping && handlers.tasks.is_empty() {
                return self.close().await;
            }
            tokio::select! {
                message = self.told.message() => match message {
                    Ok(Some(PullStreamResponse { message: Some(In::Deliveries(pulled)) })) => {
                        has_served = true;
                        // What comes while stopping goes back when the stream is closed.
                        for delivery in pulled.deliveries.into_iter().filter(|_| !is_stopping) {
                            self.start(&mut handlers, handler, delivery);
                        }
                    }
                    // Answers to what was said, and what a newer server may say.
                    Ok(Some(_)) => {}
                    Ok(None) => return broken(handlers, ended_early(), has_served).await,
                    Err(status) => return broken(handlers, status, has_served).await,
                },
                Some(ended) = handlers.tasks.join_next_with_id() => {
                    let actions = handlers.actions(ended);
                    // When the server is gone, reading says so.
                    drop(self.said.send(actions).await);
                }
                () = told_to_stop(stopped), if !is_stopping => is_stopping = true,
            }
        }
    }

    fn start<H, F>(&self, handlers: &mut Handlers, handler: &Arc<H>, pulled: PulledDelivery)
    where
        H: Fn(Delivery) -> F + Send + Sync + 'static,
        F: Future<Output = Reply> + Send + 'static,
    {
        let lease_token = pulled.lease_token.clone();
        let (handler, said, lease) = (Arc::clone(handler), self.said.clone(), self.lease);
        let token = lease_token.clone();
        let task = handlers.tasks.spawn(async move {
            let handling = handler(Delivery(pulled));
            tokio::pin!(handling);
            loop {
                tokio::select! {
                    reply = &mut handling => return (token, reply),
                    () = tokio::time::sleep(lease.mul_f64(PROLONG_AFTER)) => {
                        // A full channel is tried again; one that is closed leads nowhere.
                        drop(said.try_send(prolonging(&token, lease)));
                    }
                }
            }
        });
        handlers.leases.insert(task.id(), lease_token);
    }

    /// Says that nothing more comes, and hears the answers to what was said.
    async fn close(self) -> Ended {
        let Self { said, mut told, .. } = self;
        drop(said);
        let last = async { while let Ok(Some(_)) = told.message().await {} };
        // A server that does not answer has what it has.
        drop(tokio::time::timeout(FAREWELL, last).await);
        Ended::Stopped
    }
}

impl Handlers {
    fn actions(&mut self, ended: Result<(Id, (String, Reply)), JoinError>) -> PullStreamRequest {
        let mut actions = PullActions::default();
        match ended {
            Ok((id, (lease_token, reply))) => {
                self.leases.remove(&id);
                match reply {
                    Reply::Ack => actions.acks.push(lease_token),
                    Reply::Nack(delay) => {
                        let delay = delay.map(duration);
                        actions.returns.push(PullReturn { lease_token, delay });
                    }
                }
            }
            // It panicked: another try may do better.
            Err(error) => {
                let lease_token = self.leases.remove(&error.id()).unwrap_or_default();
                actions.returns.push(PullReturn { lease_token, delay: None });
            }
        }
        PullStreamRequest { message: Some(Out::Actions(actions)) }
    }
}

/// Lets what runs come to its end, so that no delivery is handled twice at once here.
async fn broken(mut handlers: Handlers, status: Status, has_served: bool) -> Ended {
    while handlers.tasks.join_next().await.is_some() {}
    Ended::Broken { status, has_served }
}

fn ended_early() -> Status {
    Status::unavailable("the server ended the stream")
}

fn prolonging(lease_token: &str, lease: Duration) -> PullStreamRequest {
    let extension =
        PullExtension { lease_token: lease_token.to_owned(), lease: Some(duration(lease)) };
    let actions = PullActions { extensions: vec![extension], ..PullActions::default() };
    PullStreamRequest { message: Some(Out::Actions(actions)) }
}

fn duration(duration: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(duration.subsec_nanos()).unwrap_or(0),
    }
}
