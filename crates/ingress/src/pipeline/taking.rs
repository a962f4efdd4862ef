//! Events of a verified request: dedup and commit in one transaction, and the answer to that.

use super::{Ending, Pipeline, Received, ordering::OrderTally};
use crate::{
    answer::{Answer, Problem},
    event::{Mapped, NoEvent},
    metrics::Outcome,
    verify::Signer,
};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, timeout_at};
use turnbuckle_domain::{
    Error, EventUid, IntakeRefusal, OrderingPolicy, ReceiptDecision, Reserved, Taken, Timestamp,
};

/// Longest wait for the store. Senders give up after one second at the earliest; whoever has no answer
/// of the store by then is told to come again, and is a duplicate if it was stored after all.
const STORE_WAIT: Duration = Duration::from_millis(700);

/// What the store made of a request's events.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) event_id: String,
    pub(super) event_id_signed: Option<bool>,
    pub(super) events: usize,
    pub(super) accepted: usize,
    /// Repeats, and when the first of them was accepted first.
    pub(super) duplicates: usize,
    /// Of these, signed bodies that came under another id before.
    pub(super) replays: usize,
    pub(super) first: Option<(EventUid, Timestamp)>,
    pub(super) anomalies: usize,
    pub(super) uid: Option<EventUid>,
    pub(super) unknown: usize,
    pub(super) refused: Vec<Refused>,
    pub(super) order: OrderTally,
}

/// An item that is no event.
pub(super) enum Refused {
    Version(&'static str),
    MediaType(&'static str),
    Unusable(String),
}

impl Pipeline {
    pub(super) async fn take(
        &self,
        received: Received,
        signer: Signer,
        mapped: Result<Vec<Result<Mapped, NoEvent>>, NoEvent>,
    ) -> (Answer, Outcome) {
        let deadline = Instant::now() + STORE_WAIT;
        let items = mapped.unwrap_or_else(|fault| vec![Err(fault)]);
        let tally = match timeout_at(deadline, self.store(&received, items)).await {
            Ok(Ok(tally)) if tally.is_whole() => tally,
            Ok(Err(error)) => {
                if !matches!(error, Error::Unavailable { .. }) {
                    tracing::error!(error = &error as &dyn std::error::Error, "not stored");
                }
                return self.unavailable(received, signer, "the store refused for now");
            }
            Ok(Ok(_)) => {
                return self.unavailable(received, signer, "the store did not say what it did");
            }
            Err(_) => {
                return self.unavailable(received, signer, "the store did not answer in time");
            }
        };
        if tally.anomalies > 0 {
            let source = received.entry.source().id;
            tracing::warn!(source.id = %source, "an event id came again with other content");
        }
        let settings = &received.entry.source().settings;
        let verdict = tally.verdict(settings);
        let (remarks, answer) = (tally.remarks(settings.ordering.policy), verdict.answer);
        let mut ending = tally.ending(verdict.decision, remarks, &answer, signer);
        ending.keeps_body = verdict.keeps;
        let receipt = self.receipt(received, ending);
        if !verdict.keeps {
            self.receipts.leave(receipt);
            return (answer, verdict.outcome);
        }
        match timeout_at(deadline, self.receipts.write(receipt)).await {
            Ok(true) => (answer, verdict.outcome),
            // I1: nothing is acknowledged that is not durable. The repeat finds what was stored, and
            // leaves the rest once more.
            Ok(false) | Err(_) => (Problem::Unavailable.answer(), Outcome::Unavailable),
        }
    }

    /// Asks the intake, in one call for all events of the request.
    async fn store(
        &self,
        received: &Received,
        items: Vec<Result<Mapped, NoEvent>>,
    ) -> Result<Tally, Error> {
        let source = received.entry.source();
        let (tenant, slug) = (source.tenant, source.slug.as_str());
        let mut tally = Tally { events: items.len(), ..Tally::default() };
        let mut events = Vec::with_capacity(items.len());
        let mut ids = Vec::with_capacity(items.len());
        for item in items {
            let mapped = match item {
                Ok(mapped) => mapped,
                Err(fault) => {
                    tally.refused.push(Refused::of(fault));
                    continue;
                }
            };
            tally.order.lacks(mapped.missing_order);
            if tally.event_id.is_empty() {
                tally.event_id.clone_from(&mapped.event.draft.event_id);
                tally.event_id_signed = mapped.id_signed;
            }
            ids.push(mapped.event.draft.event_id.clone());
            events.push(mapped.event);
        }
        if events.is_empty() {
            return Ok(tally);
        }
        // Kept with the events: the store may go on with them when this request has its answer.
        let decoded = received.decoded.get().map(|decoded| Arc::clone(&decoded.share));
        let room = Reserved::new((received.body.share.clone(), decoded));
        let taken = self.intake.take(tenant, events, room).await?;
        for (taken, id) in taken.into_iter().zip(ids) {
            let is_anomaly = taken == Taken::Anomaly;
            tally.add(taken);
            if is_anomaly && tally.first.is_none() {
                tally.first = self.intake.first_accepted(tenant, slug, &id).await?;
            }
        }
        Ok(tally)
    }

    fn unavailable(
        &self,
        received: Received,
        signer: Signer,
        reason: &'static str,
    ) -> (Answer, Outcome) {
        let answer = Problem::Unavailable.answer();
        let mut ending = Ending::of(ReceiptDecision::Unavailable, reason, &answer);
        ending.signer = Some(signer);
        self.receipts.leave(self.receipt(received, ending));
        (answer, Outcome::Unavailable)
    }
}

/// What the mapping said, in the words of a receipt.
pub(super) const fn words(fault: NoEvent) -> &'static str {
    match fault {
        NoEvent::UnknownVersion => "its version is not among the known ones",
        NoEvent::MediaType => "its media type is not among those that the source takes",
        NoEvent::Unusable(reason) => reason,
    }
}

impl Refused {
    pub(super) fn of(fault: NoEvent) -> Self {
        match fault {
            NoEvent::UnknownVersion => Self::Version(words(fault)),
            NoEvent::MediaType => Self::MediaType(words(fault)),
            NoEvent::Unusable(reason) => Self::Unusable(reason.to_owned()),
        }
    }

    fn reason(&self) -> &str {
        match self {
            Self::Version(reason) | Self::MediaType(reason) => reason,
            Self::Unusable(reason) => reason,
        }
    }
}

impl Tally {
    fn add(&mut self, taken: Taken) {
        match taken {
            Taken::Accepted { uid, order } => {
                self.accepted += 1;
                self.order.stood(order);
                self.uid.get_or_insert(uid);
            }
            Taken::Duplicate { uid, accepted_at } => self.repeated((uid, accepted_at)),
            Taken::Replay { uid, accepted_at } => {
                self.replays += 1;
                self.repeated((uid, accepted_at));
            }
            Taken::Anomaly => self.anomalies += 1,
            Taken::Unknown => self.unknown += 1,
            Taken::Refused(IntakeRefusal::UnknownVersion) => {
                self.refused.push(Refused::Version("its event type refuses the version"));
            }
            Taken::Refused(IntakeRefusal::Unusable { fields }) => {
                let reason = format!("what events may be is broken by {fields}");
                self.refused.push(Refused::Unusable(reason));
            }
        }
    }

    fn repeated(&mut self, first: (EventUid, Timestamp)) {
        self.duplicates += 1;
        self.first.get_or_insert(first);
    }

    /// What an operator should know besides the decision.
    fn remarks(&self, policy: OrderingPolicy) -> String {
        let mut remarks = Vec::new();
        if self.events == 0 {
            remarks.push("it has no events".to_owned());
        }
        if self.anomalies > 0 {
            remarks.push("an event id came again with other content".to_owned());
        }
        if self.replays > 0 {
            let words = "its id is not signed, and what is signed came before under another id";
            remarks.push(words.to_owned());
        }
        if let Some(first) = self.refused.first() {
            remarks.push(match self.events {
                1 => first.reason().to_owned(),
                all => format!("{} of {all} items: {}", self.refused.len(), first.reason()),
            });
        }
        remarks.extend(self.order.remark(policy));
        remarks.join("; ")
    }

    fn ending(
        &self,
        decision: ReceiptDecision,
        reason: String,
        answer: &Answer,
        signer: Signer,
    ) -> Ending {
        Ending {
            signer: Some(signer),
            event_id: self.event_id.clone(),
            event_id_signed: self.event_id_signed,
            event: self.uid.or_else(|| self.first.map(|(uid, _)| uid)),
            events: self.events,
            ..Ending::of(decision, reason, answer)
        }
    }
}
