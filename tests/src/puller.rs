//! A consumer of a pull endpoint, message by message.

use crate::wait::PATIENCE;
use anyhow::Context as _;
use std::collections::VecDeque;
use tokio::{sync::mpsc, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use turnbuckle_client::Client;
use turnbuckle_proto::v1::{
    PullActions, PullExtension, PullOpen, PullOpened, PullResult, PullReturn, PullStreamRequest,
    PullStreamResponse, PulledDelivery, pull_stream_request::Message as Out,
    pull_stream_response::Message as In,
};

/// An open stream.
#[derive(Debug)]
pub struct Puller {
    said: mpsc::Sender<PullStreamRequest>,
    told: Streaming<PullStreamResponse>,
    /// On what terms.
    pub opened: PullOpened,
    deliveries: VecDeque<PulledDelivery>,
    results: VecDeque<PullResult>,
}

impl Puller {
    /// Opens a stream.
    ///
    /// # Errors
    /// The server's.
    pub async fn open(client: &Client, open: PullOpen) -> Result<Self, Status> {
        let (said, messages) = mpsc::channel(64);
        let first = PullStreamRequest { message: Some(Out::Open(open)) };
        said.send(first).await.map_err(|_| Status::internal("no receiver"))?;
        let mut told = client.pulls().stream(ReceiverStream::new(messages)).await?.into_inner();
        match told.message().await?.and_then(|message| message.message) {
            Some(In::Opened(opened)) => {
                let (deliveries, results) = (VecDeque::new(), VecDeque::new());
                Ok(Self { said, told, opened, deliveries, results })
            }
            other => Err(Status::internal(format!("the stream began with {other:?}"))),
        }
    }

    /// Opens a stream of an endpoint on its own terms.
    ///
    /// # Errors
    /// The server's.
    pub async fn of(client: &Client, endpoint: &str) -> Result<Self, Status> {
        let endpoint = endpoint.to_owned();
        Self::open(client, PullOpen { endpoint, ..PullOpen::default() }).await
    }

    /// Takes one message in; false at the end of the stream.
    async fn hear(&mut self) -> Result<bool, Status> {
        let Some(message) = self.told.message().await? else { return Ok(false) };
        match message.message {
            Some(In::Deliveries(pulled)) => self.deliveries.extend(pulled.deliveries),
            Some(In::Results(results)) => self.results.extend(results.results),
            Some(In::Opened(_)) | None => return Err(Status::internal("opened twice")),
        }
        Ok(true)
    }

    /// The next delivery.
    ///
    /// # Errors
    /// When the stream ends, or none comes in time.
    pub async fn next(&mut self) -> anyhow::Result<PulledDelivery> {
        loop {
            if let Some(next) = self.deliveries.pop_front() {
                return Ok(next);
            }
            let heard = timeout(PATIENCE, self.hear()).await;
            anyhow::ensure!(heard.context("no delivery came")??, "the stream ended");
        }
    }

    /// The next answer.
    ///
    /// # Errors
    /// When the stream ends, or none comes in time.
    pub async fn result(&mut self) -> anyhow::Result<PullResult> {
        loop {
            if let Some(next) = self.results.pop_front() {
                return Ok(next);
            }
            let heard = timeout(PATIENCE, self.hear()).await;
            anyhow::ensure!(heard.context("no answer came")??, "the stream ended");
        }
    }

    /// How many deliveries came that nobody took yet.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.deliveries.len()
    }

    /// Says something.
    ///
    /// # Errors
    /// When the stream is over.
    pub async fn say(&self, actions: PullActions) -> anyhow::Result<()> {
        let message = PullStreamRequest { message: Some(Out::Actions(actions)) };
        self.said.send(message).await.context("the stream is over")
    }

    /// Acknowledges a delivery and answers what became of that.
    ///
    /// # Errors
    /// When the stream is over.
    pub async fn ack(&mut self, delivery: &PulledDelivery) -> anyhow::Result<PullResult> {
        let acks = vec![delivery.lease_token.clone()];
        self.say(PullActions { acks, ..PullActions::default() }).await?;
        self.result().await
    }

    /// Gives a delivery back, due after so many seconds.
    ///
    /// # Errors
    /// When the stream is over.
    pub async fn give_back(
        &mut self,
        delivery: &PulledDelivery,
        seconds: Option<i64>,
    ) -> anyhow::Result<PullResult> {
        let delay = seconds.map(|seconds| prost_types::Duration { seconds, nanos: 0 });
        let returns = vec![PullReturn { lease_token: delivery.lease_token.clone(), delay }];
        self.say(PullActions { returns, ..PullActions::default() }).await?;
        self.result().await
    }

    /// Prolongs a lease.
    ///
    /// # Errors
    /// When the stream is over.
    pub async fn extend(
        &mut self,
        delivery: &PulledDelivery,
        seconds: i64,
    ) -> anyhow::Result<PullResult> {
        let lease = Some(prost_types::Duration { seconds, nanos: 0 });
        let extensions = vec![PullExtension { lease_token: delivery.lease_token.clone(), lease }];
        self.say(PullActions { extensions, ..PullActions::default() }).await?;
        self.result().await
    }

    /// Ends the stream well and answers what came before its end.
    ///
    /// # Errors
    /// When it ends otherwise.
    pub async fn close(mut self) -> anyhow::Result<Vec<PullResult>> {
        let (nobody, _) = mpsc::channel(1);
        drop(std::mem::replace(&mut self.said, nobody));
        while timeout(PATIENCE, self.hear()).await.context("the stream does not end")?? {}
        Ok(self.results.into())
    }

    /// Waits for the end that the server makes.
    ///
    /// # Errors
    /// When it makes none.
    pub async fn refusal(mut self) -> anyhow::Result<Status> {
        loop {
            match timeout(PATIENCE, self.hear()).await.context("the stream does not end")? {
                Ok(true) => {}
                Ok(false) => anyhow::bail!("the stream ended without a word"),
                Err(status) => return Ok(status),
            }
        }
    }
}
