//! Sealed records as a whole.

use crate::common::{at, by, key, on_both_backends};
use crate::{fixture::Fixture, sources::made};
use std::{collections::HashSet, sync::Arc, time::Duration};
use turnbuckle_domain::{
    ConfigSource as _, ConfigStore as _, Epoch, KeyId, KeyringCanary, RewrapBatch, SealedRecord,
    SealedRecords as _, SealedSecret,
};
use turnbuckle_store::config::ConfigDb;
use uuid::Uuid;

on_both_backends!(
    every_record_is_found_once_in_the_order_of_its_key,
    a_canary_is_kept_once_and_dropped,
    a_rewrap_goes_on_where_it_ended_and_makes_no_revision,
    two_runners_move_every_record_once,
    a_record_that_changed_meanwhile_is_left_alone,
    a_verb_that_read_its_ring_before_does_not_bring_the_old_record_back,
    another_key_stops_a_runner,
    copies_of_moved_records_are_read_anew,
);

/// As another key-encryption key would seal it.
fn moved(record: &SealedRecord) -> SealedSecret {
    SealedSecret::from_bytes([b"k2 ", record.sealed.as_bytes()].concat())
}

fn is_moved(record: &SealedRecord) -> bool {
    record.sealed.as_bytes().starts_with(b"k2 ")
}

fn batch(page: &[SealedRecord]) -> RewrapBatch {
    let left = page.iter().filter(|record| !is_moved(record));
    RewrapBatch {
        to: "k2".to_owned(),
        moves: left.map(|record| (record.clone(), moved(record))).collect(),
        unreadable: 0,
        up_to: page.last().unwrap().context.key,
        now: at(50),
    }
}

/// Endpoints and sources in turn, each with a key.
async fn fill(fixture: &Fixture, count: usize) {
    let acme = fixture.tenant("acme").await;
    for number in 0..count {
        match number % 2 {
            0 => drop(fixture.endpoint(&acme, &format!("orders-{number}")).await),
            _ => drop(made(fixture, &acme, &format!("github-{number}")).await),
        }
    }
}

async fn all(config: &ConfigDb) -> Vec<SealedRecord> {
    config.sealed_records(None, 1_000).await.unwrap()
}

fn next_epoch() -> Epoch {
    Epoch::from_uuid(Uuid::now_v7())
}

/// Moves everything, some records at a time.
async fn run(config: &ConfigDb, limit: u16) {
    let mut progress = config.begin_rewrap("k2", at(40)).await.unwrap();
    loop {
        let page = config.sealed_records(progress.after, limit).await.unwrap();
        if page.is_empty() {
            config.finish_rewrap("k2", next_epoch(), at(60)).await.unwrap();
            return;
        }
        progress = config.rewrap_batch(&batch(&page)).await.unwrap();
    }
}

async fn every_record_is_found_once_in_the_order_of_its_key(fixture: &Fixture) {
    fill(fixture, 7).await;
    let config = &fixture.config;
    let whole = all(config).await;
    let ids: Vec<KeyId> = whole.iter().map(|record| record.context.key).collect();
    assert_eq!(ids.len(), 7);
    assert!(ids.is_sorted() && ids.iter().collect::<HashSet<_>>().len() == 7);
    let (mut paged, mut after) = (Vec::new(), None);
    while paged.len() < 7 {
        let page = config.sealed_records(after, 3).await.unwrap();
        assert!(!page.is_empty());
        after = page.last().map(|record| record.context.key);
        paged.extend(page);
    }
    assert_eq!(paged, whole);
    assert_eq!(config.sealed_records(after, 3).await.unwrap(), []);
}

async fn a_canary_is_kept_once_and_dropped(fixture: &Fixture) {
    let config = &fixture.config;
    let canary = |key_id: &str, content: &[u8]| KeyringCanary {
        key_id: key_id.to_owned(),
        sealed: SealedSecret::from_bytes(content.to_vec()),
        created_at: at(1),
    };
    assert_eq!(config.keyring_canaries().await.unwrap(), []);
    config.add_keyring_canary(&canary("k2", b"two")).await.unwrap();
    config.add_keyring_canary(&canary("k1", b"one")).await.unwrap();
    config.add_keyring_canary(&canary("k1", b"another")).await.unwrap();
    let kept = config.keyring_canaries().await.unwrap();
    assert_eq!(kept, [canary("k1", b"one"), canary("k2", b"two")]);
    config.drop_keyring_canary("k1").await.unwrap();
    config.drop_keyring_canary("k1").await.unwrap();
    assert_eq!(config.keyring_canaries().await.unwrap(), [canary("k2", b"two")]);
}

async fn a_rewrap_goes_on_where_it_ended_and_makes_no_revision(fixture: &Fixture) {
    fill(fixture, 5).await;
    let config = &fixture.config;
    let revision = fixture.revision().await;
    assert_eq!(config.rewrap_progress().await.unwrap(), None);
    let begun = config.begin_rewrap("k2", at(40)).await.unwrap();
    assert_eq!((begun.after, begun.moved, begun.finished_at), (None, 0, None));
    let page = config.sealed_records(None, 2).await.unwrap();
    let first = RewrapBatch { unreadable: 1, ..batch(&page) };
    config.rewrap_batch(&first).await.unwrap();
    // The runner dies; the next one finds where it was.
    let resumed = config.begin_rewrap("k2", at(90)).await.unwrap();
    assert_eq!(resumed.after, Some(page[1].context.key));
    assert_eq!((resumed.moved, resumed.started_at), (2, at(40)));
    // A page done twice is counted once.
    let again = config.rewrap_batch(&first).await.unwrap();
    assert_eq!((again.moved, again.unreadable), (2, 1));
    run(config, 2).await;
    let done = config.rewrap_progress().await.unwrap().unwrap();
    assert_eq!((done.moved, done.finished_at), (5, Some(at(60))));
    assert!(all(config).await.iter().all(is_moved));
    assert_eq!(fixture.revision().await, revision, "nodes have nothing to do");
    // A finished one is not gone on with: the next one looks at everything anew.
    let next = config.begin_rewrap("k2", at(99)).await.unwrap();
    assert_eq!((next.after, next.moved, next.started_at), (None, 0, at(99)));
}

async fn two_runners_move_every_record_once(fixture: &Fixture) {
    fill(fixture, 12).await;
    let runners: Vec<_> = [1, 2, 3, 5]
        .map(|limit| {
            let config = Arc::clone(&fixture.config);
            tokio::spawn(async move { run(&config, limit).await })
        })
        .into();
    for runner in runners {
        runner.await.unwrap();
    }
    assert!(all(&fixture.config).await.iter().all(is_moved));
    let progress = fixture.config.rewrap_progress().await.unwrap().unwrap();
    // Whoever comes late may begin anew and find nothing to do.
    assert!(progress.finished_at.is_some() && progress.moved <= 12, "{progress:?}");
}

async fn a_record_that_changed_meanwhile_is_left_alone(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    let config = &fixture.config;
    let page = all(config).await;
    // Revoked between the read and the move.
    let mut ring = config.key_ring(acme.id, orders.id.into()).await.unwrap();
    let (expected, revoked) = (ring.revision, ring.keys[0].id);
    ring.revoke(revoked, "leaked", at(20)).unwrap();
    config.update_key_ring(acme.id, orders.id.into(), ring, expected, &by()).await.unwrap();
    let progress = config.rewrap_batch(&batch(&page)).await.unwrap();
    assert_eq!(progress.moved, 0);
    assert_eq!(all(config).await, [], "a destroyed key stays destroyed");
}

async fn a_verb_that_read_its_ring_before_does_not_bring_the_old_record_back(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    let config = &fixture.config;
    let mut ring = config.key_ring(acme.id, orders.id.into()).await.unwrap();
    let expected = ring.revision;
    run(config, 10).await;
    ring.rotate(key(), Duration::from_secs(60), false, at(70)).unwrap();
    let fresh = ring.keys[0].id;
    let stored =
        config.update_key_ring(acme.id, orders.id.into(), ring, expected, &by()).await.unwrap();
    assert_eq!(stored, config.key_ring(acme.id, orders.id.into()).await.unwrap());
    for record in all(config).await {
        assert_eq!(is_moved(&record), record.context.key != fresh);
    }
}

async fn another_key_stops_a_runner(fixture: &Fixture) {
    fill(fixture, 3).await;
    let config = &fixture.config;
    config.begin_rewrap("k2", at(40)).await.unwrap();
    let page = config.sealed_records(None, 2).await.unwrap();
    config.begin_rewrap("k3", at(41)).await.unwrap();
    let stopped = config.rewrap_batch(&batch(&page)).await.unwrap();
    assert_eq!((stopped.to.as_str(), stopped.moved), ("k3", 0));
    assert!(!all(config).await.iter().any(is_moved));
    let finished = config.finish_rewrap("k2", next_epoch(), at(42)).await.unwrap();
    assert_eq!(finished.finished_at, None, "the other one goes on");
}

async fn copies_of_moved_records_are_read_anew(fixture: &Fixture) {
    fill(fixture, 3).await;
    let config = &fixture.config;
    let before = config.position().await.unwrap().at;
    run(config, 2).await;
    let after = config.position().await.unwrap().at;
    assert_eq!(after.revision, before.revision);
    assert_ne!(after.epoch, before.epoch, "what others keep is of another epoch");
    // There is nothing left to move, and nothing to read anew.
    run(config, 2).await;
    assert_eq!(config.position().await.unwrap().at, after);
}
