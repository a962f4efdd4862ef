//! How much a tenant may have.

use crate::common::{at, by, endpoint, on_both_backends, ring};
use crate::fixture::{Fixture, event_type, retry_policy, subscription};
use crate::sources::{made as made_source, source};
use std::sync::Arc;
use turnbuckle_domain::{ConfigStore as _, Error, KeyRing, Quotas, Tombstones as _};
use turnbuckle_store::config::ConfigDb;

on_both_backends!(
    every_kind_has_its_own_bound,
    sources_have_their_own_bound_and_a_deleted_one_makes_room,
    concurrent_creators_cannot_pass_the_bound_together,
    a_deleted_resource_makes_room_and_needs_it_to_come_back,
    a_tenant_does_not_use_up_what_another_may_have,
);

/// One of each.
const ONE: Quotas =
    Quotas { endpoints: 1, subscriptions: 1, event_types: 1, retry_policies: 1, sources: 1 };

fn bounded(fixture: &Fixture, quotas: Quotas) -> ConfigDb {
    ConfigDb::new(fixture.db.clone()).with_quotas(quotas)
}

fn refused<T: std::fmt::Debug>(
    result: Result<T, Error>,
) -> (String, &'static str, u32, &'static str) {
    match result.unwrap_err() {
        Error::QuotaExceeded { tenant, what, limit, setting } => (tenant, what, limit, setting),
        other => panic!("{other:?}"),
    }
}

async fn every_kind_has_its_own_bound(fixture: &Fixture) {
    let config = bounded(fixture, ONE);
    let acme = fixture.tenant("acme").await;
    let orders = config.create_endpoint(endpoint(acme.id, "a"), ring(), &by()).await.unwrap();
    config.create_subscription(subscription(&orders, "a"), &by()).await.unwrap();
    config.create_event_type(event_type(acme.id, "a"), &by()).await.unwrap();
    config.create_retry_policy(retry_policy(acme.id, "a"), &by()).await.unwrap();
    let before = fixture.revision().await;

    let name = || "tenants/acme".to_owned();
    let more = config.create_endpoint(endpoint(acme.id, "b"), ring(), &by()).await;
    assert_eq!(refused(more), (name(), "endpoints", 1, "--max-endpoints"));
    let more = config.create_subscription(subscription(&orders, "b"), &by()).await;
    assert_eq!(refused(more), (name(), "subscriptions", 1, "--max-subscriptions"));
    let more = config.create_event_type(event_type(acme.id, "b"), &by()).await;
    assert_eq!(refused(more), (name(), "eventTypes", 1, "--max-event-types"));
    let more = config.create_retry_policy(retry_policy(acme.id, "b"), &by()).await;
    assert_eq!(refused(more), (name(), "retryPolicies", 1, "--max-retry-policies"));
    assert_eq!(fixture.revision().await, before);
    // What is there can still be changed.
    config.update_endpoint(orders.clone(), orders.meta.revision, &by()).await.unwrap();
}

async fn sources_have_their_own_bound_and_a_deleted_one_makes_room(fixture: &Fixture) {
    let config = bounded(fixture, ONE);
    let (acme, other) = (fixture.tenant("acme").await, fixture.tenant("other").await);
    let first = made_source(fixture, &acme, "a").await;
    let before = fixture.revision().await;
    let create =
        async |slug| config.create_source(source(acme.id, slug), KeyRing::default(), &by()).await;
    let expected = ("tenants/acme".to_owned(), "sources", 1, "--max-sources");
    assert_eq!(refused(create("b").await), expected);
    assert_eq!(fixture.revision().await, before);
    // What is there can still be changed, and others have as many.
    let first =
        config.update_source(first.clone(), first.meta.revision, None, &by()).await.unwrap();
    config.create_source(source(other.id, "a"), KeyRing::default(), &by()).await.unwrap();
    config.delete_source(&first, at(9), &by()).await.unwrap();
    create("b").await.unwrap();
}

async fn concurrent_creators_cannot_pass_the_bound_together(fixture: &Fixture) {
    let config = Arc::new(bounded(fixture, Quotas { endpoints: 3, ..ONE }));
    let acme = fixture.tenant("acme").await;
    let creators: Vec<_> = (0..12)
        .map(|number| {
            let config = Arc::clone(&config);
            let wanted = endpoint(acme.id, &format!("e{number}"));
            tokio::spawn(async move { config.create_endpoint(wanted, ring(), &by()).await })
        })
        .collect();
    let mut made = 0;
    for creator in creators {
        match creator.await.unwrap() {
            Ok(_) => made += 1,
            Err(error) => assert_eq!(error.reason(), "QUOTA_EXCEEDED"),
        }
    }
    assert_eq!(made, 3);
    assert_eq!(config.endpoints(acme.id, None, 100).await.unwrap().len(), 3);
}

async fn a_deleted_resource_makes_room_and_needs_it_to_come_back(fixture: &Fixture) {
    let config = bounded(fixture, ONE);
    let acme = fixture.tenant("acme").await;
    let first = config.create_endpoint(endpoint(acme.id, "a"), ring(), &by()).await.unwrap();
    config.delete_endpoint(&first, at(9), &by()).await.unwrap();
    let second = config.create_endpoint(endpoint(acme.id, "b"), ring(), &by()).await.unwrap();
    let first = config.kept_endpoint(acme.id, first.id).await.unwrap().unwrap().value;
    let back = config.undelete_endpoint(&first, at(10), &by()).await;
    assert_eq!(refused(back).1, "endpoints");
    config.delete_endpoint(&second, at(11), &by()).await.unwrap();
    config.undelete_endpoint(&first, at(12), &by()).await.unwrap();
}

async fn a_tenant_does_not_use_up_what_another_may_have(fixture: &Fixture) {
    let config = bounded(fixture, ONE);
    for slug in ["acme", "other"] {
        let tenant = fixture.tenant(slug).await;
        config.create_endpoint(endpoint(tenant.id, "a"), ring(), &by()).await.unwrap();
    }
}
