//! What who follows by revision sees.

use crate::common::{at, by, endpoint, on_both_backends, ring};
use crate::fixture::{Fixture, event_type, subscription};
use std::{collections::BTreeMap, sync::Arc};
use turnbuckle_domain::{ConfigSource as _, ConfigStore as _, EndpointId, Revision, Tenant};

on_both_backends!(
    a_delta_holds_what_changed_and_nothing_else,
    who_knows_nothing_gets_no_tombstones,
    revisions_of_concurrent_writers_have_no_gaps,
    a_follower_sees_every_change_exactly_once,
);

const WRITERS: usize = 8;
const WRITES: usize = 10;

async fn a_delta_holds_what_changed_and_nothing_else(fixture: &Fixture) {
    let config = &fixture.config;
    let empty = config.changes_since(Revision::ZERO).await.unwrap();
    assert_eq!(empty.revision, Revision::ZERO);
    assert!(empty.tenants.is_empty());

    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    let all = config.create_subscription(subscription(&orders, "all"), &by()).await.unwrap();
    let known = fixture.revision().await;
    let paid = config.create_event_type(event_type(acme.id, "order.paid"), &by()).await.unwrap();
    let last = config.delete_subscription(&all, at(9), &by()).await.unwrap();

    let delta = config.changes_since(known).await.unwrap();
    assert_eq!(delta.revision, last);
    assert!(delta.tenants.is_empty() && delta.endpoints.is_empty() && delta.key_rings.is_empty());
    assert_eq!(delta.event_types.len(), 1);
    assert!(!delta.event_types[0].deleted && delta.event_types[0].value == paid);
    assert_eq!(delta.subscriptions.len(), 1);
    assert!(delta.subscriptions[0].deleted && delta.subscriptions[0].value.id == all.id);

    let nothing = config.changes_since(last).await.unwrap();
    assert_eq!(nothing.revision, last);
    assert!(nothing.event_types.is_empty() && nothing.subscriptions.is_empty());
}

async fn who_knows_nothing_gets_no_tombstones(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    let kept = fixture.endpoint(&acme, "kept").await;
    config.delete_endpoint(&orders, at(9), &by()).await.unwrap();
    let delta = config.changes_since(Revision::ZERO).await.unwrap();
    assert_eq!(delta.endpoints.len(), 1);
    assert_eq!(delta.endpoints[0].value, kept);
    let keys = config.key_ring(acme.id, kept.id.into()).await.unwrap();
    assert_eq!(delta.key_rings, [(kept.id, keys)]);
    assert_eq!(delta.revision, fixture.revision().await);
}

async fn revisions_of_concurrent_writers_have_no_gaps(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    let mut revisions: Vec<i64> = Vec::new();
    for writer in spawn_writers(fixture, &acme) {
        revisions.extend(writer.await.unwrap().values().map(|revision| revision.0));
    }
    revisions.sort_unstable();
    let expected: Vec<i64> = (2..).take(WRITERS * WRITES).collect();
    assert_eq!(revisions, expected);
}

async fn a_follower_sees_every_change_exactly_once(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    let writers = spawn_writers(fixture, &acme);
    let mut known = acme.meta.revision;
    let mut seen: BTreeMap<EndpointId, Revision> = BTreeMap::new();
    let last = Revision(i64::try_from(WRITERS * WRITES).unwrap() + 1);
    while known < last {
        let delta = fixture.config.changes_since(known).await.unwrap();
        assert_eq!(delta.endpoints.len(), delta.key_rings.len());
        let span = usize::try_from(delta.revision.0 - known.0).unwrap();
        assert_eq!(delta.endpoints.len(), span, "a revision without its change, or the reverse");
        for endpoint in delta.endpoints {
            let revision = endpoint.value.meta.revision;
            assert!(revision > known && revision <= delta.revision);
            assert_eq!(seen.insert(endpoint.value.id, revision), None, "seen twice");
        }
        known = delta.revision;
        tokio::task::yield_now().await;
    }
    let mut written = BTreeMap::new();
    for writer in writers {
        written.extend(writer.await.unwrap());
    }
    assert_eq!(seen, written);
}

type Written = BTreeMap<EndpointId, Revision>;

fn spawn_writers(fixture: &Fixture, acme: &Tenant) -> Vec<tokio::task::JoinHandle<Written>> {
    (0..WRITERS)
        .map(|writer| {
            let (config, tenant) = (Arc::clone(&fixture.config), acme.id);
            tokio::spawn(async move {
                let mut written = Written::new();
                for write in 0..WRITES {
                    let new = endpoint(tenant, &format!("e-{writer}-{write}"));
                    let made = config.create_endpoint(new, ring(), &by()).await.unwrap();
                    written.insert(made.id, made.meta.revision);
                }
                written
            })
        })
        .collect()
}
