//! Attempts that end after their delivery was finished by somebody else.

use crate::{
    common::on_both_backends,
    fixture::{DELIVERED, Fixture, attempt},
};
use std::time::Duration;
use turnbuckle_domain::{DeliveryState, Finished, Next, Settled};

on_both_backends!(
    an_attempt_is_recorded_although_its_delivery_was_cancelled_meanwhile,
    numbers_go_on_after_an_attempt_that_came_late,
    a_retry_in_the_middle_of_an_attempt_leaves_its_result_welcome,
);

async fn an_attempt_is_recorded_although_its_delivery_was_cancelled_meanwhile(fixture: &Fixture) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    let ids = fixture.fill(tenant, endpoint, 2).await;
    let leader = fixture.leader().await;
    let claimed = fixture.claim(endpoint, 2).await;
    let history = &fixture.store.history;
    assert_eq!(history.cancel(tenant, ids[0], fixture.now()).await.unwrap(), Finished::Changed);
    let before = fixture.view(tenant, ids[0]).await.delivery;

    let batch = [leader.tried(&claimed[0], DELIVERED), leader.tried(&claimed[1], DELIVERED)];
    assert_eq!(fixture.settle(&leader, &batch).await, [Settled::Stale, Settled::Applied]);
    assert_eq!(fixture.attempts(tenant, ids[0]).await, [attempt(1, DELIVERED)]);
    let after = fixture.view(tenant, ids[0]).await.delivery;
    assert_eq!((after.state, after.attempts), (DeliveryState::Cancelled, 1));
    assert_eq!((after.finished_at, after.reason), (before.finished_at, before.reason));
    // The same once more, and one of a lost lease, add nothing.
    assert_eq!(fixture.settle(&leader, &batch).await, [Settled::Stale; 2]);
    assert_eq!(fixture.attempts(tenant, ids[0]).await.len(), 1);
    fixture.store.queue.release(leader.worker, None).await.unwrap();
    let mut lost = batch[0].clone();
    lost.attempts_before = 1;
    assert_eq!(fixture.settle(&leader, &[lost]).await, [Settled::Stale]);
    assert_eq!(fixture.view(tenant, ids[0]).await.delivery, after);
    assert_eq!(fixture.attempts(tenant, ids[0]).await.len(), 1);
}

async fn numbers_go_on_after_an_attempt_that_came_late(fixture: &Fixture) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    let id = fixture.fill(tenant, endpoint, 1).await[0];
    let leader = fixture.leader().await;
    let claimed = fixture.claim(endpoint, 1).await.remove(0);
    let history = &fixture.store.history;
    history.cancel(tenant, id, fixture.now()).await.unwrap();
    let due_at = fixture.now() + Duration::from_secs(5);
    let late = [leader.tried(&claimed, Next::Retry { due_at })];
    assert_eq!(fixture.settle(&leader, &late).await, [Settled::Stale]);
    history.retry(tenant, id, fixture.now()).await.unwrap();
    let again = fixture.claim(endpoint, 1).await.remove(0);
    assert_eq!((again.delivery.attempts, again.delivery.round_start), (1, 1));
    let last = [leader.tried(&again, DELIVERED)];
    assert_eq!(fixture.settle(&leader, &last).await, [Settled::Applied]);
    let attempts = fixture.attempts(tenant, id).await;
    assert_eq!(attempts, [attempt(1, Next::Retry { due_at }), attempt(2, DELIVERED)]);
}

async fn a_retry_in_the_middle_of_an_attempt_leaves_its_result_welcome(fixture: &Fixture) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    let id = fixture.fill(tenant, endpoint, 1).await[0];
    let leader = fixture.leader().await;
    let claimed = fixture.claim(endpoint, 1).await.remove(0);
    fixture.store.history.retry(tenant, id, fixture.now()).await.unwrap();
    let turn = [leader.tried(&claimed, DELIVERED)];
    assert_eq!(fixture.settle(&leader, &turn).await, [Settled::Applied]);
    let delivery = fixture.view(tenant, id).await.delivery;
    assert_eq!((delivery.state, delivery.attempts), (DeliveryState::Delivered, 1));
}
