//! The ring of a source in words: what is accepted, until when, and what is refused.

use super::{Key, KeyRing, KeyState};
use crate::Timestamp;

impl KeyRing {
    /// What is accepted now, until when, and what is refused.
    #[must_use]
    pub fn incoming_words(&self, now: Timestamp) -> String {
        let of = |state| self.keys.iter().find(|key| key.state_at(now) == state);
        let mut parts = Vec::new();
        if let Some(active) = of(KeyState::Active) {
            parts.push(format!("{} is accepted, and expected.", active.words()));
        }
        if let Some(staged) = of(KeyState::Staged) {
            parts.push(format!("{} is staged: it is accepted already.", staged.words()));
        }
        if let Some(retiring) = of(KeyState::Retiring) {
            let end = retiring.retire_at.map(Timestamp::rfc3339).unwrap_or_default();
            parts.push(format!(
                "{} is retiring: it is accepted until {end}, and refused then.",
                retiring.words()
            ));
        }
        if parts.is_empty() {
            parts.push("No key is accepted: what has to be signed is refused.".to_owned());
        }
        parts.extend(self.refusing(now).into_iter().map(|key| refused(key, now)));
        parts.join(" ")
    }
}

fn refused(key: &Key, now: Timestamp) -> String {
    let why = match key.state_at(now) {
        KeyState::Revoked => "is revoked: it is refused, and its use raises the alarm",
        _ => "is retired: it is refused",
    };
    format!("{} {why}.", key.words())
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
    fn a_ring_says_what_is_accepted_and_what_is_refused() {
        let hour = Duration::from_secs(3600);
        let empty = KeyRing::default().incoming_words(at(0));
        assert_eq!(empty, "No key is accepted: what has to be signed is refused.");
        let mut ring = KeyRing::with_first(key(1), at(0));
        ring.stage(key(2), at(1)).unwrap();
        let words = ring.incoming_words(at(2));
        assert!(words.contains("(f1) is accepted, and expected."), "{words}");
        assert!(words.contains("(f2) is staged: it is accepted already."), "{words}");
        ring.activate(hour, at(3)).unwrap();
        let words = ring.incoming_words(at(4));
        assert!(words.contains("(f2) is accepted, and expected."), "{words}");
        let end = at(3 + 3600).rfc3339();
        let retiring = format!("(f1) is retiring: it is accepted until {end}, and refused then.");
        assert!(words.contains(&retiring), "{words}");
        let words = ring.incoming_words(at(3 + 3600));
        assert!(words.ends_with("(f1) is retired: it is refused."), "{words}");
        let id = ring.keys[0].id;
        ring.revoke_incoming(id, "leaked", at(5)).unwrap();
        let words = ring.incoming_words(at(6));
        assert!(words.contains("(f2) is revoked: it is refused, and its use raises"), "{words}");
    }
}
