//! Names, revisions and tombstones of single resources.

use crate::common::{at, by, endpoint, id, on_both_backends, ring, tenant};
use crate::fixture::{Fixture, event_type, http, refusal, retry_policy, subscription};
use sea_orm::ConnectionTrait as _;
use std::{collections::HashMap, sync::Arc};
use turnbuckle_domain::{
    Channels, ConfigSource as _, ConfigStore as _, EndpointState, Error, Meta, PayloadFormat,
    Revision, TypePattern,
};

on_both_backends!(
    everything_that_is_stored_comes_back,
    every_kind_can_be_changed_and_deleted,
    lists_are_pages_in_byte_order,
    a_stale_writer_is_told_the_current_etag,
    a_taken_name_is_refused_until_its_owner_is_deleted,
    one_of_many_concurrent_creators_wins,
    what_names_a_resource_never_changes,
    no_tenant_sees_the_rows_of_another,
    a_refused_change_uses_no_revision,
    a_malformed_cell_is_an_error_and_no_panic,
    ids_are_turned_into_names_of_live_rows_of_the_tenant_only,
);

async fn everything_that_is_stored_comes_back(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    assert_eq!(acme.meta.revision, Revision(1));
    assert_eq!(config.tenant(&acme.slug).await.unwrap(), Some(acme.clone()));

    let paid = config.create_event_type(event_type(acme.id, "order.paid"), &by()).await.unwrap();
    assert_eq!(config.event_type(acme.id, &paid.type_name).await.unwrap(), Some(paid));

    let patient =
        config.create_retry_policy(retry_policy(acme.id, "patient"), &by()).await.unwrap();
    let found = config.retry_policy(acme.id, &patient.slug).await.unwrap();
    assert_eq!(found, Some(patient.clone()));

    let mut orders = endpoint(acme.id, "orders");
    orders.retry_policy = Some(patient.id);
    let keys = ring();
    let orders = config.create_endpoint(orders, keys.clone(), &by()).await.unwrap();
    assert_eq!(config.endpoint(acme.id, &orders.slug).await.unwrap(), Some(orders.clone()));
    let stored = config.key_ring(acme.id, orders.id.into()).await.unwrap();
    assert_eq!((stored.keys, stored.revision), (keys.keys, orders.meta.revision));

    let all = config.create_subscription(subscription(&orders, "all"), &by()).await.unwrap();
    assert_eq!(config.subscription(acme.id, &all.slug).await.unwrap(), Some(all));
    assert_eq!(fixture.revision().await, Revision(5));
}

async fn every_kind_can_be_changed_and_deleted(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let mut orders = fixture.endpoint(&acme, "orders").await;
    orders.state = EndpointState::Active;
    http(&mut orders).url = "https://elsewhere.test".to_owned();
    let before = orders.meta.revision;
    let orders = config.update_endpoint(orders, before, &by()).await.unwrap();
    assert_eq!(config.endpoint(acme.id, &orders.slug).await.unwrap(), Some(orders.clone()));

    let mut all = config.create_subscription(subscription(&orders, "all"), &by()).await.unwrap();
    all.patterns = vec![TypePattern::Any];
    all.format = PayloadFormat::Envelope;
    all.filter = None;
    all.channels = Channels::default();
    let before = all.meta.revision;
    let all = config.update_subscription(all, before, &by()).await.unwrap();
    assert_eq!(config.subscription(acme.id, &all.slug).await.unwrap(), Some(all.clone()));
    config.delete_subscription(&all, at(9), &by()).await.unwrap();
    assert_eq!(config.subscription(acme.id, &all.slug).await.unwrap(), None);

    let mut paid =
        config.create_event_type(event_type(acme.id, "order.paid"), &by()).await.unwrap();
    paid.description = "changed".to_owned();
    let before = paid.meta.revision;
    let paid = config.update_event_type(paid, before, &by()).await.unwrap();
    assert_eq!(config.event_type(acme.id, &paid.type_name).await.unwrap(), Some(paid.clone()));
    config.delete_event_type(&paid, at(9), &by()).await.unwrap();
    assert_eq!(config.event_type(acme.id, &paid.type_name).await.unwrap(), None);

    let mut quick =
        config.create_retry_policy(retry_policy(acme.id, "quick"), &by()).await.unwrap();
    quick.version += 1;
    let before = quick.meta.revision;
    let quick = config.update_retry_policy(quick, before, &by()).await.unwrap();
    assert_eq!(config.retry_policy(acme.id, &quick.slug).await.unwrap(), Some(quick.clone()));
    config.delete_retry_policy(&quick, at(9), &by()).await.unwrap();
    assert_eq!(config.retry_policy(acme.id, &quick.slug).await.unwrap(), None);

    config.delete_endpoint(&orders, at(9), &by()).await.unwrap();
    assert_eq!(config.endpoint(acme.id, &orders.slug).await.unwrap(), None);
    let last = config.delete_tenant(&acme, at(9), &by()).await.unwrap();
    assert_eq!(config.tenant(&acme.slug).await.unwrap(), None);
    assert_eq!(fixture.revision().await, last);
}

async fn lists_are_pages_in_byte_order(fixture: &Fixture) {
    let config = &fixture.config;
    for slug in ["b", "a-b", "a_a", "ab", "a"] {
        let owner = fixture.tenant(slug).await;
        if slug == "a" {
            config.delete_tenant(&owner, at(9), &by()).await.unwrap();
        }
    }
    let mut seen: Vec<String> = Vec::new();
    loop {
        let page = config.tenants(seen.last().map(String::as_str), 2).await.unwrap();
        if page.is_empty() {
            break;
        }
        assert!(page.len() <= 2);
        seen.extend(page.into_iter().map(|tenant| tenant.slug.to_string()));
    }
    assert_eq!(seen, ["a-b", "a_a", "ab", "b"]);
}

async fn a_stale_writer_is_told_the_current_etag(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let first = fixture.endpoint(&acme, "orders").await;
    let second = config.update_endpoint(first.clone(), first.meta.revision, &by()).await.unwrap();

    let stale =
        config.update_endpoint(first.clone(), first.meta.revision, &by()).await.unwrap_err();
    let Error::Stale { resource, current } = stale else { panic!("{stale:?}") };
    assert_eq!(resource, "tenants/acme/endpoints/orders");
    assert_eq!(current, second.meta.revision.etag());
    let name = || "tenants/acme/endpoints/orders".to_owned();
    let stale = config.delete_endpoint(&first, at(9), &by()).await;
    assert_eq!(refusal(stale), ("ETAG_MISMATCH", name()));

    config.delete_endpoint(&second, at(9), &by()).await.unwrap();
    let gone = config.update_endpoint(second.clone(), second.meta.revision, &by()).await;
    assert_eq!(refusal(gone), ("NOT_FOUND", name()));
    let gone = config.delete_endpoint(&second, at(9), &by()).await;
    assert_eq!(refusal(gone), ("NOT_FOUND", name()));

    let stale = config.update_tenant(acme.clone(), Revision(77), &by()).await;
    assert_eq!(refusal(stale), ("ETAG_MISMATCH", "tenants/acme".to_owned()));
}

async fn a_taken_name_is_refused_until_its_owner_is_deleted(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let taken = config.create_tenant(tenant("acme"), &by()).await;
    assert_eq!(refusal(taken), ("ALREADY_EXISTS", "tenants/acme".to_owned()));

    let first = fixture.endpoint(&acme, "orders").await;
    let taken = config.create_endpoint(endpoint(acme.id, "orders"), ring(), &by()).await;
    let name = "tenants/acme/endpoints/orders".to_owned();
    assert_eq!(refusal(taken), ("ALREADY_EXISTS", name));
    config.delete_endpoint(&first, at(9), &by()).await.unwrap();
    let second = fixture.endpoint(&acme, "orders").await;
    assert_ne!(first.id, second.id);

    config.create_event_type(event_type(acme.id, "order.paid"), &by()).await.unwrap();
    let taken = config.create_event_type(event_type(acme.id, "order.paid"), &by()).await;
    let name = "tenants/acme/eventTypes/order.paid".to_owned();
    assert_eq!(refusal(taken), ("ALREADY_EXISTS", name));
}

async fn one_of_many_concurrent_creators_wins(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    let creators: Vec<_> = (0..8)
        .map(|_| {
            let config = Arc::clone(&fixture.config);
            tokio::spawn(async move {
                config.create_endpoint(endpoint(acme.id, "x"), ring(), &by()).await
            })
        })
        .collect();
    let mut won = 0;
    for creator in creators {
        match creator.await.unwrap() {
            Ok(_) => won += 1,
            lost => assert_eq!(refusal(lost).0, "ALREADY_EXISTS"),
        }
    }
    assert_eq!(won, 1);
    assert_eq!(fixture.revision().await, Revision(2));
}

async fn what_names_a_resource_never_changes(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    let mut changed = orders.clone();
    changed.meta = Meta { created_at: at(99), updated_at: at(2), ..orders.meta };
    let changed = config.update_endpoint(changed, orders.meta.revision, &by()).await.unwrap();
    assert_eq!(changed.meta.created_at, orders.meta.created_at);
    assert_eq!(changed.meta.updated_at, at(2));
    assert_eq!(config.endpoint(acme.id, &orders.slug).await.unwrap(), Some(changed));
}

async fn no_tenant_sees_the_rows_of_another(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let other = fixture.tenant("other").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    assert_eq!(config.endpoint(other.id, &orders.slug).await.unwrap(), None);
    assert_eq!(config.endpoints(other.id, None, 10).await.unwrap(), []);
    assert_eq!(refusal(config.key_ring(other.id, orders.id.into()).await).0, "NOT_FOUND");

    let mut moved = orders.clone();
    moved.tenant = other.id;
    let refused = config.update_endpoint(moved.clone(), orders.meta.revision, &by()).await;
    assert_eq!(refusal(refused), ("NOT_FOUND", "tenants/other/endpoints/orders".to_owned()));
    assert_eq!(refusal(config.delete_endpoint(&moved, at(9), &by()).await).0, "NOT_FOUND");
    let ring = config.key_ring(acme.id, orders.id.into()).await.unwrap();
    let revision = ring.revision;
    let refused = config.update_key_ring(other.id, orders.id.into(), ring, revision, &by()).await;
    assert_eq!(refusal(refused).0, "NOT_FOUND");
    let mut foreign = subscription(&orders, "all");
    foreign.tenant = other.id;
    assert_eq!(refusal(config.create_subscription(foreign, &by()).await).0, "NOT_FOUND");

    // The same name in another tenant is another resource.
    fixture.endpoint(&other, "orders").await;
}

async fn a_refused_change_uses_no_revision(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    let before = fixture.revision().await;
    fixture.config.create_tenant(tenant("acme"), &by()).await.unwrap_err();
    fixture.config.update_tenant(acme.clone(), Revision(77), &by()).await.unwrap_err();
    assert_eq!(fixture.revision().await, before);
    let next = fixture.config.update_tenant(acme, before, &by()).await.unwrap();
    assert_eq!(next.meta.revision, Revision(before.0 + 1));
}

async fn a_malformed_cell_is_an_error_and_no_panic(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    let broken = "update endpoint set headers = '{\"x-key\": \"hunter2'";
    fixture.db.execute_unprepared(broken).await.unwrap();
    let error = fixture.config.endpoint(acme.id, &id("orders")).await.unwrap_err();
    assert_eq!(error.reason(), "INTERNAL");
    assert!(!format!("{error:?}").contains("hunter2"));
    let told = fixture.config.changes_since(Revision::ZERO).await.unwrap().unreadable;
    assert_eq!(told.len(), 1);
    assert!(!format!("{told:?}").contains("hunter2"));
    fixture.config.update_endpoint(orders.clone(), orders.meta.revision, &by()).await.unwrap_err();

    let other = fixture.endpoint(&acme, "other").await;
    fixture.config.create_subscription(subscription(&other, "all"), &by()).await.unwrap();
    fixture.db.execute_unprepared("update subscription set filter = 'data.total >'").await.unwrap();
    let error = fixture.config.subscription(acme.id, &id("all")).await.unwrap_err();
    assert_eq!(error.reason(), "INTERNAL");
    for outside in ["".to_owned(), "x".repeat(4097)] {
        let outside = format!("update subscription set filter = '{outside}'");
        fixture.db.execute_unprepared(&outside).await.unwrap_err();
    }
}

async fn ids_are_turned_into_names_of_live_rows_of_the_tenant_only(fixture: &Fixture) {
    let config = &fixture.config;
    let (acme, other) = (fixture.tenant("acme").await, fixture.tenant("other").await);
    let kept = fixture.endpoint(&acme, "kept").await;
    let deleted = fixture.endpoint(&acme, "deleted").await;
    let foreign = fixture.endpoint(&other, "foreign").await;
    config.delete_endpoint(&deleted, at(9), &by()).await.unwrap();
    let ids = [deleted.id, kept.id, foreign.id];
    let slugs = config.endpoint_slugs(acme.id, &ids).await.unwrap();
    assert_eq!(slugs, HashMap::from([(kept.id, kept.slug)]));
    assert!(config.endpoint_slugs(acme.id, &[]).await.unwrap().is_empty());

    let mut policies = Vec::new();
    for (tenant, slug) in [(acme.id, "a"), (acme.id, "b"), (other.id, "c")] {
        policies.push(config.create_retry_policy(retry_policy(tenant, slug), &by()).await.unwrap());
    }
    let ids: Vec<_> = policies.iter().map(|policy| policy.id).collect();
    config.delete_retry_policy(&policies[0], at(9), &by()).await.unwrap();
    let slugs = config.retry_policy_slugs(acme.id, &ids).await.unwrap();
    assert_eq!(slugs, HashMap::from([(policies[1].id, id("b"))]));
}
