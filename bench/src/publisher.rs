//! The publisher: a fixed number of calls in flight, and a record of each event.

use crate::{args::DeliverArgs, clock, payload, targets::Targets, turns::Turns};
use anyhow::Context as _;
use bytes::Bytes;
use std::{sync::Arc, time::Duration};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};
use tonic::{Status, transport::Channel};
use turnbuckle_proto::v1::{self, events_client::EventsClient, publish_result};

/// After a refusal a closed loop waits this long, or it would only measure refusals.
const REFUSAL_PAUSE: Duration = Duration::from_millis(5);
/// The server ends calls after 30 s; one that takes longer than this never returns.
const LAST_CALL_TIMEOUT: Duration = Duration::from_secs(35);
/// A batch of small events is answered with about 100 bytes for each.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// What became of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) event: u32,
    /// When it was due, or sent when there is no schedule.
    pub(crate) start_us: i64,
    /// When it was acknowledged; `None` when it was not, so that nothing is promised about it.
    pub(crate) accepted_us: Option<i64>,
}

/// Everything that was sent.
#[derive(Debug, Default)]
pub(crate) struct Published {
    pub(crate) sent: Vec<Sent>,
    /// Events on the schedule that were not sent in time.
    pub(crate) not_sent: u64,
    /// The first refusal, in words.
    pub(crate) refusal: Option<String>,
}

/// A load that is being published.
pub(crate) struct Publisher {
    workers: JoinSet<(Vec<Sent>, Option<Status>)>,
    plan: Arc<Plan>,
}

/// What all workers share.
struct Plan {
    parent: String,
    run: String,
    event_types: Vec<String>,
    payloads: Vec<Bytes>,
    batch: u16,
    turns: Turns,
}

impl Publisher {
    /// Connects and starts publishing.
    pub(crate) async fn start(
        args: &DeliverArgs,
        targets: Targets,
        url: &str,
        parent: String,
    ) -> anyhow::Result<Self> {
        let mut channels = Vec::new();
        for _ in 0..args.connections {
            let endpoint = Channel::from_shared(url.to_owned())?.tcp_nodelay(true);
            channels.push(endpoint.connect().await.context("cannot connect a publisher")?);
        }
        let plan = Arc::new(Plan {
            parent,
            run: uuid::Uuid::now_v7().simple().to_string(),
            event_types: targets.event_types(),
            payloads: payload::variants(usize::try_from(args.payload)?),
            batch: args.batch,
            turns: Turns::start(args.rate, args.warm_up() + args.window(), args.batch),
        });
        let mut workers = JoinSet::new();
        for channel in channels.iter().cycle().take(usize::from(args.in_flight)) {
            let client =
                EventsClient::new(channel.clone()).max_decoding_message_size(ANSWER_BYTES_MAX);
            workers.spawn(work(client, Arc::clone(&plan)));
        }
        Ok(Self { workers, plan })
    }

    /// When it started.
    pub(crate) fn begin_us(&self) -> i64 {
        self.plan.turns.begin_us()
    }

    /// Waits for the last answers.
    pub(crate) async fn finish(mut self) -> anyhow::Result<Published> {
        let mut published = Published::default();
        let all = timeout(LAST_CALL_TIMEOUT, async {
            while let Some(worker) = self.workers.join_next().await {
                let (sent, refusal) = worker?;
                published.sent.extend(sent);
                let words = |status: Status| format!("{:?}: {}", status.code(), status.message());
                published.refusal = published.refusal.take().or_else(|| refusal.map(words));
            }
            anyhow::Ok(())
        });
        all.await.context("publishes were not answered")??;
        published.not_sent = self.plan.turns.missing(u64::try_from(published.sent.len())?);
        Ok(published)
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.plan.turns.close();
    }
}

impl Plan {
    fn event(&self, number: u32) -> v1::Event {
        let pick = |length: usize| usize::try_from(number).unwrap_or(0) % length;
        v1::Event {
            event_id: format!("{}-{number:09}", self.run),
            event_type: self.event_types[pick(self.event_types.len())].clone(),
            data: self.payloads[pick(self.payloads.len())].clone(),
            ..Default::default()
        }
    }

    /// Makes one call; tells for each of its events whether it was accepted.
    async fn call(
        &self,
        client: &mut EventsClient<Channel>,
        first: u32,
    ) -> Result<Vec<bool>, Status> {
        let parent = self.parent.clone();
        let events = (first..).take(usize::from(self.batch)).map(|number| self.event(number));
        let request = v1::BatchPublishEventsRequest { parent, events: events.collect() };
        let answer = client.batch_publish_events(request).await?.into_inner();
        let accepted = |result: &v1::PublishResult| {
            matches!(result.result, Some(publish_result::Result::Accepted(_)))
        };
        Ok(answer.results.iter().map(accepted).collect())
    }

    async fn call_one(
        &self,
        client: &mut EventsClient<Channel>,
        number: u32,
    ) -> Result<(), Status> {
        let request = v1::PublishEventRequest {
            parent: self.parent.clone(),
            event: Some(self.event(number)),
        };
        client.publish_event(request).await.map(drop)
    }
}

async fn work(mut client: EventsClient<Channel>, plan: Arc<Plan>) -> (Vec<Sent>, Option<Status>) {
    let mut sent = Vec::with_capacity(1024);
    let mut refusal = None;
    while let Some(first) = plan.turns.next().await {
        let now_us = clock::now_us();
        let answer = if plan.batch == 1 {
            plan.call_one(&mut client, first).await.map(|()| vec![true])
        } else {
            plan.call(&mut client, first).await
        };
        let answered_us = clock::now_us();
        let accepted = answer.unwrap_or_else(|status| {
            refusal.get_or_insert(status);
            Vec::new()
        });
        for (index, event) in (first..).take(usize::from(plan.batch)).enumerate() {
            let is_accepted = accepted.get(index).copied().unwrap_or(false);
            sent.push(Sent {
                event,
                start_us: plan.turns.start_us(event, now_us),
                accepted_us: is_accepted.then_some(answered_us),
            });
        }
        if accepted.is_empty() && plan.turns.is_closed_loop() {
            sleep(REFUSAL_PAUSE).await;
        }
    }
    (sent, refusal)
}
