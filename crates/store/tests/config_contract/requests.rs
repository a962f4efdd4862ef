//! Remembered requests.

use crate::common::{at, by, endpoint, id, key, on_both_backends, ring, tenant};
use crate::fixture::{Fixture, event_type, refusal, retry_policy, seen, subscription, version};
use crate::{api_tokens, sources};
use std::{sync::Arc, time::Duration};
use turnbuckle_domain::{
    ApiTokenStore as _, ChangeContext, ConfigStore as _, Error, KeyRing, RequestKey,
    RequestLog as _, TenantId, Timestamp, request_limits,
};
use uuid::Uuid;

on_both_backends!(
    a_repeat_finds_what_the_first_call_made,
    every_kind_of_creation_is_remembered,
    sources_and_their_paths_are_remembered,
    versions_and_tokens_are_remembered,
    other_content_under_the_same_id_is_refused,
    of_fifty_concurrent_repeats_one_makes_a_resource,
    a_refused_change_is_not_remembered,
    a_request_that_is_only_validated_is_not_remembered,
    an_old_request_is_new_again_and_swept,
    requests_of_tenants_and_methods_are_kept_apart,
);

fn requested(request: Uuid, content: u8) -> ChangeContext {
    let request = Some(RequestKey { id: request, content: [content; 32] });
    ChangeContext { request, ..by() }
}

fn later(by: &ChangeContext, at: Timestamp) -> ChangeContext {
    ChangeContext { at, ..by.clone() }
}

async fn made(fixture: &Fixture, tenant: TenantId, by: &ChangeContext) -> Option<Uuid> {
    fixture.config.made_before(Some(tenant), by).await.unwrap().map(|made| made.id)
}

async fn a_repeat_finds_what_the_first_call_made(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let first = requested(Uuid::now_v7(), 1);
    assert_eq!(made(fixture, acme.id, &first).await, None);
    let keys = ring();
    let wanted = endpoint(acme.id, "orders");
    let orders = config.create_endpoint(wanted.clone(), keys.clone(), &first).await.unwrap();
    let found = config.made_before(Some(acme.id), &first).await.unwrap().unwrap();
    assert_eq!((found.id, found.key, found.at), (orders.id.uuid(), Some(keys.keys[0].id), at(2)));
    // Whoever did not look first is refused and makes nothing, whatever name it asks for.
    let again = config.create_endpoint(endpoint(acme.id, "other"), ring(), &first).await;
    assert_eq!(refusal(again).0, "ALREADY_EXISTS");
    assert_eq!(config.endpoints(acme.id, None, 10).await.unwrap(), [orders]);
}

async fn every_kind_of_creation_is_remembered(fixture: &Fixture) {
    let config = &fixture.config;
    let fresh = || requested(Uuid::now_v7(), 7);
    let request = fresh();
    let acme = config.create_tenant(tenant("acme"), &request).await.unwrap();
    let found = config.made_before(None, &request).await.unwrap().unwrap();
    assert_eq!(found.id, acme.id.uuid());

    let request = fresh();
    let paid = config.create_event_type(event_type(acme.id, "a.b"), &request).await.unwrap();
    assert_eq!(made(fixture, acme.id, &request).await, Some(paid.id.uuid()));
    let request = fresh();
    let quick = config.create_retry_policy(retry_policy(acme.id, "q"), &request).await.unwrap();
    assert_eq!(made(fixture, acme.id, &request).await, Some(quick.id.uuid()));
    let orders = fixture.endpoint(&acme, "orders").await;
    let request = fresh();
    let all = config.create_subscription(subscription(&orders, "all"), &request).await.unwrap();
    assert_eq!(made(fixture, acme.id, &request).await, Some(all.id.uuid()));

    let request = fresh();
    let mut ring = config.key_ring(acme.id, orders.id.into()).await.unwrap();
    ring.rotate(key(), Duration::from_secs(60), false, at(10)).unwrap();
    let (expected, newest) = (ring.revision, ring.keys[0].id);
    let twin = ring.clone();
    config.update_key_ring(acme.id, orders.id.into(), ring, expected, &request).await.unwrap();
    let found = config.made_before(Some(acme.id), &request).await.unwrap().unwrap();
    assert_eq!((found.id, found.key), (orders.id.uuid(), Some(newest)));
    // A repeat is told from a writer whose etag is old.
    let again = config.update_key_ring(acme.id, orders.id.into(), twin, expected, &request).await;
    assert_eq!(refusal(again).0, "ALREADY_EXISTS");
}

async fn sources_and_their_paths_are_remembered(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let request = requested(Uuid::now_v7(), 7);
    let (key, wanted) = (sources::key(), sources::source(acme.id, "git"));
    let first = KeyRing::with_first(key.clone(), at(1));
    let git = config.create_source(wanted, first, &request).await.unwrap();
    let found = config.made_before(Some(acme.id), &request).await.unwrap().unwrap();
    assert_eq!((found.id, found.key), (git.id.uuid(), Some(key.id)));
    let again = config.create_source(sources::source(acme.id, "other"), ring(), &request).await;
    assert_eq!(refusal(again).0, "ALREADY_EXISTS");
    assert_eq!(config.sources(acme.id, None, 10).await.unwrap(), std::slice::from_ref(&git));

    let request = requested(Uuid::now_v7(), 7);
    let seen = git.meta.revision;
    let rotated = config.update_source(git.clone(), seen, None, &request).await.unwrap();
    let found = config.made_before(Some(acme.id), &request).await.unwrap().unwrap();
    assert_eq!((found.id, found.key), (git.id.uuid(), None));
    // A repeat is told from a writer whose etag is old, and from one whose etag is not.
    for revision in [seen, rotated.meta.revision] {
        let again = config.update_source(git.clone(), revision, None, &request).await;
        assert_eq!(refusal(again).0, "ALREADY_EXISTS");
    }
}

async fn versions_and_tokens_are_remembered(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let paid = config.create_event_type(event_type(acme.id, "a.b"), &by()).await.unwrap();
    let request = requested(Uuid::now_v7(), 7);
    let one = version(&paid, "1");
    let one = config.create_event_type_version(one, seen(&paid, None), &request).await.unwrap();
    assert_eq!(made(fixture, acme.id, &request).await, Some(one.id.uuid()));
    let two = version(&paid, "2");
    let two = config.create_event_type_version(two, seen(&paid, Some(&one)), &request).await;
    assert_eq!(refusal(two).0, "ALREADY_EXISTS");

    for owner in [Some(acme.id), None] {
        let request = requested(Uuid::now_v7(), 7);
        let token = api_tokens::token(owner, "ci");
        let token = config.create_api_token(token, &request).await.unwrap();
        let found = config.made_before(owner, &request).await.unwrap().unwrap();
        assert_eq!((found.id, found.key), (token.id.uuid(), None));
        let again = config.create_api_token(api_tokens::token(owner, "cd"), &request).await;
        assert_eq!(refusal(again).0, "ALREADY_EXISTS");
        assert_eq!(config.api_tokens(owner, None, None, 10).await.unwrap(), [token]);
    }
}

async fn other_content_under_the_same_id_is_refused(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let request = Uuid::now_v7();
    let first = event_type(acme.id, "order.paid");
    config.create_event_type(first, &requested(request, 1)).await.unwrap();
    let other = requested(request, 2);
    let looked = config.made_before(Some(acme.id), &other).await.unwrap_err();
    let written = config.create_event_type(event_type(acme.id, "order.sent"), &other).await;
    for error in [looked, written.unwrap_err()] {
        assert_eq!(error.reason(), "REQUEST_ID_REUSED");
        assert!(error.to_string().contains(&request.to_string()), "{error}");
    }
    assert_eq!(config.event_types(acme.id, None, 10).await.unwrap().len(), 1);
}

async fn of_fifty_concurrent_repeats_one_makes_a_resource(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    let before = fixture.revision().await;
    let request = requested(Uuid::now_v7(), 1);
    let callers: Vec<_> = (0..50)
        .map(|_| {
            let (config, request) = (Arc::clone(&fixture.config), request.clone());
            // Each under a name of its own, as the server makes them.
            let wanted = endpoint(acme.id, &format!("e{}", Uuid::now_v7().simple()));
            tokio::spawn(async move { config.create_endpoint(wanted, ring(), &request).await })
        })
        .collect();
    let mut won = Vec::new();
    for caller in callers {
        match caller.await.unwrap() {
            Ok(endpoint) => won.push(endpoint),
            lost => assert_eq!(refusal(lost).0, "ALREADY_EXISTS"),
        }
    }
    assert_eq!(won.len(), 1);
    assert_eq!(made(fixture, acme.id, &request).await, Some(won[0].id.uuid()));
    assert_eq!(fixture.config.endpoints(acme.id, None, 10).await.unwrap(), won);
    assert_eq!(fixture.revision().await.0, before.0 + 1);
}

async fn a_refused_change_is_not_remembered(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    fixture.endpoint(&acme, "orders").await;
    let request = requested(Uuid::now_v7(), 1);
    let taken = config.create_endpoint(endpoint(acme.id, "orders"), ring(), &request).await;
    assert!(matches!(taken, Err(Error::AlreadyExists { .. })));
    assert_eq!(made(fixture, acme.id, &request).await, None);
    config.create_endpoint(endpoint(acme.id, "free"), ring(), &request).await.unwrap();
}

async fn a_request_that_is_only_validated_is_not_remembered(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    let request = requested(Uuid::now_v7(), 1);
    let dry = ChangeContext { validate_only: true, ..request.clone() };
    fixture.config.create_endpoint(endpoint(acme.id, "orders"), ring(), &dry).await.unwrap();
    assert_eq!(made(fixture, acme.id, &request).await, None);
}

async fn an_old_request_is_new_again_and_swept(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let request = requested(Uuid::now_v7(), 1);
    let first = config.create_event_type(event_type(acme.id, "a"), &request).await.unwrap();
    let end = request.at + request_limits::KEPT;
    let just_before = later(&request, end - Duration::from_micros(1));
    assert_eq!(made(fixture, acme.id, &just_before).await, Some(first.id.uuid()));
    // Not swept yet, and yet it counts no longer, whatever its content is.
    let request = ChangeContext { at: end, ..requested(request.request.unwrap().id, 2) };
    assert_eq!(made(fixture, acme.id, &request).await, None);
    let second = config.create_event_type(event_type(acme.id, "b"), &request).await.unwrap();
    assert_eq!(made(fixture, acme.id, &request).await, Some(second.id.uuid()));

    for name in ["c", "d", "e"] {
        let request = requested(Uuid::now_v7(), 1);
        config.create_event_type(event_type(acme.id, name), &request).await.unwrap();
    }
    let cut = at(3);
    assert_eq!(config.forget_requests(cut, 2).await.unwrap(), 2);
    assert_eq!(config.forget_requests(cut, 2).await.unwrap(), 1);
    assert_eq!(config.forget_requests(cut, 2).await.unwrap(), 0);
    assert_eq!(made(fixture, acme.id, &request).await, Some(second.id.uuid()));
}

async fn requests_of_tenants_and_methods_are_kept_apart(fixture: &Fixture) {
    let config = &fixture.config;
    let (acme, other) = (fixture.tenant("acme").await, fixture.tenant("other").await);
    let id_of_it = Uuid::now_v7();
    // Entries of the record have ids of their own.
    let fresh = || requested(id_of_it, 1);
    let request = fresh();
    let elsewhere = ChangeContext { method: "another".to_owned(), ..fresh() };
    config.create_endpoint(endpoint(acme.id, "orders"), ring(), &request).await.unwrap();
    assert_eq!(made(fixture, other.id, &request).await, None);
    assert_eq!(made(fixture, acme.id, &elsewhere).await, None);
    config.create_endpoint(endpoint(other.id, "orders"), ring(), &fresh()).await.unwrap();
    config.create_endpoint(endpoint(acme.id, "more"), ring(), &elsewhere).await.unwrap();
    assert!(config.endpoint(acme.id, &id("more")).await.unwrap().is_some());
}
