//! Callers that go away in the middle.

use crate::common::{at, by, key, on_both_backends};
use crate::fixture::{Fixture, event_type};
use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};
use turnbuckle_domain::{ConfigStore as _, Revision};

on_both_backends!(whoever_goes_away_leaves_nothing_behind_on_a_connection);

/// Waits of one call at which its caller goes away: more than a call has.
const WAITS: usize = 25;
/// As many connections as a pool of these tests keeps.
const IDLE: usize = 9;
/// What a wait is for differs with the connection that is got.
const ROUNDS: usize = 2;

/// Works until it has waited this often, and then goes away.
async fn until_wait<T>(wait: usize, work: impl Future<Output = T>) {
    let (mut work, mut left) = (pin!(work), wait);
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Pending if left > 0 => {
            left -= 1;
            Poll::Pending
        }
        Poll::Pending | Poll::Ready(_) => Poll::Ready(()),
    })
    .await;
}

async fn whoever_goes_away_leaves_nothing_behind_on_a_connection(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    for number in 0..ROUNDS * WAITS {
        let wait = number % WAITS;
        let wanted = event_type(acme.id, &format!("gone.t{number}"));
        until_wait(wait, config.create_event_type(wanted, &by())).await;
        until_wait(wait, config.key_ring(acme.id, orders.id.into())).await;
        // Reads on every connection that is idle, and then as many transactions.
        for _ in 0..IDLE {
            config.endpoint(acme.id, &orders.slug).await.unwrap();
        }
        for _ in 0..IDLE {
            config.key_ring(acme.id, orders.id.into()).await.unwrap();
        }
    }
    // More than there are connections: each of them works, and none holds a transaction open.
    for number in 0..20 {
        let wanted = event_type(acme.id, &format!("kept.t{number}"));
        let before = fixture.revision().await;
        let made = config.create_event_type(wanted, &by()).await.unwrap();
        assert!(made.meta.revision > before);
        let mut ring = config.key_ring(acme.id, orders.id.into()).await.unwrap();
        ring.rotate(key(), Duration::ZERO, true, at(10 + number)).unwrap();
        let expected = ring.revision;
        config.update_key_ring(acme.id, orders.id.into(), ring, expected, &by()).await.unwrap();
    }
    // Through connections of its own, so nothing above was inside a transaction that never ended.
    let revision: Revision = fixture.revision().await;
    let elsewhere = fixture.impatient().await;
    let seen = turnbuckle_domain::ConfigSource::revision(&elsewhere).await.unwrap();
    assert_eq!(seen, revision);
    let types = elsewhere.event_types(acme.id, None, 1000).await.unwrap();
    let kept = types.iter().filter(|found| found.type_name.as_str().starts_with("kept."));
    assert_eq!(kept.count(), 20);
}
