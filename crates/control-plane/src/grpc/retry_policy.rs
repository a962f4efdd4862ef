//! The RetryPolicies service.

use super::{decode, decode_change, decode_once, refuse};
use crate::{
    Dependencies,
    convert::{
        retry_policy as convert, retry_policy_version as versions, retry_preview as preview,
    },
    retry_policy::RetryPolicies,
};
use std::sync::Arc;
use tonic::{Request, Response, Status};
use turnbuckle_proto::v1::{
    self,
    retry_policies_server::{RetryPolicies as Contract, SERVICE_NAME},
};

/// Serves retry policies.
pub(crate) struct Service(RetryPolicies);

impl Service {
    pub(crate) fn new(dependencies: Arc<Dependencies>) -> Self {
        Self(RetryPolicies(dependencies))
    }
}

#[tonic::async_trait]
impl Contract for Service {
    async fn create_retry_policy(
        &self,
        request: Request<v1::CreateRetryPolicyRequest>,
    ) -> Result<Response<v1::RetryPolicy>, Status> {
        let method = (SERVICE_NAME, "CreateRetryPolicy");
        let (by, command) = decode_once(&self.0.0, method, request, convert::create)?;
        let answer = self.0.create(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn get_retry_policy(
        &self,
        request: Request<v1::GetRetryPolicyRequest>,
    ) -> Result<Response<v1::RetryPolicy>, Status> {
        let (caller, command) = decode(request, convert::get)?;
        let answer = self.0.get(&caller, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn list_retry_policies(
        &self,
        request: Request<v1::ListRetryPoliciesRequest>,
    ) -> Result<Response<v1::ListRetryPoliciesResponse>, Status> {
        let (caller, command) = decode(request, convert::list)?;
        let answer = self.0.list(&caller, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::messages(&answer)))
    }

    async fn list_retry_policy_versions(
        &self,
        request: Request<v1::ListRetryPolicyVersionsRequest>,
    ) -> Result<Response<v1::ListRetryPolicyVersionsResponse>, Status> {
        let (caller, command) = decode(request, versions::list)?;
        let answer = self.0.versions(&caller, &command).await.map_err(refuse)?;
        Ok(Response::new(versions::messages(&answer)))
    }

    async fn update_retry_policy(
        &self,
        request: Request<v1::UpdateRetryPolicyRequest>,
    ) -> Result<Response<v1::RetryPolicy>, Status> {
        let method = (SERVICE_NAME, "UpdateRetryPolicy");
        let (by, command) = decode_change(&self.0.0, method, request, convert::upsert)?;
        let answer = self.0.upsert(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn delete_retry_policy(
        &self,
        request: Request<v1::DeleteRetryPolicyRequest>,
    ) -> Result<Response<()>, Status> {
        let method = (SERVICE_NAME, "DeleteRetryPolicy");
        let (by, command) = decode_change(&self.0.0, method, request, convert::delete)?;
        self.0.delete(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(()))
    }

    async fn undelete_retry_policy(
        &self,
        request: Request<v1::UndeleteRetryPolicyRequest>,
    ) -> Result<Response<v1::RetryPolicy>, Status> {
        let method = (SERVICE_NAME, "UndeleteRetryPolicy");
        let (by, command) = decode_change(&self.0.0, method, request, convert::undelete)?;
        let answer = self.0.undelete(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn preview_retry_policy(
        &self,
        request: Request<v1::PreviewRetryPolicyRequest>,
    ) -> Result<Response<v1::PreviewRetryPolicyResponse>, Status> {
        let (caller, command) = decode(request, preview::preview)?;
        let answer = self.0.preview(&caller, &command).await.map_err(refuse)?;
        Ok(Response::new(preview::planned(&answer)))
    }
}
