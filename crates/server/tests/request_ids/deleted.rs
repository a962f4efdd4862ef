//! Deleted resources: shown, brought back, purged; and quotas.

use crate::api::{ACME, Api, endpoint_name, endpoint_request, refusal};
use std::time::Duration;
use tonic::{Code, Status};
use turnbuckle_client::{ApiError, proto as v1};
use turnbuckle_control_plane::Swept;
use turnbuckle_domain::Quotas;

const DAY: Duration = Duration::from_secs(24 * 3600);

async fn get(api: &Api, id: &str, show_deleted: bool) -> Result<v1::Endpoint, Status> {
    let request = v1::GetEndpointRequest { name: endpoint_name(id), show_deleted };
    Ok(api.client.endpoints().get_endpoint(request).await?.into_inner())
}

async fn undelete(api: &Api, request: v1::UndeleteEndpointRequest) -> Result<v1::Endpoint, Status> {
    Ok(api.client.endpoints().undelete_endpoint(request).await?.into_inner())
}

fn named(id: &str) -> v1::UndeleteEndpointRequest {
    v1::UndeleteEndpointRequest { name: endpoint_name(id), ..Default::default() }
}

#[tokio::test]
async fn a_deleted_endpoint_is_shown_when_asked_and_comes_back_as_it_was() {
    let api = Api::start().await;
    let made = api.create("orders").await;
    let all = api.subscribe("all", "orders").await;
    let keys = api.ring("orders").await.keys;
    api.clock.advance(DAY);
    api.delete("orders").await;
    assert_eq!(refusal(get(&api, "orders", false).await).0, Code::NotFound);
    let deleted = get(&api, "orders", true).await.unwrap();
    let (delete, purge) = (deleted.delete_time.unwrap(), deleted.purge_time.unwrap());
    assert_eq!(purge.seconds - delete.seconds, 30 * 24 * 3600);

    let stale = v1::UndeleteEndpointRequest { etag: made.etag, ..named("orders") };
    assert_eq!(refusal(undelete(&api, stale).await).0, Code::Aborted);
    let dry = v1::UndeleteEndpointRequest { validate_only: true, ..named("orders") };
    assert_eq!(undelete(&api, dry).await.unwrap().delete_time, None);
    let wanted = v1::UndeleteEndpointRequest { etag: deleted.etag, ..named("orders") };
    let back = undelete(&api, wanted).await.unwrap();
    assert_eq!((back.uid, back.delete_time), (made.uid, None));
    assert_eq!(api.ring("orders").await.keys, keys);
    let request = v1::GetSubscriptionRequest { name: all.name.clone(), ..Default::default() };
    let found = api.client.subscriptions().get_subscription(request).await.unwrap().into_inner();
    assert_eq!(found.uid, all.uid);
    // There is nothing left to bring back.
    assert_eq!(refusal(undelete(&api, named("orders")).await).0, Code::AlreadyExists);
    assert_eq!(refusal(undelete(&api, named("other")).await).0, Code::NotFound);
}

#[tokio::test]
async fn of_several_deleted_ones_of_a_name_each_can_be_named() {
    let api = Api::start().await;
    let first = api.create("orders").await;
    api.delete("orders").await;
    api.clock.advance(DAY);
    let second = api.create("orders").await;
    let taken = v1::UndeleteEndpointRequest { uid: first.uid.clone(), ..named("orders") };
    let refused = undelete(&api, taken.clone()).await.unwrap_err();
    let error = ApiError::new(&refused);
    assert_eq!(error.reason.as_deref(), Some("NAME_TAKEN"));
    assert!(error.message.contains("in use again"), "{}", error.message);
    api.delete("orders").await;
    assert_eq!(get(&api, "orders", true).await.unwrap().uid, second.uid);
    assert_eq!(undelete(&api, taken).await.unwrap().uid, first.uid);
    let foreign = v1::UndeleteEndpointRequest { uid: second.uid, ..named("other") };
    assert_eq!(refusal(undelete(&api, foreign).await).0, Code::NotFound);
    let garbage = v1::UndeleteEndpointRequest { uid: "x".to_owned(), ..named("orders") };
    assert_eq!(refusal(undelete(&api, garbage).await).0, Code::InvalidArgument);
}

#[tokio::test]
async fn subscriptions_and_policies_come_back_too() {
    let api = Api::start().await;
    api.create("orders").await;
    let all = api.subscribe("all", "orders").await;
    let mut subscriptions = api.client.subscriptions();
    let name = all.name.clone();
    let delete = v1::DeleteSubscriptionRequest { name: name.clone(), ..Default::default() };
    subscriptions.delete_subscription(delete).await.unwrap();
    api.delete("orders").await;
    let request = v1::UndeleteSubscriptionRequest { name, ..Default::default() };
    let alone = subscriptions.undelete_subscription(request.clone()).await;
    assert_eq!(refusal(alone), (Code::FailedPrecondition, "REFERENCE_DELETED".to_owned()));
    undelete(&api, named("orders")).await.unwrap();
    let back = subscriptions.undelete_subscription(request).await.unwrap().into_inner();
    assert_eq!((back.uid, back.endpoint), (all.uid, endpoint_name("orders")));

    let mut policies = api.client.retry_policies();
    let request = v1::CreateRetryPolicyRequest {
        parent: ACME.to_owned(),
        retry_policy_id: "quick".to_owned(),
        ..Default::default()
    };
    let quick = api.client.create_retry_policy(request).await.unwrap();
    let name = quick.name.clone();
    let delete = v1::DeleteRetryPolicyRequest { name: name.clone(), ..Default::default() };
    policies.delete_retry_policy(delete).await.unwrap();
    let request = v1::UndeleteRetryPolicyRequest { name, ..Default::default() };
    let back = policies.undelete_retry_policy(request).await.unwrap().into_inner();
    assert_eq!((back.uid, back.version), (quick.uid, 1));
}

#[tokio::test]
async fn what_was_deleted_thirty_days_ago_is_purged_a_bounded_number_at_once() {
    let api = Api::start().await;
    api.create("kept").await;
    for number in 0..51 {
        let id = format!("e{number}");
        api.create(&id).await;
        api.subscribe(&id, &id).await;
        api.delete(&id).await;
    }
    api.clock.advance(29 * DAY);
    assert_eq!(api.sweeper.run().await.unwrap().purged, 0);
    api.clock.advance(DAY + Duration::from_micros(1));
    assert_eq!(api.sweeper.run().await.unwrap().purged, 100);
    assert_eq!(api.sweeper.run().await.unwrap(), Swept { purged: 2, ..Swept::default() });
    assert_eq!(refusal(get(&api, "e1", true).await).0, Code::NotFound);
    assert_eq!(refusal(undelete(&api, named("e1")).await).0, Code::NotFound);
    assert!(get(&api, "kept", false).await.is_ok());
    // Those of the creations went with the first run.
    assert_eq!(api.sweeper.run().await.unwrap(), Swept::default());
}

#[tokio::test]
async fn a_quota_says_what_there_is_too_much_of_and_what_helps() {
    let api = Api::with(Quotas { endpoints: 2, ..Quotas::default() }).await;
    api.create("a").await;
    api.create("b").await;
    let refused = api.client.create_endpoint(endpoint_request("c", "")).await.unwrap_err();
    let error = ApiError::new(&refused);
    assert_eq!(
        (error.code, error.reason.as_deref()),
        (Code::ResourceExhausted, Some("QUOTA_EXCEEDED"))
    );
    assert!(error.message.contains("has 2 endpoints"), "{}", error.message);
    assert!(error.message.contains("--max-endpoints"), "{}", error.message);
    assert_eq!(error.metadata.get("limit").map(String::as_str), Some("2"));
    let details = tonic_types::StatusExt::get_details_quota_failure(&refused).unwrap();
    assert_eq!(details.violations[0].subject, "tenants/acme/endpoints");
    api.delete("a").await;
    api.create("c").await;
}
