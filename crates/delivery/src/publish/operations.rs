//! Operational events on their way into the tenant's log.
//!
//! Whoever notices something leaves it here and goes on. One task publishes it, with the same routing
//! and the same commit as any event. Bounded in two ways: of each kind one a minute is told about each
//! subject, and what finds no room is left out. Both are counted, and the next one tells how many.

use super::Publisher;
use metrics::counter;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{sync::mpsc, time::sleep};
use tokio_util::sync::CancellationToken;
use turnbuckle_domain::{
    Clock, Error, EventDraft, IntakeEvent, OperationKind, OperationalEvent, TenantId, Timestamp,
};

/// Events that wait to be published: a moment's worth of everything that can go wrong at once.
const WAITING_MAX: usize = 256;
/// Shortest time between two events of one kind about one subject: an operator needs to know once, and
/// a flood of anomalies must not become a flood of events.
const QUIET: Duration = Duration::from_secs(60);
/// Subjects remembered. Past it those told longest ago are forgotten, and may be told again early.
const SUBJECTS_MAX: usize = 10_000;
/// Tries to store one event, and the pause between them: the store may be what is in trouble.
const TRIES: u32 = 3;
const TRY_PAUSE: Duration = Duration::from_secs(1);

type Subject = (TenantId, OperationKind, String);

/// When it was told last, and how many were left out since.
#[derive(Clone, Copy)]
struct Told {
    at: Timestamp,
    left_out: u64,
}

/// The way in.
pub(crate) struct Operations {
    waiting: mpsc::Sender<OperationalEvent>,
    told: Mutex<HashMap<Subject, Told>>,
    clock: Arc<dyn Clock>,
}

/// Publishes what was left.
pub(crate) struct Teller(mpsc::Receiver<OperationalEvent>);

impl Operations {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> (Self, Teller) {
        let (waiting, receiver) = mpsc::channel(WAITING_MAX);
        (Self { waiting, told: Mutex::default(), clock }, Teller(receiver))
    }

    /// Leaves an event to be published soon, or counts it.
    pub(crate) fn tell(&self, mut event: OperationalEvent) {
        let event_type = event.kind.event_type();
        let Some(left_out) = self.admit(&event) else {
            counter!("turnbuckle_operational_events_total", "type" => event_type, "outcome" => "quiet")
                .increment(1);
            return;
        };
        if let Some(data) = event.data.as_object_mut() {
            data.insert("left_out".to_owned(), left_out.into());
        }
        if self.waiting.try_send(event).is_err() {
            counter!("turnbuckle_operational_events_total", "type" => event_type, "outcome" => "full")
                .increment(1);
        }
    }

    /// How many were left out before this one; none when it is left out too.
    fn admit(&self, event: &OperationalEvent) -> Option<u64> {
        let now = self.clock.now();
        let subject = (event.tenant, event.kind, event.subject.clone());
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = told.get_mut(&subject)
            && now.since(known.at) < QUIET
            // A clock that was set back must not silence anything for long.
            && known.at <= now
        {
            known.left_out += 1;
            return None;
        }
        if told.len() >= SUBJECTS_MAX && !told.contains_key(&subject) {
            told.retain(|_, known| now.since(known.at) < QUIET);
            if told.len() >= SUBJECTS_MAX {
                told.clear();
            }
        }
        let before = told.insert(subject, Told { at: now, left_out: 0 });
        Some(before.map_or(0, |before| before.left_out))
    }
}

impl Teller {
    /// Publishes until told to stop. It must not outlive that: it holds what the committers wait for.
    pub(crate) async fn run(mut self, publisher: Arc<Publisher>, stop: CancellationToken) {
        let telling = async {
            while let Some(event) = self.0.recv().await {
                publish(&publisher, event).await;
            }
        };
        stop.run_until_cancelled(telling).await.unwrap_or(());
    }
}

async fn publish(publisher: &Publisher, event: OperationalEvent) {
    let event_type = event.kind.event_type();
    let count = |outcome: &'static str| {
        counter!("turnbuckle_operational_events_total", "type" => event_type, "outcome" => outcome)
            .increment(1);
    };
    for _ in 0..TRIES {
        match publisher.publish_operational(&event).await {
            Ok(()) => return count("published"),
            Err(error @ Error::Unavailable { .. }) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "not told yet");
                sleep(TRY_PAUSE).await;
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, event.type = event_type, "an operational event was refused");
                return count("refused");
            }
        }
    }
    count("unavailable");
}

/// The event as one that an ingress could have taken.
pub(super) fn intake_event(event: &OperationalEvent) -> IntakeEvent {
    let draft = EventDraft {
        event_type: event.kind.event_type().to_owned(),
        source: OperationalEvent::SOURCE.to_owned(),
        subject: event.subject.clone(),
        data: event.data.to_string().into(),
        ..EventDraft::default()
    };
    IntakeEvent { draft, content: None, order: None, dedup: None }
}

/// What is told about an id that came with other content.
pub(super) fn anomaly(event: &turnbuckle_domain::Event) -> Option<OperationalEvent> {
    (!OperationalEvent::is(event)).then(|| OperationalEvent {
        tenant: event.tenant,
        kind: OperationKind::Anomaly,
        subject: format!("sources/{}", event.source),
        data: serde_json::json!({
            "source": event.source,
            "event_id": event.event_id,
            "event_type": event.event_type.as_str(),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, Ordering};
    use uuid::Uuid;

    /// A clock that stands still until it is moved.
    struct Still(AtomicI64);

    impl Still {
        fn shared() -> Arc<Self> {
            Arc::new(Self(AtomicI64::new(1_800_000_000_000_000)))
        }

        fn advance(&self, by: Duration) {
            self.0.fetch_add(i64::try_from(by.as_micros()).unwrap(), Ordering::SeqCst);
        }
    }

    impl Clock for Still {
        fn now(&self) -> Timestamp {
            Timestamp::from_micros(self.0.load(Ordering::SeqCst))
        }
    }

    fn event(subject: &str) -> OperationalEvent {
        OperationalEvent {
            tenant: TenantId::from_uuid(Uuid::from_u128(1)),
            kind: OperationKind::Anomaly,
            subject: subject.to_owned(),
            data: serde_json::json!({}),
        }
    }

    #[test]
    fn one_a_minute_is_told_about_a_subject_and_the_next_tells_how_many_were_not() {
        let clock = Still::shared();
        let (operations, mut teller) = Operations::new(Arc::clone(&clock) as Arc<dyn Clock>);
        for _ in 0..5 {
            operations.tell(event("sources/a"));
        }
        operations.tell(event("sources/b"));
        clock.advance(QUIET);
        operations.tell(event("sources/a"));
        let mut told = Vec::new();
        while let Ok(event) = teller.0.try_recv() {
            told.push((event.subject, event.data["left_out"].as_u64().unwrap()));
        }
        let expected = [("sources/a", 0), ("sources/b", 0), ("sources/a", 4)];
        assert_eq!(told, expected.map(|(subject, left_out)| (subject.to_owned(), left_out)));
    }

    #[test]
    fn a_flood_of_subjects_takes_bounded_memory() {
        let clock = Still::shared();
        let (operations, _teller) = Operations::new(Arc::clone(&clock) as Arc<dyn Clock>);
        for number in 0..SUBJECTS_MAX + 10 {
            operations.tell(event(&number.to_string()));
        }
        assert!(operations.told.lock().unwrap().len() <= SUBJECTS_MAX);
    }
}
