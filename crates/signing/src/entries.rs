//! Signature headers taken apart.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use data_encoding::HEXLOWER_PERMISSIVE;

use crate::mac::MAC_BYTES;
use crate::verify::VerifyError;

/// The most signatures one request may carry: two keys, two algorithms, two header names.
///
/// Each costs a comparison, an Ed25519 one some 50 µs for each key, so the number bounds what a
/// stranger can make a receiver compute.
pub const MAX_SIGNATURES: usize = 8;

/// The most bytes of signature headers looked at: [`MAX_SIGNATURES`] of the longest kind (92)
/// with room for entries of unknown kinds.
pub const MAX_SIGNATURE_HEADER_BYTES: usize = 4096;

/// A MAC in padded base64.
const MAC_BASE64_CHARS: usize = MAC_BYTES.div_ceil(3) * 4;
/// A MAC in hex.
const MAC_HEX_CHARS: usize = MAC_BYTES * 2;
/// An Ed25519 signature in padded base64.
const ED25519_BASE64_CHARS: usize = ed25519_dalek::SIGNATURE_LENGTH.div_ceil(3) * 4;

/// A signature of the right kind and length; whether it is right is not known yet.
pub(crate) enum Signature {
    Mac([u8; MAC_BYTES]),
    Ed25519(Box<ed25519_dalek::Signature>),
}

/// How the values of a profile's signature headers are read.
#[derive(Clone, Copy)]
pub(crate) enum Syntax {
    /// `v1,<base64> v1a,<base64> …`
    Standard,
    /// `v1=<hex>,v1=<hex>,…`
    Hex,
    /// `sha256=<hex>`, one in each value.
    Hub,
}

/// The well-formed signatures of all values; everything else is skipped, so that a malformed or
/// unknown entry can never hide a later good one.
pub(crate) fn parse(values: &[&[u8]], syntax: Syntax) -> Result<Vec<Signature>, VerifyError> {
    let length: usize = values.iter().map(|value| value.len()).sum();
    if length > MAX_SIGNATURE_HEADER_BYTES {
        return Err(VerifyError::SignatureHeaderTooLong);
    }
    let mut signatures = Vec::new();
    for value in values {
        match syntax {
            Syntax::Standard => value
                .split(|byte| *byte == b' ')
                .for_each(|entry| signatures.extend(standard_entry(entry))),
            Syntax::Hex => value
                .split(|byte| *byte == b',')
                .for_each(|entry| signatures.extend(hex_entry(entry.trim_ascii(), b"v1="))),
            Syntax::Hub => signatures.extend(hex_entry(value, b"sha256=")),
        }
    }
    match signatures.len() {
        0 => Err(VerifyError::NoUsableSignature),
        1..=MAX_SIGNATURES => Ok(signatures),
        _ => Err(VerifyError::TooManySignatures),
    }
}

fn standard_entry(entry: &[u8]) -> Option<Signature> {
    if let Some(encoded) = entry.strip_prefix(b"v1,") {
        let mac = decode_base64::<MAC_BASE64_CHARS, MAC_BYTES>(encoded)?;
        return Some(Signature::Mac(mac));
    }
    let encoded = entry.strip_prefix(b"v1a,")?;
    let bytes =
        decode_base64::<ED25519_BASE64_CHARS, { ed25519_dalek::SIGNATURE_LENGTH }>(encoded)?;
    let signature = ed25519_dalek::Signature::from_bytes(&bytes);
    Some(Signature::Ed25519(Box::new(signature)))
}

fn hex_entry(entry: &[u8], tag: &[u8]) -> Option<Signature> {
    let encoded = entry.strip_prefix(tag)?;
    if encoded.len() != MAC_HEX_CHARS {
        return None;
    }
    let mut mac = [0; MAC_BYTES];
    // Permissive about case only: both cases are in use among senders.
    HEXLOWER_PERMISSIVE.decode_mut(encoded, &mut mac).ok()?;
    Some(Signature::Mac(mac))
}

/// Strict decoding: exact length, padding and zero trailing bits, so each value has one spelling.
fn decode_base64<const CHARS: usize, const BYTES: usize>(encoded: &[u8]) -> Option<[u8; BYTES]> {
    if encoded.len() != CHARS {
        return None;
    }
    // The decoder wants room for its estimate, which is up to two bytes above the real length.
    let mut buffer = [0_u8; ED25519_BASE64_CHARS];
    let length = STANDARD.decode_slice(encoded, &mut buffer).ok()?;
    buffer[..length].try_into().ok()
}
