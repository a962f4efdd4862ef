//! The EventTypes service.

use super::{decode, decode_change, decode_once, refuse};
use crate::{Dependencies, convert::event_type as convert, event_type::EventTypes};
use std::sync::Arc;
use tonic::{Request, Response, Status};
use turnbuckle_proto::v1::{
    self,
    event_types_server::{EventTypes as Contract, SERVICE_NAME},
};

/// Serves event types.
pub(crate) struct Service(EventTypes);

impl Service {
    pub(crate) fn new(dependencies: Arc<Dependencies>) -> Self {
        Self(EventTypes(dependencies))
    }
}

#[tonic::async_trait]
impl Contract for Service {
    async fn create_event_type(
        &self,
        request: Request<v1::CreateEventTypeRequest>,
    ) -> Result<Response<v1::EventType>, Status> {
        let method = (SERVICE_NAME, "CreateEventType");
        let (by, command) = decode_once(&self.0.0, method, request, convert::create)?;
        let answer = self.0.create(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn get_event_type(
        &self,
        request: Request<v1::GetEventTypeRequest>,
    ) -> Result<Response<v1::EventType>, Status> {
        let (caller, command) = decode(request, convert::get)?;
        let answer = self.0.get(&caller, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn list_event_types(
        &self,
        request: Request<v1::ListEventTypesRequest>,
    ) -> Result<Response<v1::ListEventTypesResponse>, Status> {
        let (caller, command) = decode(request, convert::list)?;
        let answer = self.0.list(&caller, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::messages(&answer)))
    }

    async fn update_event_type(
        &self,
        request: Request<v1::UpdateEventTypeRequest>,
    ) -> Result<Response<v1::EventType>, Status> {
        let method = (SERVICE_NAME, "UpdateEventType");
        let (by, command) = decode_change(&self.0.0, method, request, convert::upsert)?;
        let answer = self.0.upsert(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn delete_event_type(
        &self,
        request: Request<v1::DeleteEventTypeRequest>,
    ) -> Result<Response<()>, Status> {
        let method = (SERVICE_NAME, "DeleteEventType");
        let (by, command) = decode_change(&self.0.0, method, request, convert::delete)?;
        self.0.delete(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(()))
    }
}
