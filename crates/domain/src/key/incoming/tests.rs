//! Rings that verify, by example and by a model run of random verbs.

use super::*;
use crate::{KeyAlgorithm, Random as _, SealedSecret, SeededRandom, key_limits};
use std::{collections::BTreeMap, time::Duration};
use uuid::Uuid;

const HOUR: Duration = Duration::from_secs(3600);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

fn key(number: u128, now: Timestamp) -> Key {
    let id = KeyId::from_uuid(Uuid::from_u128(number));
    let sealed = SealedSecret::from_bytes(vec![1]);
    Key::staged(id, KeyAlgorithm::SharedSecret, number.to_string(), None, sealed, now)
}

fn names(keys: Vec<&Key>) -> Vec<&str> {
    keys.into_iter().map(|key| key.fingerprint.as_str()).collect()
}

#[test]
fn a_staged_key_is_accepted_before_it_is_active() {
    let mut ring = KeyRing::default();
    assert!(ring.accepting(at(0)).is_empty());
    ring.stage(key(1, at(0)), at(0)).unwrap();
    assert_eq!(names(ring.accepting(at(0))), ["1"]);
    ring.activate(HOUR, at(1)).unwrap();
    ring.stage(key(2, at(2)), at(2)).unwrap();
    assert_eq!(names(ring.accepting(at(2))), ["1", "2"]);
}

#[test]
fn the_key_before_is_accepted_until_its_time_and_told_apart_afterwards() {
    let mut ring = KeyRing::with_first(key(1, at(0)), at(0));
    ring.rotate(key(2, at(10)), HOUR, false, at(10)).unwrap();
    let old = |ring: &KeyRing, now| ring.keys[1].acceptance_at(now);
    assert_eq!(old(&ring, at(3609)), Acceptance::Retiring { until: at(3610) });
    assert_eq!(names(ring.accepting(at(3609))), ["2", "1"]);
    assert_eq!(old(&ring, at(3610)), Acceptance::Retired);
    assert_eq!(names(ring.accepting(at(3610))), ["2"], "no sweeper has run");
    assert_eq!(names(ring.refusing(at(3610))), ["1"]);
}

#[test]
fn a_revoked_key_is_refused_at_once_and_raises_the_alarm_for_a_while() {
    let mut ring = KeyRing::with_first(key(1, at(0)), at(0));
    let id = ring.keys[0].id;
    assert_eq!(ring.revoke_incoming(id, "leaked", at(5)), Ok(true));
    assert!(ring.accepting(at(5)).is_empty());
    assert_eq!(ring.keys[0].acceptance_at(at(5)), Acceptance::Revoked);
    assert_eq!(names(ring.refusing(at(5))), ["1"]);
    assert_eq!(ring.revoke_incoming(id, "again", at(6)), Err(Precondition::KeyRevoked));
    assert_eq!(ring.keys[0].secret, Some(SealedSecret::from_bytes(vec![1])), "still for the alarm");
    let later = at(6) + incoming_limits::ALARM_WINDOW;
    ring.stage(key(2, later), later).unwrap();
    assert!(ring.keys.iter().all(|key| key.fingerprint != "1" || key.secret.is_none()));
    assert!(ring.refusing(later).is_empty());
    let unknown = KeyId::from_uuid(Uuid::from_u128(99));
    assert_eq!(ring.revoke_incoming(unknown, "x", later), Ok(false));
}

#[test]
fn a_key_that_retired_long_ago_raises_the_alarm_from_its_revocation_on() {
    let mut ring = KeyRing::with_first(key(1, at(0)), at(0));
    ring.rotate(key(2, at(0)), Duration::ZERO, false, at(0)).unwrap();
    let late = at(0) + incoming_limits::ALARM_WINDOW + HOUR;
    let id = KeyId::from_uuid(Uuid::from_u128(1));
    ring.revoke_incoming(id, "found in a log", late).unwrap();
    assert_eq!(names(ring.refusing(late)), ["1"]);
}

#[test]
fn a_revoked_key_does_not_come_back() {
    let mut ring = KeyRing::with_first(key(1, at(0)), at(0));
    ring.rotate(key(2, at(1)), HOUR, false, at(1)).unwrap();
    let first = KeyId::from_uuid(Uuid::from_u128(1));
    ring.revoke_incoming(first, "leaked", at(2)).unwrap();
    assert_eq!(ring.rollback(HOUR, at(3)), Err(Precondition::NothingToRollBack));
}

/// What a verb may do to the keys that were accepted before it.
enum Effect {
    /// All of them stay accepted.
    None,
    /// The ones named may go.
    Ends(Vec<KeyId>),
}

fn ids(ring: &KeyRing, states: &[KeyState], now: Timestamp) -> Vec<KeyId> {
    let among = |key: &&Key| states.contains(&key.state_at(now));
    ring.keys.iter().filter(among).map(|key| key.id).collect()
}

/// A verb that may end keys, when it was done.
fn ends(open: Vec<KeyId>, outcome: Result<(), Precondition>) -> Effect {
    outcome.map_or(Effect::None, |()| Effect::Ends(open))
}

/// A verb that ends no key, done or not.
fn unharmed(_outcome: Result<(), Precondition>) -> Effect {
    Effect::None
}

struct Model {
    ring: KeyRing,
    revoked: BTreeMap<KeyId, Timestamp>,
    random: SeededRandom,
}

impl Model {
    fn pick(&self, count: usize) -> usize {
        (self.random.unit() * count as f64) as usize
    }

    fn step(&mut self, number: u128, now: Timestamp) -> Effect {
        // Never so short that the clock alone ends it before the check.
        let overlap = Duration::from_secs(1 + self.pick(8000) as u64);
        match self.pick(5) {
            0 => unharmed(self.ring.stage(key(number, now), now)),
            1 => unharmed(self.ring.activate(overlap, now)),
            2 => {
                let force = self.pick(2) == 0;
                let open = ids(&self.ring, &[KeyState::Staged, KeyState::Retiring], now);
                ends(open, self.ring.rotate(key(number, now), overlap, force, now))
            }
            3 => {
                let open = ids(&self.ring, &[KeyState::Retiring], now);
                ends(open, self.ring.rollback(overlap, now))
            }
            _ if self.ring.keys.is_empty() => Effect::None,
            _ => {
                let id = self.ring.keys[self.pick(self.ring.keys.len())].id;
                if self.ring.revoke_incoming(id, "model", now).is_ok() {
                    self.revoked.insert(id, now);
                }
                Effect::Ends(vec![id])
            }
        }
    }
}

/// Whatever the verbs and the clock: no key that was good is refused by a change that did not end it,
/// no revoked key is accepted again, and no request is held against more keys than the bound.
#[test]
fn nothing_valid_is_refused_whatever_the_verbs() {
    for seed in 0..2_000 {
        let random = SeededRandom::from_number(seed);
        let mut model = Model { ring: KeyRing::default(), revoked: BTreeMap::new(), random };
        let mut now = 1_000_000_i64;
        for number in 1..40_u128 {
            now += model.pick(5000) as i64 - 500;
            let before: Vec<KeyId> =
                model.ring.accepting(at(now)).iter().map(|key| key.id).collect();
            let effect = model.step(number, at(now));
            let may_go = match effect {
                Effect::None => Vec::new(),
                Effect::Ends(ids) => ids,
            };
            let after = model.ring.accepting(at(now));
            let context = format!("seed {seed} step {number}");
            assert!(after.len() <= 3, "{context}");
            assert!(model.ring.refusing(at(now)).len() <= incoming_limits::REFUSED_TRIED);
            assert!(after.iter().all(|key| key.secret.is_some()), "{context}");
            assert!(after.iter().all(|key| !model.revoked.contains_key(&key.id)), "{context}");
            for id in before.iter().filter(|id| !may_go.contains(id)) {
                assert!(after.iter().any(|key| key.id == *id), "{context}: {id} was good");
            }
            assert!(model.ring.keys.len() <= key_limits::KEYS_KEPT);
        }
    }
}
