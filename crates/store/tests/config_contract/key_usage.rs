//! The use of keys, pauses of rotations, and looks at secrets.

use crate::common::{at, by, key, on_both_backends};
use crate::fixture::{Fixture, refusal};
use sea_orm::ConnectionTrait as _;
use std::{sync::Arc, time::Duration};
use turnbuckle_domain::{
    AnswerCounts, AuditFilter, AuditTrail as _, ConfigStore as _, Endpoint, KeyId, KeyPlace,
    KeyTest, KeyUsageStore as _, KeyUse, Revision, RingUsage, Signers, Timestamp,
};
use uuid::Uuid;

on_both_backends!(
    counts_of_many_processes_add_up,
    answers_come_in_the_order_in_which_they_were_signed,
    the_last_test_of_a_key_is_kept_beside_its_counts,
    old_answers_are_forgotten_and_totals_stay,
    impossible_counts_cannot_be_stored,
    a_pause_is_kept_with_its_ring_and_ends_with_the_rotation,
    only_rotations_that_go_on_are_open,
    a_look_at_a_secret_is_recorded_and_changes_nothing,
);

const HOUR: Duration = Duration::from_secs(3600);
const DAY_SECONDS: i64 = 24 * 3600;

fn new_key() -> KeyId {
    KeyId::from_uuid(Uuid::now_v7())
}

fn used(owner: &Endpoint, signers: Signers, accepted: u64, at: Timestamp) -> KeyUse {
    KeyUse {
        tenant: owner.tenant,
        endpoint: owner.id,
        revision: Revision(7),
        signers,
        answers: AnswerCounts { accepted, denied: 1, other: 2 },
        last_used_at: at,
    }
}

async fn usage(fixture: &Fixture, owner: &Endpoint) -> RingUsage {
    fixture.config.ring_usage(owner.tenant, owner.id).await.unwrap()
}

async fn counts_of_many_processes_add_up(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    let both = Signers { first: new_key(), second: Some(new_key()) };
    let alone = Signers { second: None, ..both };
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let config = Arc::clone(&fixture.config);
            let one = used(&orders, both, 10, at(100 + writer));
            let other = used(&orders, alone, 5, at(50));
            tokio::spawn(async move {
                // The same row twice in a batch, and rows in another order than the other writers.
                let mut batch = vec![one.clone(), other, one];
                if writer % 2 == 0 {
                    batch.reverse();
                }
                config.add_key_uses(&batch).await
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap().unwrap();
    }
    fixture.config.add_key_uses(&[]).await.unwrap();
    let usage = usage(fixture, &orders).await;
    let answers: Vec<_> = usage.answers.iter().map(|row| (row.signers, row.answers)).collect();
    let sums = AnswerCounts { accepted: 160, denied: 16, other: 32 };
    assert_eq!(answers[0], (both, sums));
    assert_eq!(answers[1], (alone, AnswerCounts { accepted: 40, denied: 8, other: 16 }));
    let first = usage.of(both.first).unwrap();
    assert_eq!((first.signatures, first.last_used_at), (208 + 64, Some(at(107))));
    assert_eq!(usage.of(both.second.unwrap()).unwrap().signatures, 208);
    let other = fixture.endpoint(&acme, "other").await;
    assert_eq!(fixture.config.ring_usage(acme.id, other.id).await.unwrap(), RingUsage::default());
    let stranger = fixture.tenant("stranger").await;
    let hidden = fixture.config.ring_usage(stranger.id, orders.id).await.unwrap();
    assert_eq!(hidden, RingUsage::default());
}

async fn answers_come_in_the_order_in_which_they_were_signed(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    let (old, new) = (new_key(), new_key());
    let both = Signers { first: new, second: Some(old) };
    let (before, after) =
        (Signers { first: old, second: None }, Signers { first: new, second: None });
    let row = |revision, signers, day| KeyUse {
        revision: Revision(revision),
        ..used(&orders, signers, 1, at(day * DAY_SECONDS + 3))
    };
    let batch =
        [row(9, after, 2), row(9, both, 2), row(9, both, 1), row(7, before, 1), row(9, after, 3)];
    fixture.config.add_key_uses(&batch).await.unwrap();
    let answers = usage(fixture, &orders).await.answers;
    let order: Vec<_> = answers.iter().map(|row| (row.signers, row.day)).collect();
    assert_eq!(order, [(before, 1), (both, 1), (both, 2), (after, 2), (after, 3)]);
}

async fn the_last_test_of_a_key_is_kept_beside_its_counts(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    let alone = Signers { first: new_key(), second: None };
    let place = KeyPlace { tenant: acme.id, endpoint: orders.id, key: alone.first };
    let refused = KeyTest { at: at(5), outcome: "refused".into(), status: Some(401) };
    fixture.config.note_key_test(place, &refused).await.unwrap();
    let known = usage(fixture, &orders).await.keys;
    assert_eq!((known[0].signatures, known[0].last_used_at), (0, None));
    assert_eq!(known[0].last_test.as_ref(), Some(&refused));
    fixture.config.add_key_uses(&[used(&orders, alone, 1, at(6))]).await.unwrap();
    let silent = KeyTest { at: at(7), outcome: "timed_out".into(), status: None };
    fixture.config.note_key_test(place, &silent).await.unwrap();
    let known = usage(fixture, &orders).await.keys;
    assert_eq!((known[0].signatures, known[0].last_used_at), (4, Some(at(6))));
    assert_eq!(known[0].last_test.as_ref(), Some(&silent));
}

async fn old_answers_are_forgotten_and_totals_stay(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    let first = fixture.config.key_ring(acme.id, orders.id.into()).await.unwrap().keys[0].id;
    let gone = Signers { first: new_key(), second: None };
    let alone = Signers { first, second: None };
    let mut uses = [1, 2, 3].map(|day| used(&orders, alone, 1, at(day * DAY_SECONDS))).to_vec();
    uses.push(used(&orders, gone, 1, at(DAY_SECONDS)));
    fixture.config.add_key_uses(&uses).await.unwrap();
    fixture.config.forget_answers(at(4 * DAY_SECONDS), 2 * 24 * HOUR).await.unwrap();
    let left = usage(fixture, &orders).await;
    assert_eq!(left.answers.iter().map(|row| row.day).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(left.keys.iter().map(|key| key.signatures).collect::<Vec<_>>(), [12]);
}

async fn impossible_counts_cannot_be_stored(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    let both = Signers { first: new_key(), second: Some(new_key()) };
    fixture.config.add_key_uses(&[used(&orders, both, 1, at(1))]).await.unwrap();
    for impossible in [
        "update key_answers set accepted = -1",
        "update key_answers set second_key_id = null",
        "update key_answers set signers = 1",
        "update key_usage set signatures = -1",
        "update key_usage set tested_at_us = 1",
        "update key_usage set test_status = 200",
        "update signing_key set held = 1",
        "update signing_key set held = 2",
        "update key_ring set paused_at_us = 1",
        "update key_ring set pause_reason = 'x'",
        "update key_ring set resumed_at_us = 1",
    ] {
        assert!(fixture.db.execute_unprepared(impossible).await.is_err(), "{impossible}");
    }
}

async fn a_pause_is_kept_with_its_ring_and_ends_with_the_rotation(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    let mut ring = config.key_ring(acme.id, orders.id.into()).await.unwrap();
    let write = async |ring: turnbuckle_domain::KeyRing| {
        let expected = ring.revision;
        config.update_key_ring(acme.id, orders.id.into(), ring, expected, &by()).await.unwrap()
    };
    ring.rotate(key(), HOUR, false, at(10)).unwrap();
    ring = write(ring).await;
    ring.pause("denials jumped", at(20)).unwrap();
    ring = write(ring).await;
    assert_eq!(config.key_ring(acme.id, orders.id.into()).await.unwrap(), ring);
    assert_eq!(ring.signing(at(10 * DAY_SECONDS)).len(), 2, "the old key is held");
    // Followers hear of it.
    let delta = turnbuckle_domain::ConfigSource::changes_since(config.as_ref(), Revision::ZERO);
    assert_eq!(delta.await.unwrap().key_rings, [(orders.id, ring.clone())]);
    ring.resume(HOUR, at(30)).unwrap();
    ring = write(ring).await;
    let stored = config.key_ring(acme.id, orders.id.into()).await.unwrap();
    assert_eq!(stored.pause.as_ref().and_then(|pause| pause.resumed_at), Some(at(30)));
    assert_eq!(stored, ring);
    ring.rollback(Duration::ZERO, at(40)).unwrap();
    assert_eq!(write(ring).await.pause, None);
    assert_eq!(config.key_ring(acme.id, orders.id.into()).await.unwrap().pause, None);
    // A paused rotation goes with its endpoint.
    let mut ring = config.key_ring(acme.id, orders.id.into()).await.unwrap();
    ring.rotate(key(), HOUR, true, at(50)).unwrap();
    ring.pause("again", at(51)).unwrap();
    write(ring).await;
    config.delete_endpoint(&orders, at(60), &by()).await.unwrap();
}

async fn only_rotations_that_go_on_are_open(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let mut open = Vec::new();
    for number in 0..5 {
        let owner = fixture.endpoint(&acme, &format!("orders-{number}")).await;
        let mut ring = config.key_ring(acme.id, owner.id.into()).await.unwrap();
        let expected = ring.revision;
        match number {
            0 => continue,
            1 => ring.stage(key(), at(10)).unwrap(),
            _ => ring.rotate(key(), HOUR, false, at(10)).unwrap(),
        }
        if number == 2 {
            ring.pause("denials jumped", at(11)).unwrap();
        }
        config.update_key_ring(acme.id, owner.id.into(), ring, expected, &by()).await.unwrap();
        if number > 2 {
            open.push((acme.id, owner.id));
        }
    }
    open.sort();
    assert_eq!(config.open_rotations(at(20), None, 10).await.unwrap(), open);
    let first = config.open_rotations(at(20), None, 1).await.unwrap();
    assert_eq!(first, open[..1]);
    assert_eq!(config.open_rotations(at(20), Some(first[0].1), 10).await.unwrap(), open[1..]);
    let over = config.open_rotations(at(10) + HOUR, None, 10).await.unwrap();
    assert_eq!(over, [], "their time has run out, whatever is stored");
}

async fn a_look_at_a_secret_is_recorded_and_changes_nothing(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    let ring = config.key_ring(acme.id, orders.id.into()).await.unwrap();
    let shown = ring.keys[0].id;
    let by = turnbuckle_domain::ChangeContext { reason: "the receiver lost it".to_owned(), ..by() };
    assert_eq!(config.record_reveal(acme.id, orders.id.into(), shown, &by).await.unwrap(), ring);
    assert_eq!(config.key_ring(acme.id, orders.id.into()).await.unwrap(), ring);
    let entries = config.audit_entries(acme.id, &AuditFilter::default(), None, 1).await.unwrap();
    assert_eq!(entries[0].resource, format!("tenants/acme/endpoints/orders/keys/{shown}"));
    assert_eq!(entries[0].reason, "the receiver lost it");
    assert_eq!(entries[0].changes[0].field, "revealed");
    assert_eq!(entries[0].changes[0].after.as_ref(), Some(&ring.keys[0].fingerprint));
    let missing = config.record_reveal(acme.id, orders.id.into(), new_key(), &by).await;
    assert_eq!(refusal(missing).0, "NOT_FOUND");
}
