//! Where the rotation of a source's keys stands. Senders choose the key they sign with: what each key
//! verified shows whether they have changed to the new one.

use super::{KeyStanding, RetireVerdict, RotationStage, Standing};
use crate::{Key, KeyRing, KeyState, RingUsage, Timestamp};
use std::time::Duration;

/// A sender that signed with the new key only for this long has changed: most send at least daily, and
/// their slowest retries have come by then.
const QUIET: Duration = Duration::from_secs(24 * 3600);

impl Standing {
    /// Looks at the ring of a source.
    #[must_use]
    pub fn of_incoming(ring: &KeyRing, usage: &RingUsage, now: Timestamp) -> Self {
        let of = |state| ring.keys.iter().find(|key| key.state_at(now) == state);
        let (staged, retiring) = (of(KeyState::Staged), of(KeyState::Retiring));
        let stage = match (ring.accepting(now).is_empty(), retiring, staged) {
            (true, ..) => RotationStage::NoSigner,
            (false, Some(_), _) => RotationStage::Overlap,
            (false, None, Some(_)) => RotationStage::Staged,
            (false, None, None) => RotationStage::Idle,
        };
        let (verdict, reason) = verdict(retiring, of(KeyState::Active), usage, now);
        Self {
            stage,
            summary: ring.incoming_words(now),
            keys: ring.keys.iter().map(|key| standing(key, usage, now)).collect(),
            step: None,
            verdict,
            reasons: vec![reason],
            next: vec![next(stage, verdict, retiring)],
        }
    }
}

fn standing(key: &Key, usage: &RingUsage, now: Timestamp) -> KeyStanding {
    let traffic = usage.of(key.id).cloned();
    KeyStanding { key: key.id, state: key.state_at(now), traffic, share_per_mille: 0 }
}

fn verdict(
    retiring: Option<&Key>,
    active: Option<&Key>,
    usage: &RingUsage,
    now: Timestamp,
) -> (RetireVerdict, String) {
    let Some(old) = retiring else {
        return (RetireVerdict::NothingRetires, "No key is retiring.".to_owned());
    };
    let last = |key: &Key| usage.of(key.id).and_then(|traffic| traffic.last_used_at);
    let (new_at, old_at) = (active.and_then(last), last(old));
    let changed_at = active.and_then(|key| key.activated_at).unwrap_or(now);
    let reason = match (new_at, old_at) {
        (None, _) => format!(
            "Nothing came that the new key verified: the sender may still sign with {}.",
            old.words()
        ),
        (Some(_), Some(at)) if now.since(at) < QUIET => {
            format!("The sender signed with {} at {}.", old.words(), at.rfc3339())
        }
        // Silence proves something only once it has lasted.
        (Some(_), None) if now.since(changed_at) < QUIET => format!(
            "The sender has changed, but less than a day ago: retries signed with {} may come yet.",
            old.words()
        ),
        (Some(at), _) => {
            let text = format!(
                "The sender signs with the new key, last at {}, and did not sign with {} for a day.",
                at.rfc3339(),
                old.words()
            );
            return (RetireVerdict::Safe, text);
        }
    };
    (RetireVerdict::NotSafe, reason)
}

fn next(stage: RotationStage, verdict: RetireVerdict, retiring: Option<&Key>) -> String {
    let end = retiring.and_then(|key| key.retire_at).map(Timestamp::rfc3339).unwrap_or_default();
    match stage {
        RotationStage::NoSigner => {
            "Stage the key that the sender signs with: what has to be signed is refused until then."
                .to_owned()
        }
        RotationStage::Staged => {
            "Give the staged key to the sender, and activate it once the sender signs with it."
                .to_owned()
        }
        RotationStage::Overlap | RotationStage::Paused if verdict == RetireVerdict::Safe => {
            format!("Nothing: the old key retires by itself at {end}. Revoke it to end it now.")
        }
        RotationStage::Overlap | RotationStage::Paused => format!(
            "See to it that the sender signs with the new key before {end}; roll back if it cannot."
        ),
        RotationStage::Idle => "Nothing.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeyAlgorithm, KeyId, SealedSecret};
    use std::time::Duration;
    use uuid::Uuid;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn key(number: u128) -> Key {
        let sealed = SealedSecret::from_bytes(vec![1]);
        let id = KeyId::from_uuid(Uuid::from_u128(number));
        Key::staged(id, KeyAlgorithm::SharedSecret, format!("f{number}"), None, sealed, at(0))
    }

    #[test]
    fn the_standing_of_a_source_goes_with_its_ring() {
        let mut ring = KeyRing::default();
        let look =
            |ring: &KeyRing, now| Standing::of_incoming(ring, &RingUsage::default(), at(now));
        assert_eq!(look(&ring, 0).stage, RotationStage::NoSigner);
        ring.stage(key(1), at(0)).unwrap();
        let staged = look(&ring, 1);
        assert_eq!(staged.stage, RotationStage::Staged);
        assert!(staged.summary.contains("accepted already"), "{}", staged.summary);
        ring.activate(Duration::ZERO, at(2)).unwrap();
        let idle = look(&ring, 3);
        assert_eq!(
            (idle.stage, idle.verdict),
            (RotationStage::Idle, RetireVerdict::NothingRetires)
        );
        assert_eq!(idle.next, ["Nothing."]);
        ring.rotate(key(2), Duration::from_secs(60), false, at(4)).unwrap();
        let overlap = look(&ring, 5);
        assert_eq!(
            (overlap.stage, overlap.verdict),
            (RotationStage::Overlap, RetireVerdict::NotSafe)
        );
        assert!(
            overlap.reasons[0].starts_with("Nothing came that the new key verified"),
            "{:?}",
            overlap.reasons
        );
        assert!(overlap.step.is_none() && overlap.keys.iter().all(|key| key.traffic.is_none()));
        assert_eq!(overlap.keys.len(), 2);
        assert_eq!(look(&ring, 65).stage, RotationStage::Idle);
    }

    #[test]
    fn the_old_key_may_go_once_the_sender_has_not_used_it_for_a_day() {
        use crate::KeyTraffic;
        const DAY: i64 = 24 * 3600;
        let mut ring = KeyRing::with_first(key(1), at(0));
        ring.rotate(key(2), QUIET * 3, false, at(100)).unwrap();
        let used = |number: u128, last: i64| KeyTraffic {
            key: KeyId::from_uuid(Uuid::from_u128(number)),
            signatures: 7,
            last_used_at: Some(at(last)),
            last_test: None,
        };
        for (keys, now, verdict, words) in [
            (vec![used(1, 90)], 200, RetireVerdict::NotSafe, "Nothing came"),
            (
                vec![used(1, 150), used(2, 160)],
                200,
                RetireVerdict::NotSafe,
                "The sender signed with",
            ),
            (vec![used(2, 160)], 200, RetireVerdict::NotSafe, "The sender has changed, but"),
            (vec![used(2, 160)], 101 + DAY, RetireVerdict::Safe, "The sender signs with the new"),
            (vec![used(1, 150), used(2, 160)], 151 + DAY, RetireVerdict::Safe, "The sender signs"),
        ] {
            let usage = RingUsage { keys, answers: Vec::new() };
            let standing = Standing::of_incoming(&ring, &usage, at(now));
            assert_eq!(standing.verdict, verdict, "{now}");
            assert!(standing.reasons[0].starts_with(words), "{:?}", standing.reasons);
            let ends = standing.next[0].starts_with("Nothing: the old key retires by itself");
            assert_eq!(ends, verdict == RetireVerdict::Safe);
            let shown = standing.keys.iter().filter(|key| key.traffic.is_some()).count();
            assert_eq!(shown, usage.keys.len());
        }
    }
}
