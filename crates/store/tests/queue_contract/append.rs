//! The event log: dedup, anomalies, and that what was accepted is there byte for byte.

use crate::{
    common::on_both_backends,
    fixture::{Fixture, PATIENCE, START},
};
use bytes::Bytes;
use std::{sync::Arc, time::Duration};
use turnbuckle_domain::{
    Append, AppendResult, DeliveryFilter, Event, PayloadFormat, TenantId, event_limits,
};

on_both_backends!(
    an_accepted_event_and_its_deliveries_can_be_read,
    a_repeat_is_answered_with_the_first,
    other_content_under_a_known_id_is_an_anomaly_recorded_once_and_counted,
    repeats_inside_a_batch_are_found_too,
    an_anomaly_inside_a_batch_points_to_its_first,
    a_batch_may_hold_everything_at_once,
    ids_made_by_the_server_are_never_repeats,
    tenants_and_sources_have_ids_of_their_own,
    one_of_fifty_concurrent_appends_is_accepted,
    batches_with_the_same_ids_in_other_order_do_not_dead_lock,
    an_event_that_nobody_wants_is_kept,
    payloads_come_back_byte_for_byte,
    odd_text_comes_back_as_it_was,
    a_full_batch_is_taken,
    a_too_large_payload_fails_alone_and_stores_nothing,
);

async fn append(fixture: &Fixture, batch: &[Append]) -> Vec<AppendResult> {
    fixture.store.log.append(batch).await.unwrap()
}

fn duplicate_of(event: &Event) -> AppendResult {
    AppendResult::Duplicate { uid: event.uid, accepted_at: event.accepted_at }
}

fn with_data(event: Event, data: &'static [u8]) -> Event {
    Event { data: Bytes::from_static(data), ..event }
}

async fn an_accepted_event_and_its_deliveries_can_be_read(fixture: &Fixture) {
    let tenant = fixture.tenant();
    let event = Event {
        subject: Some("order/7".into()),
        sequence: Some(i64::MIN),
        ..fixture.event(tenant, "e-1")
    };
    let mut one = fixture.to(event, &[fixture.endpoint(), fixture.endpoint()]);
    one.deliveries[1].format = PayloadFormat::Envelope;
    assert_eq!(append(fixture, std::slice::from_ref(&one)).await, [AppendResult::Accepted]);

    let stored = fixture.store.history.event(tenant, one.event.uid).await.unwrap();
    assert_eq!(stored.as_ref(), Some(&*one.event));
    for new in &one.deliveries {
        let view = fixture.view(tenant, new.id).await;
        assert_eq!(view.delivery.endpoint, new.endpoint);
        assert_eq!(view.delivery.event, one.event.uid);
        assert_eq!(view.delivery.due_at, Some(START));
        assert_eq!((view.event_id.as_str(), view.event_type.as_str()), ("e-1", "order.paid"));
        let claimed = fixture.claim(new.endpoint, 10).await;
        assert_eq!(claimed.len(), 1);
        assert_eq!(claimed[0].delivery.format, new.format);
    }
}

async fn a_repeat_is_answered_with_the_first(fixture: &Fixture) {
    let tenant = fixture.tenant();
    let first = fixture.to(fixture.event(tenant, "e-1"), &[fixture.endpoint()]);
    append(fixture, std::slice::from_ref(&first)).await;
    fixture.clock.advance(Duration::from_secs(9));
    let later = fixture.to(fixture.event(tenant, "e-1"), &[fixture.endpoint()]);
    assert_eq!(append(fixture, std::slice::from_ref(&later)).await, [duplicate_of(&first.event)]);
    assert_eq!(append(fixture, std::slice::from_ref(&first)).await, [duplicate_of(&first.event)]);
    assert!(fixture.store.history.event(tenant, later.event.uid).await.unwrap().is_none());
    assert_eq!(fixture.number("select count(*) from delivery").await, 1);
    assert_eq!(fixture.number("select count(*) from event_anomaly").await, 0);
}

async fn other_content_under_a_known_id_is_an_anomaly_recorded_once_and_counted(fixture: &Fixture) {
    let tenant = fixture.tenant();
    let first = fixture.to(fixture.event(tenant, "e-1"), &[fixture.endpoint()]);
    append(fixture, std::slice::from_ref(&first)).await;
    for seen in 1..=3 {
        let other = with_data(fixture.event(tenant, "e-1"), b"[]");
        let other = fixture.to(other, &[fixture.endpoint()]);
        assert_eq!(append(fixture, &[other]).await, [AppendResult::Anomaly]);
        assert_eq!(fixture.number("select seen_count from event_anomaly").await, seen);
    }
    let uid = fixture.quoted(first.event.uid.uuid());
    let known = format!("select count(*) from event_anomaly where first_uid = {uid}");
    assert_eq!(fixture.number(&known).await, 1);
    assert_eq!(fixture.number("select count(*) from event").await, 1);
    assert_eq!(fixture.number("select count(*) from delivery").await, 1);
}

async fn repeats_inside_a_batch_are_found_too(fixture: &Fixture) {
    let tenant = fixture.tenant();
    let batch = [(); 3].map(|()| fixture.to(fixture.event(tenant, "e-1"), &[fixture.endpoint()]));
    let repeat = duplicate_of(&batch[0].event);
    let expected = [AppendResult::Accepted, repeat.clone(), repeat];
    assert_eq!(append(fixture, &batch).await, expected);
    assert_eq!(fixture.number("select count(*) from delivery").await, 1);
}

async fn an_anomaly_inside_a_batch_points_to_its_first(fixture: &Fixture) {
    let tenant = fixture.tenant();
    let first = fixture.to(fixture.event(tenant, "e-1"), &[]);
    let other = || fixture.to(with_data(fixture.event(tenant, "e-1"), b"[]"), &[]);
    let batch = [first, other(), other()];
    let expected = [AppendResult::Accepted, AppendResult::Anomaly, AppendResult::Anomaly];
    assert_eq!(append(fixture, &batch).await, expected);
    let uid = fixture.quoted(batch[0].event.uid.uuid());
    let known = format!("select seen_count from event_anomaly where first_uid = {uid}");
    assert_eq!(fixture.number(&known).await, 2);
}

async fn a_batch_may_hold_everything_at_once(fixture: &Fixture) {
    let tenant = fixture.tenant();
    let known = fixture.to(fixture.event(tenant, "known"), &[]);
    append(fixture, std::slice::from_ref(&known)).await;
    let new = |id: &str| fixture.to(fixture.event(tenant, id), &[fixture.endpoint()]);
    let batch = [
        new("z"),
        new("known"),
        fixture.to(with_data(fixture.event(tenant, "known"), b"1"), &[]),
        new("a"),
        new("z"),
        Append { dedup: None, ..new("a") },
    ];
    let expected = [
        AppendResult::Accepted,
        duplicate_of(&known.event),
        AppendResult::Anomaly,
        AppendResult::Accepted,
        duplicate_of(&batch[0].event),
        AppendResult::Accepted,
    ];
    assert_eq!(append(fixture, &batch).await, expected);
    assert_eq!(fixture.number("select count(*) from event").await, 4);
    assert_eq!(fixture.number("select count(*) from delivery").await, 3);
}

async fn ids_made_by_the_server_are_never_repeats(fixture: &Fixture) {
    let tenant = fixture.tenant();
    let new = || Append { dedup: None, ..fixture.to(fixture.event(tenant, "same"), &[]) };
    assert_eq!(append(fixture, &[new(), new()]).await, [const { AppendResult::Accepted }; 2]);
    assert_eq!(append(fixture, &[new()]).await, [AppendResult::Accepted]);
    assert_eq!(fixture.number("select count(*) from event_dedup").await, 0);
}

async fn tenants_and_sources_have_ids_of_their_own(fixture: &Fixture) {
    let (one, other) = (fixture.tenant(), fixture.tenant());
    let with = |tenant: TenantId, source: &str| {
        let event = Event { source: source.into(), ..fixture.event(tenant, "e-1") };
        fixture.to(event, &[])
    };
    let batch = [with(one, "shop"), with(one, "till"), with(other, "shop"), with(other, "till")];
    assert_eq!(append(fixture, &batch).await, [const { AppendResult::Accepted }; 4]);
    let repeats: Vec<_> = batch.iter().map(|append| duplicate_of(&append.event)).collect();
    assert_eq!(append(fixture, &batch).await, repeats);
}

async fn one_of_fifty_concurrent_appends_is_accepted(fixture: &Fixture) {
    let tenant = fixture.tenant();
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let log = Arc::clone(&fixture.store.log);
            let one = fixture.to(fixture.event(tenant, "e-1"), &[fixture.endpoint()]);
            tokio::spawn(
                async move { (one.event.uid, log.append(&[one]).await.unwrap().remove(0)) },
            )
        })
        .collect();
    let mut accepted = Vec::new();
    let mut firsts = Vec::new();
    for task in tasks {
        match task.await.unwrap() {
            (uid, AppendResult::Accepted) => accepted.push(uid),
            (_, AppendResult::Duplicate { uid, .. }) => firsts.push(uid),
            (_, other) => panic!("the content was the same: {other:?}"),
        }
    }
    assert_eq!(accepted.len(), 1);
    assert_eq!(firsts, vec![accepted[0]; 49]);
    assert_eq!(fixture.number("select count(*) from event").await, 1);
    assert_eq!(fixture.number("select count(*) from delivery").await, 1);
}

async fn batches_with_the_same_ids_in_other_order_do_not_dead_lock(fixture: &Fixture) {
    let tenant = fixture.tenant();
    for round in 0..10 {
        let batch = || -> Vec<Append> {
            let id = |number| format!("{round}-{number}");
            (0..100).map(|number| fixture.to(fixture.event(tenant, &id(number)), &[])).collect()
        };
        let (forward, mut backward) = (batch(), batch());
        backward.reverse();
        let log = &fixture.store.log;
        let both = async { tokio::join!(log.append(&forward), log.append(&backward)) };
        let (one, other) = tokio::time::timeout(PATIENCE, both).await.unwrap();
        let answers = [one.unwrap(), other.unwrap()].concat();
        let accepted = answers.iter().filter(|answer| **answer == AppendResult::Accepted);
        assert_eq!(accepted.count(), 100);
    }
    assert_eq!(fixture.number("select count(*) from event").await, 1000);
}

async fn an_event_that_nobody_wants_is_kept(fixture: &Fixture) {
    let tenant = fixture.tenant();
    let lonely = fixture.to(fixture.event(tenant, "e-1"), &[]);
    assert_eq!(append(fixture, std::slice::from_ref(&lonely)).await, [AppendResult::Accepted]);
    assert!(fixture.store.history.event(tenant, lonely.event.uid).await.unwrap().is_some());
    let filter = DeliveryFilter { event: Some(lonely.event.uid), ..DeliveryFilter::default() };
    let deliveries = fixture.store.history.deliveries(tenant, &filter, None, 10).await.unwrap();
    assert!(deliveries.is_empty());
    assert_eq!(append(fixture, &[]).await, []);
}

async fn payloads_come_back_byte_for_byte(fixture: &Fixture) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    let every_byte = (0..=255_u8).cycle().take(event_limits::RECEIVED_BYTES).collect();
    let payloads: Vec<Vec<u8>> =
        vec![Vec::new(), vec![0], b"a\0b\xff\xfe\\x00".to_vec(), vec![0xff; 4], every_byte];
    for (number, data) in payloads.into_iter().enumerate() {
        fixture.clock.advance(Duration::from_micros(1));
        let event = Event { data: data.into(), ..fixture.event(tenant, &format!("e-{number}")) };
        let one = fixture.to(event, &[endpoint]);
        append(fixture, std::slice::from_ref(&one)).await;
        let stored = fixture.store.history.event(tenant, one.event.uid).await.unwrap().unwrap();
        assert!(stored == *one.event, "payload {number}");
        let claimed = fixture.claim(endpoint, 100).await;
        let last = claimed.last().unwrap().event.as_ref().unwrap();
        assert!(**last == *one.event, "payload {number}");
    }
}

async fn odd_text_comes_back_as_it_was(fixture: &Fixture) {
    let tenant = fixture.tenant();
    let texts = ["'; drop table event; --", "\\x41 \"q\" {a,b} NULL", "ß→😀\u{202e}", " ", "$1?"];
    for (number, text) in texts.into_iter().enumerate() {
        let event = Event {
            subject: Some(text.into()),
            source: format!("source:{number}/a"),
            ..fixture.event(tenant, "e:1/x")
        };
        let one = fixture.to(event, &[]);
        append(fixture, std::slice::from_ref(&one)).await;
        let stored = fixture.store.history.event(tenant, one.event.uid).await.unwrap().unwrap();
        assert_eq!(stored.subject.as_deref(), Some(text));
        assert!(stored == *one.event);
    }
}

async fn a_full_batch_is_taken(fixture: &Fixture) {
    let (tenant, endpoints) = (fixture.tenant(), [fixture.endpoint(), fixture.endpoint()]);
    let batch: Vec<Append> = (0..event_limits::BATCH)
        .map(|number| fixture.to(fixture.event(tenant, &format!("e-{number}")), &endpoints))
        .collect();
    assert_eq!(append(fixture, &batch).await, vec![AppendResult::Accepted; batch.len()]);
    assert_eq!(fixture.number("select count(*) from delivery").await, 2000);
    let repeats: Vec<_> = batch.iter().map(|append| duplicate_of(&append.event)).collect();
    assert_eq!(append(fixture, &batch).await, repeats);
}

async fn a_too_large_payload_fails_alone_and_stores_nothing(fixture: &Fixture) {
    let tenant = fixture.tenant();
    let data = vec![0; event_limits::RECEIVED_BYTES + 1].into();
    let large = fixture.to(Event { data, ..fixture.event(tenant, "large") }, &[]);
    let good = fixture.to(fixture.event(tenant, "good"), &[]);
    let (log, with_good) = (&fixture.store.log, fixture.to(fixture.event(tenant, "x"), &[]));
    let both = [with_good, large];
    let (failed, taken) = tokio::join!(log.append(&both), log.append(std::slice::from_ref(&good)));
    failed.unwrap_err();
    assert_eq!(taken.unwrap(), [AppendResult::Accepted]);
    assert_eq!(fixture.number("select count(*) from event").await, 1);
    assert_eq!(fixture.number("select count(*) from event_dedup").await, 1);
}
