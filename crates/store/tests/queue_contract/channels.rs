//! Channels of events: kept beside the event, so that it can be routed again.

use crate::{
    common::on_both_backends,
    fixture::{Fixture, number},
};
use sea_orm::{ConnectionTrait as _, DbBackend};
use std::time::Duration;
use turnbuckle_domain::{AppendResult, Channel, Channels, Event, EventFilter};

on_both_backends!(
    channels_come_back_wherever_an_event_is_read,
    an_event_without_channels_stores_nothing_for_them,
    the_same_id_for_other_channels_is_an_anomaly,
    a_row_whose_channels_are_malformed_holds_no_other_back,
);

fn channels(names: &[&str]) -> Channels {
    names.iter().map(|name| Channel::new(*name).unwrap()).collect()
}

async fn channels_come_back_wherever_an_event_is_read(fixture: &Fixture) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    let longest: Vec<String> = (0..16).map(|n| format!("{n:02}{}", "c".repeat(126))).collect();
    let longest: Vec<&str> = longest.iter().map(String::as_str).collect();
    let sets: [&[&str]; 4] = [&["a"], &["project/7", "eu:gold"], &[], &longest];
    let batch: Vec<_> = sets
        .iter()
        .enumerate()
        .map(|(number, names)| {
            fixture.clock.advance(Duration::from_millis(1));
            let event = fixture.event(tenant, &format!("e-{number}"));
            fixture.to(Event { channels: channels(names), ..event }, &[endpoint])
        })
        .collect();
    let accepted = fixture.store.log.append(&batch).await.unwrap();
    assert!(accepted.iter().all(|result| *result == AppendResult::Accepted));

    for append in &batch {
        let stored = fixture.store.history.event(tenant, append.event.uid).await.unwrap();
        assert_eq!(stored.as_ref(), Some(&*append.event));
    }
    let claimed = fixture.claim(endpoint, 10).await;
    assert_eq!(claimed.len(), batch.len());
    for (claimed, append) in claimed.iter().zip(&batch) {
        assert_eq!(claimed.event, Some(append.event.clone()));
    }
    let all = EventFilter::default();
    let listed = fixture.store.history.events(tenant, &all, None, 10).await.unwrap();
    let listed: Vec<_> = listed.into_iter().rev().map(|event| event.channels).collect();
    let expected: Vec<_> = batch.iter().map(|append| append.event.channels.clone()).collect();
    assert_eq!(listed, expected);
}

async fn an_event_without_channels_stores_nothing_for_them(fixture: &Fixture) {
    fixture.fill(fixture.tenant(), fixture.endpoint(), 3).await;
    let sql = "select count(*) from event where channels is null";
    assert_eq!(number(&fixture.side, sql).await, 3);
}

async fn the_same_id_for_other_channels_is_an_anomaly(fixture: &Fixture) {
    let tenant = fixture.tenant();
    let publish = async |names: &[&str]| {
        let event = Event { channels: channels(names), ..fixture.event(tenant, "e-1") };
        fixture.store.log.append(&[fixture.to(event, &[])]).await.unwrap().remove(0)
    };
    assert_eq!(publish(&["a", "b"]).await, AppendResult::Accepted);
    assert!(matches!(publish(&["b", "a"]).await, AppendResult::Duplicate { .. }));
    assert_eq!(publish(&["a"]).await, AppendResult::Anomaly);
}

async fn a_row_whose_channels_are_malformed_holds_no_other_back(fixture: &Fixture) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    fixture.fill(tenant, endpoint, 3).await;
    let one = "select min(accepted_at_us) from event";
    let broken = format!("update event set channels = '[1, 2]' where accepted_at_us = ({one})");
    fixture.execute(&broken).await;
    assert_eq!(fixture.claim(endpoint, 10).await.len(), 2);
    if fixture.side.get_database_backend() != DbBackend::Postgres {
        return;
    }
    for outside in ["".to_owned(), "x".repeat(2201)] {
        let outside = format!("update event set channels = '{outside}'");
        fixture.side.execute_unprepared(&outside).await.unwrap_err();
    }
}
