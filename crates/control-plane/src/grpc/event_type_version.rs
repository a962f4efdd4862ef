//! The EventTypeVersions service.

use super::{decode, decode_change, decode_once, refuse};
use crate::{
    Dependencies, convert::event_type_version as convert, event_type_version::EventTypeVersions,
};
use std::sync::Arc;
use tonic::{Request, Response, Status};
use turnbuckle_proto::v1::{
    self,
    event_type_versions_server::{EventTypeVersions as Contract, SERVICE_NAME},
};

/// Serves versions of event types.
pub(crate) struct Service(EventTypeVersions);

impl Service {
    pub(crate) fn new(dependencies: Arc<Dependencies>) -> Self {
        Self(EventTypeVersions(dependencies))
    }
}

#[tonic::async_trait]
impl Contract for Service {
    async fn create_event_type_version(
        &self,
        request: Request<v1::CreateEventTypeVersionRequest>,
    ) -> Result<Response<v1::EventTypeVersion>, Status> {
        let method = (SERVICE_NAME, "CreateEventTypeVersion");
        let (by, command) = decode_once(&self.0.0, method, request, convert::create)?;
        let answer = self.0.create(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn get_event_type_version(
        &self,
        request: Request<v1::GetEventTypeVersionRequest>,
    ) -> Result<Response<v1::EventTypeVersion>, Status> {
        let (caller, command) = decode(request, convert::get)?;
        let answer = self.0.get(&caller, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn list_event_type_versions(
        &self,
        request: Request<v1::ListEventTypeVersionsRequest>,
    ) -> Result<Response<v1::ListEventTypeVersionsResponse>, Status> {
        let (caller, command) = decode(request, convert::list)?;
        let answer = self.0.list(&caller, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::messages(&answer)))
    }

    async fn delete_event_type_version(
        &self,
        request: Request<v1::DeleteEventTypeVersionRequest>,
    ) -> Result<Response<()>, Status> {
        let method = (SERVICE_NAME, "DeleteEventTypeVersion");
        let (by, command) = decode_change(&self.0.0, method, request, convert::delete)?;
        self.0.delete(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(()))
    }
}
