//! Every method of the control plane that changes something leaves an entry in the record.

use crate::api::{ACME, Api, endpoint, endpoint_name, endpoint_request};
use prost::Message as _;
use std::collections::BTreeSet;
use turnbuckle_client::proto as v1;
use turnbuckle_domain::{
    AuditFilter, ConfigPosition, Epoch, HeldSnapshot, NodeReport, NodeRole, PLATFORM, ResourceId,
    Revision,
};

/// What changes no configuration, or is not served by the control plane.
const NOT_HERE: [&str; 14] = [
    // Events and deliveries: they are data, and have a history of their own.
    "Events/PublishEvent",
    "Events/BatchPublishEvents",
    "Deliveries/RetryDelivery",
    "Deliveries/CancelDelivery",
    "Pull/Stream",
    // Of the delivery plane: recorded by it.
    "Replays/CreateReplay",
    "Replays/PauseReplay",
    "Replays/ResumeReplay",
    "Replays/CancelReplay",
    // Of its own tests, with an ingress.
    "Receipts/ReplayReceipt",
    // They change nothing.
    "KeyTests/TestKey",
    "SourceTests/TestSource",
    // What nodes say of themselves.
    "Configuration/Watch",
    "Configuration/ReportApplied",
];

/// Every method whose name does not say that it only reads.
fn changing() -> BTreeSet<String> {
    let set = prost_types::FileDescriptorSet::decode(turnbuckle_proto::DESCRIPTORS).unwrap();
    let services = set.file.iter().filter(|file| file.package() == "turnbuckle.v1");
    let methods = services.flat_map(|file| &file.service).flat_map(|service| {
        service.method.iter().map(|method| format!("{}/{}", service.name(), method.name()))
    });
    let reads = |path: &str| {
        let method = path.rsplit('/').next().unwrap_or_default();
        ["Get", "List", "Preview"].iter().any(|verb| method.starts_with(verb))
    };
    methods.filter(|path| !reads(path)).collect()
}

/// The method of each entry of the records of both tenants and of the platform, oldest first in each.
async fn entries(api: &Api) -> Vec<(uuid::Uuid, i64, String)> {
    let mut owners = vec![PLATFORM];
    for slug in ["acme", "beta"] {
        let slug = ResourceId::new(slug).unwrap();
        owners.extend(api.store.audited_tenant(&slug).await.unwrap().map(|tenant| tenant.id));
    }
    let mut all = Vec::new();
    for owner in owners {
        let filter = AuditFilter::default();
        let rows = api.store.audit_entries(owner, &filter, None, 1_000).await.unwrap();
        all.extend(rows.into_iter().map(|row| (owner.uuid(), row.sequence, row.method)));
    }
    all
}

struct Walk {
    api: Api,
    done: BTreeSet<String>,
}

impl Walk {
    /// Calls a method and finds its entry.
    async fn leaves<T>(
        &mut self,
        method: &str,
        call: impl Future<Output = Result<tonic::Response<T>, tonic::Status>>,
    ) -> T {
        let before = entries(&self.api).await;
        let answer = call.await.map_err(|status| format!("{method}: {status}")).unwrap();
        let mut new = entries(&self.api).await;
        new.retain(|entry| !before.contains(entry));
        let methods: Vec<&str> = new.iter().map(|(_, _, method)| method.as_str()).collect();
        assert_eq!(methods, [format!("turnbuckle.v1.{method}")], "{method}");
        self.done.insert(method.to_owned());
        answer.into_inner()
    }

    async fn etag(&self, owner: &str) -> String {
        let request = v1::GetKeyRingRequest { name: format!("{owner}/keyRing") };
        self.api.client.keys().get_key_ring(request).await.unwrap().into_inner().etag
    }
}

macro_rules! walk {
    ($walk:ident, $path:literal, $service:ident.$method:ident($message:ident { $($field:ident $(: $value:expr)?),* $(,)? })) => {{
        let mut service = $walk.api.client.$service();
        #[allow(clippy::needless_update, reason = "some requests have no more fields")]
        let request = v1::$message { $($field $(: $value)?,)* ..Default::default() };
        Box::pin($walk.leaves($path, service.$method(request))).await
    }};
}

fn mask(path: &str) -> Option<prost_types::FieldMask> {
    Some(prost_types::FieldMask { paths: vec![path.to_owned()] })
}

fn text(text: &str) -> String {
    text.to_owned()
}

#[tokio::test]
async fn every_method_that_changes_something_leaves_an_entry() {
    let mut walk = Walk { api: Api::start().await, done: BTreeSet::new() };
    Box::pin(tenants_and_tokens(&mut walk)).await;
    Box::pin(endpoints(&mut walk)).await;
    Box::pin(catalogue(&mut walk)).await;
    Box::pin(policies(&mut walk)).await;
    Box::pin(keys(&mut walk)).await;
    Box::pin(sources(&mut walk)).await;
    Box::pin(operations(&mut walk)).await;
    let expected: BTreeSet<String> =
        changing().into_iter().filter(|path| !NOT_HERE.contains(&path.as_str())).collect();
    assert_eq!(walk.done, expected, "a method that is in no list");
}

async fn tenants_and_tokens(walk: &mut Walk) {
    let made = walk!(
        walk,
        "Tenants/CreateTenant",
        tenants.create_tenant(CreateTenantRequest { tenant_id: text("beta") })
    );
    let tenant = v1::Tenant { display_name: text("Beta"), ..made };
    let made = walk!(
        walk,
        "Tenants/UpdateTenant",
        tenants.update_tenant(UpdateTenantRequest {
            tenant: Some(tenant),
            update_mask: mask("display_name"),
        })
    );
    walk!(
        walk,
        "Tenants/DeleteTenant",
        tenants.delete_tenant(DeleteTenantRequest { name: made.name })
    );
    let token = v1::ApiToken {
        role: text("viewer"),
        ttl: Some(prost_types::Duration { seconds: 3_600, nanos: 0 }),
        ..Default::default()
    };
    let made = walk!(
        walk,
        "ApiTokens/CreateApiToken",
        api_tokens.create_api_token(CreateApiTokenRequest {
            parent: text(ACME),
            api_token_id: text("ci"),
            api_token: Some(token),
        })
    );
    let token = v1::ApiToken { description: text("of the build"), ttl: None, ..made };
    let made = walk!(
        walk,
        "ApiTokens/UpdateApiToken",
        api_tokens.update_api_token(UpdateApiTokenRequest {
            api_token: Some(token),
            update_mask: mask("description"),
        })
    );
    walk!(
        walk,
        "ApiTokens/RevokeApiToken",
        api_tokens.revoke_api_token(RevokeApiTokenRequest { name: made.name })
    );
}

async fn endpoints(walk: &mut Walk) {
    let mut service = walk.api.client.endpoints();
    let create = endpoint_request("orders", "");
    walk.leaves("Endpoints/CreateEndpoint", service.create_endpoint(create)).await;
    let name = endpoint_name("orders");
    let changed = v1::Endpoint { display_name: text("Orders"), ..endpoint(&name) };
    walk!(
        walk,
        "Endpoints/UpdateEndpoint",
        endpoints.update_endpoint(UpdateEndpointRequest {
            endpoint: Some(changed),
            update_mask: mask("display_name"),
        })
    );
    walk!(
        walk,
        "Endpoints/DisableEndpoint",
        endpoints
            .disable_endpoint(DisableEndpointRequest { name: name.clone(), reason: text("moves") })
    );
    walk!(
        walk,
        "Endpoints/EnableEndpoint",
        endpoints.enable_endpoint(EnableEndpointRequest { name: name.clone() })
    );
    walk!(
        walk,
        "Endpoints/DeleteEndpoint",
        endpoints.delete_endpoint(DeleteEndpointRequest { name: name.clone() })
    );
    walk!(
        walk,
        "Endpoints/UndeleteEndpoint",
        endpoints.undelete_endpoint(UndeleteEndpointRequest { name: name.clone() })
    );
    let all =
        v1::Subscription { endpoint: name, event_types: vec![text("*")], ..Default::default() };
    let made = walk!(
        walk,
        "Subscriptions/CreateSubscription",
        subscriptions.create_subscription(CreateSubscriptionRequest {
            parent: text(ACME),
            subscription_id: text("all"),
            subscription: Some(all),
        })
    );
    let name = made.name.clone();
    let fewer = v1::Subscription { event_types: vec![text("order.*")], ..made };
    walk!(
        walk,
        "Subscriptions/UpdateSubscription",
        subscriptions.update_subscription(UpdateSubscriptionRequest {
            subscription: Some(fewer),
            update_mask: mask("event_types"),
        })
    );
    walk!(
        walk,
        "Subscriptions/DeleteSubscription",
        subscriptions.delete_subscription(DeleteSubscriptionRequest { name: name.clone() })
    );
    walk!(
        walk,
        "Subscriptions/UndeleteSubscription",
        subscriptions.undelete_subscription(UndeleteSubscriptionRequest { name })
    );
}

async fn catalogue(walk: &mut Walk) {
    let made = walk!(
        walk,
        "EventTypes/CreateEventType",
        event_types.create_event_type(CreateEventTypeRequest {
            parent: text(ACME),
            event_type_id: text("order.paid"),
        })
    );
    let name = made.name.clone();
    let changed = v1::EventType { description: text("somebody paid"), ..made };
    walk!(
        walk,
        "EventTypes/UpdateEventType",
        event_types.update_event_type(UpdateEventTypeRequest {
            event_type: Some(changed),
            update_mask: mask("description"),
        })
    );
    let version = v1::EventTypeVersion { schema: text("{}"), ..Default::default() };
    for id in ["1", "2"] {
        walk!(
            walk,
            "EventTypeVersions/CreateEventTypeVersion",
            event_type_versions.create_event_type_version(CreateEventTypeVersionRequest {
                parent: name.clone(),
                event_type_version_id: text(id),
                event_type_version: Some(version.clone()),
            })
        );
    }
    walk!(
        walk,
        "EventTypeVersions/DeleteEventTypeVersion",
        event_type_versions.delete_event_type_version(DeleteEventTypeVersionRequest {
            name: format!("{name}/versions/1"),
        })
    );
    walk!(
        walk,
        "EventTypes/DeleteEventType",
        event_types.delete_event_type(DeleteEventTypeRequest { name })
    );
}

async fn policies(walk: &mut Walk) {
    let made = walk!(
        walk,
        "RetryPolicies/CreateRetryPolicy",
        retry_policies.create_retry_policy(CreateRetryPolicyRequest {
            parent: text(ACME),
            retry_policy_id: text("quick"),
        })
    );
    let name = made.name.clone();
    let changed = v1::RetryPolicy { max_attempts: 3, ..made };
    walk!(
        walk,
        "RetryPolicies/UpdateRetryPolicy",
        retry_policies.update_retry_policy(UpdateRetryPolicyRequest {
            retry_policy: Some(changed),
            update_mask: mask("max_attempts"),
        })
    );
    let request = v1::ListRetryPolicyVersionsRequest { name: name.clone(), ..Default::default() };
    let mut service = walk.api.client.retry_policies();
    let versions = service.list_retry_policy_versions(request).await.unwrap().into_inner().versions;
    assert_eq!(versions.iter().map(|row| row.version).collect::<Vec<_>>(), [2, 1]);
    walk!(
        walk,
        "RetryPolicies/DeleteRetryPolicy",
        retry_policies.delete_retry_policy(DeleteRetryPolicyRequest { name: name.clone() })
    );
    walk!(
        walk,
        "RetryPolicies/UndeleteRetryPolicy",
        retry_policies.undelete_retry_policy(UndeleteRetryPolicyRequest { name })
    );
}

async fn keys(walk: &mut Walk) {
    let parent = endpoint_name("orders");
    let etag = walk.etag(&parent).await;
    walk!(walk, "Keys/StageKey", keys.stage_key(StageKeyRequest { parent: parent.clone(), etag }));
    let etag = walk.etag(&parent).await;
    let ring = walk!(
        walk,
        "Keys/ActivateKey",
        keys.activate_key(ActivateKeyRequest { parent: parent.clone(), etag })
    );
    let ring = walk!(
        walk,
        "KeyRings/PauseRotation",
        key_rings.pause_rotation(PauseRotationRequest {
            parent: parent.clone(),
            etag: ring.etag,
            reason: text("wait"),
        })
    );
    let ring = walk!(
        walk,
        "KeyRings/ResumeRotation",
        key_rings
            .resume_rotation(ResumeRotationRequest { parent: parent.clone(), etag: ring.etag })
    );
    let ring = walk!(
        walk,
        "Keys/RollbackKey",
        keys.rollback_key(RollbackKeyRequest { parent: parent.clone(), etag: ring.etag })
    );
    let fresh = walk!(
        walk,
        "Keys/RotateKey",
        keys.rotate_key(RotateKeyRequest { parent: parent.clone(), etag: ring.etag, force: true })
    );
    walk!(
        walk,
        "KeyRings/RevealKey",
        key_rings.reveal_key(RevealKeyRequest { name: fresh.name.clone(), reason: text("lost") })
    );
    let etag = walk.etag(&parent).await;
    walk!(
        walk,
        "Keys/RevokeKey",
        keys.revoke_key(RevokeKeyRequest { name: fresh.name, etag, reason: text("leaked") })
    );
}

async fn sources(walk: &mut Walk) {
    let verification = Some(v1::source::Verification::Preset(text("github")));
    let made = walk!(
        walk,
        "Sources/CreateSource",
        sources.create_source(CreateSourceRequest {
            parent: text(ACME),
            source_id: text("git"),
            source: Some(v1::Source { verification, ..Default::default() }),
            generate_secret: true,
        })
    );
    let name = made.name.clone();
    let changed = v1::Source { display_name: text("Git"), ..made };
    walk!(
        walk,
        "Sources/UpdateSource",
        sources.update_source(UpdateSourceRequest {
            source: Some(changed),
            update_mask: mask("display_name"),
        })
    );
    walk!(
        walk,
        "Sources/RotateIngestPath",
        sources.rotate_ingest_path(RotateIngestPathRequest { name: name.clone() })
    );
    walk!(
        walk,
        "Sources/DisableSource",
        sources.disable_source(DisableSourceRequest { name: name.clone(), reason: text("storm") })
    );
    walk!(
        walk,
        "Sources/EnableSource",
        sources.enable_source(EnableSourceRequest { name: name.clone() })
    );
    walk!(
        walk,
        "Sources/DeleteSource",
        sources.delete_source(DeleteSourceRequest { name: name.clone() })
    );
    walk!(walk, "Sources/UndeleteSource", sources.undelete_source(UndeleteSourceRequest { name }));
}

async fn operations(walk: &mut Walk) {
    walk!(walk, "Keyring/RewrapSecrets", keyring.rewrap_secrets(RewrapSecretsRequest {}));
    let at =
        ConfigPosition { epoch: Epoch::from_uuid(uuid::Uuid::from_u128(7)), revision: Revision(9) };
    let now = walk.api.now();
    let report = NodeReport {
        node: ResourceId::new("web-1").unwrap(),
        role: NodeRole::Delivery,
        epoch: at.epoch,
        applied: Revision(1),
        reported_at: now,
        started_at: now,
        version: text("1"),
        refused: Vec::new(),
        staleness: std::time::Duration::ZERO,
        held: Some(HeldSnapshot { at, present: 9, removed: 8 }),
    };
    walk.api.nodes.report_node(&report).await.unwrap();
    walk!(
        walk,
        "Nodes/AcceptSnapshot",
        nodes.accept_snapshot(AcceptSnapshotRequest {
            name: text("nodes/delivery.web-1"),
            epoch: at.epoch.to_string(),
            revision: 9,
        })
    );
}
