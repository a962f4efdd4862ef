//! Where the rotation of a source's keys stands. Senders choose the key they sign with, so its state is
//! told without counts.

use super::{KeyStanding, RetireVerdict, RotationStage, Standing};
use crate::{Key, KeyRing, KeyState, Timestamp};

impl Standing {
    /// Looks at the ring of a source.
    #[must_use]
    pub fn of_incoming(ring: &KeyRing, now: Timestamp) -> Self {
        let of = |state| ring.keys.iter().find(|key| key.state_at(now) == state);
        let (staged, retiring) = (of(KeyState::Staged), of(KeyState::Retiring));
        let stage = match (ring.accepting(now).is_empty(), retiring, staged) {
            (true, ..) => RotationStage::NoSigner,
            (false, Some(_), _) => RotationStage::Overlap,
            (false, None, Some(_)) => RotationStage::Staged,
            (false, None, None) => RotationStage::Idle,
        };
        let (verdict, reason) = verdict(retiring);
        Self {
            stage,
            summary: ring.incoming_words(now),
            keys: ring.keys.iter().map(|key| standing(key, now)).collect(),
            step: None,
            verdict,
            reasons: vec![reason],
            next: vec![next(stage, retiring)],
        }
    }
}

fn standing(key: &Key, now: Timestamp) -> KeyStanding {
    KeyStanding { key: key.id, state: key.state_at(now), traffic: None, share_per_mille: 0 }
}

fn verdict(retiring: Option<&Key>) -> (RetireVerdict, String) {
    match retiring {
        None => (RetireVerdict::NothingRetires, "No key is retiring.".to_owned()),
        Some(key) => (
            RetireVerdict::NotSafe,
            format!(
                "Only the sender knows whether it still signs with {}: ask before it goes.",
                key.words()
            ),
        ),
    }
}

fn next(stage: RotationStage, retiring: Option<&Key>) -> String {
    match stage {
        RotationStage::NoSigner => {
            "Stage the key that the sender signs with: what has to be signed is refused until then."
                .to_owned()
        }
        RotationStage::Staged => {
            "Give the staged key to the sender, and activate it once the sender signs with it."
                .to_owned()
        }
        RotationStage::Overlap | RotationStage::Paused => {
            let end = retiring.and_then(|key| key.retire_at).map(Timestamp::rfc3339);
            format!(
                "See to it that the sender signs with the new key before {}; roll back if it cannot.",
                end.unwrap_or_default()
            )
        }
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
    fn the_standing_of_a_source_is_told_without_counts() {
        let mut ring = KeyRing::default();
        let look = |ring: &KeyRing, now| Standing::of_incoming(ring, at(now));
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
        assert!(overlap.reasons[0].starts_with("Only the sender knows"), "{:?}", overlap.reasons);
        assert!(overlap.step.is_none() && overlap.keys.iter().all(|key| key.traffic.is_none()));
        assert_eq!(overlap.keys.len(), 2);
        assert_eq!(look(&ring, 65).stage, RotationStage::Idle);
    }
}
