//! How much a tenant may have.

use crate::common::{at, by, endpoint, on_both_backends, ring};
use crate::fixture::{Fixture, event_type, retry_policy, subscription};
use crate::sources::{made as made_source, source};
use std::sync::Arc;
use turnbuckle_domain::{
    ConfigStore as _, Endpoint, EndpointTarget, Error, EventType, EventTypeVersion,
    EventTypeVersionId, KeyRing, Quotas, Tombstones as _, VersionName, VersionsSeen,
};
use turnbuckle_store::config::ConfigDb;
use uuid::Uuid;

on_both_backends!(
    every_kind_has_its_own_bound,
    sources_have_their_own_bound_and_a_deleted_one_makes_room,
    concurrent_creators_cannot_pass_the_bound_together,
    a_deleted_resource_makes_room_and_needs_it_to_come_back,
    an_endpoint_without_subscriptions_comes_back_below_a_lowered_bound_of_them,
    a_tenant_does_not_use_up_what_another_may_have,
    versions_of_all_types_together_have_a_bound,
    bytes_have_a_bound_however_few_rows_they_are_in,
);

/// One of each.
const ONE: Quotas = Quotas {
    endpoints: 1,
    subscriptions: 1,
    event_types: 1,
    retry_policies: 1,
    sources: 1,
    event_type_versions: 1,
    config_mib: 1,
};

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

async fn an_endpoint_without_subscriptions_comes_back_below_a_lowered_bound_of_them(
    fixture: &Fixture,
) {
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    for slug in ["a", "b"] {
        fixture.config.create_subscription(subscription(&orders, slug), &by()).await.unwrap();
    }
    let bare = fixture.endpoint(&acme, "bare").await;
    let config = bounded(fixture, Quotas { endpoints: 2, ..ONE });
    config.delete_endpoint(&bare, at(9), &by()).await.unwrap();
    let bare = config.kept_endpoint(acme.id, bare.id).await.unwrap().unwrap().value;
    config.undelete_endpoint(&bare, at(10), &by()).await.unwrap();
    // With subscriptions of its own it needs room for them.
    config.delete_endpoint(&orders, at(11), &by()).await.unwrap();
    let orders = config.kept_endpoint(acme.id, orders.id).await.unwrap().unwrap().value;
    assert_eq!(refused(config.undelete_endpoint(&orders, at(12), &by()).await).1, "subscriptions");
}

fn version(owner: &EventType, name: &str, bytes: usize) -> EventTypeVersion {
    EventTypeVersion {
        id: EventTypeVersionId::from_uuid(Uuid::now_v7()),
        tenant: owner.tenant,
        event_type: owner.id,
        version: VersionName::new(name).unwrap(),
        schema: format!("{{\"title\":\"{}\"}}", "x".repeat(bytes)),
        description: String::new(),
        meta: owner.meta,
    }
}

async fn create_version(
    config: &ConfigDb,
    owner: &EventType,
    name: &str,
    bytes: usize,
) -> Result<EventTypeVersion, Error> {
    let latest = config.latest_event_type_version(owner.tenant, owner.id).await?;
    let seen =
        VersionsSeen { event_type: owner.meta.revision, latest: latest.map(|version| version.id) };
    config.create_event_type_version(version(owner, name, bytes), seen, &by()).await
}

async fn versions_of_all_types_together_have_a_bound(fixture: &Fixture) {
    let config = bounded(fixture, Quotas { event_type_versions: 2, ..Quotas::DEFAULT });
    let (acme, other) = (fixture.tenant("acme").await, fixture.tenant("other").await);
    let paid = config.create_event_type(event_type(acme.id, "paid"), &by()).await.unwrap();
    let sent = config.create_event_type(event_type(acme.id, "sent"), &by()).await.unwrap();
    create_version(&config, &paid, "1", 1).await.unwrap();
    create_version(&config, &sent, "1", 1).await.unwrap();
    let more = create_version(&config, &sent, "2", 1).await;
    let expected = ("tenants/acme".to_owned(), "versions", 2, "--max-event-type-versions");
    assert_eq!(refused(more), expected);
    let theirs = config.create_event_type(event_type(other.id, "paid"), &by()).await.unwrap();
    create_version(&config, &theirs, "1", 1).await.unwrap();
}

async fn bytes_have_a_bound_however_few_rows_they_are_in(fixture: &Fixture) {
    const LONG: usize = 65_000;
    let config = bounded(fixture, Quotas { config_mib: 1, ..Quotas::DEFAULT });
    let (acme, other) = (fixture.tenant("acme").await, fixture.tenant("other").await);
    let paid = config.create_event_type(event_type(acme.id, "paid"), &by()).await.unwrap();
    let full = || ("tenants/acme".to_owned(), "MiB of configuration", 1, "--max-config-mib");
    for number in 0..16 {
        create_version(&config, &paid, &number.to_string(), LONG).await.unwrap();
    }
    let before = fixture.revision().await;
    assert_eq!(refused(create_version(&config, &paid, "16", LONG).await), full());
    // By any long row, new or grown.
    let mut long = endpoint(acme.id, "long");
    let EndpointTarget::Http(http) = &mut long.target else { unreachable!("made so") };
    http.headers = (0..9).map(|number| (format!("x-{number}"), "v".repeat(4_000))).collect();
    assert_eq!(refused(config.create_endpoint(long.clone(), ring(), &by()).await), full());
    assert_eq!(fixture.revision().await, before);
    let short = config.create_endpoint(endpoint(acme.id, "short"), ring(), &by()).await.unwrap();
    let grown = Endpoint { target: long.target.clone(), ..short.clone() };
    assert_eq!(refused(config.update_endpoint(grown, short.meta.revision, &by()).await), full());
    // What is there can be changed and made shorter, and another tenant has its own room.
    let renamed = Endpoint { display_name: "renamed".to_owned(), ..short.clone() };
    config.update_endpoint(renamed, short.meta.revision, &by()).await.unwrap();
    let theirs = config.create_event_type(event_type(other.id, "paid"), &by()).await.unwrap();
    create_version(&config, &theirs, "1", LONG).await.unwrap();
    // What is deleted makes room, and needs it to come back.
    let last = config.latest_event_type_version(acme.id, paid.id).await.unwrap().unwrap();
    let first = VersionName::new("0").unwrap();
    let first = config.event_type_version(acme.id, paid.id, &first).await.unwrap().unwrap();
    assert_ne!(first.id, last.id);
    config.delete_event_type_version(&first, at(9), &by()).await.unwrap();
    let long = config.create_endpoint(long, ring(), &by()).await.unwrap();
    config.delete_endpoint(&long, at(10), &by()).await.unwrap();
    create_version(&config, &paid, "16", LONG).await.unwrap();
    let long = config.kept_endpoint(acme.id, long.id).await.unwrap().unwrap().value;
    assert_eq!(refused(config.undelete_endpoint(&long, at(11), &by()).await), full());
}
