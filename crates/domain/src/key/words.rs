//! A ring in words: what signs now, what will, and until when.

use super::{Key, KeyRing, KeyState};
use crate::Timestamp;

impl Key {
    /// The key as people tell it from others.
    pub(crate) fn words(&self) -> String {
        match self.fingerprint.as_str() {
            // A key that was not made has none.
            "" => format!("a new {} key", self.algorithm.as_str()),
            fingerprint => format!("{} ({fingerprint})", self.id),
        }
    }
}

impl KeyRing {
    /// What signs now, what will sign, and until when.
    #[must_use]
    pub fn words(&self, now: Timestamp) -> String {
        let of = |state| self.keys.iter().find(|key| key.state_at(now) == state);
        let (active, retiring) = (of(KeyState::Active), of(KeyState::Retiring));
        let mut text = match (active, retiring) {
            (Some(active), None) => format!("{} signs alone.", active.words()),
            (None, None) => {
                "No key signs: deliveries wait, and nothing leaves unsigned.".to_owned()
            }
            (active, Some(retiring)) => overlap(self, active, retiring),
        };
        if let Some(staged) = of(KeyState::Staged) {
            text += &format!(
                " {} is staged: it signs tests only, until it is activated.",
                staged.words()
            );
        }
        text
    }
}

fn overlap(ring: &KeyRing, active: Option<&Key>, retiring: &Key) -> String {
    let old = retiring.words();
    let end = retiring.retire_at.map(Timestamp::rfc3339).unwrap_or_default();
    let (both, after) = match active {
        Some(active) => (
            format!("{} signs, and {old} signs too", active.words()),
            format!("{} signs alone", active.words()),
        ),
        None => (format!("{old} signs alone"), "no key signs and deliveries wait".to_owned()),
    };
    if ring.is_paused() {
        return format!("{both}, for as long as the rotation is paused.");
    }
    format!("{both} until {end}; then {after}.")
}
