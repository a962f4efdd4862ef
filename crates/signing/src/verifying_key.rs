//! Keys that verify.

use std::fmt;

use ed25519_dalek::ed25519::signature::MultipartVerifier;
use subtle::{Choice, ConstantTimeEq};

use crate::entries::Signature;
use crate::fingerprint;
use crate::key::{ED25519_HALF_BYTES, KeyError, check_hmac_length};
use crate::key_text::{self, KeyText};
use crate::mac::MacKey;
use crate::profile::KeyAlgorithm;

/// The longest secret accepted from a sender who chose it: above every known provider's, and
/// short enough that a pasted file is refused.
pub const MAX_FOREIGN_KEY_BYTES: usize = 512;

/// A key that verifies; wiped on drop, and only its fingerprint is ever printed.
#[derive(Clone)]
pub struct VerifyingKey {
    material: Material,
}

#[derive(Clone)]
enum Material {
    Hmac(MacKey),
    Ed25519(ed25519_dalek::VerifyingKey),
}

impl VerifyingKey {
    /// A key from its text: `whpk_…`, `whsec_…` (prefix optional) or `v1,whsec_…`.
    ///
    /// # Errors
    /// When the text does not decode, or to a key that is not usable; a `whsk_…` private key is
    /// refused, since a receiver should not own one.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        match KeyText::classify(text) {
            KeyText::Hmac(encoded) => {
                Self::from_bytes(KeyAlgorithm::HmacSha256, &key_text::decode(encoded)?)
            }
            KeyText::Public(encoded) => {
                Self::from_bytes(KeyAlgorithm::Ed25519, &key_text::decode(encoded)?)
            }
            KeyText::Private(_) => Err(KeyError::PrivateKeyGiven),
        }
    }

    /// A key from raw bytes: an HMAC secret within our own bounds, or an Ed25519 public key.
    ///
    /// # Errors
    /// When the bytes are no usable key of this algorithm.
    pub fn from_bytes(algorithm: KeyAlgorithm, bytes: &[u8]) -> Result<Self, KeyError> {
        match algorithm {
            KeyAlgorithm::HmacSha256 => {
                check_hmac_length(bytes)?;
                Ok(Self::from_mac_key(MacKey::new(bytes)))
            }
            KeyAlgorithm::Ed25519 => Self::from_public_bytes(bytes),
        }
    }

    /// An HMAC secret that a sender chose, 1 to [`MAX_FOREIGN_KEY_BYTES`] bytes.
    ///
    /// Many providers let their users type a short secret, or use the text of a key as the key.
    /// Such a key can be weaker than ours; prefer [`VerifyingKey::parse`]. The fingerprint of a
    /// guessable secret lets its reader check guesses, as does every signature made with it.
    ///
    /// # Errors
    /// When the secret is empty or too long.
    pub fn foreign_hmac(secret: &[u8]) -> Result<Self, KeyError> {
        match secret.len() {
            0 => Err(KeyError::Empty),
            1..=MAX_FOREIGN_KEY_BYTES => Ok(Self::from_mac_key(MacKey::new(secret))),
            _ => Err(KeyError::TooLong { max: MAX_FOREIGN_KEY_BYTES }),
        }
    }

    /// What the key verifies.
    #[must_use]
    pub fn algorithm(&self) -> KeyAlgorithm {
        match self.material {
            Material::Hmac(_) => KeyAlgorithm::HmacSha256,
            Material::Ed25519(_) => KeyAlgorithm::Ed25519,
        }
    }

    /// The same public name as that of the signing key it belongs to.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        match &self.material {
            Material::Hmac(key) => fingerprint::of_mac_key(key),
            Material::Ed25519(key) => fingerprint::of_public_key(key),
        }
    }

    /// `whpk_…` of an Ed25519 key; an HMAC key has no public form.
    #[must_use]
    pub fn public_text(&self) -> Option<String> {
        match &self.material {
            Material::Hmac(_) => None,
            Material::Ed25519(key) => Some(key_text::encode_public(key.as_bytes())),
        }
    }

    pub(crate) fn from_mac_key(key: MacKey) -> Self {
        Self { material: Material::Hmac(key) }
    }

    /// A public key derived from a seed here, which therefore needs no check.
    pub(crate) fn from_own_public_key(key: ed25519_dalek::VerifyingKey) -> Self {
        Self { material: Material::Ed25519(key) }
    }

    /// Whether any of the signatures is this key's over the concatenated parts.
    ///
    /// Every signature is looked at: neither the time taken nor the work done tells which one
    /// matched, or how far a MAC agreed.
    pub(crate) fn matches_any(&self, parts: &[&[u8]], signatures: &[Signature]) -> Choice {
        let mut matched = Choice::from(0);
        match &self.material {
            Material::Hmac(key) => {
                let expected = key.mac(parts);
                for signature in signatures {
                    if let Signature::Mac(mac) = signature {
                        matched |= expected.ct_eq(mac);
                    }
                }
            }
            Material::Ed25519(key) => {
                for signature in signatures {
                    if let Signature::Ed25519(signature) = signature {
                        // Signature and key are public here, so branching on them tells nothing.
                        let valid = key.multipart_verify(parts, signature).is_ok();
                        matched |= Choice::from(u8::from(valid));
                    }
                }
            }
        }
        matched
    }

    fn from_public_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        if bytes.is_empty() {
            return Err(KeyError::Empty);
        }
        let bytes: &[u8; ED25519_HALF_BYTES] =
            bytes.try_into().map_err(|_| KeyError::WrongLength)?;
        let key =
            ed25519_dalek::VerifyingKey::from_bytes(bytes).map_err(|_| KeyError::BadPublicKey)?;
        // Under a small-order key one signature can fit many messages.
        if key.is_weak() {
            return Err(KeyError::BadPublicKey);
        }
        Ok(Self::from_own_public_key(key))
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyingKey({} {})", self.algorithm(), self.fingerprint())
    }
}
