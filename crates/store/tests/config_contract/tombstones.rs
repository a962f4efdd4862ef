//! Deleted resources: kept, brought back, purged.

use crate::common::{at, by, endpoint, id, on_both_backends};
use crate::fixture::{Fixture, event_type, refusal, retry_policy, subscription};
use sea_orm::ConnectionTrait as _;
use turnbuckle_domain::{
    AuditFilter, AuditTrail as _, ChangeContext, ConfigSource as _, ConfigStore as _, Kept,
    KeptPlace, Revision, Tombstones as _,
};

on_both_backends!(
    an_endpoint_comes_back_with_its_keys_and_subscriptions,
    what_was_deleted_before_the_endpoint_stays_deleted,
    a_name_that_is_in_use_again_keeps_the_deleted_one_away,
    what_refers_to_something_deleted_does_not_come_back,
    only_what_is_deleted_and_as_it_was_read_comes_back,
    lists_show_deleted_ones_when_asked,
    no_tenant_sees_the_deleted_rows_of_another,
    a_purge_takes_what_is_due_oldest_first_and_leaves_names_only,
    a_row_that_cannot_be_read_is_purged_like_any_other,
    a_return_is_recorded_and_can_be_validated_only,
    a_large_tenant_goes_with_a_small_entry,
);

async fn an_endpoint_comes_back_with_its_keys_and_subscriptions(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    let all = config.create_subscription(subscription(&orders, "all"), &by()).await.unwrap();
    let ring = config.key_ring(acme.id, orders.id.into()).await.unwrap();
    let gone_at = config.delete_endpoint(&orders, at(9), &by()).await.unwrap();

    let kept = config.deleted_endpoint(acme.id, &orders.slug).await.unwrap().unwrap();
    assert_eq!((kept.value.id, kept.deleted_at), (orders.id, Some(at(9))));
    let known = config.changes_since(gone_at).await.unwrap().revision;
    let back = config.undelete_endpoint(&kept.value, at(10), &by()).await.unwrap();
    assert_eq!(back.meta.created_at, orders.meta.created_at);
    assert_eq!(back.meta.updated_at, at(10));
    assert_eq!(config.endpoint(acme.id, &orders.slug).await.unwrap(), Some(back.clone()));
    assert_eq!(config.key_ring(acme.id, orders.id.into()).await.unwrap().keys, ring.keys);
    let found = config.subscription(acme.id, &all.slug).await.unwrap().unwrap();
    assert_eq!((found.id, found.meta.revision), (all.id, back.meta.revision));
    // Who follows by revision learns of all three.
    let delta = config.changes_since(known).await.unwrap();
    assert_eq!(
        (delta.endpoints.len(), delta.key_rings.len(), delta.subscriptions.len()),
        (1, 1, 1)
    );
    assert!(!delta.endpoints[0].deleted && !delta.subscriptions[0].deleted);
    assert_eq!(delta.key_rings[0].1.keys, ring.keys);
}

async fn what_was_deleted_before_the_endpoint_stays_deleted(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    let early = config.create_subscription(subscription(&orders, "early"), &by()).await.unwrap();
    config.create_subscription(subscription(&orders, "late"), &by()).await.unwrap();
    config.delete_subscription(&early, at(9), &by()).await.unwrap();
    config.delete_endpoint(&orders, at(9), &by()).await.unwrap();
    let kept = config.deleted_endpoint(acme.id, &orders.slug).await.unwrap().unwrap();
    config.undelete_endpoint(&kept.value, at(10), &by()).await.unwrap();
    assert_eq!(config.subscription(acme.id, &early.slug).await.unwrap(), None);
    assert!(config.subscription(acme.id, &id("late")).await.unwrap().is_some());
    let kept = config.deleted_subscription(acme.id, &early.slug).await.unwrap().unwrap();
    let back = config.undelete_subscription(&kept.value, at(11), &by()).await.unwrap();
    assert_eq!(config.subscription(acme.id, &early.slug).await.unwrap(), Some(back));
}

async fn a_name_that_is_in_use_again_keeps_the_deleted_one_away(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let first = fixture.endpoint(&acme, "orders").await;
    config.create_subscription(subscription(&first, "all"), &by()).await.unwrap();
    config.delete_endpoint(&first, at(9), &by()).await.unwrap();
    let second = fixture.endpoint(&acme, "orders").await;
    let first = config.kept_endpoint(acme.id, first.id).await.unwrap().unwrap().value;
    let taken = config.undelete_endpoint(&first, at(10), &by()).await;
    let name = "tenants/acme/endpoints/orders".to_owned();
    assert_eq!(refusal(taken), ("NAME_TAKEN", name.clone()));

    // Nor does an endpoint come back without a subscription that went with it.
    let all = config.create_subscription(subscription(&second, "all"), &by()).await.unwrap();
    config.delete_endpoint(&second, at(11), &by()).await.unwrap();
    let third = fixture.endpoint(&acme, "third").await;
    config.create_subscription(subscription(&third, "all"), &by()).await.unwrap();
    let second = config.kept_endpoint(acme.id, second.id).await.unwrap().unwrap().value;
    let taken = config.undelete_endpoint(&second, at(12), &by()).await.unwrap_err();
    assert!(taken.to_string().contains("tenants/acme/subscriptions/all"), "{taken}");
    assert_eq!(refusal(Err::<(), _>(taken)), ("NAME_TAKEN", name));
    assert_eq!(config.endpoint(acme.id, &second.slug).await.unwrap(), None);

    config.delete_endpoint(&third, at(13), &by()).await.unwrap();
    // The one that was deleted last is found by name, each by its id.
    let newest = config.deleted_endpoint(acme.id, &second.slug).await.unwrap().unwrap();
    assert_eq!(newest.value, second);
    config.undelete_endpoint(&second, at(14), &by()).await.unwrap();
    assert_eq!(config.subscription(acme.id, &all.slug).await.unwrap().unwrap().id, all.id);
}

async fn what_refers_to_something_deleted_does_not_come_back(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let quick = config.create_retry_policy(retry_policy(acme.id, "quick"), &by()).await.unwrap();
    let mut orders = endpoint(acme.id, "orders");
    orders.retry_policy = Some(quick.id);
    let orders = config.create_endpoint(orders, crate::common::ring(), &by()).await.unwrap();
    let all = config.create_subscription(subscription(&orders, "all"), &by()).await.unwrap();
    config.delete_endpoint(&orders, at(9), &by()).await.unwrap();
    config.delete_retry_policy(&quick, at(10), &by()).await.unwrap();

    let orders = config.kept_endpoint(acme.id, orders.id).await.unwrap().unwrap().value;
    let refused = config.undelete_endpoint(&orders, at(11), &by()).await.unwrap_err();
    assert!(refused.to_string().contains("retryPolicies/quick"), "{refused}");
    assert_eq!(refused.reason(), "REFERENCE_DELETED");
    let all = config.kept_subscription(acme.id, all.id).await.unwrap().unwrap().value;
    let refused = config.undelete_subscription(&all, at(11), &by()).await.unwrap_err();
    assert!(refused.to_string().contains("endpoints/orders"), "{refused}");
    assert_eq!(refused.reason(), "REFERENCE_DELETED");

    let quick = config.deleted_retry_policy(acme.id, &quick.slug).await.unwrap().unwrap().value;
    let back = config.undelete_retry_policy(&quick, at(12), &by()).await.unwrap();
    assert_eq!((back.version, &back.rule), (quick.version, &quick.rule));
    config.undelete_endpoint(&orders, at(13), &by()).await.unwrap();
}

async fn only_what_is_deleted_and_as_it_was_read_comes_back(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    assert_eq!(config.deleted_endpoint(acme.id, &orders.slug).await.unwrap(), None);
    let live = config.undelete_endpoint(&orders, at(9), &by()).await;
    assert_eq!(refusal(live).0, "NOT_FOUND");
    config.delete_endpoint(&orders, at(9), &by()).await.unwrap();
    let stale = config.undelete_endpoint(&orders, at(10), &by()).await;
    assert_eq!(refusal(stale), ("ETAG_MISMATCH", "tenants/acme/endpoints/orders".to_owned()));
    let kept = config.kept_endpoint(acme.id, orders.id).await.unwrap().unwrap().value;
    config.purge_one(at(10), &by()).await.unwrap().unwrap();
    let late = config.undelete_endpoint(&kept, at(11), &by()).await;
    assert_eq!(refusal(late).0, "NOT_FOUND");
}

async fn lists_show_deleted_ones_when_asked(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let mut expected = Vec::new();
    for slug in ["b", "a", "b", "b", "c"] {
        let made = fixture.endpoint(&acme, slug).await;
        if slug == "b" {
            config.delete_endpoint(&made, at(9), &by()).await.unwrap();
        }
        expected.push((slug.to_owned(), made.id));
    }
    expected.sort();
    let mut seen: Vec<Kept<_>> = Vec::new();
    loop {
        let place = seen.last().map(|last: &Kept<turnbuckle_domain::Endpoint>| KeptPlace {
            slug: last.value.slug.clone(),
            uid: last.value.id.uuid(),
        });
        let page = config.kept_endpoints(acme.id, place.as_ref(), 2).await.unwrap();
        if page.is_empty() {
            break;
        }
        seen.extend(page);
    }
    let names: Vec<_> =
        seen.iter().map(|kept| (kept.value.slug.to_string(), kept.value.id)).collect();
    assert_eq!(names, expected);
    let deleted = seen.iter().filter(|kept| kept.deleted_at.is_some()).count();
    assert_eq!(deleted, 3);
    assert_eq!(config.endpoints(acme.id, None, 10).await.unwrap().len(), 2);
}

async fn no_tenant_sees_the_deleted_rows_of_another(fixture: &Fixture) {
    let config = &fixture.config;
    let (acme, other) = (fixture.tenant("acme").await, fixture.tenant("other").await);
    let orders = fixture.endpoint(&acme, "orders").await;
    config.delete_endpoint(&orders, at(9), &by()).await.unwrap();
    let mut kept = config.kept_endpoint(acme.id, orders.id).await.unwrap().unwrap().value;
    assert_eq!(config.kept_endpoint(other.id, orders.id).await.unwrap(), None);
    assert_eq!(config.deleted_endpoint(other.id, &orders.slug).await.unwrap(), None);
    assert_eq!(config.kept_endpoints(other.id, None, 10).await.unwrap(), []);
    kept.tenant = other.id;
    let moved = config.undelete_endpoint(&kept, at(10), &by()).await;
    assert_eq!(refusal(moved).0, "NOT_FOUND");
}

async fn a_purge_takes_what_is_due_oldest_first_and_leaves_names_only(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let quick = config.create_retry_policy(retry_policy(acme.id, "quick"), &by()).await.unwrap();
    let (late, early) =
        (fixture.endpoint(&acme, "late").await, fixture.endpoint(&acme, "early").await);
    let all = config.create_subscription(subscription(&early, "all"), &by()).await.unwrap();
    config.delete_retry_policy(&quick, at(10), &by()).await.unwrap();
    config.delete_endpoint(&early, at(10), &by()).await.unwrap();
    config.delete_endpoint(&late, at(20), &by()).await.unwrap();
    config.delete_tenant(&acme, at(20), &by()).await.unwrap();

    assert_eq!(config.purge_one(at(10), &by()).await.unwrap(), None);
    let before = fixture.revision().await;
    for name in ["endpoints/early", "subscriptions/all", "retryPolicies/quick"] {
        let purged = config.purge_one(at(11), &by()).await.unwrap();
        assert_eq!(purged, Some(format!("tenants/acme/{name}")));
    }
    assert_eq!(config.purge_one(at(11), &by()).await.unwrap(), None);
    assert_eq!(fixture.revision().await.0, before.0 + 3);
    assert_eq!(config.kept_subscription(acme.id, all.id).await.unwrap(), None);
    assert!(config.kept_endpoint(acme.id, late.id).await.unwrap().is_some());
    // Followers still see them gone, and nothing of what they held is left.
    let delta = config.changes_since(before).await.unwrap();
    assert!(delta.endpoints[0].deleted && delta.subscriptions[0].deleted);
    let purged = &delta.endpoints[0].value;
    assert_eq!((purged.id, purged.slug.as_str()), (early.id, "early"));
    let target = purged.target.http().unwrap();
    assert_eq!(target.url, "https://purged.invalid/");
    assert!(target.headers.is_empty() && purged.display_name.is_empty());
    assert_eq!(delta.subscriptions[0].value.filter, None);
    let mine = config.audit_entries(acme.id, &AuditFilter::default(), None, 3).await.unwrap();
    assert!(mine.iter().all(|entry| entry.revision > before && !entry.changes.is_empty()));
}

async fn a_row_that_cannot_be_read_is_purged_like_any_other(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    for (slug, when) in [("broken", 9), ("whole", 10)] {
        let made = fixture.endpoint(&acme, slug).await;
        config.delete_endpoint(&made, at(when), &by()).await.unwrap();
    }
    let broken = "update endpoint set headers = '{', labels = '[' where slug = 'broken'";
    fixture.db.execute_unprepared(broken).await.unwrap();
    for slug in ["broken", "whole"] {
        let purged = config.purge_one(at(11), &by()).await.unwrap();
        assert_eq!(purged, Some(format!("tenants/acme/endpoints/{slug}")));
    }
    // And what was broken is mended by it.
    assert_eq!(config.changes_since(Revision(1)).await.unwrap().endpoints.len(), 2);
}

async fn a_return_is_recorded_and_can_be_validated_only(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    config.delete_endpoint(&orders, at(9), &by()).await.unwrap();
    let kept = config.kept_endpoint(acme.id, orders.id).await.unwrap().unwrap().value;
    let before = fixture.revision().await;
    let dry = ChangeContext { validate_only: true, ..by() };
    config.undelete_endpoint(&kept, at(10), &dry).await.unwrap();
    assert_eq!(fixture.revision().await, before);
    config.undelete_endpoint(&kept, at(10), &by()).await.unwrap();
    let entries = config.audit_entries(acme.id, &AuditFilter::default(), None, 1).await.unwrap();
    assert_eq!(entries[0].resource, "tenants/acme/endpoints/orders");
    assert_eq!(entries[0].revision, Revision(before.0 + 1));
    assert!(entries[0].changes.iter().all(|change| change.before.is_none()));
}

async fn a_large_tenant_goes_with_a_small_entry(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    config.create_event_type(event_type(acme.id, "t"), &by()).await.unwrap();
    // As many as would fill an entry, beside the store: one by one they take too long.
    let id = match fixture.db.get_database_backend() {
        sea_orm::DbBackend::Postgres => "gen_random_uuid()",
        _ => "randomblob(16)",
    };
    let more = format!(
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000) \
         insert into event_type (id, tenant_id, type_name, description, labels, created_at_us, \
         updated_at_us, revision) select {id}, tenant_id, 't' || i, '', labels, 1, 1, revision \
         from event_type, n"
    );
    fixture.db.execute_unprepared(&more).await.unwrap();
    config.delete_tenant(&acme, at(9), &by()).await.unwrap();
    let entries = config.audit_entries(acme.id, &AuditFilter::default(), None, 1).await.unwrap();
    let named = entries[0].changes.iter().filter(|it| it.field.starts_with("eventTypes.t")).count();
    let count = entries[0].changes.iter().find(|it| it.field == "eventTypes.count").unwrap();
    assert_eq!((named, count.before.as_deref()), (100, Some("3001")));
    assert_eq!(config.event_types(acme.id, None, 10).await.unwrap(), []);
}
