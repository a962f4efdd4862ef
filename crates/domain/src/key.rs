//! Key rings of endpoints and sources, and the verbs that change them.
//!
//! ```text
//!  stage ──► staged ── activate ──► active ── (next activate) ──► retiring ── its time ──► retired
//!                                     ▲  └────────── rollback ◄──────┴──────────────────────┘
//!  revoke, from any state ──► revoked: material destroyed
//! ```
//! Expiry is decided by the clock where a key is used; no sweeper is needed for a key to stop signing.
//! While the rotation of an endpoint's keys is paused, the retiring key is held: its time does not run
//! out.
//!
//! The keys of an endpoint sign; those of a source verify, and their states mean something else: see
//! [`Acceptance`].

mod incoming;
mod incoming_words;
mod pause;
mod words;

pub use incoming::{Acceptance, KeyOwner, incoming_limits};
pub use pause::RotationPause;

use crate::{KeyId, Precondition, Revision, SealedSecret, SignatureProfile, Timestamp};
use std::time::Duration;

/// Bounds of key rings, each with its reason.
pub mod key_limits {
    use std::time::Duration;

    /// How long the key before signs on when nothing is chosen: a working day for the receiver.
    pub const OVERLAP_DEFAULT: Duration = Duration::from_secs(24 * 3600);
    /// Longest overlap: a key that is kept alive longer was not rotated.
    pub const OVERLAP_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
    /// How long a retired key is kept for a roll-back.
    pub const ROLLBACK_WINDOW: Duration = Duration::from_secs(7 * 24 * 3600);
    /// Keys a ring remembers, retired and revoked ones included. Beyond it the oldest retired ones
    /// are forgotten first, so that a roll-back reaches as far as it can, and revoked ones last: what
    /// is forgotten could be imported again.
    pub const KEYS_KEPT: usize = 20;
}

/// What a key signs with; or, on the ring of a source, what kind of material it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyAlgorithm {
    /// A secret shared with the receiver.
    HmacSha256,
    /// The receiver holds only the public half.
    Ed25519,
    /// A secret that a source's sender knows too. What is computed with it, the source's scheme says.
    SharedSecret,
    /// A public key, certificate or the like of a source's sender, read as the source's scheme says.
    PublicKey,
}

impl KeyAlgorithm {
    /// The name stored and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::HmacSha256 => "hmac-sha256",
            Self::Ed25519 => "ed25519",
            Self::SharedSecret => "shared-secret",
            Self::PublicKey => "public-key",
        }
    }

    /// Whether the keys of an endpoint can have it.
    #[must_use]
    pub const fn signs(self) -> bool {
        matches!(self, Self::HmacSha256 | Self::Ed25519)
    }

    /// Reads the stored name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::HmacSha256, Self::Ed25519, Self::SharedSecret, Self::PublicKey]
            .into_iter()
            .find(|algorithm| algorithm.as_str() == text)
    }
}

/// Where a key stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyState {
    /// Known to the receiver, does not sign.
    Staged,
    /// Signs, first in the list.
    Active,
    /// Signs too, until its retire time.
    Retiring,
    /// Does not sign; kept for a roll-back.
    Retired,
    /// Destroyed.
    Revoked,
}

impl KeyState {
    const ALL: [Self; 5] =
        [Self::Staged, Self::Active, Self::Retiring, Self::Retired, Self::Revoked];

    /// The name stored and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Staged => "staged",
            Self::Active => "active",
            Self::Retiring => "retiring",
            Self::Retired => "retired",
            Self::Revoked => "revoked",
        }
    }

    /// Reads the stored name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// One key of a ring. Its material is sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Its id.
    pub id: KeyId,
    /// As stored; [`Key::state_at`] says what it is now.
    pub state: KeyState,
    /// What it signs with.
    pub algorithm: KeyAlgorithm,
    /// Names the key without giving it away.
    pub fingerprint: String,
    /// The public half of an Ed25519 key.
    pub public_key: Option<String>,
    /// The material; none once revoked.
    pub secret: Option<SealedSecret>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it began to sign.
    pub activated_at: Option<Timestamp>,
    /// When it ceases, or ceased, to sign.
    pub retire_at: Option<Timestamp>,
    /// Whether a retiring key signs on past its time, since the rotation is paused.
    pub held: bool,
    /// Why it was revoked.
    pub revoke_reason: Option<String>,
}

impl Key {
    /// A fresh staged key.
    #[must_use]
    pub const fn staged(
        id: KeyId,
        algorithm: KeyAlgorithm,
        fingerprint: String,
        public_key: Option<String>,
        secret: SealedSecret,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            state: KeyState::Staged,
            algorithm,
            fingerprint,
            public_key,
            secret: Some(secret),
            created_at: now,
            activated_at: None,
            retire_at: None,
            held: false,
            revoke_reason: None,
        }
    }

    /// The state the clock makes of it: a retiring key whose time is over is retired, unless held.
    #[must_use]
    pub fn state_at(&self, now: Timestamp) -> KeyState {
        match (self.state, self.retire_at) {
            (KeyState::Retiring, Some(end)) if end <= now && !self.held => KeyState::Retired,
            (state, _) => state,
        }
    }

    /// Whether it signs now.
    #[must_use]
    pub fn signs_at(&self, now: Timestamp) -> bool {
        matches!(self.state_at(now), KeyState::Active | KeyState::Retiring)
    }

    fn retire(&mut self, at: Timestamp, now: Timestamp) {
        self.state = if at <= now { KeyState::Retired } else { KeyState::Retiring };
        self.retire_at = Some(at);
        self.held = false;
    }

    fn can_come_back(&self, now: Timestamp) -> bool {
        let in_window = |end| now.since(end) <= key_limits::ROLLBACK_WINDOW;
        let fresh = self.held || self.retire_at.is_some_and(in_window);
        matches!(self.state, KeyState::Retiring | KeyState::Retired)
            && fresh
            && self.secret.is_some()
    }
}

/// The keys of one endpoint or source. At most one staged, one active, one retiring (I14).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyRing {
    /// Newest first.
    pub keys: Vec<Key>,
    /// Whether the open rotation was paused, and why.
    pub pause: Option<RotationPause>,
    /// Revision of the last change; set by the store.
    pub revision: Revision,
}

impl KeyRing {
    /// A ring whose only key signs at once: that of a new endpoint.
    #[must_use]
    pub fn with_first(mut key: Key, now: Timestamp) -> Self {
        key.state = KeyState::Active;
        key.activated_at = Some(now);
        Self { keys: vec![key], pause: None, revision: Revision::ZERO }
    }

    /// The keys that sign now: the active one first. Never more than two.
    #[must_use]
    pub fn signing(&self, now: Timestamp) -> Vec<&Key> {
        let mut keys: Vec<&Key> = self.keys.iter().filter(|key| key.signs_at(now)).collect();
        keys.sort_by_key(|key| key.state != KeyState::Active);
        keys
    }

    /// Whether every key that signs or may come to sign fits the profile: Ed25519 signatures exist in
    /// Standard Webhooks only.
    #[must_use]
    pub fn fits(&self, profile: SignatureProfile, now: Timestamp) -> bool {
        let counts =
            |key: &&Key| !matches!(key.state_at(now), KeyState::Retired | KeyState::Revoked);
        profile == SignatureProfile::StandardWebhooks
            || self.keys.iter().filter(counts).all(|key| key.algorithm == KeyAlgorithm::HmacSha256)
    }

    /// When the set of signing keys next changes by itself.
    #[must_use]
    pub fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        let retiring = self.keys.iter().filter(|key| key.state_at(now) == KeyState::Retiring);
        retiring.filter(|key| !key.held).filter_map(|key| key.retire_at).min()
    }

    fn position(&self, state: KeyState, now: Timestamp) -> Option<usize> {
        self.keys.iter().position(|key| key.state_at(now) == state)
    }

    /// Writes down what the clock has done, so that stored states obey the unique indexes.
    fn settle(&mut self, now: Timestamp) {
        for key in &mut self.keys {
            key.state = key.state_at(now);
            key.forget(now);
        }
        self.forget_pause();
        while self.keys.len() > key_limits::KEYS_KEPT {
            let oldest = |state| self.keys.iter().rposition(|key| key.state == state);
            match oldest(KeyState::Retired).or_else(|| oldest(KeyState::Revoked)) {
                Some(index) => drop(self.keys.remove(index)),
                None => break,
            }
        }
    }

    /// Adds a key that does not sign yet.
    ///
    /// # Errors
    /// [`Precondition::RotationOpen`] while another key is staged.
    pub fn stage(&mut self, key: Key, now: Timestamp) -> Result<(), Precondition> {
        self.settle(now);
        if self.position(KeyState::Staged, now).is_some() {
            return Err(Precondition::RotationOpen);
        }
        self.keys.insert(0, key);
        self.settle(now);
        Ok(())
    }

    /// Makes the staged key the active one; the active one signs on for `overlap`.
    ///
    /// # Errors
    /// [`Precondition::NoStagedKey`]; [`Precondition::RotationOpen`] while a key is still retiring,
    /// since a third key would sign.
    pub fn activate(&mut self, overlap: Duration, now: Timestamp) -> Result<(), Precondition> {
        self.settle(now);
        let staged = self.position(KeyState::Staged, now).ok_or(Precondition::NoStagedKey)?;
        if self.position(KeyState::Retiring, now).is_some() {
            return Err(Precondition::RotationOpen);
        }
        if let Some(active) = self.position(KeyState::Active, now) {
            self.keys[active].retire(now + overlap, now);
        }
        self.keys[staged].state = KeyState::Active;
        self.keys[staged].activated_at = Some(now);
        self.pause = None;
        Ok(())
    }

    /// Stage and activate in one step. With `force` an open rotation is ended first: its staged key
    /// is retired unused, its retiring key at once.
    ///
    /// # Errors
    /// [`Precondition::RotationOpen`] while a rotation is open, unless forced.
    pub fn rotate(
        &mut self,
        key: Key,
        overlap: Duration,
        force: bool,
        now: Timestamp,
    ) -> Result<(), Precondition> {
        self.settle(now);
        for state in [KeyState::Staged, KeyState::Retiring] {
            if let Some(open) = self.position(state, now) {
                if !force {
                    return Err(Precondition::RotationOpen);
                }
                self.keys[open].retire(now, now);
            }
        }
        self.stage(key, now)?;
        self.activate(overlap, now)
    }

    /// Makes the key before active again; the one that was active signs on for `overlap`.
    ///
    /// # Errors
    /// [`Precondition::NothingToRollBack`] when no earlier key is left inside the window.
    pub fn rollback(&mut self, overlap: Duration, now: Timestamp) -> Result<(), Precondition> {
        self.settle(now);
        let before = self
            .keys
            .iter()
            .enumerate()
            .filter(|(_, key)| key.can_come_back(now) && key.activated_at.is_some())
            .max_by_key(|(_, key)| (key.state == KeyState::Retiring, key.retire_at))
            .map(|(index, _)| index)
            .ok_or(Precondition::NothingToRollBack)?;
        if let Some(active) = self.position(KeyState::Active, now) {
            self.keys[active].retire(now + overlap, now);
        }
        // A retiring key other than the one that comes back would be a third signer.
        for (index, key) in self.keys.iter_mut().enumerate() {
            if index != before && key.state == KeyState::Retiring && key.activated_at < Some(now) {
                let just_left = key.retire_at == Some(now + overlap);
                if !just_left {
                    key.retire(now, now);
                }
            }
        }
        self.keys[before].state = KeyState::Active;
        self.keys[before].retire_at = None;
        self.keys[before].held = false;
        self.pause = None;
        Ok(())
    }

    /// Destroys the material of one key.
    ///
    /// # Errors
    /// [`Precondition::KeyRevoked`] when it is destroyed already. `Ok(false)` when there is no such key.
    pub fn revoke(
        &mut self,
        id: KeyId,
        reason: &str,
        now: Timestamp,
    ) -> Result<bool, Precondition> {
        self.settle(now);
        let Some(key) = self.keys.iter_mut().find(|key| key.id == id) else {
            return Ok(false);
        };
        if key.state == KeyState::Revoked {
            return Err(Precondition::KeyRevoked);
        }
        key.state = KeyState::Revoked;
        key.secret = None;
        key.retire_at = Some(key.retire_at.map_or(now, |end| end.min(now)));
        key.revoke_reason = Some(reason.to_owned());
        key.held = false;
        self.forget_pause();
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
