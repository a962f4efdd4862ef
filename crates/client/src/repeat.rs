//! Changes of configuration that can be repeated: each gets an id, and the server makes it once.

use crate::{
    Client,
    proto::{
        ActivateKeyRequest, ApiToken, CreateApiTokenRequest, CreateEndpointRequest,
        CreateEventTypeRequest, CreateEventTypeVersionRequest, CreateRetryPolicyRequest,
        CreateSourceRequest, CreateSubscriptionRequest, CreateTenantRequest, Endpoint, EventType,
        EventTypeVersion, Key, KeyRing, PauseRotationRequest, ResumeRotationRequest, RetryPolicy,
        RevokeKeyRequest, RollbackKeyRequest, RotateIngestPathRequest, RotateKeyRequest, Source,
        StageKeyRequest, Subscription, Tenant, UpdateEndpointRequest,
    },
    publish::random,
};
use tonic::{Response, Status};
use uuid::Uuid;

macro_rules! repeated_calls {
    ($($(#[$doc:meta])* $method:ident($request:ident) -> $answer:ident by $service:ident;)*) => {
        impl Client {
            $(
                $(#[$doc])*
                ///
                /// Repeated while the failure is a passing one. An empty `request_id` is filled
                /// before the first try, so the server makes one of it and a repeat after a lost
                /// answer gets that one.
                ///
                /// # Errors
                /// The last status, when it is final or no tries are left.
                pub async fn $method(&self, mut request: $request) -> Result<$answer, Status> {
                    name_request(&mut request.request_id);
                    // A resource is large, and is in each of the futures inside the other.
                    Box::pin(self.repeat(|| {
                        let (mut service, request) = (self.$service(), request.clone());
                        Box::pin(async move { service.$method(request).await })
                    }))
                    .await
                }
            )*
        }
    };
}

repeated_calls! {
    /// Creates a tenant.
    create_tenant(CreateTenantRequest) -> Tenant by tenants;
    /// Creates an event type.
    create_event_type(CreateEventTypeRequest) -> EventType by event_types;
    /// Creates an endpoint. The answer carries its secret, that of a repeat within 10 minutes too.
    create_endpoint(CreateEndpointRequest) -> Endpoint by endpoints;
    /// Changes an endpoint, or makes it. The answer carries its secret when this call made it.
    update_endpoint(UpdateEndpointRequest) -> Endpoint by endpoints;
    /// Creates a subscription.
    create_subscription(CreateSubscriptionRequest) -> Subscription by subscriptions;
    /// Creates a retry policy.
    create_retry_policy(CreateRetryPolicyRequest) -> RetryPolicy by retry_policies;
    /// Creates a version of an event type.
    create_event_type_version(CreateEventTypeVersionRequest) -> EventTypeVersion
        by event_type_versions;
    /// Creates a source. The answer carries a secret that was made with it, that of a repeat within
    /// 10 minutes too.
    create_source(CreateSourceRequest) -> Source by sources;
    /// Gives a source another path.
    rotate_ingest_path(RotateIngestPathRequest) -> Source by sources;
    /// Makes an API token. The answer carries its secret, unless it is that of a repeat: an empty one
    /// means that the first answer was lost. Then revoke the token and make another.
    create_api_token(CreateApiTokenRequest) -> ApiToken by api_tokens;
    /// Adds a key that does not sign yet. The answer carries its secret.
    stage_key(StageKeyRequest) -> Key by keys;
    /// Makes the staged key the active one.
    activate_key(ActivateKeyRequest) -> KeyRing by keys;
    /// Stages and activates a key in one step. The answer carries its secret.
    rotate_key(RotateKeyRequest) -> Key by keys;
    /// Goes back to the key before.
    rollback_key(RollbackKeyRequest) -> KeyRing by keys;
    /// Destroys a key.
    revoke_key(RevokeKeyRequest) -> KeyRing by keys;
    /// Holds the retiring key of an endpoint past its time.
    pause_rotation(PauseRotationRequest) -> KeyRing by key_rings;
    /// Lets a paused rotation go on.
    resume_rotation(ResumeRotationRequest) -> KeyRing by key_rings;
}

impl Client {
    /// Sends again while the failure is a passing one, as the calls above do. For calls with
    /// [`Client::grpc`]: a request that makes something needs an id, the same in every try.
    ///
    /// # Errors
    /// The last status, when it is final or no tries are left.
    pub async fn repeat<T, F>(&self, send: impl Fn() -> F + Send) -> Result<T, Status>
    where
        F: Future<Output = Result<Response<T>, Status>> + Send,
    {
        let mut tries: u32 = 1;
        loop {
            let status = match send().await {
                Ok(response) => return Ok(response.into_inner()),
                Err(status) => status,
            };
            // The resource has changed since it was read: the same request cannot do better.
            if status.code() == tonic::Code::Aborted {
                return Err(status);
            }
            match self.retry.wait_after(tries, &status, random()) {
                Some(delay) => tokio::time::sleep(delay).await,
                None => return Err(status),
            }
            tries += 1;
        }
    }
}

fn name_request(request_id: &mut String) {
    if request_id.is_empty() {
        *request_id = Uuid::now_v7().to_string();
    }
}

#[cfg(test)]
mod tests;
