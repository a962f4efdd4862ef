//! The keys of a source, opened on first use.

use std::{
    sync::{Mutex, OnceLock, PoisonError},
    time::Duration,
};
use tokio::time::Instant;
use turnbuckle_domain::{
    Key, KeyRing, KeyState, SealContext, SecretSealer, SourceId, TenantId, Timestamp,
};
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

    /// Every key that can sign still, but for revoked ones: those only raise alarms.
    pub(crate) fn signing(&self, opener: &Opener<'_>, now: Timestamp) -> Vec<OpenKey<'_>> {
        let keys = self.ring.keys.iter();
        let keys = keys.filter(|key| key.state_at(now) != KeyState::Revoked).collect();
        self.with_material(opener, keys)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use turnbuckle_domain::{KeyAlgorithm, KeyId, SealError, SealedSecret};
    use turnbuckle_signing::scheme;
    use uuid::Uuid;
    use zeroize::Zeroizing;

    /// Keeps secrets in the clear, and may be away.
    #[derive(Default)]
    struct Plain {
        is_away: AtomicBool,
    }

    impl SecretSealer for Plain {
        fn seal(&self, _: SealContext, secret: &[u8]) -> Result<SealedSecret, SealError> {
            Ok(SealedSecret::from_bytes(secret.to_vec()))
        }

        fn open(
            &self,
            _: SealContext,
            sealed: &SealedSecret,
        ) -> Result<Zeroizing<Vec<u8>>, SealError> {
            if self.is_away.load(Ordering::SeqCst) {
                return Err(SealError::Corrupt);
            }
            Ok(Zeroizing::new(sealed.as_bytes().to_vec()))
        }
    }

    fn keys(count: u128) -> SourceKeys {
        let secret = || SealedSecret::from_bytes(b"a secret of thirty-two characters".to_vec());
        let key = |number| {
            let id = KeyId::from_uuid(Uuid::from_u128(number));
            let name = number.to_string();
            Key::staged(id, KeyAlgorithm::HmacSha256, name, None, secret(), Timestamp::EPOCH)
        };
        SourceKeys::new(KeyRing { keys: (0..count).map(key).collect(), ..KeyRing::default() })
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_did_not_open_is_ours_to_mend_and_tried_again() {
        let verifier = Verifier::new(scheme::preset("github").unwrap().scheme.clone()).unwrap();
        let sealer = Plain::default();
        let opener = Opener {
            tenant: TenantId::from_uuid(Uuid::from_u128(1)),
            source: SourceId::from_uuid(Uuid::from_u128(2)),
            verifier: &verifier,
            sealer: &sealer,
        };
        let now = Timestamp::EPOCH;
        assert!(keys(0).unready(&opener, now).is_some());
        let keys = keys(1);
        sealer.is_away.store(true, Ordering::SeqCst);
        assert!(keys.unready(&opener, now).is_some());
        sealer.is_away.store(false, Ordering::SeqCst);
        tokio::time::advance(TRY_AGAIN).await;
        assert!(keys.unready(&opener, now).is_none());
        // What was opened once stays open.
        sealer.is_away.store(true, Ordering::SeqCst);
        assert_eq!(keys.accepting(&opener, now).len(), 1);
    }
}
