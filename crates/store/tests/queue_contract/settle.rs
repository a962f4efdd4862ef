//! Writing results: what is applied, and what comes too late.

use crate::{
    common::on_both_backends,
    fixture::{DEAD, DELIVERED, Fixture, LONG, Leader, START, attempt},
};
use std::{borrow::Cow, time::Duration};
use turnbuckle_domain::{
    Attempt, DeliveryState, FinishReason, Next, Settled, Settlement, Shard, ShardLease, TenantId,
};

on_both_backends!(
    a_success_finishes_a_delivery,
    every_way_to_end_is_kept_with_its_reason,
    a_retry_is_due_again_and_counts_the_attempt,
    every_field_of_an_attempt_is_kept_in_order,
    a_second_identical_settle_changes_nothing,
    a_turn_that_began_elsewhere_is_stale,
    a_wrong_epoch_shard_or_worker_is_stale,
    a_lost_lease_is_stale_and_records_nothing,
    the_rest_of_a_batch_is_applied_beside_a_stale_one,
    a_delivery_named_twice_in_a_batch_is_settled_once,
    five_hundred_turns_are_one_batch,
);

const RETRY: Next = Next::Retry { due_at: crate::common::at(1_800_000_100) };

async fn one(fixture: &Fixture) -> (TenantId, Leader, turnbuckle_domain::Claimed) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    fixture.fill(tenant, endpoint, 1).await;
    let leader = fixture.leader().await;
    (tenant, leader, fixture.claim(endpoint, 1).await.remove(0))
}

async fn a_success_finishes_a_delivery(fixture: &Fixture) {
    let (tenant, leader, claimed) = one(fixture).await;
    let turn = leader.tried(&claimed, DELIVERED);
    assert_eq!(fixture.settle(&leader, std::slice::from_ref(&turn)).await, [Settled::Applied]);
    let delivery = fixture.view(tenant, claimed.delivery.id).await.delivery;
    assert_eq!(delivery.state, DeliveryState::Delivered);
    assert_eq!((delivery.attempts, delivery.due_at, delivery.reason), (1, None, None));
    assert_eq!(delivery.finished_at, Some(turn.at));
    assert_eq!(delivery.event, claimed.event.as_ref().unwrap().uid);
    assert_eq!(fixture.attempts(tenant, delivery.id).await, [turn.attempt.unwrap()]);
    assert!(fixture.claim(claimed.delivery.endpoint, 10).await.is_empty());
}

async fn every_way_to_end_is_kept_with_its_reason(fixture: &Fixture) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    let ways = [
        (DeliveryState::Dead, FinishReason::HorizonPassed),
        (DeliveryState::Dead, FinishReason::FinalAnswer),
        (DeliveryState::Dead, FinishReason::Gone),
        (DeliveryState::Dead, FinishReason::EgressBlocked),
        (DeliveryState::Dead, FinishReason::EventGone),
        (DeliveryState::Cancelled, FinishReason::EndpointDisabled),
        (DeliveryState::Cancelled, FinishReason::EndpointDeleted),
    ];
    fixture.fill(tenant, endpoint, ways.len()).await;
    let leader = fixture.leader().await;
    let claimed = fixture.claim(endpoint, 100).await;
    let turns: Vec<Settlement> = claimed
        .iter()
        .zip(ways)
        .map(|(c, (state, reason))| leader.turn(c, Next::Finish { state, reason: Some(reason) }))
        .collect();
    assert_eq!(fixture.settle(&leader, &turns).await, vec![Settled::Applied; ways.len()]);
    for (claimed, (state, reason)) in claimed.iter().zip(ways) {
        let delivery = fixture.view(tenant, claimed.delivery.id).await.delivery;
        assert_eq!((delivery.state, delivery.reason), (state, Some(reason)));
        assert_eq!(delivery.attempts, 0);
        assert!(fixture.attempts(tenant, delivery.id).await.is_empty());
    }
}

async fn a_retry_is_due_again_and_counts_the_attempt(fixture: &Fixture) {
    let (tenant, leader, claimed) = one(fixture).await;
    assert_eq!(fixture.settle(&leader, &[leader.tried(&claimed, RETRY)]).await, [Settled::Applied]);
    let delivery = fixture.view(tenant, claimed.delivery.id).await.delivery;
    assert_eq!((delivery.state, delivery.attempts), (DeliveryState::Pending, 1));
    let Next::Retry { due_at } = RETRY else { unreachable!() };
    assert_eq!((delivery.due_at, delivery.finished_at), (Some(due_at), None));
    assert!(fixture.claim(delivery.endpoint, 1).await.is_empty());
    fixture.clock.set(due_at);
    let again = fixture.claim(delivery.endpoint, 1).await.remove(0);
    assert_eq!((again.delivery.attempts, again.delivery.round_start), (1, 0));
    assert_eq!(again.delivery.round_at, claimed.delivery.round_at);
    // A turn without an attempt puts it back and counts nothing.
    let later = Next::Retry { due_at: due_at + Duration::from_secs(1) };
    assert_eq!(fixture.settle(&leader, &[leader.turn(&again, later)]).await, [Settled::Applied]);
    assert_eq!(fixture.view(tenant, delivery.id).await.delivery.attempts, 1);
}

async fn every_field_of_an_attempt_is_kept_in_order(fixture: &Fixture) {
    let (tenant, leader, claimed) = one(fixture).await;
    let made = |number, outcome: &'static str, status, detail: &'static str| Attempt {
        number,
        started_at: START + Duration::from_micros(u64::from(number)),
        duration: Duration::from_micros(u64::from(number) * 1_000_001),
        outcome: Cow::Borrowed(outcome),
        status,
        detail: Cow::Borrowed(detail),
        retry_delay: (number % 2 == 0).then_some(Duration::from_micros(86_400_000_001)),
        retry_after_honoured: number % 3 == 0,
    };
    let attempts = [
        made(1, "refused", Some(599), ""),
        made(2, "timed_out", None, "FIRST_BYTE"),
        made(3, "unreachable", None, "TLS"),
        made(4, "blocked", None, "EGRESS_BLOCKED"),
        made(5, "failed", None, "SIGNING"),
        made(6, "delivered", Some(200), ""),
    ];
    for attempt in &attempts {
        let last = attempt.number == 6;
        let mut turn = leader.turn(&claimed, if last { DELIVERED } else { RETRY });
        turn.attempts_before = attempt.number - 1;
        turn.attempt = Some(attempt.clone());
        assert_eq!(fixture.settle(&leader, &[turn]).await, [Settled::Applied]);
    }
    assert_eq!(fixture.attempts(tenant, claimed.delivery.id).await, attempts);
}

async fn a_second_identical_settle_changes_nothing(fixture: &Fixture) {
    for next in [RETRY, DELIVERED, DEAD] {
        let (tenant, leader, claimed) = one(fixture).await;
        let turn = [leader.tried(&claimed, next)];
        assert_eq!(fixture.settle(&leader, &turn).await, [Settled::Applied]);
        let before = fixture.view(tenant, claimed.delivery.id).await;
        let mut other = turn.clone();
        other[0].at = other[0].at + Duration::from_secs(1);
        other[0].attempt.as_mut().unwrap().status = Some(418);
        for late in [&turn, &other] {
            assert_eq!(fixture.settle(&leader, late).await, [Settled::Stale]);
            assert_eq!(fixture.view(tenant, claimed.delivery.id).await, before);
            let attempts = fixture.attempts(tenant, claimed.delivery.id).await;
            assert_eq!(attempts.as_slice(), turn[0].attempt.as_slice());
        }
        fixture.store.queue.release(leader.worker, None).await.unwrap();
    }
}

async fn a_turn_that_began_elsewhere_is_stale(fixture: &Fixture) {
    let (tenant, leader, claimed) = one(fixture).await;
    fixture.settle(&leader, &[leader.tried(&claimed, RETRY)]).await;
    let before = fixture.view(tenant, claimed.delivery.id).await;
    for began_with in [0, 2, 7] {
        for next in [RETRY, DELIVERED, DEAD] {
            let mut turn = leader.turn(&claimed, next);
            turn.attempts_before = began_with;
            turn.attempt = Some(attempt(began_with + 1, next));
            assert_eq!(fixture.settle(&leader, &[turn]).await, [Settled::Stale]);
        }
    }
    assert_eq!(fixture.view(tenant, claimed.delivery.id).await, before);
    assert_eq!(fixture.attempts(tenant, claimed.delivery.id).await.len(), 1);
    let mut foreign = leader.tried(&claimed, DELIVERED);
    foreign.attempts_before = 1;
    foreign.tenant = fixture.tenant();
    assert_eq!(fixture.settle(&leader, &[foreign]).await, [Settled::Stale]);
}

async fn a_wrong_epoch_shard_or_worker_is_stale(fixture: &Fixture) {
    let (tenant, leader, claimed) = one(fixture).await;
    let good = leader.tried(&claimed, DELIVERED);
    let ShardLease { shard, epoch } = good.lease;
    let elsewhere = Shard::from_number((shard.number() + 1) % 64);
    let wrong = [
        ShardLease { shard, epoch: epoch + 1 },
        ShardLease { shard, epoch: epoch - 1 },
        ShardLease { shard: elsewhere, epoch: epoch + 1 },
    ];
    for lease in wrong {
        let turn = Settlement { lease, ..good.clone() };
        assert_eq!(fixture.settle(&leader, &[turn]).await, [Settled::Stale]);
    }
    let other = Leader { worker: fixture.worker(), leases: leader.leases.clone() };
    assert_eq!(fixture.settle(&other, std::slice::from_ref(&good)).await, [Settled::Stale]);
    let delivery = fixture.view(tenant, claimed.delivery.id).await.delivery;
    assert_eq!((delivery.state, delivery.attempts), (DeliveryState::Pending, 0));
    assert!(fixture.attempts(tenant, delivery.id).await.is_empty());
    assert_eq!(fixture.settle(&leader, &[good]).await, [Settled::Applied]);
}

async fn a_lost_lease_is_stale_and_records_nothing(fixture: &Fixture) {
    let (tenant, old, claimed) = one(fixture).await;
    fixture.store.queue.release(old.worker, None).await.unwrap();
    let late = [old.tried(&claimed, DELIVERED)];
    assert_eq!(fixture.settle(&old, &late).await, [Settled::Stale]);
    let new = fixture.leader().await;
    assert_eq!(fixture.settle(&old, &late).await, [Settled::Stale]);
    assert!(fixture.attempts(tenant, claimed.delivery.id).await.is_empty());
    assert_eq!(fixture.settle(&new, &[new.tried(&claimed, DEAD)]).await, [Settled::Applied]);
    // Taken back by the first one, the old token is still worth nothing.
    fixture.store.queue.release(new.worker, None).await.unwrap();
    fixture.store.queue.acquire(old.worker, 64, LONG).await.unwrap();
    assert_eq!(fixture.settle(&old, &late).await, [Settled::Stale]);
    let delivery = fixture.view(tenant, claimed.delivery.id).await.delivery;
    assert_eq!((delivery.state, delivery.attempts), (DeliveryState::Dead, 1));
}

async fn the_rest_of_a_batch_is_applied_beside_a_stale_one(fixture: &Fixture) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    fixture.fill(tenant, endpoint, 6).await;
    let leader = fixture.leader().await;
    let claimed = fixture.claim(endpoint, 10).await;
    let mut batch: Vec<Settlement> = claimed
        .iter()
        .zip([DELIVERED, DELIVERED, RETRY, RETRY, DEAD, DEAD])
        .map(|(claimed, next)| leader.tried(claimed, next))
        .collect();
    batch[0].lease.epoch += 1;
    batch[2].attempts_before += 1;
    batch[5].tenant = fixture.tenant();
    let (a, s) = (Settled::Applied, Settled::Stale);
    assert_eq!(fixture.settle(&leader, &batch).await, [s, a, s, a, a, s]);
    assert_eq!(fixture.number("select count(*) from delivery").await, 4);
    assert_eq!(fixture.number("select count(*) from delivery_done").await, 2);
    assert_eq!(fixture.number("select count(*) from attempt").await, 3);
    assert!(fixture.settle(&leader, &[]).await.is_empty());
}

async fn a_delivery_named_twice_in_a_batch_is_settled_once(fixture: &Fixture) {
    for next in [RETRY, DELIVERED] {
        let (tenant, leader, claimed) = one(fixture).await;
        let turn = leader.tried(&claimed, next);
        let answers = fixture.settle(&leader, &[turn.clone(), turn]).await;
        assert_eq!(answers, [Settled::Applied, Settled::Stale]);
        assert_eq!(fixture.attempts(tenant, claimed.delivery.id).await.len(), 1);
        assert_eq!(fixture.view(tenant, claimed.delivery.id).await.delivery.attempts, 1);
        fixture.store.queue.release(leader.worker, None).await.unwrap();
    }
}

async fn five_hundred_turns_are_one_batch(fixture: &Fixture) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    fixture.fill(tenant, endpoint, 500).await;
    let leader = fixture.leader().await;
    let claimed = fixture.claim(endpoint, 1000).await;
    let next = |index| if index % 2 == 0 { DELIVERED } else { RETRY };
    let batch: Vec<Settlement> =
        claimed.iter().enumerate().map(|(index, c)| leader.tried(c, next(index))).collect();
    assert_eq!(fixture.settle(&leader, &batch).await, vec![Settled::Applied; 500]);
    assert_eq!(fixture.number("select count(*) from delivery").await, 250);
    assert_eq!(fixture.number("select count(*) from delivery_done").await, 250);
    assert_eq!(fixture.number("select count(*) from attempt").await, 500);
}
