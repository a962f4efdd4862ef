//! I14, by example and by a model run of random verbs.

use super::*;
use crate::{Random as _, SeededRandom};
use uuid::Uuid;

const HOUR: Duration = Duration::from_secs(3600);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

fn key(number: u128, now: Timestamp) -> Key {
    Key::staged(
        KeyId::from_uuid(Uuid::from_u128(number)),
        KeyAlgorithm::HmacSha256,
        number.to_string(),
        None,
        SealedSecret::from_bytes(vec![1]),
        now,
    )
}

fn names(ring: &KeyRing, now: Timestamp) -> Vec<&str> {
    ring.signing(now).iter().map(|key| key.fingerprint.as_str()).collect()
}

#[test]
fn rotation_signs_with_both_keys_until_the_overlap_ends() {
    let mut ring = KeyRing::with_first(key(1, at(0)), at(0));
    ring.rotate(key(2, at(10)), HOUR, false, at(10)).unwrap();
    assert_eq!(names(&ring, at(11)), ["2", "1"]);
    assert_eq!(ring.next_change(at(11)), Some(at(3610)));
    assert_eq!(names(&ring, at(3609)), ["2", "1"]);
    assert_eq!(names(&ring, at(3610)), ["2"], "no sweeper has run");
}

#[test]
fn a_second_rotation_is_refused_while_one_is_open_unless_forced() {
    let mut ring = KeyRing::with_first(key(1, at(0)), at(0));
    ring.rotate(key(2, at(10)), HOUR, false, at(10)).unwrap();
    let refused = ring.rotate(key(3, at(20)), HOUR, false, at(20));
    assert_eq!(refused, Err(Precondition::RotationOpen));
    assert_eq!(names(&ring, at(20)), ["2", "1"]);
    ring.rotate(key(3, at(20)), HOUR, true, at(20)).unwrap();
    assert_eq!(
        names(&ring, at(20)),
        ["3", "2"],
        "full overlap for the key before, not a stale one"
    );
    assert_eq!(names(&ring, at(3619)), ["3", "2"]);
}

#[test]
fn staging_does_not_sign_and_zero_overlap_ends_the_old_key_at_once() {
    let mut ring = KeyRing::with_first(key(1, at(0)), at(0));
    ring.stage(key(2, at(1)), at(1)).unwrap();
    assert_eq!(names(&ring, at(1)), ["1"]);
    ring.activate(Duration::ZERO, at(2)).unwrap();
    assert_eq!(names(&ring, at(2)), ["2"]);
    assert_eq!(ring.activate(HOUR, at(3)), Err(Precondition::NoStagedKey));
}

#[test]
fn rollback_brings_the_key_before_back_inside_its_window() {
    let mut ring = KeyRing::with_first(key(1, at(0)), at(0));
    ring.rotate(key(2, at(10)), HOUR, false, at(10)).unwrap();
    ring.rollback(HOUR, at(20)).unwrap();
    assert_eq!(names(&ring, at(20)), ["1", "2"]);
    let mut late = KeyRing::with_first(key(1, at(0)), at(0));
    late.rotate(key(2, at(10)), Duration::ZERO, false, at(10)).unwrap();
    let in_eight_days = at(8 * 24 * 3600);
    assert_eq!(late.rollback(HOUR, in_eight_days), Err(Precondition::NothingToRollBack));
    late.rollback(Duration::ZERO, at(5000)).unwrap();
    assert_eq!(names(&late, at(5000)), ["1"]);
}

#[test]
fn revoking_destroys_the_material_and_can_leave_the_ring_without_a_signer() {
    let mut ring = KeyRing::with_first(key(1, at(0)), at(0));
    let id = ring.keys[0].id;
    assert_eq!(ring.revoke(id, "leaked", at(1)), Ok(true));
    assert!(ring.signing(at(1)).is_empty() && ring.keys[0].secret.is_none());
    assert_eq!(ring.revoke(id, "again", at(2)), Err(Precondition::KeyRevoked));
    let unknown = KeyId::from_uuid(Uuid::from_u128(99));
    assert_eq!(ring.revoke(unknown, "x", at(2)), Ok(false));
    assert_eq!(ring.rollback(HOUR, at(3)), Err(Precondition::NothingToRollBack));
}

/// I14 under any order of verbs and any clock, backwards steps included.
#[test]
fn at_most_two_keys_sign_whatever_the_verbs() {
    for seed in 0..2_000 {
        let random = SeededRandom::from_number(seed);
        let pick = |count: usize| (random.unit() * count as f64) as usize;
        let mut now = 1_000_000_i64;
        let mut ring = KeyRing::with_first(key(1, at(now)), at(now));
        for step in 2..40_u128 {
            now += pick(5000) as i64 - 500;
            let overlap = Duration::from_secs(pick(8000) as u64);
            let outcome = match pick(7) {
                0 => ring.stage(key(step, at(now)), at(now)),
                1 => ring.activate(overlap, at(now)),
                2 => ring.rotate(key(step, at(now)), overlap, pick(2) == 0, at(now)),
                3 => ring.rollback(overlap, at(now)),
                4 => ring.pause("model", at(now)),
                5 => ring.resume(overlap, at(now)),
                _ => {
                    let id = ring.keys[pick(ring.keys.len())].id;
                    ring.revoke(id, "model", at(now)).map(|_| ())
                }
            };
            let count = |state| ring.keys.iter().filter(|key| key.state == state).count();
            for state in [KeyState::Staged, KeyState::Active, KeyState::Retiring] {
                assert!(count(state) <= 1, "seed {seed} step {step} {state:?} {outcome:?}");
            }
            let signers = ring.signing(at(now));
            assert!(signers.len() <= 2, "seed {seed} step {step}");
            assert!(signers.iter().all(|key| key.secret.is_some()), "seed {seed} step {step}");
            assert!(ring.keys.len() <= key_limits::KEYS_KEPT);
            let held: Vec<&Key> = ring.keys.iter().filter(|key| key.held).collect();
            assert!(held.iter().all(|key| key.state_at(Timestamp::MAX) == KeyState::Retiring));
            assert_eq!(held.len(), usize::from(ring.is_paused()), "seed {seed} step {step}");
        }
    }
}

#[test]
fn a_paused_rotation_keeps_the_old_key_until_somebody_decides() {
    let in_nine_days = at(9 * 24 * 3600);
    let mut ring = KeyRing::with_first(key(1, at(0)), at(0));
    assert_eq!(ring.pause("too early", at(1)), Err(Precondition::NoOpenRotation));
    ring.rotate(key(2, at(10)), HOUR, false, at(10)).unwrap();
    assert_eq!(ring.resume(HOUR, at(11)), Err(Precondition::NoOpenRotation));
    ring.pause("denials jumped", at(20)).unwrap();
    assert_eq!(ring.pause("again", at(21)), Err(Precondition::NoOpenRotation));
    assert_eq!(names(&ring, in_nine_days), ["2", "1"], "its time has not run out");
    assert_eq!(ring.next_change(at(21)), None);
    assert_eq!(
        ring.rotate(key(3, at(30)), HOUR, false, in_nine_days),
        Err(Precondition::RotationOpen)
    );

    let mut back = ring.clone();
    back.rollback(HOUR, in_nine_days).unwrap();
    assert_eq!(names(&back, in_nine_days), ["1", "2"], "its window has not run out either");
    assert!(back.pause.is_none() && back.keys.iter().all(|key| !key.held));

    let mut on = ring.clone();
    on.resume(HOUR, in_nine_days).unwrap();
    assert_eq!(names(&on, in_nine_days), ["2", "1"]);
    assert!(!on.is_paused() && on.pause.is_some(), "that it was paused is remembered");
    let later = in_nine_days + HOUR;
    assert_eq!(names(&on, later), ["2"]);
    on.stage(key(3, later), later).unwrap();
    assert!(on.pause.is_none(), "the rotation is over");

    let mut ended = ring;
    let old = ended.keys[1].id;
    ended.revoke(old, "leaked", in_nine_days).unwrap();
    assert!(ended.pause.is_none());
    assert_eq!(names(&ended, in_nine_days), ["2"]);
}

#[test]
fn a_full_ring_forgets_retired_keys_before_revoked_ones() {
    let mut ring = KeyRing::with_first(key(1, at(0)), at(0));
    ring.rotate(key(2, at(1)), Duration::ZERO, false, at(1)).unwrap();
    let leaked = ring.keys.iter().find(|key| key.fingerprint == "1").map(|key| key.id).unwrap();
    ring.revoke(leaked, "leaked", at(2)).unwrap();
    for number in 3..60 {
        let now = at(i64::try_from(number).unwrap());
        ring.rotate(key(number, now), Duration::ZERO, false, now).unwrap();
    }
    assert_eq!(ring.keys.len(), key_limits::KEYS_KEPT);
    assert!(ring.keys.iter().any(|key| key.id == leaked), "it could be imported again");
}
