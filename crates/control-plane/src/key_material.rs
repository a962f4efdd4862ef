//! Where the material of keys comes from and how it is put away.

use crate::Dependencies;
use turnbuckle_domain::{
    Endpoint, Error, Key, KeyAlgorithm, KeyId, SealContext, SealedSecret, Timestamp,
};
use turnbuckle_signing::{KeyAlgorithm as SigningAlgorithm, SigningKey};
use zeroize::Zeroizing;

/// Bytes of a fresh key: an HMAC key as long as its hash, or an Ed25519 seed.
const FRESH_KEY_BYTES: usize = 32;

/// The key a caller wants.
#[derive(Debug, Clone)]
pub(crate) enum WantedKey {
    /// A fresh one.
    Fresh(KeyAlgorithm),
    /// The caller's own.
    Imported(SigningKey),
}

impl WantedKey {
    /// What it will sign with.
    pub(crate) fn algorithm(&self) -> KeyAlgorithm {
        match self {
            Self::Fresh(algorithm) => *algorithm,
            Self::Imported(key) => algorithm_of(key),
        }
    }

    /// The key itself; a fresh one is made of the operating system's randomness.
    pub(crate) fn make(&self) -> Result<SigningKey, Error> {
        let algorithm = match self {
            Self::Imported(key) => return Ok(key.clone()),
            Self::Fresh(algorithm) => algorithm,
        };
        let mut random = Zeroizing::new([0; FRESH_KEY_BYTES]);
        getrandom::fill(random.as_mut_slice()).map_err(Error::internal)?;
        Ok(match algorithm {
            KeyAlgorithm::HmacSha256 => SigningKey::generate_hmac(&random),
            KeyAlgorithm::Ed25519 => SigningKey::ed25519(&random),
        })
    }
}

/// The domain's word for what a key signs with.
pub(crate) fn algorithm_of(key: &SigningKey) -> KeyAlgorithm {
    match key.algorithm() {
        SigningAlgorithm::HmacSha256 => KeyAlgorithm::HmacSha256,
        SigningAlgorithm::Ed25519 => KeyAlgorithm::Ed25519,
    }
}

impl Dependencies {
    /// A staged key of an endpoint, its material sealed to its place.
    pub(crate) fn seal_key(
        &self,
        endpoint: &Endpoint,
        key: &SigningKey,
        now: Timestamp,
    ) -> Result<Key, Error> {
        let id = KeyId::from_uuid(self.ids.uuid());
        let context = SealContext { tenant: endpoint.tenant, endpoint: endpoint.id, key: id };
        let sealed = self.sealer.seal(context, &key.to_bytes()).map_err(Error::internal)?;
        Ok(Key::staged(id, algorithm_of(key), key.fingerprint(), key.public_text(), sealed, now))
    }
}

impl Dependencies {
    /// What a key would look like, without one being made. A fresh one has no fingerprint yet.
    pub(crate) fn unmade_key(&self, wanted: &WantedKey, now: Timestamp) -> Key {
        let (fingerprint, public_key) = match wanted {
            WantedKey::Fresh(_) => (String::new(), None),
            WantedKey::Imported(key) => (key.fingerprint(), key.public_text()),
        };
        let id = KeyId::from_uuid(self.ids.uuid());
        let nothing = SealedSecret::from_bytes(Vec::new());
        Key::staged(id, wanted.algorithm(), fingerprint, public_key, nothing, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_keys_differ_and_open_again_from_their_bytes() {
        for (algorithm, signing) in [
            (KeyAlgorithm::HmacSha256, SigningAlgorithm::HmacSha256),
            (KeyAlgorithm::Ed25519, SigningAlgorithm::Ed25519),
        ] {
            let wanted = WantedKey::Fresh(algorithm);
            let (first, second) = (wanted.make().unwrap(), wanted.make().unwrap());
            assert_eq!(algorithm_of(&first), algorithm);
            assert_ne!(first.fingerprint(), second.fingerprint());
            let reopened = SigningKey::from_bytes(signing, &first.to_bytes()).unwrap();
            assert_eq!(reopened.fingerprint(), first.fingerprint());
        }
    }

    #[test]
    fn an_imported_key_is_used_as_it_is() {
        let key = SigningKey::generate_hmac(&[7; 32]);
        let wanted = WantedKey::Imported(key.clone());
        assert_eq!(wanted.algorithm(), KeyAlgorithm::HmacSha256);
        assert_eq!(wanted.make().unwrap().fingerprint(), key.fingerprint());
    }
}
