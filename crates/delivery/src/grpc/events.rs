//! The Events service.

use super::{convert, list, processing::processing};
use crate::{config::ConfigHandle, plane::DeliveryPlane, publish::Publisher};
use std::sync::Arc;
use tonic::{Request, Response, Status};
use turnbuckle_domain::{
    Caller, DeliveryFilter, Error, Event, EventDraft, EventFilter, EventUid, History, Processing,
    ResourceId, TenantId, TypeName, event_limits,
};
use turnbuckle_proto::v1::{self, events_server::Events};
use turnbuckle_runtime::{
    grpc::{caller, status},
    page::{PageToken, page_size},
};

pub(super) struct EventsService {
    publisher: Arc<Publisher>,
    history: Arc<dyn History>,
    config: ConfigHandle,
}

impl EventsService {
    pub(super) fn new(plane: &DeliveryPlane) -> Self {
        Self { publisher: plane.publisher(), history: plane.history(), config: plane.config() }
    }

    async fn publish(
        &self,
        caller: &Caller,
        request: v1::PublishEventRequest,
    ) -> Result<v1::PublishEventResponse, Error> {
        let tenant = convert::parent("parent", &request.parent)?;
        caller.enter(&tenant)?;
        let missing = || Error::invalid("event", "is required");
        let draft = convert::draft(request.event.ok_or_else(missing)?, "event")?;
        Ok(convert::published(&tenant, self.publisher.publish(&tenant, draft).await?))
    }

    async fn publish_batch(
        &self,
        caller: &Caller,
        request: v1::BatchPublishEventsRequest,
    ) -> Result<v1::BatchPublishEventsResponse, Error> {
        let tenant = convert::parent("parent", &request.parent)?;
        caller.enter(&tenant)?;
        check_batch(&request.events)?;
        let drafts = request
            .events
            .into_iter()
            .enumerate()
            .map(|(index, event)| convert::draft(event, &format!("events[{index}]")))
            .collect::<Result<Vec<EventDraft>, Error>>()?;
        let outcomes = self.publisher.publish_batch(&tenant, drafts).await?;
        let results = outcomes.into_iter().map(|outcome| convert::result(&tenant, outcome));
        Ok(v1::BatchPublishEventsResponse { results: results.collect() })
    }

    async fn get(&self, caller: &Caller, name: &str) -> Result<v1::Event, Error> {
        let (slug, id) = convert::child("name", name, "events")?;
        let tenant = self.enter(caller, &slug)?;
        let not_found = || Error::NotFound { resource: name.to_owned() };
        let uid: EventUid = id.parse().map_err(|_| not_found())?;
        let event = self.history.event(tenant, uid).await?.ok_or_else(not_found)?;
        let filter = DeliveryFilter { event: Some(uid), ..DeliveryFilter::default() };
        let (history, most) = (&self.history, Processing::DELIVERIES);
        let deliveries = history.deliveries(tenant, &filter, None, most).await?;
        let found = Processing::of(deliveries.iter().map(|view| &view.delivery));
        let found = processing(&found, event.accepted_at);
        Ok(v1::Event { processing: Some(found), ..convert::event(&slug, event) })
    }

    async fn list(
        &self,
        caller: &Caller,
        request: v1::ListEventsRequest,
    ) -> Result<v1::ListEventsResponse, Error> {
        let slug = convert::parent("parent", &request.parent)?;
        let tenant = self.enter(caller, &slug)?;
        let event_type = non_empty(request.event_type)
            .map(TypeName::new)
            .transpose()
            .map_err(|error| Error::invalid("event_type", error.to_string()))?;
        let filter = EventFilter { event_id: non_empty(request.event_id), event_type };
        let scope = format!("events {slug} {filter:?}");
        let after = PageToken::decode(&scope, &request.page_token)?
            .map(|last| last.parse::<EventUid>())
            .transpose()
            .map_err(|_| Error::invalid("page_token", "is not one of this list"))?;
        let limit = page_size(request.page_size)?;
        let events = self.history.events(tenant, &filter, after, limit).await?;
        let key = |event: &Event| event.uid.to_string();
        let message = |event| convert::event(&slug, event);
        let (events, next_page_token) = list::page(events, limit, &scope, key, message);
        Ok(v1::ListEventsResponse { events, next_page_token })
    }

    fn enter(&self, caller: &Caller, slug: &ResourceId) -> Result<TenantId, Error> {
        enter(&self.config, caller, slug)
    }
}

/// The tenant of that name, when the caller may touch it.
pub(super) fn enter(
    config: &ConfigHandle,
    caller: &Caller,
    slug: &ResourceId,
) -> Result<TenantId, Error> {
    caller.enter(slug)?;
    let not_found = || Error::NotFound { resource: format!("tenants/{slug}") };
    config.load().tenant(slug).ok_or_else(not_found)
}

pub(super) fn non_empty(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

fn check_batch(events: &[v1::Event]) -> Result<(), Error> {
    if events.is_empty() || events.len() > event_limits::BATCH {
        let message = format!(
            "has {} events; send 1 to {}, and the rest in further batches",
            events.len(),
            event_limits::BATCH
        );
        return Err(Error::invalid("events", message));
    }
    let bytes: usize = events.iter().map(|event| event.data.len()).sum();
    if bytes > event_limits::BATCH_BYTES {
        let message = format!(
            "carries {bytes} payload bytes; at most {} fit one batch: send smaller batches",
            event_limits::BATCH_BYTES
        );
        return Err(Error::invalid("events", message));
    }
    Ok(())
}

#[tonic::async_trait]
impl Events for EventsService {
    async fn publish_event(
        &self,
        request: Request<v1::PublishEventRequest>,
    ) -> Result<Response<v1::PublishEventResponse>, Status> {
        let caller = caller(&request).map_err(|error| status(&error))?;
        let answer = self.publish(&caller, request.into_inner()).await;
        answer.map(Response::new).map_err(|error| status(&error))
    }

    async fn batch_publish_events(
        &self,
        request: Request<v1::BatchPublishEventsRequest>,
    ) -> Result<Response<v1::BatchPublishEventsResponse>, Status> {
        let caller = caller(&request).map_err(|error| status(&error))?;
        let answer = self.publish_batch(&caller, request.into_inner()).await;
        answer.map(Response::new).map_err(|error| status(&error))
    }

    async fn get_event(
        &self,
        request: Request<v1::GetEventRequest>,
    ) -> Result<Response<v1::Event>, Status> {
        let caller = caller(&request).map_err(|error| status(&error))?;
        let answer = self.get(&caller, &request.get_ref().name).await;
        answer.map(Response::new).map_err(|error| status(&error))
    }

    async fn list_events(
        &self,
        request: Request<v1::ListEventsRequest>,
    ) -> Result<Response<v1::ListEventsResponse>, Status> {
        let caller = caller(&request).map_err(|error| status(&error))?;
        let answer = self.list(&caller, request.into_inner()).await;
        answer.map(Response::new).map_err(|error| status(&error))
    }
}
