//! The Endpoints service.

use super::{decode, decode_change, decode_once, refuse};
use crate::{Dependencies, convert::endpoint as convert, endpoint::Endpoints};
use std::sync::Arc;
use tonic::{Request, Response, Status};
use turnbuckle_domain::TargetPolicy;
use turnbuckle_proto::v1::{
    self,
    endpoints_server::{Endpoints as Contract, SERVICE_NAME},
};

/// Serves endpoints.
pub(crate) struct Service(Endpoints);

impl Service {
    pub(crate) fn new(dependencies: Arc<Dependencies>) -> Self {
        Self(Endpoints(dependencies))
    }

    fn targets(&self) -> &dyn TargetPolicy {
        self.0.0.targets.as_ref()
    }
}

#[tonic::async_trait]
impl Contract for Service {
    async fn create_endpoint(
        &self,
        request: Request<v1::CreateEndpointRequest>,
    ) -> Result<Response<v1::Endpoint>, Status> {
        let method = (SERVICE_NAME, "CreateEndpoint");
        let (by, command) = decode_once(&self.0.0, method, request, |request| {
            convert::create(request, self.targets())
        })?;
        let answer = self.0.create(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::created(&answer)))
    }

    async fn get_endpoint(
        &self,
        request: Request<v1::GetEndpointRequest>,
    ) -> Result<Response<v1::Endpoint>, Status> {
        let (caller, command) = decode(request, convert::get)?;
        let answer = self.0.get(&caller, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn list_endpoints(
        &self,
        request: Request<v1::ListEndpointsRequest>,
    ) -> Result<Response<v1::ListEndpointsResponse>, Status> {
        let (caller, command) = decode(request, convert::list)?;
        let answer = self.0.list(&caller, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::messages(&answer)))
    }

    async fn update_endpoint(
        &self,
        request: Request<v1::UpdateEndpointRequest>,
    ) -> Result<Response<v1::Endpoint>, Status> {
        let method = (SERVICE_NAME, "UpdateEndpoint");
        let (by, command) = decode_once(&self.0.0, method, request, |request| {
            convert::upsert(request, self.targets())
        })?;
        let answer = self.0.upsert(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::created(&answer)))
    }

    async fn delete_endpoint(
        &self,
        request: Request<v1::DeleteEndpointRequest>,
    ) -> Result<Response<()>, Status> {
        let method = (SERVICE_NAME, "DeleteEndpoint");
        let (by, command) = decode_change(&self.0.0, method, request, convert::delete)?;
        self.0.delete(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(()))
    }

    async fn disable_endpoint(
        &self,
        request: Request<v1::DisableEndpointRequest>,
    ) -> Result<Response<v1::Endpoint>, Status> {
        let method = (SERVICE_NAME, "DisableEndpoint");
        let (by, command) = decode_change(&self.0.0, method, request, convert::disable)?;
        let answer = self.0.disable(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn enable_endpoint(
        &self,
        request: Request<v1::EnableEndpointRequest>,
    ) -> Result<Response<v1::Endpoint>, Status> {
        let method = (SERVICE_NAME, "EnableEndpoint");
        let (by, command) = decode_change(&self.0.0, method, request, convert::enable)?;
        let answer = self.0.enable(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn undelete_endpoint(
        &self,
        request: Request<v1::UndeleteEndpointRequest>,
    ) -> Result<Response<v1::Endpoint>, Status> {
        let method = (SERVICE_NAME, "UndeleteEndpoint");
        let (by, command) = decode_change(&self.0.0, method, request, convert::undelete)?;
        let answer = self.0.undelete(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }
}
