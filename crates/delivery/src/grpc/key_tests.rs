//! The KeyTests service.

use super::{convert, events};
use crate::{
    config::ConfigHandle,
    key_test::{KeyTester, Tested},
    plane::DeliveryPlane,
};
use std::sync::Arc;
use tonic::{Request, Response, Status};
use turnbuckle_domain::{Caller, Error, KeyId, ResourceId};
use turnbuckle_proto::v1::{self, key_tests_server::KeyTests};
use turnbuckle_runtime::grpc::{caller, duration, status, timestamp};

pub(super) struct KeyTestsService {
    config: ConfigHandle,
    tester: Arc<KeyTester>,
}

impl KeyTestsService {
    pub(super) fn new(plane: &DeliveryPlane) -> Self {
        Self { config: plane.config(), tester: plane.key_tester() }
    }

    async fn test(
        &self,
        caller: &Caller,
        request: v1::TestKeyRequest,
    ) -> Result<v1::TestKeyResponse, Error> {
        let parent = request.parent.as_str();
        let (slug, id) = convert::child("parent", parent, "endpoints")?;
        let key = key(parent, &request.key)?;
        // Permission comes first; then what was configured before the call, the tenant included.
        caller.enter(&slug)?;
        self.tester.catch_up().await;
        let tenant = events::enter(&self.config, caller, &slug)?;
        let missing = || Error::NotFound { resource: parent.to_owned() };
        let endpoint = ResourceId::new(id).map_err(|_| missing())?;
        let tested = self.tester.test(tenant, &endpoint, key, parent).await?;
        Ok(message(parent, &tested))
    }
}

/// The key named; none leaves it to the staged one.
fn key(parent: &str, name: &str) -> Result<Option<KeyId>, Error> {
    if name.is_empty() {
        return Ok(None);
    }
    let id = name.strip_prefix(parent).and_then(|rest| rest.strip_prefix("/keys/"));
    let id = id.and_then(|id| id.parse().ok());
    let malformed =
        || Error::invalid("key", format!("is no key of {parent}: use {parent}/keys/ID"));
    id.map(Some).ok_or_else(malformed)
}

fn message(parent: &str, tested: &Tested) -> v1::TestKeyResponse {
    let status = tested.outcome.status().unwrap_or_default();
    v1::TestKeyResponse {
        key: format!("{parent}/keys/{}", tested.key),
        accepted: (200..300).contains(&status),
        outcome: tested.outcome.class().to_owned(),
        detail: tested.outcome.detail().to_owned(),
        http_status: status.into(),
        duration: Some(duration(tested.duration)),
        summary: tested.words(),
        send_time: Some(timestamp(tested.at)),
    }
}

#[tonic::async_trait]
impl KeyTests for KeyTestsService {
    async fn test_key(
        &self,
        request: Request<v1::TestKeyRequest>,
    ) -> Result<Response<v1::TestKeyResponse>, Status> {
        let caller = caller(&request).map_err(|error| status(&error))?;
        let answer = self.test(&caller, request.into_inner()).await;
        answer.map(Response::new).map_err(|error| status(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_of_the_endpoint_tested() {
        let parent = "tenants/a/endpoints/b";
        let id = "key_00000000000000000000000000";
        assert_eq!(key(parent, "").unwrap(), None);
        assert!(key(parent, &format!("{parent}/keys/{id}")).unwrap().is_some());
        for bad in [id, "tenants/a/endpoints/c/keys/x", "tenants/a/endpoints/b/keys/", "x"] {
            assert!(key(parent, bad).unwrap_err().to_string().contains("key: is no key"), "{bad}");
        }
    }
}
