//! The KeyRings service.

use super::{decode, decode_change, decode_once, refuse};
use crate::{
    Dependencies,
    convert::{key_ring, key_status as convert},
    key_ring::Keys,
};
use std::sync::Arc;
use tonic::{Request, Response, Status};
use turnbuckle_proto::v1::{
    self,
    key_rings_server::{KeyRings as Contract, SERVICE_NAME},
};

/// Serves the standing of key rings.
pub(crate) struct Service(Keys);

impl Service {
    pub(crate) fn new(dependencies: Arc<Dependencies>) -> Self {
        Self(Keys(dependencies))
    }
}

#[tonic::async_trait]
impl Contract for Service {
    async fn get_key_ring_status(
        &self,
        request: Request<v1::GetKeyRingStatusRequest>,
    ) -> Result<Response<v1::KeyRingStatus>, Status> {
        let (caller, command) = decode(request, convert::get)?;
        let answer = self.0.status(&caller, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn pause_rotation(
        &self,
        request: Request<v1::PauseRotationRequest>,
    ) -> Result<Response<v1::KeyRing>, Status> {
        let method = (SERVICE_NAME, "PauseRotation");
        let (by, command) = decode_once(&self.0.0, method, request, convert::pause)?;
        let answer = self.0.pause(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(key_ring::message(&answer)))
    }

    async fn resume_rotation(
        &self,
        request: Request<v1::ResumeRotationRequest>,
    ) -> Result<Response<v1::KeyRing>, Status> {
        let method = (SERVICE_NAME, "ResumeRotation");
        let (by, command) = decode_once(&self.0.0, method, request, convert::resume)?;
        let answer = self.0.resume(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(key_ring::message(&answer)))
    }

    async fn reveal_key(
        &self,
        request: Request<v1::RevealKeyRequest>,
    ) -> Result<Response<v1::Key>, Status> {
        let method = (SERVICE_NAME, "RevealKey");
        let (by, command) = decode_change(&self.0.0, method, request, convert::reveal)?;
        let answer = self.0.reveal(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(key_ring::created(&answer)))
    }
}
