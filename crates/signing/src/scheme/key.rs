//! Keys of a scheme.

use std::fmt;

use base64::Engine;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use data_encoding::HEXLOWER_PERMISSIVE;
use ed25519_dalek::ed25519::signature::MultipartVerifier;
use p256::ecdsa::signature::hazmat::PrehashVerifier;
use p256::pkcs8::DecodePublicKey;
use rsa::traits::PublicKeyParts;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};
use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroizing;

use super::hash::{self, Chunk, MacKind, MacState, Sum};
use super::proof::{Algorithm, KeyDigest, KeyEncoding, KeyRule};
use crate::fingerprint;
use crate::mac::MacKey;

/// The longest text of a key: an RSA public key of 8192 bits in PEM, with room. One that is longer
/// is a pasted file.
pub const MAX_KEY_TEXT_BYTES: usize = 8192;

/// The fewest bits of an RSA key.
const MIN_RSA_BITS: u32 = 2048;

/// Secrets in the wild come unpadded and with non-zero trailing bits, and refusing them would only
/// lock their owners out.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Why a text is no key of a scheme. No variant carries any part of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemeKeyError {
    /// Nothing there, or a bare prefix.
    #[error("the key is empty")]
    Empty,
    /// Longer than [`MAX_KEY_TEXT_BYTES`].
    #[error("the key is longer than {MAX_KEY_TEXT_BYTES} bytes")]
    TooLong,
    /// Fewer bytes after decoding than the scheme demands.
    #[error("the key has fewer than {min} bytes")]
    TooShort {
        /// The lower bound.
        min: u16,
    },
    /// Not written in the encoding of the scheme.
    #[error("the key is not {0} text")]
    Encoding(KeyEncoding),
    /// Decoded, but no usable public key of the algorithm.
    #[error("the key is no usable public key for {0}")]
    PublicKey(&'static str),
    /// A private key where a public one is needed.
    #[error("a private key was given where the public key is needed")]
    PrivateKeyGiven,
    /// The scheme takes its keys from certificates or a key set.
    #[error("this scheme fetches its keys itself")]
    NotFromKeyRing,
}

/// A key that verifies under a scheme; wiped on drop, and only its fingerprint is ever printed.
#[derive(Clone)]
pub struct SchemeKey {
    /// Which of the scheme's algorithms it is for.
    pub(crate) rule: usize,
    material: Material,
    fingerprint: String,
}

#[derive(Clone)]
enum Material {
    Mac(Box<MacState>),
    /// For plain digests and tokens, which need the key itself.
    Secret(Zeroizing<Vec<u8>>),
    Ed25519(Box<ed25519_dalek::VerifyingKey>),
    P256(Box<p256::ecdsa::VerifyingKey>),
    Rsa(Box<rsa::PublicKey>),
}

/// What a key is for, as far as its material goes.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    Mac(MacKind),
    Secret,
    Ed25519,
    P256,
    Rsa,
}

impl Purpose {
    pub(crate) fn of(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::HmacSha1 => Self::Mac(MacKind::Sha1),
            Algorithm::HmacSha256 => Self::Mac(MacKind::Sha256),
            Algorithm::HmacSha384 => Self::Mac(MacKind::Sha384),
            Algorithm::HmacSha512 => Self::Mac(MacKind::Sha512),
            Algorithm::Sha256 | Algorithm::Sha512 | Algorithm::Equality => Self::Secret,
            Algorithm::Ed25519 => Self::Ed25519,
            Algorithm::EcdsaP256Sha256 => Self::P256,
            Algorithm::RsaPkcs1Sha1 | Algorithm::RsaPkcs1Sha256 => Self::Rsa,
        }
    }
}

impl SchemeKey {
    /// A key from its text.
    pub(crate) fn parse(
        rule_index: usize,
        purpose: Purpose,
        rule: &KeyRule,
        text: &str,
    ) -> Result<Self, SchemeKeyError> {
        if text.len() > MAX_KEY_TEXT_BYTES {
            return Err(SchemeKeyError::TooLong);
        }
        // Copied secrets often bring a line end along.
        let text = strip(text.trim_ascii(), &rule.prefixes);
        if text.is_empty() {
            return Err(SchemeKeyError::Empty);
        }
        let bytes = decode(text, rule.encoding)?;
        match purpose {
            Purpose::Mac(_) | Purpose::Secret => secret(rule_index, purpose, rule, bytes),
            Purpose::Ed25519 => Ok(Self::public(rule_index, ed25519(&bytes)?)),
            Purpose::P256 | Purpose::Rsa => Self::from_spki(rule_index, purpose, &bytes),
        }
    }

    fn public(rule: usize, material: Material) -> Self {
        let fingerprint = match &material {
            Material::Ed25519(key) => fingerprint::of_public_key(key),
            Material::P256(key) => {
                fingerprint::of_public_bytes("ecdsa-p256", key.to_sec1_point(false).as_bytes())
            }
            Material::Rsa(key) => fingerprint::of_public_bytes("rsa", &key.n().to_be_bytes()),
            Material::Mac(_) | Material::Secret(_) => String::new(),
        };
        Self { rule, material, fingerprint }
    }

    /// A key from a `SubjectPublicKeyInfo` structure.
    pub(crate) fn from_spki(
        rule: usize,
        purpose: Purpose,
        der: &[u8],
    ) -> Result<Self, SchemeKeyError> {
        let material = match purpose {
            Purpose::P256 => {
                let key = p256::ecdsa::VerifyingKey::from_public_key_der(der)
                    .map_err(|_| SchemeKeyError::PublicKey("ECDSA on P-256"))?;
                Material::P256(Box::new(key))
            }
            Purpose::Rsa => {
                let key = rsa::PublicKey::from_public_key_der(der)
                    .ok()
                    .filter(|key| key.n().bit_width() >= MIN_RSA_BITS)
                    .ok_or(SchemeKeyError::PublicKey("RSA of 2048 bits or more"))?;
                Material::Rsa(Box::new(key))
            }
            Purpose::Ed25519 => ed25519(der)?,
            Purpose::Mac(_) | Purpose::Secret => return Err(SchemeKeyError::NotFromKeyRing),
        };
        Ok(Self::public(rule, material))
    }

    /// A key from the parts that a JSON Web Key has.
    pub(crate) fn from_p256_point(x: &[u8], y: &[u8]) -> Option<Self> {
        let mut point = vec![4];
        point.extend_from_slice(x);
        point.extend_from_slice(y);
        let key = p256::ecdsa::VerifyingKey::from_sec1_bytes(&point).ok()?;
        Some(Self::public(0, Material::P256(Box::new(key))))
    }

    pub(crate) fn from_rsa_numbers(modulus: &[u8], exponent: &[u8]) -> Option<Self> {
        let number = |bytes: &[u8]| {
            let bits = u32::try_from(bytes.len() * 8).ok()?;
            rsa::BoxedUint::from_be_slice(bytes, bits).ok()
        };
        let key = rsa::PublicKey::new(number(modulus)?, number(exponent)?)
            .ok()
            .filter(|key| key.n().bit_width() >= MIN_RSA_BITS)?;
        Some(Self::public(0, Material::Rsa(Box::new(key))))
    }

    pub(crate) fn from_ed25519_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self::public(0, ed25519(bytes).ok()?))
    }

    /// A short, stable, public name: 16 hex characters that do not lead back to the key.
    ///
    /// That of a guessable secret lets its reader check guesses, as does every signature made
    /// with it.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Whether any of the signatures is this key's over the parts.
    ///
    /// Every signature is looked at: neither the time taken nor the work done tells which one
    /// matched, or how far a secret value agreed.
    pub(crate) fn matches<'s>(
        &self,
        algorithm: Algorithm,
        chunks: &[Chunk<'_>],
        signatures: impl Iterator<Item = &'s [u8]>,
    ) -> Choice {
        match (&self.material, algorithm) {
            (Material::Mac(state), _) => equal(&state.sum(chunks), signatures),
            (Material::Secret(bytes), Algorithm::Sha256) => {
                equal(&hash::digest::<Sha256>(chunks, bytes), signatures)
            }
            (Material::Secret(bytes), Algorithm::Sha512) => {
                equal(&hash::digest::<Sha512>(chunks, bytes), signatures)
            }
            (Material::Secret(bytes), _) => equal_token(bytes, signatures),
            // Keys and signatures are public below, so branching on them tells nothing.
            (Material::Ed25519(key), _) => {
                any(signatures, |signature| verify_ed25519(key, chunks, signature))
            }
            (Material::P256(key), _) => {
                let hash = hash::digest::<Sha256>(chunks, &[]);
                any(signatures, |signature| verify_p256_der(key, &hash, signature))
            }
            (Material::Rsa(key), Algorithm::RsaPkcs1Sha1) => {
                let hash = hash::digest::<Sha1>(chunks, &[]);
                any(signatures, |signature| {
                    key.pkcs1v15_verify_prehash::<Sha1>(hash.as_slice(), signature).is_ok()
                })
            }
            (Material::Rsa(key), _) => {
                let hash = hash::digest::<Sha256>(chunks, &[]);
                any(signatures, |signature| {
                    key.pkcs1v15_verify_prehash::<Sha256>(hash.as_slice(), signature).is_ok()
                })
            }
        }
    }

    /// Whether this is the key's signature of a token: as above, but ECDSA comes as two numbers of
    /// fixed size.
    pub(crate) fn matches_token(&self, signed: &[u8], signature: &[u8]) -> Choice {
        let chunks = [Chunk::Bytes(signed.into())];
        if let Material::P256(key) = &self.material {
            let hash = hash::digest::<Sha256>(&chunks, &[]);
            let valid = p256::ecdsa::Signature::from_slice(signature)
                .is_ok_and(|signature| key.verify_prehash(hash.as_slice(), &signature).is_ok());
            return Choice::from(u8::from(valid));
        }
        self.matches(Algorithm::RsaPkcs1Sha256, &chunks, std::iter::once(signature))
    }

    /// Whether signatures can be made with this key: a public one only checks them.
    pub(crate) fn can_sign(&self) -> bool {
        matches!(self.material, Material::Mac(_) | Material::Secret(_))
    }

    /// The signature over the parts, where this key can make it; of a token, the token itself.
    pub(crate) fn signature(&self, algorithm: Algorithm, chunks: &[Chunk<'_>]) -> Option<Vec<u8>> {
        match (&self.material, algorithm) {
            (Material::Mac(state), _) => Some(state.sum(chunks).as_slice().to_vec()),
            (Material::Secret(bytes), Algorithm::Sha256) => {
                Some(hash::digest::<Sha256>(chunks, bytes).as_slice().to_vec())
            }
            (Material::Secret(bytes), Algorithm::Sha512) => {
                Some(hash::digest::<Sha512>(chunks, bytes).as_slice().to_vec())
            }
            (Material::Secret(bytes), _) => Some(bytes.to_vec()),
            _ => None,
        }
    }

    /// A MAC over a value, where the key can make one.
    pub(crate) fn mac(&self, value: &[u8]) -> Option<Sum> {
        match &self.material {
            Material::Mac(state) => Some(state.sum(&[Chunk::Bytes(value.into())])),
            _ => None,
        }
    }

    /// Whether the key is this text; for tokens only.
    pub(crate) fn is_token(&self, value: &[u8]) -> Choice {
        match &self.material {
            Material::Secret(bytes) => equal_token(bytes, std::iter::once(value)),
            _ => Choice::from(0),
        }
    }
}

fn secret(
    rule_index: usize,
    purpose: Purpose,
    rule: &KeyRule,
    bytes: Zeroizing<Vec<u8>>,
) -> Result<SchemeKey, SchemeKeyError> {
    if bytes.len() < usize::from(rule.min_bytes) {
        return Err(SchemeKeyError::TooShort { min: rule.min_bytes });
    }
    let bytes = match rule.digest {
        None => bytes,
        Some(KeyDigest::Sha1) => Zeroizing::new(Sha1::digest(&bytes).to_vec()),
        Some(KeyDigest::Sha256) => Zeroizing::new(Sha256::digest(&bytes).to_vec()),
    };
    let fingerprint = fingerprint::of_mac_key(&MacKey::new(&bytes));
    let material = match purpose {
        Purpose::Mac(kind) => {
            let state = MacState::new(kind, &bytes).ok_or(SchemeKeyError::TooLong)?;
            Material::Mac(Box::new(state))
        }
        _ => Material::Secret(bytes),
    };
    Ok(SchemeKey { rule: rule_index, material, fingerprint })
}

/// 32 bytes, or a structure around them.
fn ed25519(bytes: &[u8]) -> Result<Material, SchemeKeyError> {
    const ERROR: SchemeKeyError = SchemeKeyError::PublicKey("Ed25519");
    let key = match <&[u8; ed25519_dalek::PUBLIC_KEY_LENGTH]>::try_from(bytes) {
        Ok(bytes) => ed25519_dalek::VerifyingKey::from_bytes(bytes).map_err(|_| ERROR)?,
        Err(_) => ed25519_dalek::VerifyingKey::from_public_key_der(bytes).map_err(|_| ERROR)?,
    };
    // Under a small-order key one signature can fit many messages.
    if key.is_weak() { Err(ERROR) } else { Ok(Material::Ed25519(Box::new(key))) }
}

fn strip<'t>(text: &'t str, prefixes: &[String]) -> &'t str {
    prefixes.iter().find_map(|prefix| text.strip_prefix(prefix.as_str())).unwrap_or(text)
}

fn decode(text: &str, encoding: KeyEncoding) -> Result<Zeroizing<Vec<u8>>, SchemeKeyError> {
    let error = SchemeKeyError::Encoding(encoding);
    // The decoders' own errors quote a byte of the secret, so they are dropped.
    let bytes = match encoding {
        KeyEncoding::Utf8 => text.as_bytes().to_vec(),
        KeyEncoding::Hex => HEXLOWER_PERMISSIVE.decode(text.as_bytes()).map_err(|_| error)?,
        KeyEncoding::Base64 | KeyEncoding::SpkiBase64 => LENIENT.decode(text).map_err(|_| error)?,
        KeyEncoding::Pem => super::certificate::public_key_of_pem(text)?,
    };
    Ok(Zeroizing::new(bytes))
}

fn equal<'s>(expected: &Sum, signatures: impl Iterator<Item = &'s [u8]>) -> Choice {
    signatures
        .fold(Choice::from(0), |matched, signature| matched | expected.as_slice().ct_eq(signature))
}

/// Digests are compared, so that not even the length of the secret shows.
fn equal_token<'s>(secret: &[u8], tokens: impl Iterator<Item = &'s [u8]>) -> Choice {
    let expected = Sha384::digest(secret);
    tokens.fold(Choice::from(0), |matched, token| {
        matched | expected.as_slice().ct_eq(Sha384::digest(token).as_slice())
    })
}

fn any<'s>(signatures: impl Iterator<Item = &'s [u8]>, valid: impl Fn(&[u8]) -> bool) -> Choice {
    signatures.fold(Choice::from(0), |matched, signature| {
        matched | Choice::from(u8::from(valid(signature)))
    })
}

fn verify_ed25519(
    key: &ed25519_dalek::VerifyingKey,
    chunks: &[Chunk<'_>],
    signature: &[u8],
) -> bool {
    let Ok(signature) = ed25519_dalek::Signature::from_slice(signature) else {
        return false;
    };
    let parts: Vec<&[u8]> = chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Chunk::Bytes(bytes) => Some(bytes.as_ref()),
            Chunk::Secret => None,
        })
        .collect();
    key.multipart_verify(&parts, &signature).is_ok()
}

fn verify_p256_der(key: &p256::ecdsa::VerifyingKey, hash: &Sum, signature: &[u8]) -> bool {
    p256::ecdsa::Signature::from_der(signature)
        .is_ok_and(|signature| key.verify_prehash(hash.as_slice(), &signature).is_ok())
}

impl fmt::Debug for SchemeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.material {
            Material::Mac(_) => "mac",
            Material::Secret(_) => "secret",
            Material::Ed25519(_) => "ed25519",
            Material::P256(_) => "ecdsa-p256",
            Material::Rsa(_) => "rsa",
        };
        write!(f, "SchemeKey({kind} {})", self.fingerprint())
    }
}
