//! Day partitions on Postgres.

use crate::fixture::{Fixture, START};
use sea_orm::{ConnectionTrait as _, Statement};
use std::{collections::BTreeSet, time::Duration};
use turnbuckle_domain::Timestamp;

const DAY: Duration = Duration::from_secs(24 * 3600);

async fn texts(fixture: &Fixture, sql: &str) -> BTreeSet<String> {
    let ask = Statement::from_string(fixture.side.get_database_backend(), sql);
    let rows = fixture.side.query_all_raw(ask).await.unwrap();
    rows.iter().map(|row| row.try_get_by_index(0).unwrap()).collect()
}

async fn partitions(fixture: &Fixture) -> BTreeSet<String> {
    let sql = "select inhrelid::regclass::text from pg_inherits \
               join pg_class on oid = inhrelid and relkind = 'r'";
    texts(fixture, sql).await
}

fn day(time: Timestamp) -> i64 {
    time.unix_seconds() / 86_400
}

fn expected(days: impl Iterator<Item = i64>) -> BTreeSet<String> {
    let tables = ["event", "delivery_done", "attempt", "receipt"];
    let defaults = tables.iter().map(|table| format!("{table}_default"));
    days.flat_map(|day| tables.map(|table| format!("{table}_d{day}"))).chain(defaults).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn today_and_a_week_ahead_are_made_by_however_many_at_once() {
    let Some(fixture) = Fixture::postgres().await else { return };
    let today = day(START);
    assert_eq!(partitions(&fixture).await, expected(today..=today + 7));
    let tomorrow = START + DAY;
    let maintain = || fixture.store.maintain(tomorrow);
    let (a, b, c) = tokio::join!(maintain(), maintain(), maintain());
    a.and(b).and(c).unwrap();
    assert_eq!(partitions(&fixture).await, expected(today..=today + 8));
    fixture.store.maintain(tomorrow).await.unwrap();
    assert_eq!(partitions(&fixture).await, expected(today..=today + 8));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_in_the_partition_of_their_day() {
    let Some(fixture) = Fixture::postgres().await else { return };
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    fixture.fill(tenant, endpoint, 1).await;
    fixture.clock.advance(DAY * 3);
    fixture.fill(tenant, endpoint, 1).await;
    let homes = texts(&fixture, "select distinct tableoid::regclass::text from event").await;
    let today = day(START);
    let expected = [today, today + 3].map(|day| format!("event_d{day}"));
    assert_eq!(homes, BTreeSet::from(expected));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_clock_was_ahead_does_not_stop_the_making_of_partitions() {
    let Some(fixture) = Fixture::postgres().await else { return };
    fixture.clock.set(START + DAY * 10);
    let made = fixture.fill(fixture.tenant(), fixture.endpoint(), 1).await;
    assert_eq!(made.len(), 1);
    assert_eq!(fixture.number("select count(*) from event_default").await, 1);
    fixture.store.maintain(START + DAY * 5).await.unwrap();
    let today = day(START);
    let mut all = expected(today..=today + 12);
    // Only the event's own day of its own table stays where its row is.
    assert!(all.remove(&format!("event_d{}", today + 10)));
    assert_eq!(partitions(&fixture).await, all);
    fixture.store.maintain(START + DAY * 10).await.unwrap();
}
