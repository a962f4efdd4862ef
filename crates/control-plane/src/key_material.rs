//! Where the material of keys comes from and how it is put away.

use crate::{Dependencies, key_owner::Owner, verification};
use turnbuckle_domain::{
    Endpoint, Error, Key, KeyAlgorithm, KeyId, KeyOwner, SealContext, SealedSecret, Source,
    TenantId, Timestamp,
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
    /// A fresh secret of a source.
    FreshSecret,
    /// What the sender of a source shows: a secret or a public key, by the source's scheme.
    Given {
        /// As it is shown.
        text: KeyText,
        /// What the caller says it is.
        asked: Option<KeyAlgorithm>,
    },
}

impl WantedKey {
    /// What it will sign with.
    pub(crate) fn algorithm(&self) -> KeyAlgorithm {
        match self {
            Self::Fresh(algorithm) => *algorithm,
            Self::Imported(key) => algorithm_of(key),
            Self::FreshSecret => KeyAlgorithm::SharedSecret,
            Self::Given { asked, .. } => asked.unwrap_or(KeyAlgorithm::SharedSecret),
        }
    }

    /// The key itself; a fresh one is made of the operating system's randomness.
    pub(crate) fn make(&self) -> Result<SigningKey, Error> {
        let algorithm = match self {
            Self::Imported(key) => return Ok(key.clone()),
            Self::Fresh(algorithm) => algorithm,
            Self::FreshSecret | Self::Given { .. } => return Err(not_signing()),
        };
        let mut random = Zeroizing::new([0; FRESH_KEY_BYTES]);
        getrandom::fill(random.as_mut_slice()).map_err(Error::internal)?;
        Ok(match algorithm {
            KeyAlgorithm::HmacSha256 => SigningKey::generate_hmac(&random),
            KeyAlgorithm::Ed25519 => SigningKey::ed25519(&random),
            KeyAlgorithm::SharedSecret | KeyAlgorithm::PublicKey => return Err(not_signing()),
        })
    }
}

/// Requests are read so that this cannot happen.
fn not_signing() -> Error {
    Error::internal("a key of a source was asked for an endpoint")
}

/// The domain's word for what a key signs with.
pub(crate) fn algorithm_of(key: &SigningKey) -> KeyAlgorithm {
    match key.algorithm() {
        SigningAlgorithm::HmacSha256 => KeyAlgorithm::HmacSha256,
        SigningAlgorithm::Ed25519 => KeyAlgorithm::Ed25519,
    }
}

/// A key's own text, wiped when it goes; shown in one answer at most.
#[derive(Clone)]
pub(crate) struct KeyText(Zeroizing<String>);

impl KeyText {
    pub(crate) const fn new(text: Zeroizing<String>) -> Self {
        Self(text)
    }

    /// The text of a key that signs.
    pub(crate) fn signing(key: &SigningKey) -> Self {
        Self(Zeroizing::new(key.secret_text().expose().to_owned()))
    }

    /// The text itself. Every call is a place to review.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for KeyText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyText(redacted)")
    }
}

/// A key as its owner will use it.
pub(crate) struct Material {
    pub(crate) algorithm: KeyAlgorithm,
    pub(crate) fingerprint: String,
    public_key: Option<String>,
    bytes: Zeroizing<Vec<u8>>,
    /// For the answer that makes the key; none when its owner gave it.
    pub(crate) shown: Option<KeyText>,
}

impl Material {
    fn signing(key: &SigningKey) -> Self {
        Self {
            algorithm: algorithm_of(key),
            fingerprint: key.fingerprint(),
            public_key: key.public_text(),
            bytes: key.to_bytes(),
            shown: Some(KeyText::signing(key)),
        }
    }

    fn verifying(
        source: &Source,
        text: &KeyText,
        asked: Option<KeyAlgorithm>,
    ) -> Result<Self, Error> {
        let verifier = verification::verifier(&source.scheme)?;
        let text = text.expose().trim_ascii();
        let fit = verification::fit_key(&verifier, text, asked)?;
        let public = fit.kind == KeyAlgorithm::PublicKey;
        Ok(Self {
            algorithm: fit.kind,
            fingerprint: fit.fingerprint,
            public_key: public.then(|| text.to_owned()),
            bytes: Zeroizing::new(text.as_bytes().to_vec()),
            shown: None,
        })
    }
}

/// Where the key of an owner is sealed to.
pub(crate) const fn context((tenant, owner): (TenantId, KeyOwner), key: KeyId) -> SealContext {
    SealContext { tenant, owner, key }
}

impl Dependencies {
    /// The key an owner wants. What a source's key must be, its scheme says.
    pub(crate) fn material(&self, owner: &Owner, wanted: &WantedKey) -> Result<Material, Error> {
        match (owner, wanted) {
            (Owner::Source(source), WantedKey::Given { text, asked }) => {
                Material::verifying(source, text, *asked)
            }
            (Owner::Source(source), _) => {
                let scheme = verification::scheme(&source.scheme)?;
                let text = KeyText(verification::fresh_secret(&scheme)?);
                let made = Material::verifying(source, &text, None)?;
                Ok(Material { shown: Some(text), ..made })
            }
            (Owner::Endpoint(_), wanted) => Ok(Material::signing(&wanted.make()?)),
        }
    }

    /// A staged key, its material sealed to its place.
    pub(crate) fn seal(
        &self,
        owner: (TenantId, KeyOwner),
        material: &Material,
        now: Timestamp,
    ) -> Result<Key, Error> {
        let id = KeyId::from_uuid(self.ids.uuid());
        let sealed = self.sealer.seal(context(owner, id), &material.bytes);
        let sealed = sealed.map_err(Error::internal)?;
        let (fingerprint, public_key) = (material.fingerprint.clone(), material.public_key.clone());
        Ok(Key::staged(id, material.algorithm, fingerprint, public_key, sealed, now))
    }

    /// A staged key of an endpoint, its material sealed to its place.
    pub(crate) fn seal_key(
        &self,
        endpoint: &Endpoint,
        key: &SigningKey,
        now: Timestamp,
    ) -> Result<Key, Error> {
        self.seal((endpoint.tenant, endpoint.id.into()), &Material::signing(key), now)
    }

    /// What a key would look like, without one being made. A fresh one has no fingerprint yet.
    pub(crate) fn unmade_key(
        &self,
        owner: &Owner,
        wanted: &WantedKey,
        now: Timestamp,
    ) -> Result<Key, Error> {
        let (algorithm, fingerprint, public_key) = match (owner, wanted) {
            (Owner::Endpoint(_), WantedKey::Fresh(algorithm)) => (*algorithm, String::new(), None),
            (Owner::Source(source), WantedKey::FreshSecret) => {
                // Says what is in the way; what it makes is dropped.
                drop(verification::fresh_secret(&verification::scheme(&source.scheme)?)?);
                (KeyAlgorithm::SharedSecret, String::new(), None)
            }
            (owner, wanted) => {
                let material = self.material(owner, wanted)?;
                (material.algorithm, material.fingerprint, material.public_key)
            }
        };
        let id = KeyId::from_uuid(self.ids.uuid());
        let nothing = SealedSecret::from_bytes(Vec::new());
        Ok(Key::staged(id, algorithm, fingerprint, public_key, nothing, now))
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
