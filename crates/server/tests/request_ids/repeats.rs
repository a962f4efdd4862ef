//! Repeats of requests.

use crate::api::{ACME, Api, endpoint, endpoint_name, endpoint_request, fresh, refusal};
use std::time::Duration;
use tonic::Code;
use turnbuckle_client::{ApiError, proto as v1};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_repeat_of_a_creation_shows_the_secret_again_for_ten_minutes() {
    let api = Api::start().await;
    let request = endpoint_request("", &fresh());
    let made = api.client.create_endpoint(request.clone()).await.unwrap();
    assert!(made.signing_secret.starts_with("whsec_"));
    for _ in 0..9 {
        api.clock.advance(MINUTE);
        let again = api.client.create_endpoint(request.clone()).await.unwrap();
        assert_eq!(again, made);
    }
    api.clock.advance(MINUTE);
    let late = api.client.create_endpoint(request.clone()).await.unwrap();
    assert_eq!(late, v1::Endpoint { signing_secret: String::new(), ..made.clone() });
    let ring = api.store.audit_entries(tenant(&api).await, &Default::default(), None, 100).await;
    // The tenant and the endpoint: a repeat leaves no entry.
    assert_eq!(ring.unwrap().len(), 2);
    // After a day the id is new again.
    api.clock.advance(24 * HOUR);
    let other = api.client.create_endpoint(request).await.unwrap();
    assert_ne!(other.name, made.name);
}

async fn tenant(api: &Api) -> turnbuckle_domain::TenantId {
    let slug = turnbuckle_domain::ResourceId::new("acme").unwrap();
    api.store.tenant(&slug).await.unwrap().unwrap().id
}

#[tokio::test]
async fn fifty_concurrent_repeats_make_one_endpoint_and_all_learn_its_secret() {
    let api = Api::start().await;
    let request = endpoint_request("", &fresh());
    let calls: Vec<_> = (0..50)
        .map(|_| {
            let (client, request) = (api.client.clone(), request.clone());
            tokio::spawn(async move { client.create_endpoint(request).await })
        })
        .collect();
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.unwrap().unwrap());
    }
    assert!(!answers[0].signing_secret.is_empty());
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    let request = v1::ListEndpointsRequest { parent: ACME.to_owned(), ..Default::default() };
    let all = api.client.endpoints().list_endpoints(request).await.unwrap().into_inner();
    assert_eq!(all.endpoints.len(), 1);
}

#[tokio::test]
async fn fifty_concurrent_repeats_rotate_once() {
    let api = Api::start().await;
    api.create("orders").await;
    let request = v1::RotateKeyRequest {
        parent: endpoint_name("orders"),
        etag: api.ring("orders").await.etag,
        request_id: fresh(),
        ..Default::default()
    };
    let calls: Vec<_> = (0..50)
        .map(|_| {
            let (client, request) = (api.client.clone(), request.clone());
            tokio::spawn(async move { client.rotate_key(request).await })
        })
        .collect();
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.unwrap().unwrap());
    }
    assert!(!answers[0].secret.is_empty());
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    assert_eq!(api.ring("orders").await.keys.len(), 2);
}

#[tokio::test]
async fn other_content_or_another_caller_under_the_same_id_is_refused() {
    let api = Api::start().await;
    let id = fresh();
    let request = endpoint_request("orders", &id);
    api.client.create_endpoint(request.clone()).await.unwrap();
    let mut other = request.clone();
    other.endpoint.as_mut().unwrap().display_name = "Other".to_owned();
    let refused = api.client.create_endpoint(other).await.unwrap_err();
    let error = ApiError::new(&refused);
    assert_eq!(
        (error.code, error.reason.as_deref()),
        (Code::InvalidArgument, Some("REQUEST_ID_REUSED"))
    );
    assert_eq!(error.metadata.get("request_id"), Some(&id));
    let mallory = api.client_of("mallory").await;
    let expected = (Code::InvalidArgument, "REQUEST_ID_REUSED".to_owned());
    assert_eq!(refusal(mallory.create_endpoint(request).await), expected);
    // Another method is another matter.
    let request = v1::CreateEventTypeRequest {
        parent: ACME.to_owned(),
        event_type_id: "order.paid".to_owned(),
        request_id: id,
        ..Default::default()
    };
    api.client.create_event_type(request).await.unwrap();
}

#[tokio::test]
async fn an_id_that_is_no_uuid_is_told_with_everything_else() {
    let api = Api::start().await;
    let request = endpoint_request("UPPER", "7");
    let error = ApiError::new(&api.client.create_endpoint(request).await.unwrap_err());
    let fields: Vec<&str> =
        error.violations.iter().map(|violation| violation.field.as_str()).collect();
    assert_eq!(fields, ["request_id", "endpoint_id"]);
}

#[tokio::test]
async fn a_repeat_answers_the_present_state() {
    let api = Api::start().await;
    let request = endpoint_request("orders", &fresh());
    let made = api.client.create_endpoint(request.clone()).await.unwrap();
    let changed = v1::Endpoint { display_name: "New".to_owned(), ..endpoint(&made.name) };
    let update = v1::UpdateEndpointRequest { endpoint: Some(changed), ..Default::default() };
    api.client.update_endpoint(update).await.unwrap();
    let again = api.client.create_endpoint(request.clone()).await.unwrap();
    assert_eq!((again.display_name.as_str(), &again.uid), ("New", &made.uid));
    assert_eq!(again.signing_secret, made.signing_secret);
    // A deleted one is shown as that, without a secret; a successor of its name is another.
    api.delete("orders").await;
    api.create("orders").await;
    let again = api.client.create_endpoint(request.clone()).await.unwrap();
    assert_eq!(again.uid, made.uid);
    assert!(again.delete_time.is_some() && again.signing_secret.is_empty());
}

#[tokio::test]
async fn an_upsert_that_made_the_endpoint_can_be_repeated_for_its_secret() {
    let api = Api::start().await;
    let request = v1::UpdateEndpointRequest {
        endpoint: Some(endpoint(&endpoint_name("orders"))),
        allow_missing: true,
        request_id: fresh(),
        ..Default::default()
    };
    let made = api.client.update_endpoint(request.clone()).await.unwrap();
    assert!(!made.signing_secret.is_empty());
    assert_eq!(api.client.update_endpoint(request.clone()).await.unwrap(), made);
    // Under an id of its own the same call only finds it there.
    let other = v1::UpdateEndpointRequest { request_id: fresh(), ..request };
    assert_eq!(api.client.update_endpoint(other).await.unwrap().signing_secret, "");
}

#[tokio::test]
async fn every_verb_on_keys_can_be_repeated_with_its_old_etag() {
    let api = Api::start().await;
    api.create("orders").await;
    let parent = endpoint_name("orders");
    let stage = v1::StageKeyRequest {
        parent: parent.clone(),
        etag: api.ring("orders").await.etag,
        request_id: fresh(),
        ..Default::default()
    };
    let staged = api.client.stage_key(stage.clone()).await.unwrap();
    assert_eq!(api.client.stage_key(stage.clone()).await.unwrap(), staged);

    let activate = v1::ActivateKeyRequest {
        parent: parent.clone(),
        etag: api.ring("orders").await.etag,
        request_id: fresh(),
        ..Default::default()
    };
    let active = api.client.activate_key(activate.clone()).await.unwrap();
    assert_eq!(api.client.activate_key(activate).await.unwrap(), active);

    let (etag, request_id) = (active.etag, fresh());
    let rollback = v1::RollbackKeyRequest { parent, etag, request_id, ..Default::default() };
    let back = api.client.rollback_key(rollback.clone()).await.unwrap();
    assert_eq!(api.client.rollback_key(rollback).await.unwrap(), back);

    let revoke = v1::RevokeKeyRequest {
        name: staged.name.clone(),
        etag: back.etag,
        reason: "leaked".to_owned(),
        request_id: fresh(),
        ..Default::default()
    };
    let left = api.client.revoke_key(revoke.clone()).await.unwrap();
    assert_eq!(api.client.revoke_key(revoke).await.unwrap(), left);
    // What is destroyed is shown to nobody, in the first minutes neither.
    let again = api.client.stage_key(stage).await.unwrap();
    assert_eq!((again.name, again.secret.as_str()), (staged.name, ""));
    assert_eq!(again.state, i32::from(v1::KeyState::Revoked));
}

#[tokio::test]
async fn a_rehearsal_is_not_remembered() {
    let api = Api::start().await;
    let request = endpoint_request("orders", &fresh());
    let dry = v1::CreateEndpointRequest { validate_only: true, ..request.clone() };
    assert_eq!(api.client.create_endpoint(dry).await.unwrap().uid, "");
    assert!(!api.client.create_endpoint(request).await.unwrap().uid.is_empty());
}

#[tokio::test]
async fn every_creation_can_be_repeated() {
    let api = Api::start().await;
    let parent = ACME.to_owned();
    let tenant = v1::CreateTenantRequest {
        tenant_id: "other".to_owned(),
        request_id: fresh(),
        ..Default::default()
    };
    let made = api.client.create_tenant(tenant.clone()).await.unwrap();
    assert_eq!(api.client.create_tenant(tenant).await.unwrap(), made);
    let kind = v1::CreateEventTypeRequest {
        parent: parent.clone(),
        event_type_id: "order.paid".to_owned(),
        request_id: fresh(),
        ..Default::default()
    };
    let made = api.client.create_event_type(kind.clone()).await.unwrap();
    assert_eq!(api.client.create_event_type(kind.clone()).await.unwrap(), made);
    let policy = v1::CreateRetryPolicyRequest {
        parent: parent.clone(),
        request_id: fresh(),
        ..Default::default()
    };
    let made = api.client.create_retry_policy(policy.clone()).await.unwrap();
    assert_eq!(api.client.create_retry_policy(policy).await.unwrap(), made);
    api.create("orders").await;
    let subscription = v1::Subscription {
        endpoint: endpoint_name("orders"),
        event_types: vec!["*".to_owned()],
        ..Default::default()
    };
    let request = v1::CreateSubscriptionRequest {
        parent: parent.clone(),
        subscription: Some(subscription),
        request_id: fresh(),
        ..Default::default()
    };
    let made = api.client.create_subscription(request.clone()).await.unwrap();
    assert_eq!(api.client.create_subscription(request).await.unwrap(), made);
    // What cannot be brought back is gone for its repeats too.
    let name = format!("{ACME}/eventTypes/order.paid");
    let delete = v1::DeleteEventTypeRequest { name, ..Default::default() };
    api.client.event_types().delete_event_type(delete).await.unwrap();
    assert_eq!(refusal(api.client.create_event_type(kind).await).0, Code::NotFound);
}
