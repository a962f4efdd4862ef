//! Events that an ingress has verified: routed and committed like published ones.

use super::{Publisher, operations, parts::Parts, schema};
use crate::config::VersionCheck;
use async_trait::async_trait;
use std::sync::Arc;
use turnbuckle_domain::{
    Append, AppendResult, DedupRule, Error, Event, EventFilter, EventIntake, EventUid, History,
    IntakeEvent, IntakeRefusal, Notice, OperationalEvent, Reserved, StoreError, Taken, TenantId,
    Timestamp, Violations, event_limits,
};

/// Events of one id looked at, newest first: one for each source that has it.
const SAME_ID_MAX: u16 = 64;

/// The entrance for an ingress.
pub(crate) struct Intake {
    publisher: Arc<Publisher>,
    history: Arc<dyn History>,
    parts: Parts,
}

impl Intake {
    pub(crate) fn new(publisher: Arc<Publisher>, history: Arc<dyn History>) -> Self {
        Self { publisher, history, parts: Parts::new() }
    }
}

#[async_trait]
impl EventIntake for Intake {
    async fn take(
        &self,
        tenant: TenantId,
        events: Vec<IntakeEvent>,
        room: Reserved,
    ) -> Result<Vec<Taken>, Error> {
        let mut appends = Vec::with_capacity(events.len());
        let mut prepared = Vec::with_capacity(events.len());
        for event in events {
            prepared.push(self.publisher.prepare_taken(tenant, event).await?.map(|append| {
                let event = Arc::clone(&append.event);
                appends.push(append);
                event
            }));
        }
        let mut results = match appends.is_empty() {
            true => Vec::new(),
            false => self.parts.commit(self.publisher.commits.clone(), appends, room).await?,
        }
        .into_iter();
        let settle = |prepared: Result<Arc<Event>, IntakeRefusal>| match prepared {
            Ok(event) => self.publisher.taken(&event, results.next()),
            Err(refusal) => Taken::Refused(refusal),
        };
        Ok(prepared.into_iter().map(settle).collect())
    }

    async fn first_accepted(
        &self,
        tenant: TenantId,
        source: &str,
        event_id: &str,
    ) -> Result<Option<(EventUid, Timestamp)>, StoreError> {
        let filter = EventFilter { event_id: Some(event_id.to_owned()), event_type: None };
        let found = self.history.events(tenant, &filter, None, SAME_ID_MAX).await?;
        let own = found.into_iter().find(|event| event.source == source);
        Ok(own.map(|event| (event.uid, event.accepted_at)))
    }

    fn tell(&self, event: OperationalEvent) {
        self.publisher.operations.tell(event);
    }
}

impl Publisher {
    /// Checks an event and finds where it goes. The outer error concerns every event alike.
    async fn prepare_taken(
        &self,
        tenant: TenantId,
        event: IntakeEvent,
    ) -> Result<Result<Append, IntakeRefusal>, Error> {
        let IntakeEvent { draft, content, order, dedup } = event;
        let uid = EventUid::from_uuid(self.ids.uuid());
        let dedup = dedup.filter(|_| !draft.event_id.is_empty());
        let mut violations = Violations::new();
        let (now, bytes) = (self.clock.now(), event_limits::RECEIVED_BYTES);
        let accepted = draft.accept_up_to(bytes, tenant, uid, now, "event", &mut violations);
        let Some(event) = accepted else {
            return Ok(Err(unusable(violations.into_error())));
        };
        let index = self.config.load();
        let rules = index.type_rules(tenant, &event.event_type);
        if let Some(versions) = rules.as_ref().and_then(|rules| rules.versions.as_ref()) {
            if matches!(versions.check(&event.event_version), VersionCheck::Refused) {
                self.metrics.schema_refused.increment(1);
                return Ok(Err(IntakeRefusal::UnknownVersion));
            }
            if let Err(error) = schema::check(versions, &event, "event").await {
                if !matches!(error, Error::Invalid(_)) {
                    // It was not looked at: nothing is known of the event.
                    return Err(error);
                }
                self.metrics.schema_refused.increment(1);
                return Ok(Err(unusable(error)));
            }
        }
        let routes = match rules {
            Some(rules) => rules.routes.clone(),
            // Known to the ingress and not here yet: the sender tries again.
            None => index.routes_of(tenant, &event.event_type).ok_or_else(not_known_yet)?,
        };
        let deliveries = self.route(&event, &routes);
        let content_hash = match content {
            Some(data) => Event { data, ..event.clone() }.content_hash(),
            None => event.content_hash(),
        };
        Ok(Ok(Append { content_hash, event: Arc::new(event), dedup, deliveries, order }))
    }

    /// Stores an operational event. Its type needs no registration.
    pub(super) async fn publish_operational(&self, event: &OperationalEvent) -> Result<(), Error> {
        let prepared = self.prepare_taken(event.tenant, operations::intake_event(event)).await?;
        match prepared {
            Ok(append) => self.commits.commit(vec![append]).await.map(drop),
            Err(_) => Err(Error::internal("an operational event is none")),
        }
    }

    /// Stores the event of a notice. Its id is the notice's, so that a repeat is known as one.
    pub(crate) async fn publish_notice(&self, notice: &Notice) -> Result<(), Error> {
        let mut event = operations::intake_event(&notice.event);
        event.draft.event_id = notice.id.to_string();
        event.draft.occurred_at = Some(notice.at);
        event.dedup = Some(DedupRule::id(self.dedup_window));
        match self.prepare_taken(notice.event.tenant, event).await? {
            Ok(append) => self.commits.commit(vec![append]).await.map(drop),
            Err(_) => Err(Error::internal("a notice is no event")),
        }
    }

    fn taken(&self, event: &Event, result: Option<AppendResult>) -> Taken {
        match result {
            Some(AppendResult::Accepted) => {
                self.metrics.accepted.increment(1);
                Taken::Accepted { uid: event.uid, order: None }
            }
            Some(AppendResult::Placed(placed)) => {
                self.metrics.accepted.increment(1);
                self.metrics.order.count(&placed);
                Taken::Accepted { uid: event.uid, order: placed.order }
            }
            Some(AppendResult::Replay { uid, accepted_at }) => {
                self.metrics.duplicate.increment(1);
                Taken::Replay { uid, accepted_at }
            }
            Some(AppendResult::Duplicate { uid, accepted_at }) => {
                self.metrics.duplicate.increment(1);
                Taken::Duplicate { uid, accepted_at }
            }
            Some(AppendResult::Anomaly) => {
                self.metrics.anomaly.increment(1);
                operations::anomaly(event)
                    .into_iter()
                    .for_each(|event| self.operations.tell(event));
                Taken::Anomaly
            }
            Some(AppendResult::Unknown) | None => Taken::Unknown,
        }
    }
}

fn not_known_yet() -> Error {
    Error::Unavailable { retry_after: StoreError::RETRY_AFTER, cause: None }
}

/// The fields alone: what was wrong with a value may show the value.
fn unusable(error: Error) -> IntakeRefusal {
    let fields = match error {
        Error::Invalid(violations) => violations
            .iter()
            .map(|violation| violation.field.as_str())
            .collect::<Vec<_>>()
            .join(", "),
        _ => String::new(),
    };
    IntakeRefusal::Unusable { fields }
}
