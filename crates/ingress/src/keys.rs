//! The keys of a source, opened on first use.

use std::{
    sync::{Mutex, OnceLock, PoisonError},
    time::Duration,
};
use tokio::time::Instant;
use turnbuckle_domain::{Key, KeyRing, SealContext, SecretSealer, SourceId, TenantId, Timestamp};
use turnbuckle_signing::scheme::{SchemeKey, Verifier};

/// Pause before a key that did not open is tried again: what opens keys may have been away, and each
/// try is a line of the log.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// The key ring of a source with what it holds in the clear, in memory that is wiped.
pub(crate) struct SourceKeys {
    ring: KeyRing,
    /// In the order of the ring.
    opened: Vec<Opened>,
}

/// What a key holds, once it has been opened.
#[derive(Default)]
struct Opened {
    material: OnceLock<SchemeKey>,
    failed_at: Mutex<Option<Instant>>,
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
    pub(crate) fn new(ring: KeyRing) -> Self {
        let opened = ring.keys.iter().map(|_| Opened::default()).collect();
        Self { ring, opened }
    }

    /// Why no signature can be judged here now, if that is so: a key that is taken does not open, or
    /// there has never been one. Whoever sends can do nothing about either.
    pub(crate) fn unready(&self, opener: &Opener<'_>, now: Timestamp) -> Option<&'static str> {
        if self.ring.keys.is_empty() && !opener.verifier.scheme().fetches_keys() {
            return Some("its source has no key yet");
        }
        let wanted = self.ring.accepting(now);
        let opens = self.with_material(opener, wanted.clone()).len();
        (opens < wanted.len()).then_some("a key of its source does not open here")
    }

    /// The keys whose signatures are taken now.
    pub(crate) fn accepting(&self, opener: &Opener<'_>, now: Timestamp) -> Vec<OpenKey<'_>> {
        self.with_material(opener, self.ring.accepting(now))
    }

    /// The keys that tell why a signature is not taken.
    pub(crate) fn refusing(&self, opener: &Opener<'_>, now: Timestamp) -> Vec<OpenKey<'_>> {
        self.with_material(opener, self.ring.refusing(now))
    }

    fn with_material<'a>(&'a self, opener: &Opener<'_>, keys: Vec<&'a Key>) -> Vec<OpenKey<'a>> {
        let material = |wanted: &Key| {
            let index = self.ring.keys.iter().position(|key| key.id == wanted.id)?;
            self.opened.get(index)?.material(opener, self.ring.keys.get(index)?)
        };
        keys.into_iter()
            .filter_map(|key| material(key).map(|material| OpenKey { key, material }))
            .collect()
    }
}

impl Opened {
    fn material(&self, opener: &Opener<'_>, key: &Key) -> Option<&SchemeKey> {
        if let Some(material) = self.material.get() {
            return Some(material);
        }
        let mut failed_at = self.failed_at.lock().unwrap_or_else(PoisonError::into_inner);
        if failed_at.is_some_and(|at| at.elapsed() < TRY_AGAIN) {
            return None;
        }
        match opener.open(key) {
            Some(material) => Some(self.material.get_or_init(|| material)),
            None => {
                *failed_at = Some(Instant::now());
                None
            }
        }
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
