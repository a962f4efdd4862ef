//! Keys that verify: the rings of sources.
//!
//! A key must be accepted before its sender uses it, so a staged one is. What a sender still signs with
//! a key that was replaced is taken until the key's time is over, and told apart from then on: a retired
//! key means a sender that missed the change, a revoked one means that somebody has a stolen key.

use super::{Key, KeyRing, KeyState};
use crate::{EndpointId, KeyId, Precondition, SourceId, Timestamp};
use uuid::Uuid;

/// Bounds of rings that verify, each with its reason.
pub mod incoming_limits {
    use std::time::Duration;

    /// How long the key before is accepted when nothing is chosen: a weekend, for the sender's people.
    pub const OVERLAP_DEFAULT: Duration = Duration::from_secs(72 * 3600);
    /// How long the material of a revoked key is kept, sealed, to tell who uses it. Then it is
    /// destroyed by the sweep of the control plane, or with a change of the ring that comes before.
    pub const ALARM_WINDOW: Duration = Duration::from_secs(30 * 24 * 3600);
    /// Keys that requests are held against to say why they are refused, besides those accepted: each
    /// costs a computation for a request that may be hostile.
    pub const REFUSED_TRIED: usize = 3;
}

/// Whose ring it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyOwner {
    /// Its keys sign.
    Endpoint(EndpointId),
    /// Its keys verify.
    Source(SourceId),
}

impl KeyOwner {
    /// Its id, whatever it is.
    #[must_use]
    pub const fn uuid(self) -> Uuid {
        match self {
            Self::Endpoint(id) => id.uuid(),
            Self::Source(id) => id.uuid(),
        }
    }
}

impl From<EndpointId> for KeyOwner {
    fn from(endpoint: EndpointId) -> Self {
        Self::Endpoint(endpoint)
    }
}

impl From<SourceId> for KeyOwner {
    fn from(source: SourceId) -> Self {
        Self::Source(source)
    }
}

/// What a valid signature of a source's key is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// The request is theirs: the key is staged or active.
    Accepted,
    /// The request is theirs; the key is retiring, which is counted and warned of.
    Retiring {
        /// The request after this time is refused.
        until: Timestamp,
    },
    /// Refused, with a reason of its own: the key is retired.
    Retired,
    /// Refused and alarmed: the key is revoked.
    Revoked,
}

impl Acceptance {
    /// Whether the request is taken.
    #[must_use]
    pub const fn is_accepted(self) -> bool {
        matches!(self, Self::Accepted | Self::Retiring { .. })
    }
}

impl Key {
    /// What its valid signature is worth now, on the ring of a source.
    #[must_use]
    pub fn acceptance_at(&self, now: Timestamp) -> Acceptance {
        match (self.state_at(now), self.retire_at) {
            (KeyState::Staged | KeyState::Active, _) => Acceptance::Accepted,
            (KeyState::Retiring, Some(until)) => Acceptance::Retiring { until },
            // A retiring key always has its time.
            (KeyState::Retiring | KeyState::Retired, _) => Acceptance::Retired,
            (KeyState::Revoked, _) => Acceptance::Revoked,
        }
    }

    /// Destroys material that was kept for the alarm only, when its time is over.
    pub(super) fn forget(&mut self, now: Timestamp) {
        let over = self.retire_at.is_some_and(|end| now.since(end) > incoming_limits::ALARM_WINDOW);
        if self.state == KeyState::Revoked && over {
            self.secret = None;
        }
    }
}

impl KeyRing {
    /// The keys that are accepted now: active, staged, retiring. Never more than three.
    #[must_use]
    pub fn accepting(&self, now: Timestamp) -> Vec<&Key> {
        let accepted = |key: &&Key| key.acceptance_at(now).is_accepted();
        let mut keys: Vec<&Key> = self.keys.iter().filter(accepted).collect();
        keys.sort_by_key(|key| match key.state {
            KeyState::Active => 0,
            KeyState::Staged => 1,
            KeyState::Retiring | KeyState::Retired | KeyState::Revoked => 2,
        });
        keys
    }

    /// Keys that tell why a request is refused: revoked ones first, of each kind the newest. Never more
    /// than [`incoming_limits::REFUSED_TRIED`].
    #[must_use]
    pub fn refusing(&self, now: Timestamp) -> Vec<&Key> {
        let refused = |key: &&Key| !key.acceptance_at(now).is_accepted() && key.secret.is_some();
        let mut keys: Vec<&Key> = self.keys.iter().filter(refused).collect();
        keys.sort_by_key(|key| (key.state != KeyState::Revoked, std::cmp::Reverse(key.retire_at)));
        keys.truncate(incoming_limits::REFUSED_TRIED);
        keys
    }

    /// Ends one key of a source at once. Its material is kept, sealed, for
    /// [`incoming_limits::ALARM_WINDOW`], so that its use can raise the alarm.
    ///
    /// # Errors
    /// [`Precondition::KeyRevoked`] when it is revoked already. `Ok(false)` when there is no such key.
    pub fn revoke_incoming(
        &mut self,
        id: KeyId,
        reason: &str,
        now: Timestamp,
    ) -> Result<bool, Precondition> {
        let material = self.keys.iter().find(|key| key.id == id).and_then(|key| key.secret.clone());
        let found = self.revoke(id, reason, now)?;
        if let Some(key) = self.keys.iter_mut().find(|key| key.id == id) {
            // From now, whatever its time was before: the alarm begins with the revocation.
            key.retire_at = Some(now);
            key.secret = material;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
