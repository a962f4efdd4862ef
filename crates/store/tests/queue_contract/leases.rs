//! Shards and who holds them.

use crate::{
    common::on_both_backends,
    fixture::{Fixture, LONG, eventually},
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};
use turnbuckle_domain::{Shard, ShardLease, WorkerId};

on_both_backends!(
    a_worker_takes_what_is_free_with_fresh_epochs,
    a_heartbeat_renews_and_counts_the_living,
    nobody_takes_what_is_held_and_everybody_what_was_given_back,
    some_shards_can_be_given_back_alone,
    an_expired_lease_can_be_taken_and_its_owner_is_told,
    a_late_heartbeat_keeps_what_nobody_took,
    two_workers_never_hold_one_shard,
    an_epoch_is_never_used_twice,
);

const SHORT: Duration = Duration::from_millis(300);

async fn acquire(fixture: &Fixture, worker: WorkerId, count: usize) -> Vec<ShardLease> {
    fixture.store.queue.acquire(worker, count, LONG).await.unwrap()
}

fn shards(leases: &[ShardLease]) -> HashSet<Shard> {
    leases.iter().map(|lease| lease.shard).collect()
}

async fn a_worker_takes_what_is_free_with_fresh_epochs(fixture: &Fixture) {
    let worker = fixture.worker();
    let first = acquire(fixture, worker, 10).await;
    assert_eq!(shards(&first).len(), 10);
    assert!(first.iter().all(|lease| lease.epoch > 0));
    let rest = acquire(fixture, worker, 100).await;
    assert_eq!(shards(&rest).len(), 54);
    assert!(shards(&first).is_disjoint(&shards(&rest)));
    assert!(acquire(fixture, worker, 1).await.is_empty());
    assert!(acquire(fixture, fixture.worker(), 0).await.is_empty());
}

async fn a_heartbeat_renews_and_counts_the_living(fixture: &Fixture) {
    let queue = &fixture.store.queue;
    let (one, other) = (fixture.worker(), fixture.worker());
    let beat = queue.heartbeat(one, LONG).await.unwrap();
    assert_eq!((beat.workers, beat.leases.len()), (1, 0));
    let mut taken = queue.acquire(one, 3, SHORT).await.unwrap();
    let beat = queue.heartbeat(one, LONG).await.unwrap();
    taken.sort_by_key(|lease| lease.shard);
    assert_eq!(beat.leases, taken);
    assert_eq!(queue.heartbeat(other, LONG).await.unwrap().workers, 2);
    assert_eq!(queue.heartbeat(one, LONG).await.unwrap().workers, 2);
    // The renewed leases outlive the time they were first taken for.
    fixture.clock.advance(SHORT * 2);
    let free = "select count(*) from shard_lease where worker_id is null";
    assert_eq!(fixture.number(free).await, 61);
    assert_eq!(acquire(fixture, other, 64).await.len(), 61);
    queue.release(other, None).await.unwrap();
    assert_eq!(queue.heartbeat(one, LONG).await.unwrap().workers, 1);
}

async fn nobody_takes_what_is_held_and_everybody_what_was_given_back(fixture: &Fixture) {
    let (one, other) = (fixture.worker(), fixture.worker());
    let before = acquire(fixture, one, 64).await;
    assert!(acquire(fixture, other, 64).await.is_empty());
    // One that holds nothing gives nothing back.
    fixture.store.queue.release(other, None).await.unwrap();
    assert!(acquire(fixture, other, 64).await.is_empty());
    fixture.store.queue.release(one, None).await.unwrap();
    assert!(fixture.store.queue.heartbeat(one, LONG).await.unwrap().leases.is_empty());
    let after: HashMap<Shard, i64> =
        acquire(fixture, other, 64).await.iter().map(|lease| (lease.shard, lease.epoch)).collect();
    assert_eq!(after.len(), 64);
    assert!(before.iter().all(|lease| after[&lease.shard] > lease.epoch));
}

async fn some_shards_can_be_given_back_alone(fixture: &Fixture) {
    let (one, other) = (fixture.worker(), fixture.worker());
    acquire(fixture, one, 64).await;
    let given = [3, 60].map(Shard::from_number);
    fixture.store.queue.release(one, Some(&given)).await.unwrap();
    fixture.store.queue.release(other, Some(&[Shard::from_number(7)])).await.unwrap();
    fixture.store.queue.release(one, Some(&[])).await.unwrap();
    assert_eq!(shards(&acquire(fixture, other, 64).await), HashSet::from(given));
    let beat = fixture.store.queue.heartbeat(one, LONG).await.unwrap();
    assert_eq!(beat.leases.len(), 62);
}

async fn an_expired_lease_can_be_taken_and_its_owner_is_told(fixture: &Fixture) {
    let queue = &fixture.store.queue;
    let (one, other) = (fixture.worker(), fixture.worker());
    let before = queue.acquire(one, 64, SHORT).await.unwrap();
    fixture.clock.advance(SHORT + Duration::from_micros(1));
    let mut after = Vec::new();
    eventually(async || {
        after.extend(acquire(fixture, other, 64).await);
        (after.len() == 64).then_some(())
    })
    .await;
    let epochs: HashMap<_, _> = before.iter().map(|lease| (lease.shard, lease.epoch)).collect();
    assert!(after.iter().all(|lease| lease.epoch > epochs[&lease.shard]));
    assert!(queue.heartbeat(one, LONG).await.unwrap().leases.is_empty());
}

async fn a_late_heartbeat_keeps_what_nobody_took(fixture: &Fixture) {
    let queue = &fixture.store.queue;
    let (one, other) = (fixture.worker(), fixture.worker());
    queue.acquire(one, 64, Duration::ZERO).await.unwrap();
    fixture.clock.advance(Duration::from_micros(1));
    assert_eq!(queue.heartbeat(one, LONG).await.unwrap().leases.len(), 64);
    assert!(acquire(fixture, other, 64).await.is_empty());
}

async fn two_workers_never_hold_one_shard(fixture: &Fixture) {
    for _ in 0..5 {
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let (queue, worker) = (Arc::clone(&fixture.store.queue), fixture.worker());
                tokio::spawn(async move {
                    let mut mine = Vec::new();
                    for _ in 0..4 {
                        mine.extend(queue.acquire(worker, 5, LONG).await.unwrap());
                    }
                    (worker, mine)
                })
            })
            .collect();
        let mut held = HashSet::new();
        let mut workers = Vec::new();
        for task in tasks {
            let (worker, mine) = task.await.unwrap();
            assert!(mine.iter().all(|lease| held.insert(lease.shard)), "held twice");
            workers.push(worker);
        }
        // Skipping what another one was about to take may leave a few over.
        let last = fixture.worker();
        held.extend(shards(&acquire(fixture, last, 64).await));
        assert_eq!(held.len(), 64);
        for worker in workers.into_iter().chain([last]) {
            fixture.store.queue.release(worker, None).await.unwrap();
        }
    }
}

async fn an_epoch_is_never_used_twice(fixture: &Fixture) {
    let mut seen = HashSet::new();
    for _ in 0..5 {
        let worker = fixture.worker();
        for lease in acquire(fixture, worker, 64).await {
            assert!(seen.insert(lease));
        }
        fixture.store.queue.release(worker, None).await.unwrap();
    }
}
