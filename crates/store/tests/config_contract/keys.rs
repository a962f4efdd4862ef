//! Key rings.

use crate::common::{at, by, key, on_both_backends};
use crate::fixture::{Fixture, refusal};
use sea_orm::{ConnectionTrait as _, DbErr, RuntimeErr, Statement};
use std::{sync::Arc, time::Duration};
use turnbuckle_domain::{
    ConfigSource as _, ConfigStore as _, Endpoint, KeyAlgorithm, KeyRing, KeyState, Revision,
    SignatureProfile, Tombstones as _,
};

on_both_backends!(
    a_ring_keeps_its_keys_their_order_and_their_states,
    of_two_concurrent_rotations_one_is_stale_and_no_key_is_lost,
    two_active_keys_cannot_be_stored,
    impossible_keys_cannot_be_stored,
    the_keys_of_a_deleted_endpoint_are_kept_out_of_reach_until_it_is_purged,
);

const DAY: Duration = Duration::from_secs(24 * 3600);

async fn a_ring_keeps_its_keys_their_order_and_their_states(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let mut orders = fixture.endpoint(&acme, "orders").await;
    orders.signature_profile = SignatureProfile::StandardWebhooks;
    let revision = orders.meta.revision;
    let orders = config.update_endpoint(orders, revision, &by()).await.unwrap();
    let mut ring = config.key_ring(acme.id, orders.id.into()).await.unwrap();
    let first = ring.keys[0].id;
    ring.rotate(key(), DAY, false, at(10)).unwrap();
    let mut receiver_holds_half = key();
    receiver_holds_half.algorithm = KeyAlgorithm::Ed25519;
    receiver_holds_half.public_key = Some("whpk_abc".to_owned());
    ring.stage(receiver_holds_half, at(11)).unwrap();
    ring.revoke(first, "leaked", at(12)).unwrap();

    let expected = ring.revision;
    let stored = config
        .update_key_ring(acme.id, orders.id.into(), ring.clone(), expected, &by())
        .await
        .unwrap();
    assert_eq!(stored.keys, ring.keys);
    assert_eq!(stored.revision, fixture.revision().await);
    assert_eq!(config.key_ring(acme.id, orders.id.into()).await.unwrap(), stored);
    let states: Vec<KeyState> = stored.keys.iter().map(|key| key.state).collect();
    assert_eq!(states, [KeyState::Staged, KeyState::Active, KeyState::Revoked]);
    // The endpoint itself did not change.
    assert_eq!(config.endpoint(acme.id, &orders.slug).await.unwrap(), Some(orders.clone()));
    // Nor can it: the staged key signs in this profile only.
    let hub = Endpoint { signature_profile: SignatureProfile::HubSha256, ..orders };
    let revision = hub.meta.revision;
    let refused = config.update_endpoint(hub, revision, &by()).await.unwrap_err();
    assert_eq!(refused.reason(), "SIGNATURE_PROFILE_MISMATCH");
}

async fn of_two_concurrent_rotations_one_is_stale_and_no_key_is_lost(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    let before = fixture.config.key_ring(acme.id, orders.id.into()).await.unwrap();
    let rotations: Vec<_> = (0..2)
        .map(|_| {
            let (config, mut ring) = (Arc::clone(&fixture.config), before.clone());
            let expected = ring.revision;
            ring.rotate(key(), DAY, false, at(10)).unwrap();
            tokio::spawn(async move {
                config.update_key_ring(acme.id, orders.id.into(), ring, expected, &by()).await
            })
        })
        .collect();
    let (mut won, mut stale): (Vec<KeyRing>, Vec<_>) = (Vec::new(), Vec::new());
    for rotation in rotations {
        match rotation.await.unwrap() {
            Ok(ring) => won.push(ring),
            lost => stale.push(refusal(lost)),
        }
    }
    let name = "tenants/acme/endpoints/orders/keyRing".to_owned();
    assert_eq!(stale, [("ETAG_MISMATCH", name)]);
    let after = fixture.config.key_ring(acme.id, orders.id.into()).await.unwrap();
    assert_eq!(won, std::slice::from_ref(&after));
    assert!(after.keys.iter().any(|key| key.id == before.keys[0].id && key.secret.is_some()));
}

async fn two_active_keys_cannot_be_stored(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    let before = fixture.config.key_ring(acme.id, orders.id.into()).await.unwrap();
    for state in ["staged", "active", "retiring"] {
        let mut ring = before.clone();
        ring.keys = vec![with_state(state), with_state(state)];
        let refused = fixture
            .config
            .update_key_ring(acme.id, orders.id.into(), ring, before.revision, &by())
            .await;
        assert_eq!(refusal(refused).0, "INTERNAL", "{state}");
    }
    assert_eq!(fixture.config.key_ring(acme.id, orders.id.into()).await.unwrap(), before);
}

fn with_state(state: &str) -> turnbuckle_domain::Key {
    let mut made = key();
    made.state = KeyState::parse(state).unwrap();
    if made.state != KeyState::Staged {
        made.activated_at = Some(at(1));
    }
    if made.state == KeyState::Retiring {
        made.retire_at = Some(at(100));
    }
    made
}

async fn impossible_keys_cannot_be_stored(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    fixture.endpoint(&acme, "orders").await;
    for impossible in [
        "secret = null",
        "state = 'revoked', revoke_reason = 'x', retire_at_us = 1",
        "revoke_reason = 'x'",
        "state = 'lost'",
        "activated_at_us = null",
        "state = 'retiring'",
        "algorithm = 'ed25519'",
        "position = -1",
    ] {
        let update = format!("update signing_key set {impossible}");
        let error = fixture.db.execute_unprepared(&update).await.unwrap_err();
        assert!(is_check_violation(&error), "{impossible}: {error}");
    }
    for impossible in [
        "state = 'active'",
        "disable_reason = null",
        "max_in_flight = 65",
        "max_in_flight = 0",
        "timeout_us = 999999",
        "signature_profile = 'none'",
        "slug = ''",
        "revision = 0",
    ] {
        let update = format!("update endpoint set {impossible}");
        let error = fixture.db.execute_unprepared(&update).await.unwrap_err();
        assert!(is_check_violation(&error), "{impossible}: {error}");
    }
}

fn is_check_violation(error: &DbErr) -> bool {
    let DbErr::Exec(RuntimeErr::SqlxError(error)) = error else {
        return false;
    };
    error.as_database_error().is_some_and(|database| database.is_check_violation())
}

async fn the_keys_of_a_deleted_endpoint_are_kept_out_of_reach_until_it_is_purged(
    fixture: &Fixture,
) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    let mut ring = config.key_ring(acme.id, orders.id.into()).await.unwrap();
    ring.rotate(key(), DAY, false, at(10)).unwrap();
    let expected = ring.revision;
    let ring =
        config.update_key_ring(acme.id, orders.id.into(), ring, expected, &by()).await.unwrap();
    let kept = fixture.endpoint(&acme, "kept").await;
    config.delete_endpoint(&orders, at(20), &by()).await.unwrap();

    let gone = config.key_ring(acme.id, orders.id.into()).await;
    assert_eq!(refusal(gone), ("NOT_FOUND", "tenants/acme/endpoints/orders".to_owned()));
    let late =
        config.update_key_ring(acme.id, orders.id.into(), ring.clone(), ring.revision, &by()).await;
    assert_eq!(refusal(late).0, "NOT_FOUND");
    assert_eq!(sealed(fixture).await, 3);
    let purged = config.purge_one(at(21), &by()).await.unwrap();
    assert_eq!(purged.as_deref(), Some("tenants/acme/endpoints/orders"));
    assert_eq!(sealed(fixture).await, 1);
    let delta = config.changes_since(Revision::ZERO).await.unwrap();
    assert_eq!(delta.key_rings.len(), 1);
    assert_eq!(delta.key_rings[0].0, kept.id);
}

/// Keys whose material is there.
async fn sealed(fixture: &Fixture) -> i64 {
    let left = Statement::from_string(
        fixture.db.get_database_backend(),
        "select count(*) from signing_key where secret is not null",
    );
    fixture.db.query_one_raw(left).await.unwrap().unwrap().try_get_by_index(0).unwrap()
}
