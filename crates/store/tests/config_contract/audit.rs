//! The audit record: with every change, and with nothing else.

use crate::common::{at, by, endpoint, id, key, on_both_backends, ring, tenant};
use crate::fixture::{Fixture, event_type, http, retry_policy, subscription};
use sea_orm::ConnectionTrait as _;
use std::{sync::Arc, time::Duration};
use turnbuckle_domain::{
    AuditEntry, AuditFilter, AuditTrail as _, ChainFault, ChangeContext, ConfigSource as _,
    ConfigStore as _, EndpointState, Fault, Revision, TenantId, verify_chain,
};

on_both_backends!(
    every_change_leaves_an_entry_that_says_who_what_and_why,
    a_change_shows_what_was_and_what_is_and_no_secret,
    what_goes_along_with_a_deletion_is_in_its_entry,
    a_refused_change_leaves_no_entry,
    a_change_that_is_only_validated_leaves_nothing,
    an_abandoned_entry_takes_its_change_along,
    the_chain_holds_after_concurrent_writers_and_follows_the_revisions,
    a_touched_record_does_not_pass,
    entries_cannot_be_changed_by_accident,
    no_tenant_sees_the_record_of_another,
    entries_are_found_by_resource_subject_and_time,
    the_record_of_a_deleted_tenant_stays,
);

const WRITERS: usize = 8;
const WRITES: usize = 6;
const DAY: Duration = Duration::from_secs(24 * 3600);

async fn record(fixture: &Fixture, tenant: TenantId) -> Vec<AuditEntry> {
    let all = AuditFilter::default();
    fixture.config.audit_entries(tenant, &all, None, 1000).await.unwrap()
}

async fn verdict(fixture: &Fixture, tenant: TenantId) -> Result<u64, ChainFault> {
    let head = fixture.config.audit_head(tenant).await.unwrap().unwrap();
    verify_chain(&head, record(fixture, tenant).await)
}

fn method(name: &str) -> ChangeContext {
    ChangeContext { method: name.to_owned(), ..by() }
}

fn validated_only() -> ChangeContext {
    ChangeContext { validate_only: true, ..by() }
}

async fn every_change_leaves_an_entry_that_says_who_what_and_why(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = config.create_tenant(tenant("acme"), &method("tenant")).await.unwrap();
    let quick = retry_policy(acme.id, "quick");
    let quick = config.create_retry_policy(quick, &method("policy")).await.unwrap();
    let paid = event_type(acme.id, "order.paid");
    let paid = config.create_event_type(paid, &method("type")).await.unwrap();
    let orders = endpoint(acme.id, "orders");
    let orders = config.create_endpoint(orders, ring(), &method("endpoint")).await.unwrap();
    let all = subscription(&orders, "all");
    let all = config.create_subscription(all, &method("subscription")).await.unwrap();
    let keys = config.key_ring(acme.id, orders.id.into()).await.unwrap();
    let mut rotated = keys.clone();
    rotated.rotate(key(), DAY, false, at(10)).unwrap();
    let rotation = method("rotate");
    config
        .update_key_ring(acme.id, orders.id.into(), rotated, keys.revision, &rotation)
        .await
        .unwrap();
    config.delete_subscription(&all, at(9), &method("unsubscribe")).await.unwrap();
    config.delete_event_type(&paid, at(9), &method("untype")).await.unwrap();
    config.delete_retry_policy(&quick, at(9), &method("unpolicy")).await.unwrap();
    let why = ChangeContext { reason: "moved away".to_owned(), ..method("delete") };
    config.delete_endpoint(&orders, at(9), &why).await.unwrap();
    config.delete_tenant(&acme, at(9), &method("untenant")).await.unwrap();

    let mut entries = record(fixture, acme.id).await;
    entries.reverse();
    let seen: Vec<(&str, &str)> =
        entries.iter().map(|entry| (entry.method.as_str(), entry.resource.as_str())).collect();
    let orders = "tenants/acme/endpoints/orders";
    assert_eq!(
        seen,
        [
            ("tenant", "tenants/acme"),
            ("policy", "tenants/acme/retryPolicies/quick"),
            ("type", "tenants/acme/eventTypes/order.paid"),
            ("endpoint", orders),
            ("subscription", "tenants/acme/subscriptions/all"),
            ("rotate", "tenants/acme/endpoints/orders/keyRing"),
            ("unsubscribe", "tenants/acme/subscriptions/all"),
            ("untype", "tenants/acme/eventTypes/order.paid"),
            ("unpolicy", "tenants/acme/retryPolicies/quick"),
            ("delete", orders),
            ("untenant", "tenants/acme"),
        ]
    );
    for (place, entry) in entries.iter().enumerate() {
        let number = i64::try_from(place).unwrap() + 1;
        assert_eq!((entry.sequence, entry.revision), (number, Revision(number)));
        let who = (entry.subject.as_str(), entry.role.as_str(), entry.request_id.as_str());
        assert_eq!(who, ("alice", "admin", "r-1"));
        assert_eq!(entry.at, at(2));
        assert!(!entry.changes.is_empty(), "{entry:?}");
    }
    assert_eq!(entries[5].id, rotation.id);
    assert_eq!(entries[9].reason, "moved away");
    assert_eq!(verdict(fixture, acme.id).await, Ok(11));
}

async fn a_change_shows_what_was_and_what_is_and_no_secret(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let mut orders = fixture.endpoint(&acme, "orders").await;
    let before = orders.meta.revision;
    orders.state = EndpointState::Active;
    http(&mut orders).url = "https://receiver.test/hooks?token=hunter2".to_owned();
    http(&mut orders).headers.insert("authorization".to_owned(), "Bearer hunter2".to_owned());
    config.update_endpoint(orders, before, &by()).await.unwrap();
    let newest = record(fixture, acme.id).await.swap_remove(0);
    let fields: Vec<&str> = newest.changes.iter().map(|change| change.field.as_str()).collect();
    assert_eq!(fields, ["disable_reason", "http.headers.authorization", "http.url", "state"]);
    assert_eq!(newest.changes[3].before.as_deref(), Some("disabled"));
    assert_eq!(newest.changes[3].after.as_deref(), Some("active"));
    let sql = "select changes from audit_event";
    let backend = fixture.db.get_database_backend();
    let rows = fixture.db.query_all_raw(sea_orm::Statement::from_string(backend, sql)).await;
    for row in rows.unwrap() {
        let text: String = row.try_get_by_index(0).unwrap();
        assert!(!text.contains("hunter2") && !text.contains("a=1"), "{text}");
    }
}

async fn what_goes_along_with_a_deletion_is_in_its_entry(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    let all = config.create_subscription(subscription(&orders, "all"), &by()).await.unwrap();
    config.create_event_type(event_type(acme.id, "order.paid"), &by()).await.unwrap();
    config.delete_endpoint(&orders, at(9), &by()).await.unwrap();
    let newest = record(fixture, acme.id).await.swap_remove(0);
    let gone = newest.changes.iter().find(|change| change.field == "subscriptions.all").unwrap();
    assert_eq!(gone.before, Some(all.id.to_string()));
    assert!(newest.changes.iter().any(|change| change.field.ends_with(".fingerprint")));
    assert!(newest.changes.iter().all(|change| change.after.is_none()));
    config.delete_tenant(&acme, at(9), &by()).await.unwrap();
    let newest = record(fixture, acme.id).await.swap_remove(0);
    assert!(newest.changes.iter().any(|change| change.field == "eventTypes.order.paid"));
}

async fn a_refused_change_leaves_no_entry(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    let head = config.audit_head(acme.id).await.unwrap();
    config.create_tenant(tenant("acme"), &by()).await.unwrap_err();
    config.update_endpoint(orders.clone(), Revision(77), &by()).await.unwrap_err();
    config.create_endpoint(endpoint(acme.id, "orders"), ring(), &by()).await.unwrap_err();
    config.delete_tenant(&acme, at(9), &by()).await.unwrap_err();
    let keys = config.key_ring(acme.id, orders.id.into()).await.unwrap();
    let stale = Revision(77);
    config.update_key_ring(acme.id, orders.id.into(), keys, stale, &by()).await.unwrap_err();
    assert_eq!(config.audit_head(acme.id).await.unwrap(), head);
    assert_eq!(record(fixture, acme.id).await.len(), 2);
}

async fn a_change_that_is_only_validated_leaves_nothing(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    let revision = fixture.revision().await;
    let mut changed = orders.clone();
    changed.display_name = "Changed".to_owned();
    let would_be = config.update_endpoint(changed, revision, &validated_only()).await.unwrap();
    assert_eq!(would_be.display_name, "Changed");
    config.create_endpoint(endpoint(acme.id, "x"), ring(), &validated_only()).await.unwrap();
    config.create_tenant(tenant("other"), &validated_only()).await.unwrap();
    let taken = endpoint(acme.id, "orders");
    let taken = config.create_endpoint(taken, ring(), &validated_only()).await;
    assert_eq!(taken.unwrap_err().reason(), "ALREADY_EXISTS");

    assert_eq!(fixture.revision().await, revision);
    assert_eq!(record(fixture, acme.id).await.len(), 2);
    assert_eq!(config.endpoint(acme.id, &orders.slug).await.unwrap(), Some(orders));
    assert_eq!(config.tenant(&id("other")).await.unwrap(), None);
    assert!(config.changes_since(revision).await.unwrap().endpoints.is_empty());
}

async fn an_abandoned_entry_takes_its_change_along(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    let twice = by();
    fixture.config.create_endpoint(endpoint(acme.id, "a"), ring(), &twice).await.unwrap();
    // The entry's id is taken, so the entry cannot be written, so the endpoint is not made.
    fixture.config.create_endpoint(endpoint(acme.id, "b"), ring(), &twice).await.unwrap_err();
    assert_eq!(fixture.config.endpoint(acme.id, &id("b")).await.unwrap(), None);
    assert_eq!(fixture.revision().await, Revision(2));
    assert_eq!(verdict(fixture, acme.id).await, Ok(2));
}

async fn the_chain_holds_after_concurrent_writers_and_follows_the_revisions(fixture: &Fixture) {
    let (acme, other) = (fixture.tenant("acme").await, fixture.tenant("other").await);
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let config = Arc::clone(&fixture.config);
            let owner = if writer % 2 == 0 { acme.id } else { other.id };
            tokio::spawn(async move {
                for write in 0..WRITES {
                    let new = endpoint(owner, &format!("e-{writer}-{write}"));
                    let made = config.create_endpoint(new, ring(), &by()).await.unwrap();
                    let seen = made.meta.revision;
                    config.update_endpoint(made, seen, &by()).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let each = u64::try_from(WRITERS * WRITES).unwrap() + 1;
    for owner in [&acme, &other] {
        assert_eq!(verdict(fixture, owner.id).await, Ok(each));
        let revisions: Vec<Revision> =
            record(fixture, owner.id).await.iter().map(|entry| entry.revision).collect();
        assert!(revisions.windows(2).all(|pair| pair[0] > pair[1]));
    }
}

async fn a_touched_record_does_not_pass(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    for slug in ["a", "b", "c", "d"] {
        fixture.endpoint(&acme, slug).await;
    }
    assert_eq!(verdict(fixture, acme.id).await, Ok(5));
    disarm(fixture).await;
    let changed = "update audit_event set subject = 'mallory' where sequence = 3";
    fixture.db.execute_unprepared(changed).await.unwrap();
    let fault = ChainFault { sequence: 3, fault: Fault::Altered };
    assert_eq!(verdict(fixture, acme.id).await, Err(fault));
    let cut = "delete from audit_event where sequence > 2";
    fixture.db.execute_unprepared(cut).await.unwrap();
    let fault = ChainFault { sequence: 3, fault: Fault::Missing };
    assert_eq!(verdict(fixture, acme.id).await, Err(fault));
}

async fn entries_cannot_be_changed_by_accident(fixture: &Fixture) {
    fixture.tenant("acme").await;
    for statement in ["update audit_event set reason = 'x'", "delete from audit_event"] {
        let error = fixture.db.execute_unprepared(statement).await.unwrap_err();
        assert!(error.to_string().contains("append-only"), "{error}");
    }
}

/// What somebody with the rights of an owner can do.
async fn disarm(fixture: &Fixture) {
    let statements: &[&str] = match fixture.db.get_database_backend() {
        sea_orm::DbBackend::Postgres => &["drop trigger audit_event_is_append_only on audit_event"],
        _ => {
            &["drop trigger audit_event_is_not_updated", "drop trigger audit_event_is_not_deleted"]
        }
    };
    for statement in statements {
        fixture.db.execute_unprepared(statement).await.unwrap();
    }
}

async fn no_tenant_sees_the_record_of_another(fixture: &Fixture) {
    let (acme, other) = (fixture.tenant("acme").await, fixture.tenant("other").await);
    fixture.endpoint(&acme, "orders").await;
    fixture.endpoint(&other, "orders").await;
    for owner in [&acme, &other] {
        let entries = record(fixture, owner.id).await;
        assert_eq!(entries.len(), 2);
        let own = format!("tenants/{}", owner.slug);
        assert!(entries.iter().all(|entry| entry.resource.starts_with(&own)));
    }
    let foreign = AuditFilter { resource: Some("tenants/acme".to_owned()), ..Default::default() };
    let found = fixture.config.audit_entries(other.id, &foreign, None, 10).await.unwrap();
    assert_eq!(found, []);
}

async fn entries_are_found_by_resource_subject_and_time(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    fixture.endpoint(&acme, "orders_2").await;
    let keys = config.key_ring(acme.id, orders.id.into()).await.unwrap();
    let late = ChangeContext { at: at(60), subject: "bob".to_owned(), ..by() };
    let seen = keys.revision;
    config.update_key_ring(acme.id, orders.id.into(), keys, seen, &late).await.unwrap();
    let found = async |filter: AuditFilter, below: Option<i64>| {
        let found = config.audit_entries(acme.id, &filter, below, 10).await.unwrap();
        found.iter().map(|entry| entry.sequence).collect::<Vec<_>>()
    };
    let all = AuditFilter::default;
    let resource = Some("tenants/acme/endpoints/orders".to_owned());
    assert_eq!(found(AuditFilter { resource, ..all() }, None).await, [4, 2]);
    let subject = Some("alice".to_owned());
    assert_eq!(found(AuditFilter { subject, ..all() }, None).await, [3, 2, 1]);
    assert_eq!(found(AuditFilter { from: Some(at(60)), ..all() }, None).await, [4]);
    assert_eq!(found(AuditFilter { until: Some(at(60)), ..all() }, None).await, [3, 2, 1]);
    assert_eq!(found(all(), Some(3)).await, [2, 1]);
    let page = config.audit_entries(acme.id, &all(), None, 2).await.unwrap();
    assert_eq!(page.len(), 2);
}

async fn the_record_of_a_deleted_tenant_stays(fixture: &Fixture) {
    let config = &fixture.config;
    assert_eq!(config.audited_tenant(&id("acme")).await.unwrap(), None);
    let first = fixture.tenant("acme").await;
    config.delete_tenant(&first, at(9), &by()).await.unwrap();
    let found = config.audited_tenant(&id("acme")).await.unwrap().unwrap();
    assert_eq!(found.id, first.id);
    assert_eq!(verdict(fixture, first.id).await, Ok(2));
}
