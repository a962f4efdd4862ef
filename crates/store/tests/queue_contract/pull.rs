//! Leases of pull endpoints: claim, settle, extend, and what a lost lease may still do.

use crate::{
    common::on_both_backends,
    fixture::{DEAD, DELIVERED, Fixture, START, attempt},
};
use std::{collections::HashSet, time::Duration};
use turnbuckle_domain::{
    Append, Attempt, DeliveryId, DeliveryState, EndpointId, Finished, Lapsed, LeaseExtension,
    Leased, Next, PullClaim, PullSettlement, Settled, TenantId, Timestamp,
};

on_both_backends!(
    a_claim_leases_the_oldest_and_hides_them,
    an_acknowledgement_finishes_with_an_attempt,
    a_late_acknowledgement_changes_nothing,
    a_return_is_due_again_at_its_time,
    a_release_counts_nothing,
    a_lapsed_lease_comes_again_and_says_so,
    an_extension_moves_the_end_while_the_lease_holds,
    a_delivery_dies_after_its_last_attempt,
    claims_at_once_never_share_a_delivery,
    a_cancelled_delivery_is_nobodys,
    a_token_of_an_earlier_life_is_stale,
    a_retry_by_hand_leaves_a_lease_alone,
    one_of_a_subject_is_out_at_a_time,
    a_returned_head_holds_its_subject_only,
    a_deep_subject_does_not_hide_the_others,
    other_endpoints_are_not_touched,
    a_thousand_results_are_one_batch,
);

const LEASE: Duration = Duration::from_secs(30);

fn wish(fixture: &Fixture, endpoint: EndpointId, limit: u16) -> PullClaim {
    let now = fixture.now();
    let after = PullClaim::START;
    PullClaim { endpoint, after, limit, by_subject: false, now, until: now + LEASE }
}

async fn claim(fixture: &Fixture, endpoint: EndpointId, limit: u16) -> Vec<Leased> {
    fixture.store.pull.claim(&wish(fixture, endpoint, limit)).await.unwrap()
}

async fn claim_by_subject(fixture: &Fixture, endpoint: EndpointId, limit: u16) -> Vec<Leased> {
    let wish = PullClaim { by_subject: true, ..wish(fixture, endpoint, limit) };
    fixture.store.pull.claim(&wish).await.unwrap()
}

async fn settle(fixture: &Fixture, batch: &[PullSettlement]) -> Vec<Settled> {
    fixture.store.pull.settle(batch).await.unwrap()
}

fn turn(
    fixture: &Fixture,
    leased: &Leased,
    attempt: Option<Attempt>,
    next: Next,
) -> PullSettlement {
    PullSettlement {
        tenant: leased.delivery.tenant,
        delivery: leased.delivery.id,
        token: leased.token,
        attempts_before: leased.delivery.attempts,
        attempt,
        next,
        at: fixture.now(),
    }
}

/// With an attempt as consumers make them: no status code.
fn tried(fixture: &Fixture, leased: &Leased, next: Next) -> PullSettlement {
    let (outcome, detail) = match next {
        DELIVERED => ("delivered", "ACK"),
        _ => ("failed", "NACK"),
    };
    let made = Attempt {
        outcome: outcome.into(),
        detail: detail.into(),
        status: None,
        ..attempt(leased.delivery.attempts + 1, next)
    };
    turn(fixture, leased, Some(made), next)
}

fn ids(leased: &[Leased]) -> Vec<DeliveryId> {
    leased.iter().map(|one| one.delivery.id).collect()
}

async fn one(fixture: &Fixture) -> (TenantId, EndpointId, Leased) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    fixture.fill(tenant, endpoint, 1).await;
    (tenant, endpoint, claim(fixture, endpoint, 1).await.remove(0))
}

async fn state(fixture: &Fixture, tenant: TenantId, id: DeliveryId) -> (DeliveryState, u32) {
    let delivery = fixture.view(tenant, id).await.delivery;
    (delivery.state, delivery.attempts)
}

async fn a_claim_leases_the_oldest_and_hides_them(fixture: &Fixture) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    let made = fixture.fill(tenant, endpoint, 5).await;
    let first = claim(fixture, endpoint, 2).await;
    assert_eq!(ids(&first), made[..2]);
    for leased in &first {
        assert_eq!(leased.delivery.due_at, fixture.now() + LEASE);
        assert_eq!((leased.delivery.attempts, leased.lapsed), (0, None));
        assert_eq!(leased.event.as_ref().unwrap().data, b"{}".as_slice());
    }
    let last = first.last().unwrap();
    // Behind the last row seen.
    let after = (last.was_due_at, last.delivery.id);
    let next = PullClaim { after, ..wish(fixture, endpoint, 2) };
    assert_eq!(ids(&fixture.store.pull.claim(&next).await.unwrap()), made[2..4]);
    assert_eq!(ids(&claim(fixture, endpoint, 9).await), made[4..]);
    assert!(claim(fixture, endpoint, 9).await.is_empty());
}

async fn an_acknowledgement_finishes_with_an_attempt(fixture: &Fixture) {
    let (tenant, endpoint, leased) = one(fixture).await;
    assert_eq!(settle(fixture, &[tried(fixture, &leased, DELIVERED)]).await, [Settled::Applied]);
    let id = leased.delivery.id;
    assert_eq!(state(fixture, tenant, id).await, (DeliveryState::Delivered, 1));
    let attempts = fixture.attempts(tenant, id).await;
    assert_eq!((attempts.len(), attempts[0].status, &*attempts[0].detail), (1, None, "ACK"));
    fixture.clock.advance(LEASE * 2);
    assert!(claim(fixture, endpoint, 9).await.is_empty());
    // The answer was lost: said again, nothing happens.
    assert_eq!(settle(fixture, &[tried(fixture, &leased, DELIVERED)]).await, [Settled::Stale]);
    assert_eq!(fixture.attempts(tenant, id).await.len(), 1);
}

async fn a_late_acknowledgement_changes_nothing(fixture: &Fixture) {
    let (tenant, endpoint, late) = one(fixture).await;
    fixture.clock.advance(LEASE);
    let again = claim(fixture, endpoint, 1).await.remove(0);
    assert!(again.token > late.token);
    for next in [DELIVERED, Next::Retry { due_at: fixture.now() }, DEAD] {
        assert_eq!(settle(fixture, &[tried(fixture, &late, next)]).await, [Settled::Stale]);
    }
    let longer = LeaseExtension {
        tenant,
        delivery: late.delivery.id,
        token: late.token,
        until: fixture.now() + LEASE * 9,
    };
    assert_eq!(fixture.store.pull.extend(&[longer]).await.unwrap(), [Settled::Stale]);
    assert_eq!(state(fixture, tenant, late.delivery.id).await, (DeliveryState::Pending, 0));
    assert!(fixture.attempts(tenant, late.delivery.id).await.is_empty());
    assert_eq!(settle(fixture, &[tried(fixture, &again, DELIVERED)]).await, [Settled::Applied]);
}

async fn a_return_is_due_again_at_its_time(fixture: &Fixture) {
    let (tenant, endpoint, leased) = one(fixture).await;
    let due_at = fixture.now() + Duration::from_secs(7);
    let back = tried(fixture, &leased, Next::Retry { due_at });
    assert_eq!(settle(fixture, &[back]).await, [Settled::Applied]);
    fixture.clock.advance(Duration::from_secs(7) - Duration::from_micros(1));
    assert!(claim(fixture, endpoint, 1).await.is_empty());
    fixture.clock.advance(Duration::from_micros(1));
    let again = claim(fixture, endpoint, 1).await.remove(0);
    assert_eq!((again.delivery.attempts, again.lapsed, again.was_due_at), (1, None, due_at));
    assert_eq!(fixture.attempts(tenant, leased.delivery.id).await.len(), 1);
}

async fn a_release_counts_nothing(fixture: &Fixture) {
    let (tenant, endpoint, leased) = one(fixture).await;
    let back = turn(fixture, &leased, None, Next::Retry { due_at: fixture.now() });
    assert_eq!(settle(fixture, std::slice::from_ref(&back)).await, [Settled::Applied]);
    // Not held any more: what it says now is late.
    assert_eq!(settle(fixture, &[tried(fixture, &leased, DELIVERED)]).await, [Settled::Stale]);
    assert_eq!(settle(fixture, &[back]).await, [Settled::Stale]);
    let again = claim(fixture, endpoint, 1).await.remove(0);
    assert_eq!((again.delivery.attempts, again.lapsed), (0, None));
    assert!(fixture.attempts(tenant, leased.delivery.id).await.is_empty());
}

async fn a_lapsed_lease_comes_again_and_says_so(fixture: &Fixture) {
    let (_, endpoint, leased) = one(fixture).await;
    let leased_at = fixture.now();
    fixture.clock.advance(LEASE - Duration::from_micros(1));
    assert!(claim(fixture, endpoint, 1).await.is_empty());
    fixture.clock.advance(Duration::from_secs(5));
    let again = claim(fixture, endpoint, 1).await.remove(0);
    assert_eq!(again.delivery.id, leased.delivery.id);
    let lapsed = Lapsed { leased_at, expired_at: leased_at + LEASE };
    assert_eq!(again.lapsed, Some(lapsed));
}

async fn an_extension_moves_the_end_while_the_lease_holds(fixture: &Fixture) {
    let (tenant, endpoint, leased) = one(fixture).await;
    let until = fixture.now() + LEASE * 3;
    let (delivery, token) = (leased.delivery.id, leased.token);
    let longer = LeaseExtension { tenant, delivery, token, until };
    let unknown = LeaseExtension { delivery: DeliveryId::from_uuid(uuid::Uuid::nil()), ..longer };
    let answers = fixture.store.pull.extend(&[unknown, longer]).await.unwrap();
    assert_eq!(answers, [Settled::Stale, Settled::Applied]);
    fixture.clock.advance(LEASE * 2);
    assert!(claim(fixture, endpoint, 1).await.is_empty());
    assert_eq!(settle(fixture, &[tried(fixture, &leased, DELIVERED)]).await, [Settled::Applied]);
    assert_eq!(fixture.store.pull.extend(&[longer]).await.unwrap(), [Settled::Stale]);
}

async fn a_delivery_dies_after_its_last_attempt(fixture: &Fixture) {
    let (tenant, endpoint, first) = one(fixture).await;
    let back = tried(fixture, &first, Next::Retry { due_at: fixture.now() });
    assert_eq!(settle(fixture, &[back]).await, [Settled::Applied]);
    let last = claim(fixture, endpoint, 1).await.remove(0);
    assert_eq!(settle(fixture, &[tried(fixture, &last, DEAD)]).await, [Settled::Applied]);
    assert_eq!(state(fixture, tenant, first.delivery.id).await, (DeliveryState::Dead, 2));
    assert_eq!(fixture.attempts(tenant, first.delivery.id).await.len(), 2);
    // An operator opens it again.
    let (history, now) = (&fixture.store.history, fixture.now());
    let opened = history.retry(tenant, first.delivery.id, now).await.unwrap();
    assert_eq!(opened, Finished::Changed);
    assert_eq!(ids(&claim(fixture, endpoint, 1).await), [first.delivery.id]);
}

async fn claims_at_once_never_share_a_delivery(fixture: &Fixture) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    let made = fixture.fill(tenant, endpoint, 200).await;
    for by_subject in [false, true] {
        let mut claims = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let pull = std::sync::Arc::clone(&fixture.store.pull);
            let wish = PullClaim { by_subject, ..wish(fixture, endpoint, 7) };
            claims.spawn(async move {
                let mut found = Vec::new();
                loop {
                    let rows = pull.claim(&wish).await.unwrap();
                    if rows.is_empty() {
                        return found;
                    }
                    found.extend(rows);
                }
            });
        }
        let found: Vec<Leased> = claims.join_all().await.into_iter().flatten().collect();
        let distinct: HashSet<DeliveryId> = ids(&found).into_iter().collect();
        // Rows that another claim holds at the moment are stepped over, and found a moment later.
        let rest = claim(fixture, endpoint, 200).await;
        assert_eq!(found.len(), distinct.len());
        assert_eq!(distinct.len() + rest.len(), made.len());
        let back = |one: &Leased| turn(fixture, one, None, Next::Retry { due_at: fixture.now() });
        let batch: Vec<PullSettlement> = found.iter().chain(&rest).map(back).collect();
        assert!(settle(fixture, &batch).await.iter().all(|answer| *answer == Settled::Applied));
    }
}

async fn a_cancelled_delivery_is_nobodys(fixture: &Fixture) {
    let (tenant, endpoint, leased) = one(fixture).await;
    let (history, now) = (&fixture.store.history, fixture.now());
    let cancelled = history.cancel(tenant, leased.delivery.id, now).await.unwrap();
    assert_eq!(cancelled, Finished::Changed);
    assert_eq!(settle(fixture, &[tried(fixture, &leased, DELIVERED)]).await, [Settled::Stale]);
    assert_eq!(state(fixture, tenant, leased.delivery.id).await, (DeliveryState::Cancelled, 0));
    fixture.clock.advance(LEASE);
    assert!(claim(fixture, endpoint, 1).await.is_empty());
}

async fn a_token_of_an_earlier_life_is_stale(fixture: &Fixture) {
    let (tenant, endpoint, first) = one(fixture).await;
    let (history, id) = (&fixture.store.history, first.delivery.id);
    fixture.clock.advance(Duration::from_micros(5));
    history.cancel(tenant, id, fixture.now()).await.unwrap();
    history.retry(tenant, id, fixture.now()).await.unwrap();
    let second = claim(fixture, endpoint, 1).await.remove(0);
    assert_eq!(second.delivery.attempts, first.delivery.attempts);
    assert_eq!(settle(fixture, &[tried(fixture, &first, DELIVERED)]).await, [Settled::Stale]);
    assert_eq!(settle(fixture, &[tried(fixture, &second, DELIVERED)]).await, [Settled::Applied]);
}

async fn a_retry_by_hand_leaves_a_lease_alone(fixture: &Fixture) {
    let (tenant, endpoint, leased) = one(fixture).await;
    let (history, now) = (&fixture.store.history, fixture.now());
    let answer = history.retry(tenant, leased.delivery.id, now).await.unwrap();
    assert_eq!(answer, Finished::Changed);
    assert!(claim(fixture, endpoint, 1).await.is_empty());
    let due_at = fixture.now() + LEASE;
    let back = tried(fixture, &leased, Next::Retry { due_at });
    assert_eq!(settle(fixture, &[back]).await, [Settled::Applied]);
    history.retry(tenant, leased.delivery.id, now).await.unwrap();
    assert_eq!(claim(fixture, endpoint, 1).await.len(), 1);
}

/// Stores one event for each of these subjects, a microsecond apart.
async fn of_subjects(
    fixture: &Fixture,
    (tenant, endpoint): (TenantId, EndpointId),
    subjects: &[&str],
) -> Vec<DeliveryId> {
    let mut batch: Vec<Append> = Vec::new();
    for (index, subject) in subjects.iter().enumerate() {
        fixture.clock.advance(Duration::from_micros(1));
        let at = fixture.now();
        let mut event = fixture.event(tenant, &format!("{subject}-{index}-{}", at.micros()));
        event.subject = (!subject.is_empty()).then(|| (*subject).to_owned());
        batch.push(fixture.to(event, &[endpoint]));
    }
    fixture.store.log.append(&batch).await.unwrap();
    batch.iter().map(|append| append.deliveries[0].id).collect()
}

async fn one_of_a_subject_is_out_at_a_time(fixture: &Fixture) {
    let place = (fixture.tenant(), fixture.endpoint());
    let made = of_subjects(fixture, place, &["a", "a", "b", "", "a", "", "b"]).await;
    let out = claim_by_subject(fixture, place.1, 9).await;
    assert_eq!(ids(&out), [made[0], made[2], made[3], made[5]]);
    assert!(claim_by_subject(fixture, place.1, 9).await.is_empty());
    // The next follows when the one before is finished, and only then.
    assert_eq!(settle(fixture, &[tried(fixture, &out[0], DELIVERED)]).await, [Settled::Applied]);
    let next = claim_by_subject(fixture, place.1, 9).await;
    assert_eq!(ids(&next), [made[1]]);
    assert_eq!(settle(fixture, &[tried(fixture, &next[0], DEAD)]).await, [Settled::Applied]);
    assert_eq!(ids(&claim_by_subject(fixture, place.1, 9).await), [made[4]]);
}

async fn a_returned_head_holds_its_subject_only(fixture: &Fixture) {
    let place = (fixture.tenant(), fixture.endpoint());
    let made = of_subjects(fixture, place, &["a", "a", "b", "b"]).await;
    let out = claim_by_subject(fixture, place.1, 9).await;
    let due_at = fixture.now() + LEASE;
    let back = tried(fixture, &out[0], Next::Retry { due_at });
    let done = tried(fixture, &out[1], DELIVERED);
    assert_eq!(settle(fixture, &[back, done]).await, [Settled::Applied; 2]);
    assert_eq!(ids(&claim_by_subject(fixture, place.1, 9).await), [made[3]]);
    // A lapsed lease holds it as well, and the head comes first again.
    fixture.clock.advance(LEASE);
    assert_eq!(ids(&claim_by_subject(fixture, place.1, 9).await), [made[0], made[3]]);
}

async fn a_deep_subject_does_not_hide_the_others(fixture: &Fixture) {
    let place = (fixture.tenant(), fixture.endpoint());
    let first = of_subjects(fixture, place, &["deep"]).await;
    assert_eq!(ids(&claim_by_subject(fixture, place.1, 1).await), first);
    of_subjects(fixture, place, &["deep"; 2_500]).await;
    let other = of_subjects(fixture, place, &["other"]).await;
    assert_eq!(ids(&claim_by_subject(fixture, place.1, 5).await), other);
}

async fn other_endpoints_are_not_touched(fixture: &Fixture) {
    let (tenant, own, other) = (fixture.tenant(), fixture.endpoint_in(3), fixture.endpoint_in(3));
    fixture.fill(tenant, own, 2).await;
    let theirs = fixture.fill(tenant, other, 2).await;
    assert_eq!(claim(fixture, own, 9).await.len(), 2);
    assert_eq!(ids(&claim(fixture, other, 9).await), theirs);
}

async fn a_thousand_results_are_one_batch(fixture: &Fixture) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    fixture.fill(tenant, endpoint, 1_000).await;
    let leased = claim(fixture, endpoint, 1_000).await;
    let due_at: Timestamp = START + LEASE * 100;
    let next =
        |index: usize| if index.is_multiple_of(2) { DELIVERED } else { Next::Retry { due_at } };
    let mut batch: Vec<PullSettlement> =
        leased.iter().enumerate().map(|(index, one)| tried(fixture, one, next(index))).collect();
    // Named twice: the first counts.
    batch.push(tried(fixture, &leased[1], DELIVERED));
    let answers = settle(fixture, &batch).await;
    assert_eq!(answers.iter().filter(|one| **one == Settled::Applied).count(), 1_000);
    assert_eq!(answers.last(), Some(&Settled::Stale));
    assert_eq!(fixture.number("select count(*) from delivery").await, 500);
    assert_eq!(fixture.number("select count(*) from attempt").await, 1_000);
}
