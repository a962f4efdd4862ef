//! How long ids and signed bodies are remembered, and what is taken away afterwards.

use crate::{common::on_both_backends, fixture::Fixture};
use bytes::Bytes;
use std::{sync::Arc, time::Duration};
use turnbuckle_domain::{
    Append, AppendResult, CLAIM_BYTES_MAX, DedupRule, Event, SignedBody, SourceId, Timestamp,
    dedup_limits, event_limits,
};
use uuid::Uuid;

on_both_backends!(
    an_id_is_new_again_when_its_window_is_over,
    other_content_after_the_window_is_no_anomaly,
    what_is_over_is_taken_away_a_bounded_number_at_a_time,
    anomalies_go_when_they_are_old,
    one_of_many_concurrent_appends_renews_an_id,
    a_signed_body_under_another_id_is_a_replay_and_takes_no_id,
    a_repeat_of_an_unsigned_id_is_an_ordinary_duplicate,
    a_body_is_free_again_when_its_short_window_is_over,
    replays_inside_a_batch_are_found_too,
    an_anomaly_leaves_no_body_behind,
    ids_of_a_source_are_met_by_nobody_else_who_uses_its_name,
    batches_with_the_same_bodies_in_other_order_do_not_dead_lock,
    a_claim_of_large_payloads_ends_early_and_loses_none,
);

const WINDOW: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_secs(600);

async fn one(fixture: &Fixture, append: &Append) -> AppendResult {
    fixture.store.log.append(std::slice::from_ref(append)).await.unwrap().remove(0)
}

fn with(append: Append, window: Duration) -> Append {
    Append { dedup: Some(DedupRule::id(window)), ..append }
}

/// An id that nobody signed, with a body that somebody did.
fn unsigned(fixture: &Fixture, event: Event) -> Append {
    let body = Some(SignedBody::of(&event.data, None, SHORT));
    Append { dedup: Some(DedupRule { body, ..DedupRule::id(WINDOW) }), ..fixture.to(event, &[]) }
}

fn first(append: &Append) -> (turnbuckle_domain::EventUid, Timestamp) {
    (append.event.uid, append.event.accepted_at)
}

fn duplicate_of(append: &Append) -> AppendResult {
    let (uid, accepted_at) = first(append);
    AppendResult::Duplicate { uid, accepted_at }
}

fn replay_of(append: &Append) -> AppendResult {
    let (uid, accepted_at) = first(append);
    AppendResult::Replay { uid, accepted_at }
}

async fn an_id_is_new_again_when_its_window_is_over(fixture: &Fixture) {
    let tenant = fixture.tenant();
    let new = || with(fixture.to(fixture.event(tenant, "e-1"), &[]), WINDOW);
    let start = new();
    assert_eq!(one(fixture, &start).await, AppendResult::Accepted);
    fixture.clock.advance(WINDOW - Duration::from_micros(1));
    assert_eq!(one(fixture, &new()).await, duplicate_of(&start));
    fixture.clock.advance(Duration::from_micros(1));
    let renewed = new();
    assert_eq!(one(fixture, &renewed).await, AppendResult::Accepted);
    // From here on the new one is the first, for its own window.
    fixture.clock.advance(WINDOW / 2);
    assert_eq!(one(fixture, &new()).await, duplicate_of(&renewed));
    assert_eq!(fixture.number("select count(*) from event").await, 2);
    assert_eq!(fixture.number("select count(*) from event_dedup").await, 1);
}

async fn other_content_after_the_window_is_no_anomaly(fixture: &Fixture) {
    let tenant = fixture.tenant();
    assert_eq!(
        one(fixture, &with(fixture.to(fixture.event(tenant, "e-1"), &[]), WINDOW)).await,
        AppendResult::Accepted
    );
    let other = || {
        let event = Event { data: Bytes::from_static(b"[]"), ..fixture.event(tenant, "e-1") };
        with(fixture.to(event, &[]), WINDOW)
    };
    assert_eq!(one(fixture, &other()).await, AppendResult::Anomaly);
    fixture.clock.advance(WINDOW);
    assert_eq!(one(fixture, &other()).await, AppendResult::Accepted);
}

async fn what_is_over_is_taken_away_a_bounded_number_at_a_time(fixture: &Fixture) {
    let (tenant, log) = (fixture.tenant(), &fixture.store.log);
    let most = usize::from(dedup_limits::PRUNED_AT_ONCE);
    let count = async || fixture.number("select count(*) from event_dedup").await;
    for part in 0..3 {
        let append = |number: usize| {
            let event = fixture.event(tenant, &format!("e-{part}-{number}"));
            with(fixture.to(event, &[]), WINDOW * (1 + part))
        };
        let batch: Vec<Append> = (0..most / 2).map(append).collect();
        log.append(&batch).await.unwrap();
    }
    let now = fixture.now();
    assert_eq!(log.prune_dedup(now, now).await.unwrap(), 0);
    assert_eq!(log.prune_dedup(now + WINDOW, now).await.unwrap(), most as u64 / 2);
    assert_eq!(count().await, most as i64);
    assert_eq!(log.prune_dedup(now + WINDOW * 9, now).await.unwrap(), most as u64);
    assert_eq!(count().await, 0);
    assert_eq!(fixture.number("select count(*) from event").await, most as i64 / 2 * 3);
}

async fn anomalies_go_when_they_are_old(fixture: &Fixture) {
    let (tenant, log) = (fixture.tenant(), &fixture.store.log);
    one(fixture, &fixture.to(fixture.event(tenant, "e-1"), &[])).await;
    let event = Event { data: Bytes::from_static(b"[]"), ..fixture.event(tenant, "e-1") };
    assert_eq!(one(fixture, &fixture.to(event, &[])).await, AppendResult::Anomaly);
    let seen = fixture.now();
    assert_eq!(log.prune_dedup(seen, seen).await.unwrap(), 0);
    assert_eq!(log.prune_dedup(seen, seen + Duration::from_micros(1)).await.unwrap(), 1);
    assert_eq!(fixture.number("select count(*) from event_anomaly").await, 0);
}

async fn one_of_many_concurrent_appends_renews_an_id(fixture: &Fixture) {
    let tenant = fixture.tenant();
    one(fixture, &with(fixture.to(fixture.event(tenant, "e-1"), &[]), WINDOW)).await;
    fixture.clock.advance(WINDOW);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let log = Arc::clone(&fixture.store.log);
        let again = with(fixture.to(fixture.event(tenant, "e-1"), &[]), WINDOW);
        tasks.spawn(async move { log.append(&[again]).await.unwrap().remove(0) });
        // The sweeper may be at work all the while.
        let (log, now) = (Arc::clone(&fixture.store.log), fixture.now());
        tasks.spawn(async move {
            log.prune_dedup(now, now).await.unwrap();
            AppendResult::Unknown
        });
    }
    let answers = tasks.join_all().await;
    let accepted = answers.iter().filter(|answer| **answer == AppendResult::Accepted).count();
    assert_eq!(accepted, 1, "{answers:?}");
    assert_eq!(fixture.number("select count(*) from event").await, 2);
}

async fn a_signed_body_under_another_id_is_a_replay_and_takes_no_id(fixture: &Fixture) {
    let tenant = fixture.tenant();
    let captured = unsigned(fixture, fixture.event(tenant, "e-1"));
    assert_eq!(one(fixture, &captured).await, AppendResult::Accepted);
    let replayed = unsigned(fixture, fixture.event(tenant, "e-2"));
    assert_eq!(one(fixture, &replayed).await, replay_of(&captured));
    // The id that was put on it is still free for its real owner.
    let event = Event { data: Bytes::from_static(b"[2]"), ..fixture.event(tenant, "e-2") };
    assert_eq!(one(fixture, &unsigned(fixture, event)).await, AppendResult::Accepted);
    // Another source's body is another body.
    let event = Event { source: "till".to_owned(), ..fixture.event(tenant, "e-3") };
    assert_eq!(one(fixture, &unsigned(fixture, event)).await, AppendResult::Accepted);
    assert_eq!(fixture.number("select count(*) from event").await, 3);
    assert_eq!(fixture.number("select count(*) from event_anomaly").await, 0);
}

async fn a_repeat_of_an_unsigned_id_is_an_ordinary_duplicate(fixture: &Fixture) {
    let tenant = fixture.tenant();
    let new = || unsigned(fixture, fixture.event(tenant, "e-1"));
    let start = new();
    assert_eq!(one(fixture, &start).await, AppendResult::Accepted);
    assert_eq!(one(fixture, &new()).await, duplicate_of(&start));
    // Also when the body is forgotten and the id is not.
    fixture.clock.advance(SHORT);
    assert_eq!(one(fixture, &new()).await, duplicate_of(&start));
    assert_eq!(one(fixture, &new()).await, duplicate_of(&start));
    assert_eq!(fixture.number("select count(*) from event").await, 1);
}

async fn a_body_is_free_again_when_its_short_window_is_over(fixture: &Fixture) {
    let tenant = fixture.tenant();
    let start = unsigned(fixture, fixture.event(tenant, "e-1"));
    assert_eq!(one(fixture, &start).await, AppendResult::Accepted);
    fixture.clock.advance(SHORT - Duration::from_micros(1));
    let early = unsigned(fixture, fixture.event(tenant, "e-2"));
    assert_eq!(one(fixture, &early).await, replay_of(&start));
    fixture.clock.advance(Duration::from_micros(1));
    let again = unsigned(fixture, fixture.event(tenant, "e-2"));
    assert_eq!(one(fixture, &again).await, AppendResult::Accepted);
    let third = unsigned(fixture, fixture.event(tenant, "e-3"));
    assert_eq!(one(fixture, &third).await, replay_of(&again));
}

async fn replays_inside_a_batch_are_found_too(fixture: &Fixture) {
    let tenant = fixture.tenant();
    let new = |id: &str| unsigned(fixture, fixture.event(tenant, id));
    let batch = [new("e-1"), new("e-2"), new("e-1"), new("e-2")];
    let start = &batch[0];
    let expected =
        [AppendResult::Accepted, replay_of(start), duplicate_of(start), replay_of(start)];
    assert_eq!(fixture.store.log.append(&batch).await.unwrap(), expected);
    let batch = [new("e-3"), new("e-3"), new("e-4"), new("e-1")];
    let answers = fixture.store.log.append(&batch).await.unwrap();
    let replay = replay_of(start);
    // The last one has the body of the first of its batch, which was a replay of this very event.
    assert_eq!(answers, [replay.clone(), replay.clone(), replay, duplicate_of(start)]);
    assert_eq!(fixture.number("select count(*) from event").await, 1);
}

async fn ids_of_a_source_are_met_by_nobody_else_who_uses_its_name(fixture: &Fixture) {
    let tenant = fixture.tenant();
    let of = |scope: Option<u128>, data: &'static [u8]| {
        let scope = scope.map(|number| SourceId::from_uuid(Uuid::from_u128(number)));
        let event = Event { data: Bytes::from_static(data), ..fixture.event(tenant, "e-1") };
        let rule = DedupRule { scope, ..DedupRule::id(WINDOW) };
        Append { dedup: Some(rule), ..fixture.to(event, &[]) }
    };
    let all = [of(None, b"1"), of(Some(1), b"2"), of(Some(2), b"3")];
    assert_eq!(
        fixture.store.log.append(&all).await.unwrap(),
        [const { AppendResult::Accepted }; 3]
    );
    for (index, scope) in [None, Some(1), Some(2)].into_iter().enumerate() {
        let data = [b"1".as_slice(), b"2", b"3"][index];
        assert_eq!(one(fixture, &of(scope, data)).await, duplicate_of(&all[index]));
    }
}

async fn an_anomaly_leaves_no_body_behind(fixture: &Fixture) {
    let tenant = fixture.tenant();
    let start = unsigned(fixture, fixture.event(tenant, "e-1"));
    assert_eq!(one(fixture, &start).await, AppendResult::Accepted);
    let other = |id: &str| {
        let event = Event { data: Bytes::from_static(b"[1]"), ..fixture.event(tenant, id) };
        unsigned(fixture, event)
    };
    assert_eq!(one(fixture, &other("e-1")).await, AppendResult::Anomaly);
    // That body was never processed: under an id of its own it is an event.
    assert_eq!(one(fixture, &other("e-2")).await, AppendResult::Accepted);
}

async fn batches_with_the_same_bodies_in_other_order_do_not_dead_lock(fixture: &Fixture) {
    let tenant = fixture.tenant();
    for round in 0..10 {
        let append = |number: usize| {
            let data = Bytes::from(format!("[{round},{number}]"));
            let id = format!("{round}-{number}");
            unsigned(fixture, Event { data, ..fixture.event(tenant, &id) })
        };
        let forward: Vec<Append> = (0..50).map(append).collect();
        let backward: Vec<Append> = (0..50).rev().map(append).collect();
        let log = &fixture.store.log;
        let (one, other) = tokio::join!(log.append(&forward), log.append(&backward));
        let answers = [one.unwrap(), other.unwrap()].concat();
        let accepted = answers.iter().filter(|answer| **answer == AppendResult::Accepted);
        assert_eq!(accepted.count(), 50);
    }
}

async fn a_claim_of_large_payloads_ends_early_and_loses_none(fixture: &Fixture) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    let size = event_limits::RECEIVED_BYTES;
    let count = CLAIM_BYTES_MAX / size + 3;
    for number in 0..count {
        fixture.clock.advance(Duration::from_micros(1));
        let data = Bytes::from(vec![b'x'; size]);
        let event = Event { data, ..fixture.event(tenant, &format!("e-{number}")) };
        assert_eq!(one(fixture, &fixture.to(event, &[endpoint])).await, AppendResult::Accepted);
    }
    let claimed = fixture.claim(endpoint, 100).await;
    assert_eq!(claimed.len(), CLAIM_BYTES_MAX / size);
    let last = claimed.last().map(|row| (row.delivery.due_at, row.delivery.id)).unwrap();
    let lane = crate::fixture::lane(endpoint, last, 100);
    let rest = fixture.store.queue.claim(&[lane], fixture.now()).await.unwrap();
    assert_eq!(rest.len(), 3);
}
