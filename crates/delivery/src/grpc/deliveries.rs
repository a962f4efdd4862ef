//! The Deliveries service.

use super::{convert, events, list};
use crate::{
    config::ConfigHandle,
    plane::{DeliveryPlane, WakeHandle},
};
use std::sync::Arc;
use tonic::{Request, Response, Status};
use turnbuckle_domain::{
    Attempt, Caller, Clock, DeliveryFilter, DeliveryId, DeliveryView, EndpointId, Error, EventUid,
    Finished, History, Precondition, ResourceId, TenantId, WakeHint as _,
};
use turnbuckle_proto::v1::{self, deliveries_server::Deliveries};
use turnbuckle_runtime::{
    grpc::{caller, status},
    page::{PageToken, page_size},
};

pub(super) struct DeliveriesService {
    history: Arc<dyn History>,
    config: ConfigHandle,
    clock: Arc<dyn Clock>,
    wake: WakeHandle,
}

/// A delivery by name, in a tenant that the caller may touch.
struct Named {
    slug: ResourceId,
    tenant: TenantId,
    id: DeliveryId,
}

impl DeliveriesService {
    pub(super) fn new(plane: &DeliveryPlane) -> Self {
        Self {
            history: plane.history(),
            config: plane.config(),
            clock: plane.clock(),
            wake: plane.wake_handle(),
        }
    }

    fn named(&self, caller: &Caller, field: &str, name: &str) -> Result<Named, Error> {
        let (slug, id) = convert::child(field, name, "deliveries")?;
        let tenant = events::enter(&self.config, caller, &slug)?;
        let id = id.parse().map_err(|_| not_found(name))?;
        Ok(Named { slug, tenant, id })
    }

    async fn view(&self, named: &Named, name: &str) -> Result<DeliveryView, Error> {
        let view = self.history.delivery(named.tenant, named.id).await?;
        view.ok_or_else(|| not_found(name))
    }

    async fn get(&self, caller: &Caller, name: &str) -> Result<v1::Delivery, Error> {
        let named = self.named(caller, "name", name)?;
        let view = self.view(&named, name).await?;
        Ok(convert::delivery(&named.slug, view))
    }

    async fn list(
        &self,
        caller: &Caller,
        request: v1::ListDeliveriesRequest,
    ) -> Result<v1::ListDeliveriesResponse, Error> {
        let slug = convert::parent("parent", &request.parent)?;
        let tenant = events::enter(&self.config, caller, &slug)?;
        let filter = DeliveryFilter {
            endpoint: self.endpoint_filter(tenant, &slug, &request.endpoint)?,
            event: event_filter(&slug, &request.event)?,
            state: convert::state_filter(request.state)?,
        };
        let scope = format!("deliveries {slug} {filter:?}");
        let after = PageToken::decode(&scope, &request.page_token)?
            .map(|last| last.parse::<DeliveryId>())
            .transpose()
            .map_err(|_| Error::invalid("page_token", "is not one of this list"))?;
        let limit = page_size(request.page_size)?;
        let views = self.history.deliveries(tenant, &filter, after, limit).await?;
        let key = |view: &DeliveryView| view.delivery.id.to_string();
        let message = |view| convert::delivery(&slug, view);
        let (deliveries, next_page_token) = list::page(views, limit, &scope, key, message);
        Ok(v1::ListDeliveriesResponse { deliveries, next_page_token })
    }

    fn endpoint_filter(
        &self,
        tenant: TenantId,
        slug: &ResourceId,
        name: &str,
    ) -> Result<Option<EndpointId>, Error> {
        if name.is_empty() {
            return Ok(None);
        }
        let (owner, id) = convert::child("endpoint", name, "endpoints")?;
        let id = ResourceId::new(id).map_err(|_| not_found(name))?;
        let index = self.config.load();
        let entry = index.endpoint_by_slug(tenant, &id).filter(|_| owner == *slug);
        Ok(Some(entry.ok_or_else(|| not_found(name))?.endpoint.id))
    }

    async fn attempts(
        &self,
        caller: &Caller,
        request: v1::ListAttemptsRequest,
    ) -> Result<v1::ListAttemptsResponse, Error> {
        let name = request.parent.as_str();
        let named = self.named(caller, "parent", name)?;
        let scope = format!("attempts {} {}", named.slug, named.id);
        let after = PageToken::decode(&scope, &request.page_token)?
            .map(|last| last.parse::<u32>())
            .transpose()
            .map_err(|_| Error::invalid("page_token", "is not one of this list"))?;
        let limit = page_size(request.page_size)?;
        self.view(&named, name).await?;
        let after = after.unwrap_or_default();
        let attempts = self.history.attempts(named.tenant, named.id, after, limit).await?;
        let key = |attempt: &Attempt| attempt.number.to_string();
        let message = |attempt| convert::attempt(name, attempt);
        let (attempts, next_page_token) = list::page(attempts, limit, &scope, key, message);
        Ok(v1::ListAttemptsResponse { attempts, next_page_token })
    }

    async fn retry(&self, caller: &Caller, name: &str) -> Result<v1::Delivery, Error> {
        let named = self.named(caller, "name", name)?;
        let endpoint = self.view(&named, name).await?.delivery.endpoint;
        let index = self.config.load();
        if !index.endpoint(endpoint).is_some_and(|entry| entry.endpoint.is_active()) {
            return Err(Error::Precondition {
                kind: Precondition::EndpointInactive,
                subject: name.to_owned(),
                message: "the endpoint is disabled or deleted: enable it, then retry".into(),
            });
        }
        match self.history.retry(named.tenant, named.id, self.clock.now()).await? {
            Finished::Changed => self.wake.wake(endpoint),
            Finished::Missing => return Err(not_found(name)),
            Finished::Refused => {
                return Err(Error::Precondition {
                    kind: Precondition::DeliveryFinished,
                    subject: name.to_owned(),
                    message: "its event is no longer kept: publish it again".into(),
                });
            }
        }
        let view = self.view(&named, name).await?;
        Ok(convert::delivery(&named.slug, view))
    }

    async fn cancel(&self, caller: &Caller, name: &str) -> Result<v1::Delivery, Error> {
        let named = self.named(caller, "name", name)?;
        let endpoint = self.view(&named, name).await?.delivery.endpoint;
        match self.history.cancel(named.tenant, named.id, self.clock.now()).await? {
            Finished::Changed => {
                self.wake.cancelled(endpoint, named.id);
                let view = self.view(&named, name).await?;
                Ok(convert::delivery(&named.slug, view))
            }
            Finished::Missing => Err(not_found(name)),
            Finished::Refused => Err(Error::Precondition {
                kind: Precondition::DeliveryFinished,
                subject: name.to_owned(),
                message: "it is finished already; nothing is left to cancel".into(),
            }),
        }
    }
}

fn not_found(name: &str) -> Error {
    Error::NotFound { resource: name.to_owned() }
}

fn event_filter(slug: &ResourceId, name: &str) -> Result<Option<EventUid>, Error> {
    if name.is_empty() {
        return Ok(None);
    }
    let (owner, id) = convert::child("event", name, "events")?;
    let uid = id.parse().map_err(|_| not_found(name))?;
    if owner == *slug { Ok(Some(uid)) } else { Err(not_found(name)) }
}

#[tonic::async_trait]
impl Deliveries for DeliveriesService {
    async fn get_delivery(
        &self,
        request: Request<v1::GetDeliveryRequest>,
    ) -> Result<Response<v1::Delivery>, Status> {
        let caller = caller(&request).map_err(|error| status(&error))?;
        let answer = self.get(&caller, &request.get_ref().name).await;
        answer.map(Response::new).map_err(|error| status(&error))
    }

    async fn list_deliveries(
        &self,
        request: Request<v1::ListDeliveriesRequest>,
    ) -> Result<Response<v1::ListDeliveriesResponse>, Status> {
        let caller = caller(&request).map_err(|error| status(&error))?;
        let answer = self.list(&caller, request.into_inner()).await;
        answer.map(Response::new).map_err(|error| status(&error))
    }

    async fn list_attempts(
        &self,
        request: Request<v1::ListAttemptsRequest>,
    ) -> Result<Response<v1::ListAttemptsResponse>, Status> {
        let caller = caller(&request).map_err(|error| status(&error))?;
        let answer = self.attempts(&caller, request.into_inner()).await;
        answer.map(Response::new).map_err(|error| status(&error))
    }

    async fn retry_delivery(
        &self,
        request: Request<v1::RetryDeliveryRequest>,
    ) -> Result<Response<v1::Delivery>, Status> {
        let caller = caller(&request).map_err(|error| status(&error))?;
        let answer = self.retry(&caller, &request.get_ref().name).await;
        answer.map(Response::new).map_err(|error| status(&error))
    }

    async fn cancel_delivery(
        &self,
        request: Request<v1::CancelDeliveryRequest>,
    ) -> Result<Response<v1::Delivery>, Status> {
        let caller = caller(&request).map_err(|error| status(&error))?;
        let answer = self.cancel(&caller, &request.get_ref().name).await;
        answer.map(Response::new).map_err(|error| status(&error))
    }
}
