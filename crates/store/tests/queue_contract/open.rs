//! Opening, refusing to open, and what a crash leaves.

use crate::{
    common::on_both_backends,
    fixture::{
        DELIVERED, Fixture, Home, LONG, START, connect, migrated, open_embedded, side_of_embedded,
    },
};
use sea_orm::ConnectionTrait as _;
use std::{error::Error as _, sync::Arc};
use turnbuckle_domain::{AppendResult, Clock, DeliveryFilter, DeliveryState, StoreError};
use turnbuckle_store::{OpenError, Store};
use turnbuckle_testkit::{clock::ManualClock, postgres::TestDatabase};

on_both_backends!(an_open_store_answers_and_can_be_kept_in_shape);

const FUTURE: &str = "insert into seaql_migrations (version, applied_at) \
                      values ('m99991231_000001_future', 0)";

async fn an_open_store_answers_and_can_be_kept_in_shape(fixture: &Fixture) {
    fixture.store.ping().await.unwrap();
    fixture.store.maintain(fixture.now()).await.unwrap();
    fixture.store.maintain(fixture.now()).await.unwrap();
}

/// What a person is told, with all causes.
fn told(error: &OpenError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

async fn refusal(opening: impl Future<Output = Result<Store, OpenError>>) -> OpenError {
    match opening.await {
        Ok(_) => panic!("it was opened"),
        Err(error) => error,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_dropped_in_the_middle_has_everything_acknowledged_and_no_leases() {
    let fixture = Fixture::sqlite().await;
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    let made = fixture.fill(tenant, endpoint, 30).await;
    let leader = fixture.leader().await;
    let claimed = fixture.claim(endpoint, 10).await;
    let turns: Vec<_> = claimed.iter().map(|c| leader.tried(c, DELIVERED)).collect();
    fixture.settle(&leader, &turns).await;
    // Work that nobody waits for is under way when the process dies.
    let unanswered = fixture.to(fixture.event(tenant, "late"), &[]);
    let log = Arc::clone(&fixture.store.log);
    let abandoned = tokio::spawn(async move { log.append(&[unanswered]).await.map(drop) });
    abandoned.abort();
    assert!(abandoned.await.is_ok() || fixture.store.ping().await.is_ok());

    let Fixture { store, clock, home, .. } = fixture;
    let Home::Directory(directory) = home else { unreachable!() };
    drop(store);
    let store = open_embedded(directory.path(), &clock).await;
    let all = DeliveryFilter::default();
    let views = store.history.deliveries(tenant, &all, None, 100).await.unwrap();
    assert_eq!(views.len(), made.len());
    let done = views.iter().filter(|view| view.delivery.state == DeliveryState::Delivered);
    assert_eq!(done.count(), 10);
    // No waiting for the old worker's hour to pass; its token is worth nothing.
    let leases = store.queue.acquire(leader.worker, 64, LONG).await.unwrap();
    assert_eq!(leases.len(), 64);
    assert!(leases.iter().all(|lease| lease.epoch > leader.leases[&lease.shard].epoch));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_after_a_crash_is_a_duplicate() {
    let fixture = Fixture::sqlite().await;
    let one = fixture.to(fixture.event(fixture.tenant(), "e-1"), &[]);
    fixture.store.log.append(std::slice::from_ref(&one)).await.unwrap();
    let Fixture { store, clock, home, .. } = fixture;
    let Home::Directory(directory) = home else { unreachable!() };
    drop(store);
    let store = open_embedded(directory.path(), &clock).await;
    let answer = store.log.append(std::slice::from_ref(&one)).await.unwrap();
    assert!(matches!(answer[0], AppendResult::Duplicate { uid, .. } if uid == one.event.uid));
}

#[tokio::test]
async fn a_directory_belongs_to_one_process() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("made/when/needed");
    assert!(!Store::embedded_exists(&path));
    let clock = ManualClock::shared(START);
    let first = open_embedded(&path, &clock).await;
    assert!(Store::embedded_exists(&path));
    let error = refusal(Store::open_embedded(&path, Arc::clone(&clock) as Arc<dyn Clock>)).await;
    assert!(told(&error).contains("another process uses this data directory"), "{error:?}");
    first.ping().await.unwrap();
    drop(first);
    open_embedded(&path, &clock).await;
}

#[tokio::test]
async fn a_newer_embedded_schema_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::shared(START);
    drop(open_embedded(directory.path(), &clock).await);
    let side = side_of_embedded(directory.path()).await;
    side.execute_unprepared(FUTURE).await.unwrap();
    let clock = Arc::clone(&clock) as Arc<dyn Clock>;
    let error = refusal(Store::open_embedded(directory.path(), clock)).await;
    assert!(matches!(error, OpenError::SchemaAhead { .. }), "{error:?}");
    assert!(error.to_string().contains("m99991231_000001_future"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_or_older_postgres_schema_is_refused() {
    let Some(database) = migrated().await else { return };
    let side = connect(database.url()).await;
    side.execute_unprepared(FUTURE).await.unwrap();
    let error = refusal(Store::open_postgres(database.url(), START)).await;
    assert!(matches!(error, OpenError::SchemaAhead { .. }), "{error:?}");
    let error = Store::migrate_postgres(database.url()).await.unwrap_err();
    assert!(matches!(error, OpenError::SchemaAhead { .. }), "{error:?}");

    let newest = turnbuckle_migrations::expected_version();
    let forget = format!("delete from seaql_migrations where version >= '{newest}'");
    side.execute_unprepared(&forget).await.unwrap();
    let error = refusal(Store::open_postgres(database.url(), START)).await;
    assert!(matches!(error, OpenError::SchemaBehind { pending: 1 }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_postgres_database_is_refused_until_it_is_migrated() {
    let migrate = async |_: &str| Ok(());
    let Some(database) = TestDatabase::create("queue empty", migrate).await.unwrap() else {
        return;
    };
    let error = refusal(Store::open_postgres(database.url(), START)).await;
    assert!(matches!(error, OpenError::SchemaEmpty), "{error:?}");
    let (one, other) = tokio::join!(
        Store::migrate_postgres(database.url()),
        Store::migrate_postgres(database.url())
    );
    one.and(other).unwrap();
    Store::open_postgres(database.url(), START).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_that_acknowledges_before_it_writes_is_refused() {
    let Some(database) = migrated().await else { return };
    let side = connect(database.url()).await;
    let name = database.url().rsplit('/').next().unwrap().split('?').next().unwrap();
    let off = format!("alter database {name} set synchronous_commit = off");
    side.execute_unprepared(&off).await.unwrap();
    let error = refusal(Store::open_postgres(database.url(), START)).await;
    assert!(told(&error).contains("synchronous_commit is off"), "{error:?}");
    let local = format!("alter database {name} set synchronous_commit = local");
    side.execute_unprepared(&local).await.unwrap();
    Store::open_postgres(database.url(), START).await.unwrap();
}

#[tokio::test]
async fn a_postgres_that_is_not_there_is_unavailable() {
    let nobody = "postgres://nobody@127.0.0.1:1/nothing";
    let error = refusal(Store::open_postgres(nobody, START)).await;
    assert!(matches!(error, OpenError::Store(StoreError::Unavailable(_))), "{error:?}");
}
