//! Keys that sign.

use std::fmt;

use ed25519_dalek::ed25519::signature::MultipartSigner;
use zeroize::Zeroizing;

use crate::fingerprint;
use crate::key_text::{self, HMAC_PREFIX, KeyText, PRIVATE_PREFIX, SecretText};
use crate::mac::{MAC_BYTES, MacKey};
use crate::profile::KeyAlgorithm;
use crate::verifying_key::VerifyingKey;

/// The shortest HMAC key: 192 bits, the lower bound of the Standard Webhooks specification.
pub const MIN_HMAC_KEY_BYTES: usize = 24;

/// The longest HMAC key. The specification says 64; some senders hand out up to 75, which is
/// exactly 100 base64 characters.
pub const MAX_HMAC_KEY_BYTES: usize = 75;

/// Bytes of an Ed25519 seed and of an Ed25519 public key.
pub(crate) const ED25519_HALF_BYTES: usize = 32;

/// Bytes of an Ed25519 private key as written by most tools: seed, then public key.
const ED25519_PAIR_BYTES: usize = 2 * ED25519_HALF_BYTES;

/// Why a key was refused. No variant carries any part of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Nothing there, or a bare prefix.
    #[error("the key is empty")]
    Empty,
    /// Fewer bytes than a safe key has.
    #[error("the key is shorter than {min} bytes")]
    TooShort {
        /// The lower bound.
        min: usize,
    },
    /// More bytes than any known sender uses.
    #[error("the key is longer than {max} bytes")]
    TooLong {
        /// The upper bound.
        max: usize,
    },
    /// The text after the prefix does not decode.
    #[error("the key is not base64 text")]
    NotBase64,
    /// An Ed25519 key of another size than 32 (or 64 for a private key) bytes.
    #[error("an Ed25519 key of this kind has another length")]
    WrongLength,
    /// The public half of a private key does not belong to its seed.
    #[error("the halves of the Ed25519 key do not belong together")]
    HalvesDisagree,
    /// The bytes are no public key, or one that accepts forged signatures.
    #[error("the Ed25519 public key is not usable")]
    BadPublicKey,
    /// A public key where a signing key is needed.
    #[error("a public key cannot sign")]
    PublicKeyGiven,
    /// A private key where a verifying key is needed; a receiver should not own one.
    #[error("a private key was given where the public key is needed")]
    PrivateKeyGiven,
}

/// A key that signs; wiped on drop, and only its fingerprint is ever printed.
#[derive(Clone)]
pub struct SigningKey {
    material: Material,
}

#[derive(Clone)]
enum Material {
    Hmac { secret: Zeroizing<Vec<u8>>, prepared: MacKey },
    // Boxed: it is rarer and larger, and a boxed secret is not copied when the key moves.
    Ed25519(Box<ed25519_dalek::SigningKey>),
}

/// One signature in its raw form.
pub(crate) enum RawSignature {
    Mac([u8; MAC_BYTES]),
    Ed25519([u8; ed25519_dalek::SIGNATURE_LENGTH]),
}

impl SigningKey {
    /// An HMAC key from its raw bytes, [`MIN_HMAC_KEY_BYTES`] to [`MAX_HMAC_KEY_BYTES`] long.
    ///
    /// # Errors
    /// When the length is out of bounds.
    pub fn hmac(secret: &[u8]) -> Result<Self, KeyError> {
        check_hmac_length(secret)?;
        Ok(Self::from_hmac_bytes(secret))
    }

    /// An Ed25519 key from its seed.
    #[must_use]
    pub fn ed25519(seed: &[u8; ED25519_HALF_BYTES]) -> Self {
        let key = Box::new(ed25519_dalek::SigningKey::from_bytes(seed));
        Self { material: Material::Ed25519(key) }
    }

    /// A key from its text: `whsec_…` (prefix optional), `v1,whsec_…` or `whsk_…`.
    ///
    /// Padding and trailing bits of the base64 are not judged. A `whsk_` text holds a 32-byte seed
    /// or 64 bytes of seed and public key, which then must belong together.
    ///
    /// # Errors
    /// When the text does not decode, or to a key that is not usable.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        match KeyText::classify(text) {
            KeyText::Hmac(encoded) => Self::hmac(&key_text::decode(encoded)?),
            KeyText::Private(encoded) => {
                Self::from_bytes(KeyAlgorithm::Ed25519, &key_text::decode(encoded)?)
            }
            KeyText::Public(_) => Err(KeyError::PublicKeyGiven),
        }
    }

    /// A new HMAC key from randomness of the caller, who owns the random source.
    #[must_use]
    pub fn generate_hmac(random: &[u8; 32]) -> Self {
        const { assert!(32 >= MIN_HMAC_KEY_BYTES && 32 <= MAX_HMAC_KEY_BYTES) };
        Self::from_hmac_bytes(random)
    }

    /// A key from what [`SigningKey::to_bytes`] gave.
    ///
    /// # Errors
    /// When the bytes are no key of this algorithm.
    pub fn from_bytes(algorithm: KeyAlgorithm, bytes: &[u8]) -> Result<Self, KeyError> {
        match algorithm {
            KeyAlgorithm::HmacSha256 => Self::hmac(bytes),
            KeyAlgorithm::Ed25519 => Self::from_ed25519_bytes(bytes),
        }
    }

    /// The raw key for encrypted storage: the HMAC secret, or the Ed25519 seed.
    #[must_use]
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        match &self.material {
            Material::Hmac { secret, .. } => secret.clone(),
            Material::Ed25519(key) => Zeroizing::new(key.as_bytes().to_vec()),
        }
    }

    /// What the key computes.
    #[must_use]
    pub fn algorithm(&self) -> KeyAlgorithm {
        match self.material {
            Material::Hmac { .. } => KeyAlgorithm::HmacSha256,
            Material::Ed25519(_) => KeyAlgorithm::Ed25519,
        }
    }

    /// The text to hand to the owner of the key: `whsec_…`, or `whsk_…` with both halves.
    #[must_use]
    pub fn secret_text(&self) -> SecretText {
        match &self.material {
            Material::Hmac { secret, .. } => key_text::encode_secret(HMAC_PREFIX, secret),
            Material::Ed25519(key) => {
                let pair = Zeroizing::new(key.to_keypair_bytes());
                key_text::encode_secret(PRIVATE_PREFIX, pair.as_slice())
            }
        }
    }

    /// `whpk_…` for receivers; an HMAC key has no public form.
    #[must_use]
    pub fn public_text(&self) -> Option<String> {
        self.verifying().public_text()
    }

    /// A short, stable, public name: 16 hex characters that do not lead back to the key.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        match &self.material {
            Material::Hmac { prepared, .. } => fingerprint::of_mac_key(prepared),
            Material::Ed25519(key) => fingerprint::of_public_key(key.as_ref().as_ref()),
        }
    }

    /// The key a receiver needs. For HMAC that is the same secret in another type.
    #[must_use]
    pub fn verifying(&self) -> VerifyingKey {
        match &self.material {
            Material::Hmac { prepared, .. } => VerifyingKey::from_mac_key(prepared.clone()),
            Material::Ed25519(key) => VerifyingKey::from_own_public_key(key.verifying_key()),
        }
    }

    /// Signs the concatenation of the parts; `None` only if the signature library refuses.
    pub(crate) fn sign_parts(&self, parts: &[&[u8]]) -> Option<RawSignature> {
        match &self.material {
            Material::Hmac { prepared, .. } => Some(RawSignature::Mac(prepared.mac(parts))),
            Material::Ed25519(key) => {
                let signature = key.try_multipart_sign(parts).ok()?;
                Some(RawSignature::Ed25519(signature.to_bytes()))
            }
        }
    }

    fn from_hmac_bytes(secret: &[u8]) -> Self {
        Self {
            material: Material::Hmac {
                secret: Zeroizing::new(secret.to_vec()),
                prepared: MacKey::new(secret),
            },
        }
    }

    fn from_ed25519_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        if bytes.len() == ED25519_PAIR_BYTES {
            let (seed, public) = bytes.split_at(ED25519_HALF_BYTES);
            let key = Self::from_ed25519_bytes(seed)?;
            // Signing with a public half of another key would give the seed away.
            return match &key.material {
                Material::Ed25519(pair) if pair.verifying_key().as_bytes() == public => Ok(key),
                _ => Err(KeyError::HalvesDisagree),
            };
        }
        if bytes.is_empty() {
            return Err(KeyError::Empty);
        }
        let seed = bytes.try_into().map_err(|_| KeyError::WrongLength)?;
        Ok(Self::ed25519(seed))
    }
}

/// The bounds of a key that is ours to choose.
pub(crate) fn check_hmac_length(secret: &[u8]) -> Result<(), KeyError> {
    match secret.len() {
        0 => Err(KeyError::Empty),
        1..MIN_HMAC_KEY_BYTES => Err(KeyError::TooShort { min: MIN_HMAC_KEY_BYTES }),
        MIN_HMAC_KEY_BYTES..=MAX_HMAC_KEY_BYTES => Ok(()),
        _ => Err(KeyError::TooLong { max: MAX_HMAC_KEY_BYTES }),
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({} {})", self.algorithm(), self.fingerprint())
    }
}
