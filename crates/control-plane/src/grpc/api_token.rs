//! The ApiTokens service.

use super::{decode, decode_change, decode_once, refuse};
use crate::{Dependencies, api_token::ApiTokens, convert::api_token as convert};
use std::sync::Arc;
use tonic::{Request, Response, Status};
use turnbuckle_proto::v1::{
    self,
    api_tokens_server::{ApiTokens as Contract, SERVICE_NAME},
};

/// Serves API tokens.
pub(crate) struct Service(ApiTokens);

impl Service {
    pub(crate) fn new(dependencies: Arc<Dependencies>) -> Self {
        Self(ApiTokens(dependencies))
    }
}

#[tonic::async_trait]
impl Contract for Service {
    async fn create_api_token(
        &self,
        request: Request<v1::CreateApiTokenRequest>,
    ) -> Result<Response<v1::ApiToken>, Status> {
        let method = (SERVICE_NAME, "CreateApiToken");
        let (by, command) = decode_once(&self.0.0, method, request, convert::create)?;
        let answer = self.0.create(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::created(&answer)))
    }

    async fn get_api_token(
        &self,
        request: Request<v1::GetApiTokenRequest>,
    ) -> Result<Response<v1::ApiToken>, Status> {
        let (caller, command) = decode(request, convert::get)?;
        let answer = self.0.get(&caller, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn list_api_tokens(
        &self,
        request: Request<v1::ListApiTokensRequest>,
    ) -> Result<Response<v1::ListApiTokensResponse>, Status> {
        let (caller, command) = decode(request, convert::list)?;
        let answer = self.0.list(&caller, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::messages(&answer)))
    }

    async fn update_api_token(
        &self,
        request: Request<v1::UpdateApiTokenRequest>,
    ) -> Result<Response<v1::ApiToken>, Status> {
        let method = (SERVICE_NAME, "UpdateApiToken");
        let (by, command) = decode_change(&self.0.0, method, request, convert::update)?;
        let answer = self.0.update(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn revoke_api_token(
        &self,
        request: Request<v1::RevokeApiTokenRequest>,
    ) -> Result<Response<v1::ApiToken>, Status> {
        let method = (SERVICE_NAME, "RevokeApiToken");
        let (by, command) = decode_change(&self.0.0, method, request, convert::revoke)?;
        let answer = self.0.revoke(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }
}
