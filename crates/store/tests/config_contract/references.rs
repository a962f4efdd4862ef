//! Rules between resources.

use crate::common::{at, by, endpoint, on_both_backends, ring};
use crate::fixture::{Fixture, event_type, refusal, retry_policy, subscription};
use turnbuckle_domain::{ConfigSource as _, ConfigStore as _, Revision, Tenant, TenantId};
use uuid::Uuid;

on_both_backends!(
    a_tenant_with_endpoints_is_not_deleted,
    a_deleted_tenant_takes_what_is_left_with_it_and_gets_nothing_new,
    a_retry_policy_in_use_is_not_deleted,
    nothing_refers_to_what_is_gone,
    a_deleted_endpoint_takes_its_subscriptions_with_it,
);

async fn a_tenant_with_endpoints_is_not_deleted(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    let refused = config.delete_tenant(&acme, at(9), &by()).await;
    assert_eq!(refusal(refused), ("RESOURCE_IN_USE", "tenants/acme".to_owned()));
    config.delete_endpoint(&orders, at(9), &by()).await.unwrap();
    config.delete_tenant(&acme, at(9), &by()).await.unwrap();
}

async fn a_deleted_tenant_takes_what_is_left_with_it_and_gets_nothing_new(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    config.create_event_type(event_type(acme.id, "order.paid"), &by()).await.unwrap();
    config.create_retry_policy(retry_policy(acme.id, "quick"), &by()).await.unwrap();
    config.delete_tenant(&acme, at(9), &by()).await.unwrap();
    let delta = config.changes_since(Revision::ZERO).await.unwrap();
    assert!(delta.tenants.is_empty() && delta.event_types.is_empty());
    assert!(delta.retry_policies.is_empty());

    let late = config.create_endpoint(endpoint(acme.id, "late"), ring(), &by()).await;
    assert_eq!(refusal(late), ("NOT_FOUND", "tenants/acme".to_owned()));
    let unknown = TenantId::from_uuid(Uuid::now_v7());
    let lost = config.create_event_type(event_type(unknown, "order.paid"), &by()).await;
    assert_eq!(refusal(lost), ("NOT_FOUND", format!("tenants/{unknown}")));
}

async fn a_retry_policy_in_use_is_not_deleted(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let policy = config.create_retry_policy(retry_policy(acme.id, "quick"), &by()).await.unwrap();
    let mut user = endpoint(acme.id, "orders");
    user.retry_policy = Some(policy.id);
    let mut user = config.create_endpoint(user, ring(), &by()).await.unwrap();
    let refused = config.delete_retry_policy(&policy, at(9), &by()).await;
    let name = "tenants/acme/retryPolicies/quick".to_owned();
    assert_eq!(refusal(refused), ("RESOURCE_IN_USE", name));
    user.retry_policy = None;
    let before = user.meta.revision;
    config.update_endpoint(user, before, &by()).await.unwrap();
    config.delete_retry_policy(&policy, at(9), &by()).await.unwrap();
}

async fn nothing_refers_to_what_is_gone(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let mut orders = fixture.endpoint(&acme, "orders").await;
    let policy = config.create_retry_policy(retry_policy(acme.id, "quick"), &by()).await.unwrap();
    config.delete_retry_policy(&policy, at(9), &by()).await.unwrap();
    let name = || "tenants/acme/retryPolicies/quick".to_owned();
    orders.retry_policy = Some(policy.id);
    let refused = config.update_endpoint(orders.clone(), orders.meta.revision, &by()).await;
    assert_eq!(refusal(refused), ("NOT_FOUND", name()));
    let mut late = endpoint(acme.id, "late");
    late.retry_policy = Some(policy.id);
    let refused = config.create_endpoint(late, ring(), &by()).await;
    assert_eq!(refusal(refused), ("NOT_FOUND", name()));

    config.delete_endpoint(&orders, at(9), &by()).await.unwrap();
    let late = config.create_subscription(subscription(&orders, "all"), &by()).await;
    assert_eq!(refusal(late), ("NOT_FOUND", "tenants/acme/endpoints/orders".to_owned()));
}

async fn a_deleted_endpoint_takes_its_subscriptions_with_it(fixture: &Fixture) {
    let config = &fixture.config;
    let acme: Tenant = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    let other = fixture.endpoint(&acme, "other").await;
    let mine = config.create_subscription(subscription(&orders, "mine"), &by()).await.unwrap();
    let kept = config.create_subscription(subscription(&other, "kept"), &by()).await.unwrap();
    let revision = config.delete_endpoint(&orders, at(9), &by()).await.unwrap();

    assert_eq!(config.subscription(acme.id, &mine.slug).await.unwrap(), None);
    assert_eq!(config.subscription(acme.id, &kept.slug).await.unwrap(), Some(kept));
    let delta = config.changes_since(Revision(revision.0 - 1)).await.unwrap();
    assert_eq!(delta.endpoints.len(), 1);
    assert_eq!(delta.subscriptions.len(), 1);
    let tombstone = &delta.subscriptions[0];
    assert!(tombstone.deleted && tombstone.value.id == mine.id);
    assert_eq!(tombstone.value.meta.revision, revision);
    assert_eq!(tombstone.value.meta.updated_at, at(9));
}
