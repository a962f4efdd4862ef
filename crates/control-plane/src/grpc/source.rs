//! The Sources service.

use super::{decode, decode_change, decode_once, refuse};
use crate::{
    Dependencies,
    convert::{source as convert, source_preset as convert_preset},
    source::Sources,
    source_preset,
};
use std::sync::Arc;
use tonic::{Request, Response, Status};
use turnbuckle_proto::v1::{
    self,
    sources_server::{SERVICE_NAME, Sources as Contract},
};

/// Serves sources.
pub(crate) struct Service(Sources);

impl Service {
    pub(crate) fn new(dependencies: Arc<Dependencies>) -> Self {
        Self(Sources(dependencies))
    }
}

#[tonic::async_trait]
impl Contract for Service {
    async fn create_source(
        &self,
        request: Request<v1::CreateSourceRequest>,
    ) -> Result<Response<v1::Source>, Status> {
        let method = (SERVICE_NAME, "CreateSource");
        let (by, command) = decode_once(&self.0.0, method, request, convert::create)?;
        let answer = self.0.create(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::created(&answer)))
    }

    async fn get_source(
        &self,
        request: Request<v1::GetSourceRequest>,
    ) -> Result<Response<v1::Source>, Status> {
        let (caller, command) = decode(request, convert::get)?;
        let answer = self.0.get(&caller, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn list_sources(
        &self,
        request: Request<v1::ListSourcesRequest>,
    ) -> Result<Response<v1::ListSourcesResponse>, Status> {
        let (caller, command) = decode(request, convert::list)?;
        let answer = self.0.list(&caller, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::messages(&answer)))
    }

    async fn update_source(
        &self,
        request: Request<v1::UpdateSourceRequest>,
    ) -> Result<Response<v1::Source>, Status> {
        let method = (SERVICE_NAME, "UpdateSource");
        let (by, command) = decode_change(&self.0.0, method, request, convert::upsert)?;
        let answer = self.0.upsert(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::created(&answer)))
    }

    async fn delete_source(
        &self,
        request: Request<v1::DeleteSourceRequest>,
    ) -> Result<Response<()>, Status> {
        let method = (SERVICE_NAME, "DeleteSource");
        let (by, command) = decode_change(&self.0.0, method, request, convert::delete)?;
        self.0.delete(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(()))
    }

    async fn undelete_source(
        &self,
        request: Request<v1::UndeleteSourceRequest>,
    ) -> Result<Response<v1::Source>, Status> {
        let method = (SERVICE_NAME, "UndeleteSource");
        let (by, command) = decode_change(&self.0.0, method, request, convert::undelete)?;
        let answer = self.0.undelete(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn disable_source(
        &self,
        request: Request<v1::DisableSourceRequest>,
    ) -> Result<Response<v1::Source>, Status> {
        let method = (SERVICE_NAME, "DisableSource");
        let (by, command) = decode_change(&self.0.0, method, request, convert::disable)?;
        let answer = self.0.disable(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn enable_source(
        &self,
        request: Request<v1::EnableSourceRequest>,
    ) -> Result<Response<v1::Source>, Status> {
        let method = (SERVICE_NAME, "EnableSource");
        let (by, command) = decode_change(&self.0.0, method, request, convert::enable)?;
        let answer = self.0.enable(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn rotate_ingest_path(
        &self,
        request: Request<v1::RotateIngestPathRequest>,
    ) -> Result<Response<v1::Source>, Status> {
        let method = (SERVICE_NAME, "RotateIngestPath");
        let (by, command) = decode_once(&self.0.0, method, request, convert::rotate_path)?;
        let answer = self.0.rotate_path(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn get_source_preset(
        &self,
        request: Request<v1::GetSourcePresetRequest>,
    ) -> Result<Response<v1::SourcePreset>, Status> {
        let (_, name) = decode(request, convert_preset::get)?;
        let answer = source_preset::get(&name).map_err(refuse)?;
        Ok(Response::new(convert_preset::message(answer)))
    }

    async fn list_source_presets(
        &self,
        request: Request<v1::ListSourcePresetsRequest>,
    ) -> Result<Response<v1::ListSourcePresetsResponse>, Status> {
        let (_, page) = decode(request, convert_preset::list)?;
        let answer = source_preset::list(&page);
        Ok(Response::new(convert_preset::messages(&answer)))
    }
}
