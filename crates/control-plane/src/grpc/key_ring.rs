//! The Keys service.

use super::{decode, decode_once, refuse};
use crate::{Dependencies, convert::key_ring as convert, key_ring::Keys};
use std::sync::Arc;
use tonic::{Request, Response, Status};
use turnbuckle_proto::v1::{
    self,
    keys_server::{Keys as Contract, SERVICE_NAME},
};

/// Serves keys.
pub(crate) struct Service(Keys);

impl Service {
    pub(crate) fn new(dependencies: Arc<Dependencies>) -> Self {
        Self(Keys(dependencies))
    }
}

#[tonic::async_trait]
impl Contract for Service {
    async fn get_key_ring(
        &self,
        request: Request<v1::GetKeyRingRequest>,
    ) -> Result<Response<v1::KeyRing>, Status> {
        let (caller, command) = decode(request, convert::get)?;
        let answer = self.0.get(&caller, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn stage_key(
        &self,
        request: Request<v1::StageKeyRequest>,
    ) -> Result<Response<v1::Key>, Status> {
        let method = (SERVICE_NAME, "StageKey");
        let (by, command) = decode_once(&self.0.0, method, request, convert::stage)?;
        let answer = self.0.stage(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::created(&answer)))
    }

    async fn activate_key(
        &self,
        request: Request<v1::ActivateKeyRequest>,
    ) -> Result<Response<v1::KeyRing>, Status> {
        let method = (SERVICE_NAME, "ActivateKey");
        let (by, command) = decode_once(&self.0.0, method, request, convert::activate)?;
        let answer = self.0.activate(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn rotate_key(
        &self,
        request: Request<v1::RotateKeyRequest>,
    ) -> Result<Response<v1::Key>, Status> {
        let method = (SERVICE_NAME, "RotateKey");
        let (by, command) = decode_once(&self.0.0, method, request, convert::rotate)?;
        let answer = self.0.rotate(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::created(&answer)))
    }

    async fn rollback_key(
        &self,
        request: Request<v1::RollbackKeyRequest>,
    ) -> Result<Response<v1::KeyRing>, Status> {
        let method = (SERVICE_NAME, "RollbackKey");
        let (by, command) = decode_once(&self.0.0, method, request, convert::rollback)?;
        let answer = self.0.rollback(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn revoke_key(
        &self,
        request: Request<v1::RevokeKeyRequest>,
    ) -> Result<Response<v1::KeyRing>, Status> {
        let method = (SERVICE_NAME, "RevokeKey");
        let (by, command) = decode_once(&self.0.0, method, request, convert::revoke)?;
        let answer = self.0.revoke(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }
}
