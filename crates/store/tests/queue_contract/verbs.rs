//! What operators do about deliveries: retry and cancel.

use crate::{
    common::on_both_backends,
    fixture::{DEAD, DELIVERED, Fixture, Leader, attempt},
};
use std::time::Duration;
use turnbuckle_domain::{
    Claimed, DeliveryId, DeliveryState, EndpointId, FinishReason, Finished, Next, Settled, TenantId,
};

on_both_backends!(
    a_pending_delivery_is_due_at_once_and_keeps_its_automatic_attempts,
    asking_twice_before_the_attempt_is_asking_once,
    what_is_due_already_is_left_as_it_is,
    a_finished_delivery_begins_a_new_round_and_keeps_its_attempts,
    without_its_event_a_finished_delivery_stays_finished,
    a_cancelled_delivery_says_so_and_is_not_claimed,
    a_finished_delivery_cannot_be_cancelled,
    what_does_not_exist_is_missing,
    a_verb_waits_for_the_store_to_be_free,
);

struct Case {
    tenant: TenantId,
    endpoint: EndpointId,
    id: DeliveryId,
    leader: Leader,
}

async fn case(fixture: &Fixture) -> Case {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    let id = fixture.fill(tenant, endpoint, 1).await[0];
    Case { tenant, endpoint, id, leader: fixture.leader().await }
}

impl Case {
    async fn claim(&self, fixture: &Fixture) -> Claimed {
        fixture.claim(self.endpoint, 1).await.remove(0)
    }

    /// Fails attempts until `count` were made; the next one is due in an hour.
    async fn fail(&self, fixture: &Fixture, count: u32) {
        let mut claimed = self.claim(fixture).await;
        let due_at = fixture.now() + Duration::from_secs(3600);
        while claimed.delivery.attempts < count {
            let turn = self.leader.tried(&claimed, Next::Retry { due_at });
            assert_eq!(fixture.settle(&self.leader, &[turn]).await, [Settled::Applied]);
            claimed.delivery.attempts += 1;
        }
    }

    async fn finish(&self, fixture: &Fixture, next: Next) {
        let turn = self.leader.tried(&self.claim(fixture).await, next);
        assert_eq!(fixture.settle(&self.leader, &[turn]).await, [Settled::Applied]);
    }

    async fn retry(&self, fixture: &Fixture) -> Finished {
        fixture.store.history.retry(self.tenant, self.id, fixture.now()).await.unwrap()
    }

    async fn cancel(&self, fixture: &Fixture) -> Finished {
        fixture.store.history.cancel(self.tenant, self.id, fixture.now()).await.unwrap()
    }
}

async fn a_pending_delivery_is_due_at_once_and_keeps_its_automatic_attempts(fixture: &Fixture) {
    let case = case(fixture).await;
    case.fail(fixture, 3).await;
    assert!(fixture.claim(case.endpoint, 1).await.is_empty());
    let now = fixture.clock.advance(Duration::from_secs(1));
    assert_eq!(case.retry(fixture).await, Finished::Changed);
    assert_eq!(fixture.view(case.tenant, case.id).await.delivery.due_at, Some(now));
    let live = case.claim(fixture).await.delivery;
    // One of the four attempts there will be does not count: three of the policy's are used.
    assert_eq!((live.attempts, live.round_start), (3, 1));
    let due_at = now + Duration::from_secs(60);
    let turn = case.leader.tried(&case.claim(fixture).await, Next::Retry { due_at });
    fixture.settle(&case.leader, &[turn]).await;
    fixture.clock.set(due_at);
    let live = case.claim(fixture).await.delivery;
    assert_eq!(live.attempts - live.round_start, 3);
}

async fn asking_twice_before_the_attempt_is_asking_once(fixture: &Fixture) {
    let case = case(fixture).await;
    case.fail(fixture, 3).await;
    let first = fixture.now();
    for _ in 0..4 {
        assert_eq!(case.retry(fixture).await, Finished::Changed);
        fixture.clock.advance(Duration::from_secs(1));
    }
    let live = case.claim(fixture).await.delivery;
    assert_eq!((live.attempts, live.round_start, live.due_at), (3, 1, first));
}

async fn what_is_due_already_is_left_as_it_is(fixture: &Fixture) {
    let case = case(fixture).await;
    let before = case.claim(fixture).await.delivery;
    fixture.clock.advance(Duration::from_secs(1));
    assert_eq!(case.retry(fixture).await, Finished::Changed);
    assert_eq!(case.claim(fixture).await.delivery, before);
}

async fn a_finished_delivery_begins_a_new_round_and_keeps_its_attempts(fixture: &Fixture) {
    let case = case(fixture).await;
    let mut made = 0;
    for next in [DEAD, DELIVERED, DEAD] {
        let before = case.claim(fixture).await.delivery;
        case.finish(fixture, next).await;
        made += 1;
        let now = fixture.clock.advance(Duration::from_secs(10));
        assert_eq!(case.retry(fixture).await, Finished::Changed);
        let live = case.claim(fixture).await.delivery;
        assert_eq!((live.attempts, live.round_start), (made, made));
        assert_eq!((live.round_at, live.due_at), (now, now));
        assert_eq!(
            (live.format, live.shard, live.endpoint),
            (before.format, before.shard, before.endpoint)
        );
        let view = fixture.view(case.tenant, case.id).await.delivery;
        assert_eq!((view.state, view.finished_at), (DeliveryState::Pending, None));
    }
    let attempts = fixture.attempts(case.tenant, case.id).await;
    assert_eq!(attempts, [attempt(1, DEAD), attempt(2, DELIVERED), attempt(3, DEAD)]);
    assert_eq!(fixture.number("select count(*) from delivery_done").await, 0);
}

async fn without_its_event_a_finished_delivery_stays_finished(fixture: &Fixture) {
    let case = case(fixture).await;
    case.finish(fixture, DEAD).await;
    fixture.execute("delete from event").await;
    let before = fixture.view(case.tenant, case.id).await;
    assert_eq!(case.retry(fixture).await, Finished::Refused);
    assert_eq!(fixture.view(case.tenant, case.id).await, before);
    assert_eq!(fixture.number("select count(*) from delivery").await, 0);
}

async fn a_cancelled_delivery_says_so_and_is_not_claimed(fixture: &Fixture) {
    let case = case(fixture).await;
    case.fail(fixture, 2).await;
    let now = fixture.clock.advance(Duration::from_secs(9));
    assert_eq!(case.cancel(fixture).await, Finished::Changed);
    let delivery = fixture.view(case.tenant, case.id).await.delivery;
    assert_eq!(delivery.state, DeliveryState::Cancelled);
    assert_eq!(delivery.reason, Some(FinishReason::CancelledByCaller));
    assert_eq!((delivery.attempts, delivery.finished_at), (2, Some(now)));
    fixture.clock.advance(Duration::from_secs(9999));
    assert!(fixture.claim(case.endpoint, 1).await.is_empty());
    assert_eq!(case.retry(fixture).await, Finished::Changed);
    assert_eq!(case.claim(fixture).await.delivery.attempts, 2);
}

async fn a_finished_delivery_cannot_be_cancelled(fixture: &Fixture) {
    let case = case(fixture).await;
    case.finish(fixture, DELIVERED).await;
    let before = fixture.view(case.tenant, case.id).await;
    assert_eq!(case.cancel(fixture).await, Finished::Refused);
    assert_eq!(fixture.view(case.tenant, case.id).await, before);
}

async fn what_does_not_exist_is_missing(fixture: &Fixture) {
    let (history, tenant) = (&fixture.store.history, fixture.tenant());
    let id = fixture.fill(fixture.tenant(), fixture.endpoint(), 1).await[0];
    assert_eq!(history.retry(tenant, id, fixture.now()).await.unwrap(), Finished::Missing);
    assert_eq!(history.cancel(tenant, id, fixture.now()).await.unwrap(), Finished::Missing);
    assert!(history.delivery(tenant, id).await.unwrap().is_none());
    assert!(history.attempts(tenant, id, 0, 10).await.unwrap().is_empty());
}

/// Appends and verbs at the same time: neither is refused for want of a lock.
async fn a_verb_waits_for_the_store_to_be_free(fixture: &Fixture) {
    let (tenant, one) = (fixture.tenant(), fixture.endpoint());
    let ids = fixture.fill(tenant, one, 40).await;
    let verbs = async {
        for id in &ids {
            let history = &fixture.store.history;
            assert_eq!(
                history.cancel(tenant, *id, fixture.now()).await.unwrap(),
                Finished::Changed
            );
            assert_eq!(history.retry(tenant, *id, fixture.now()).await.unwrap(), Finished::Changed);
        }
    };
    let appends = async {
        for _ in 0..40 {
            fixture.fill(tenant, one, 10).await;
        }
    };
    tokio::join!(verbs, appends);
    assert_eq!(fixture.number("select count(*) from delivery").await, 440);
}
