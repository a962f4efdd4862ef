//! What was published and what the receivers saw.

use super::payloads::Planned;
use bytes::Bytes;
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;
use turnbuckle_proto::v1::PublishEventResponse;

/// Id of the endpoint that always works.
pub(super) const HEALTHY: &str = "healthy";
/// Id of the endpoint that fails first.
pub(super) const FLAKY: &str = "flaky";

/// An accepted event.
#[derive(Clone, Debug)]
pub(super) struct Published {
    pub(super) planned: Planned,
    /// When the publish call began.
    pub(super) began: Instant,
    /// How long it took until the answer, which means: durable.
    pub(super) ack: Duration,
    pub(super) answer: PublishEventResponse,
}

impl Published {
    /// Which endpoints want it: both want orders, the healthy one wants everything.
    pub(super) fn endpoints(&self) -> &'static [&'static str] {
        if self.planned.event_type.starts_with("order.") { &[HEALTHY, FLAKY] } else { &[HEALTHY] }
    }
}

/// One attempt as a receiver saw it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) endpoint: &'static str,
    pub(super) event_id: String,
    pub(super) webhook_id: String,
    /// From the header `turnbuckle-attempt`; 0 when it is missing.
    pub(super) number: i32,
    pub(super) status: i32,
    pub(super) arrived: Instant,
    pub(super) answered: Instant,
    /// Labels of the keys that verify it.
    pub(super) verified_by: Vec<&'static str>,
    /// The first characters of every signature.
    pub(super) signatures: Vec<String>,
    pub(super) body: Bytes,
}

/// Everything the demo knows from its own two ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    pub(super) published: Vec<Published>,
    /// The event published again, and the second answer.
    pub(super) repeated: Option<(String, PublishEventResponse)>,
    pub(super) seen: Vec<Seen>,
}

impl Ledger {
    /// Every pair of event and endpoint that must end delivered.
    pub(super) fn expected(&self) -> impl Iterator<Item = (&Published, &'static str)> {
        self.published
            .iter()
            .flat_map(|event| event.endpoints().iter().map(move |endpoint| (event, *endpoint)))
    }

    /// Attempts by event and endpoint, in the order of arrival.
    pub(super) fn lanes(&self) -> BTreeMap<(&str, &'static str), Vec<&Seen>> {
        let mut lanes: BTreeMap<_, Vec<&Seen>> = BTreeMap::new();
        for seen in &self.seen {
            lanes.entry((seen.event_id.as_str(), seen.endpoint)).or_default().push(seen);
        }
        lanes
    }

    /// The attempt before, in the same lane.
    pub(super) fn previous(&self, seen: &Seen) -> Option<&Seen> {
        self.seen.iter().rev().find(|other| {
            other.endpoint == seen.endpoint
                && other.event_id == seen.event_id
                && other.number < seen.number
        })
    }

    /// Pairs that a receiver has taken.
    pub(super) fn taken(&self, endpoint: &str) -> usize {
        self.seen.iter().filter(|seen| seen.endpoint == endpoint && seen.status == 200).count()
    }
}
