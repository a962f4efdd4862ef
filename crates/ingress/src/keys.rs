//! The keys of a source, opened on first use.

use std::sync::OnceLock;
use turnbuckle_domain::{
    Key, KeyRing, KeyState, SealContext, SecretSealer, SourceId, TenantId, Timestamp,
};
use turnbuckle_signing::scheme::{SchemeKey, Verifier};

/// The key ring of a source with what it holds in the clear, in memory that is wiped.
pub(crate) struct SourceKeys {
    ring: KeyRing,
    /// In the order of the ring; none for a key that does not open or has no material any more.
    opened: OnceLock<Vec<Option<SchemeKey>>>,
}

/// A key with its material.
#[derive(Clone, Copy)]
pub(crate) struct OpenKey<'a> {
    pub(crate) key: &'a Key,
    pub(crate) material: &'a SchemeKey,
}

/// What opening takes.
pub(crate) struct Opener<'a> {
    pub(crate) tenant: TenantId,
    pub(crate) source: SourceId,
    pub(crate) verifier: &'a Verifier,
    pub(crate) sealer: &'a dyn SecretSealer,
}

impl SourceKeys {
    pub(crate) const fn new(ring: KeyRing) -> Self {
        Self { ring, opened: OnceLock::new() }
    }

    /// The keys whose signatures are taken now.
    pub(crate) fn accepting(&self, opener: &Opener<'_>, now: Timestamp) -> Vec<OpenKey<'_>> {
        self.with_material(opener, self.ring.accepting(now))
    }

    /// The keys that tell why a signature is not taken.
    pub(crate) fn refusing(&self, opener: &Opener<'_>, now: Timestamp) -> Vec<OpenKey<'_>> {
        self.with_material(opener, self.ring.refusing(now))
    }

    /// Every key that can sign still, but for revoked ones: those only raise alarms.
    pub(crate) fn signing(&self, opener: &Opener<'_>, now: Timestamp) -> Vec<OpenKey<'_>> {
        let keys = self.ring.keys.iter();
        let keys = keys.filter(|key| key.state_at(now) != KeyState::Revoked).collect();
        self.with_material(opener, keys)
    }

    fn with_material<'a>(&'a self, opener: &Opener<'_>, keys: Vec<&'a Key>) -> Vec<OpenKey<'a>> {
        let opened =
            self.opened.get_or_init(|| self.ring.keys.iter().map(|key| opener.open(key)).collect());
        let material = |wanted: &Key| {
            let index = self.ring.keys.iter().position(|key| key.id == wanted.id)?;
            opened.get(index)?.as_ref()
        };
        keys.into_iter()
            .filter_map(|key| material(key).map(|material| OpenKey { key, material }))
            .collect()
    }
}

impl Opener<'_> {
    /// A key that does not open is reported and left out; the others go on.
    fn open(&self, key: &Key) -> Option<SchemeKey> {
        let sealed = key.secret.as_ref()?;
        let owner = self.source.into();
        let context = SealContext { tenant: self.tenant, owner, key: key.id };
        let bytes = self.sealer.open(context, sealed).inspect_err(|error| {
            tracing::error!(source.id = %self.source, key.id = %key.id, %error, "key does not open");
        });
        let bytes = bytes.ok()?;
        let text = std::str::from_utf8(&bytes).ok()?;
        let parsed = self.verifier.key(text).inspect_err(|error| {
            tracing::error!(source.id = %self.source, key.id = %key.id, %error, "key does not fit");
        });
        parsed.ok()
    }
}
