//! Publishing: check, route, commit, answer.

mod commit;
mod intake;
mod operations;
mod order;
mod parts;
mod schema;

pub(crate) use commit::{CommitQueue, Committer};
pub(crate) use intake::Intake;
pub(crate) use operations::{Operations, Teller};
pub(crate) use order::OrderMetrics;

use crate::{
    config::{ConfigHandle, Route, Routes, TypeRules},
    metrics::PublishMetrics,
};
use std::{sync::Arc, time::Duration};
use turnbuckle_domain::{
    Append, AppendResult, Clock, DedupRule, Error, Event, EventDraft, EventUid, IdGenerator,
    NewDelivery, OperationalEvent, ResourceId, StoreError, TenantId, Timestamp, Violations,
    dedup_limits,
};

/// What a publisher learns about its event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Names the event: the first one, for a duplicate.
    pub uid: EventUid,
    /// The id it is known by.
    pub event_id: String,
    /// Whether it had been accepted before.
    pub duplicate: bool,
    /// When it was accepted first.
    pub accepted_at: Timestamp,
    /// Endpoints it goes to.
    pub deliveries: usize,
}

/// The publish use case.
pub struct Publisher {
    config: ConfigHandle,
    clock: Arc<dyn Clock>,
    ids: IdGenerator,
    commits: CommitQueue,
    operations: Operations,
    /// How long ids of published events are remembered.
    dedup_window: Duration,
    metrics: PublishMetrics,
}

/// What is left of an append once it is on its way.
struct Prepared {
    event: Arc<Event>,
    deliveries: usize,
}

impl Publisher {
    pub(crate) fn new(
        config: ConfigHandle,
        clock: Arc<dyn Clock>,
        ids: IdGenerator,
        commits: CommitQueue,
    ) -> (Self, Teller) {
        let (operations, teller) = Operations::new(Arc::clone(&clock));
        let dedup_window = dedup_limits::WINDOW_DEFAULT;
        let metrics = PublishMetrics::new();
        (Self { config, clock, ids, commits, operations, dedup_window, metrics }, teller)
    }

    /// Remembers ids of published events for so long.
    pub(crate) fn with_dedup_window(self, dedup_window: Duration) -> Self {
        Self { dedup_window, ..self }
    }

    /// Publishes one event. When it returns `Ok`, the event is durable (I1).
    ///
    /// # Errors
    /// Everything wrong with the event at once; an anomaly; a store that does not answer.
    pub async fn publish(
        &self,
        tenant: &ResourceId,
        draft: EventDraft,
    ) -> Result<Published, Error> {
        let tenant = self.tenant(tenant)?;
        let append = self.prepare(tenant, draft, "event").await?;
        let prepared = Prepared::of(&append);
        let results = self.commits.commit(vec![append]).await?;
        let result = results.into_iter().next().ok_or_else(short_answer)?;
        self.answer(&prepared, result)
    }

    /// Publishes a batch. Each event has its own result; those that pass are committed together.
    ///
    /// # Errors
    /// When the tenant is unknown, or the store does not answer: then none is stored, or all of it
    /// may be, and repeating is safe for events with ids.
    pub async fn publish_batch(
        &self,
        tenant: &ResourceId,
        drafts: Vec<EventDraft>,
    ) -> Result<Vec<Result<Published, Error>>, Error> {
        let tenant = self.tenant(tenant)?;
        let mut appends = Vec::with_capacity(drafts.len());
        let mut prepared: Vec<Result<Prepared, Error>> = Vec::with_capacity(drafts.len());
        for (index, draft) in drafts.into_iter().enumerate() {
            let append = self.prepare(tenant, draft, &format!("events[{index}]")).await;
            prepared.push(append.map(|append| {
                let rest = Prepared::of(&append);
                appends.push(append);
                rest
            }));
        }
        let mut results = match appends.is_empty() {
            true => Vec::new(),
            false => self.commits.commit(appends).await?,
        }
        .into_iter();
        let settle = |prepared: Result<Prepared, Error>| {
            let prepared = prepared?;
            self.answer(&prepared, results.next().ok_or_else(short_answer)?)
        };
        Ok(prepared.into_iter().map(settle).collect())
    }

    fn tenant(&self, slug: &ResourceId) -> Result<TenantId, Error> {
        let not_found = || Error::NotFound { resource: format!("tenants/{slug}") };
        self.config.load().tenant(slug).ok_or_else(not_found)
    }

    /// Checks an event and finds where it goes.
    async fn prepare(
        &self,
        tenant: TenantId,
        draft: EventDraft,
        field: &str,
    ) -> Result<Append, Error> {
        let now = self.clock.now();
        let uid = EventUid::from_uuid(self.ids.uuid());
        let dedup = (!draft.event_id.is_empty()).then(|| DedupRule::id(self.dedup_window));
        let mut violations = Violations::new();
        let Some(event) = draft.accept(tenant, uid, now, field, &mut violations) else {
            return Err(violations.into_error());
        };
        if OperationalEvent::is(&event) {
            let message = "is the source of operational events: choose another";
            return Err(Error::invalid(format!("{field}.source"), message));
        }
        let rules = self.rules(&event, field)?;
        if let Some(versions) = &rules.versions {
            let checked = schema::check(versions, &event, field).await;
            checked.inspect_err(|_| self.metrics.schema_refused.increment(1))?;
        }
        let deliveries = self.route(&event, &rules.routes);
        let content_hash = event.content_hash();
        Ok(Append { content_hash, event: Arc::new(event), dedup, deliveries, order: None })
    }

    /// What holds for events of this type.
    fn rules(&self, event: &Event, field: &str) -> Result<Arc<TypeRules>, Error> {
        let unregistered = || {
            let message = format!(
                "{:?} is not registered: create the event type first, or correct the name",
                event.event_type.as_str()
            );
            Error::invalid(format!("{field}.event_type"), message)
        };
        let index = self.config.load();
        index.type_rules(event.tenant, &event.event_type).ok_or_else(unregistered)
    }

    fn route(&self, event: &Event, routes: &Routes) -> Vec<NewDelivery> {
        let delivery = |route: &Route| NewDelivery {
            id: self.ids.delivery_of(event.uid),
            endpoint: route.endpoint,
            format: route.format,
        };
        // Sized once: conditions only make it fewer.
        let mut deliveries = Vec::with_capacity(routes.len_max());
        deliveries.extend(routes.of(event).map(delivery));
        deliveries
    }

    fn answer(&self, prepared: &Prepared, result: AppendResult) -> Result<Published, Error> {
        let event = &prepared.event;
        let published = |uid, accepted_at, duplicate, deliveries| Published {
            uid,
            event_id: event.event_id.clone(),
            duplicate,
            accepted_at,
            deliveries,
        };
        match result {
            AppendResult::Accepted | AppendResult::Placed(_) => {
                self.metrics.accepted.increment(1);
                Ok(published(event.uid, event.accepted_at, false, prepared.deliveries))
            }
            AppendResult::Duplicate { uid, accepted_at }
            | AppendResult::Replay { uid, accepted_at } => {
                self.metrics.duplicate.increment(1);
                Ok(published(uid, accepted_at, true, 0))
            }
            AppendResult::Unknown => {
                Err(Error::Unavailable { retry_after: StoreError::RETRY_AFTER, cause: None })
            }
            AppendResult::Anomaly => {
                self.metrics.anomaly.increment(1);
                tracing::warn!(
                    event.id = %event.event_id,
                    event.source = %event.source,
                    "an event id came again with other content"
                );
                operations::anomaly(event)
                    .into_iter()
                    .for_each(|event| self.operations.tell(event));
                Err(Error::Anomaly {
                    event_id: event.event_id.clone(),
                    source_name: event.source.clone(),
                })
            }
        }
    }
}

impl Prepared {
    fn of(append: &Append) -> Self {
        Self { event: Arc::clone(&append.event), deliveries: append.deliveries.len() }
    }
}

fn short_answer() -> Error {
    Error::internal("the store answered fewer results than it was given events")
}
