//! The Keyring service.

use super::{decode, decode_change, refuse};
use crate::{Dependencies, convert::keyring as convert, keyring::KeyEncryption};
use std::sync::Arc;
use tonic::{Request, Response, Status};
use turnbuckle_proto::v1::{
    self,
    keyring_server::{Keyring as Contract, SERVICE_NAME},
};

/// Serves key-encryption keys.
pub(crate) struct Service(KeyEncryption);

impl Service {
    pub(crate) fn new(dependencies: Arc<Dependencies>) -> Self {
        Self(KeyEncryption(dependencies))
    }
}

#[tonic::async_trait]
impl Contract for Service {
    async fn get_keyring_status(
        &self,
        request: Request<v1::GetKeyringStatusRequest>,
    ) -> Result<Response<v1::KeyringStatus>, Status> {
        let (caller, ()) = decode(request, |_| Ok(()))?;
        let answer = self.0.status(&caller).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn rewrap_secrets(
        &self,
        request: Request<v1::RewrapSecretsRequest>,
    ) -> Result<Response<v1::RewrapSecretsResponse>, Status> {
        let method = (SERVICE_NAME, "RewrapSecrets");
        let (by, command) = decode_change(&self.0.0, method, request, convert::rewrap)?;
        let answer = self.0.rewrap(&by, command).await.map_err(refuse)?;
        Ok(Response::new(convert::rewrapped(&answer)))
    }
}
