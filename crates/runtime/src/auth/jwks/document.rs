//! A set of keys as published: which of them may check tokens, and how.

use super::{JWKS_SIZE_MAX, JwksError};
use data_encoding::BASE64URL_NOPAD;
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;
use std::{collections::HashMap, sync::Arc};

/// Most keys looked at. Issuers publish two or three, hubs of several issuers some dozens.
const KEYS_MAX: usize = 256;

/// RSA below 2,048 bits is broken, and above 8,192 too slow to check for anyone who asks.
const RSA_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;

/// Public exponents in use are 3 and 65,537; the library takes none above 33 bits.
const RSA_EXPONENT_BYTES_MAX: usize = 4;

/// Length of a coordinate on P-256, and of a key on Curve25519. Checked because the library slices
/// without looking.
const COORDINATE_BYTES: usize = 32;

/// Keys by id.
pub(super) type KeySet = HashMap<String, Arc<DecodingKey>>;

#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

/// The parts of a published key that decide. Everything else, such as certificates and their
/// addresses, is not looked at.
#[derive(Deserialize)]
struct PublishedKey {
    kty: String,
    kid: Option<String>,
    r#use: Option<String>,
    alg: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
    d: Option<IgnoredAny>,
}

/// Reads a set. Keys that are for something else are left out, with the reason in the log: one odd
/// key must not lock everybody out.
pub(super) fn parse(bytes: &[u8], algorithm: Algorithm) -> Result<KeySet, JwksError> {
    if bytes.len() > JWKS_SIZE_MAX {
        return Err(JwksError::TooLarge);
    }
    let document: Document =
        serde_json::from_slice(bytes).map_err(|error| JwksError::Malformed(error.to_string()))?;
    if document.keys.len() > KEYS_MAX {
        return Err(JwksError::Malformed(format!("it has more than {KEYS_MAX} keys")));
    }
    let mut set = KeySet::new();
    for (position, value) in document.keys.into_iter().enumerate() {
        match usable(value, algorithm) {
            Ok((id, key)) => {
                // Of two usable keys with one id the first counts, as for most readers.
                set.entry(id).or_insert_with(|| Arc::new(key));
            }
            Err(reason) => tracing::debug!(position, reason, "a published key is not used"),
        }
    }
    Ok(set)
}

fn usable(value: Value, algorithm: Algorithm) -> Result<(String, DecodingKey), &'static str> {
    let key = PublishedKey::deserialize(value).map_err(|_| "it is malformed")?;
    if key.d.is_some() {
        return Err("it is a private key, so that everybody can sign with it");
    }
    if key.r#use.as_deref().is_some_and(|purpose| purpose != "sig") {
        return Err("it is not for signatures");
    }
    if key.key_ops.as_ref().is_some_and(|ops| !ops.iter().any(|op| op == "verify")) {
        return Err("it is not for verifying");
    }
    let name = format!("{algorithm:?}");
    if key.alg.as_ref().is_some_and(|own| *own != name) {
        return Err("it is for another algorithm");
    }
    let material = material(&key, algorithm)?;
    match key.kid {
        Some(id) if !id.is_empty() => Ok((id, material)),
        Some(_) | None => Err("it has no id"),
    }
}

/// The configured algorithm decides which type of key is looked for; symmetric ones never are.
fn material(key: &PublishedKey, algorithm: Algorithm) -> Result<DecodingKey, &'static str> {
    const STRANGE: &str = "its type or size is not the algorithm's";
    let curve = key.crv.as_deref();
    match (algorithm, key.kty.as_str(), curve) {
        (Algorithm::RS256, "RSA", None) => {
            let (n, e) = (decoded(key.n.as_ref())?, decoded(key.e.as_ref())?);
            let fits = RSA_BYTES.contains(&significant(&n))
                && (1..=RSA_EXPONENT_BYTES_MAX).contains(&significant(&e));
            fits.then(|| DecodingKey::from_rsa_raw_components(&n, &e)).ok_or(STRANGE)
        }
        (Algorithm::ES256, "EC", Some("P-256")) => {
            let (x, y) = (decoded(key.x.as_ref())?, decoded(key.y.as_ref())?);
            let fits = x.len() == COORDINATE_BYTES && y.len() == COORDINATE_BYTES;
            // The mark of an uncompressed point.
            let point = [&[4], x.as_slice(), y.as_slice()].concat();
            fits.then(|| DecodingKey::from_ec_der(&point)).ok_or(STRANGE)
        }
        (Algorithm::EdDSA, "OKP", Some("Ed25519")) => {
            let x = decoded(key.x.as_ref())?;
            (x.len() == COORDINATE_BYTES).then(|| DecodingKey::from_ed_der(&x)).ok_or(STRANGE)
        }
        _ => Err(STRANGE),
    }
}

fn decoded(text: Option<&String>) -> Result<Vec<u8>, &'static str> {
    let text = text.ok_or("a part of it is missing")?;
    BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| "a part of it is not base64url")
}

/// Bytes of a number without leading zeros.
fn significant(number: &[u8]) -> usize {
    number.iter().skip_while(|byte| **byte == 0).count()
}
