//! The keys of an endpoint, opened on first use.

use crate::key_meter::RingCounter;
use std::{
    borrow::Borrow,
    sync::{Arc, OnceLock},
};
use turnbuckle_domain::{
    AnswerClass, AttemptOutcome, EndpointId, Key, KeyAlgorithm, KeyId, KeyRing, KeyState,
    SealContext, SecretSealer, Signers, TenantId, Timestamp,
};
use turnbuckle_signing::SigningKey;

/// A key with its material in the clear, in memory that is wiped.
struct OpenKey {
    key: Key,
    material: SigningKey,
}

/// Signs for one endpoint with every key valid at the time, and with no other (I14).
pub struct Signer {
    ring: Arc<KeyRing>,
    tenant: TenantId,
    endpoint: EndpointId,
    sealer: Arc<dyn SecretSealer>,
    counter: Arc<RingCounter>,
    opened: OnceLock<Vec<OpenKey>>,
}

/// Lets a list of open keys stand where the signing crate wants keys.
pub struct SigningRef<'a>(&'a SigningKey);

impl Borrow<SigningKey> for SigningRef<'_> {
    fn borrow(&self) -> &SigningKey {
        self.0
    }
}

impl Signer {
    pub(crate) fn new(
        ring: Arc<KeyRing>,
        tenant: TenantId,
        endpoint: EndpointId,
        sealer: Arc<dyn SecretSealer>,
        counter: Arc<RingCounter>,
    ) -> Self {
        Self { ring, tenant, endpoint, sealer, counter, opened: OnceLock::new() }
    }

    /// The keys that sign now, the active one first. Empty when the endpoint must wait.
    pub fn keys(&self, now: Timestamp) -> Vec<SigningRef<'_>> {
        self.signing(now).into_iter().map(|open| SigningRef(&open.material)).collect()
    }

    /// One key, whatever its state; none when it is not on the ring or does not open.
    pub(crate) fn key(&self, id: KeyId) -> Option<SigningRef<'_>> {
        let open = self.open_keys().iter().find(|open| open.key.id == id)?;
        Some(SigningRef(&open.material))
    }

    /// The ring as it is configured.
    pub(crate) fn ring(&self) -> &KeyRing {
        &self.ring
    }

    /// Counts what came of a request that was signed at this time.
    pub(crate) fn count(&self, now: Timestamp, outcome: &AttemptOutcome) {
        let Some(class) = AnswerClass::of(outcome) else { return };
        let keys = self.signing(now);
        let first = keys.first().map(|open| open.key.id);
        let second = keys.get(1).map(|open| open.key.id);
        if let Some(first) = first {
            self.counter.count(Signers { first, second }, class, now);
        }
    }

    fn signing(&self, now: Timestamp) -> Vec<&OpenKey> {
        let mut keys: Vec<&OpenKey> =
            self.open_keys().iter().filter(|open| open.key.signs_at(now)).collect();
        keys.sort_by_key(|open| open.key.state != KeyState::Active);
        keys
    }

    /// Whether anything can be signed now.
    #[must_use]
    pub fn can_sign(&self, now: Timestamp) -> bool {
        self.open_keys().iter().any(|open| open.key.signs_at(now))
    }

    fn open_keys(&self) -> &[OpenKey] {
        self.opened.get_or_init(|| self.ring.keys.iter().filter_map(|key| self.open(key)).collect())
    }

    /// A key that does not open is reported and left out: signing with fewer keys than configured
    /// is better than not at all only while another key is valid; with none the endpoint waits.
    fn open(&self, key: &Key) -> Option<OpenKey> {
        let sealed = key.secret.as_ref()?;
        let owner = self.endpoint.into();
        let context = SealContext { tenant: self.tenant, owner, key: key.id };
        let algorithm = match key.algorithm {
            KeyAlgorithm::HmacSha256 => turnbuckle_signing::KeyAlgorithm::HmacSha256,
            KeyAlgorithm::Ed25519 => turnbuckle_signing::KeyAlgorithm::Ed25519,
            // Keys of sources, which no ring of an endpoint holds.
            KeyAlgorithm::SharedSecret | KeyAlgorithm::PublicKey => return None,
        };
        let material = match self.sealer.open(context, sealed) {
            Ok(bytes) => SigningKey::from_bytes(algorithm, &bytes).ok(),
            Err(error) => {
                tracing::error!(endpoint.id = %self.endpoint, key.id = %key.id, %error, "key does not open");
                None
            }
        };
        material.map(|material| OpenKey { key: key.clone(), material })
    }
}
