//! The sender's side.

use std::borrow::{Borrow, Cow};
use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use data_encoding::HEXLOWER;

use crate::headers::{
    HEX_SIGNATURE, HEX_TIMESTAMP, HUB_SIGNATURE, HUB_SIGNATURE_256, HeaderNames, PrefixError,
};
use crate::key::{RawSignature, SigningKey};
use crate::profile::{KeyAlgorithm, Profile};

/// The most keys that sign one request: the active one and, during a rotation, the retiring one.
pub const MAX_SIGNING_KEYS: usize = 2;

/// The longest message id; receivers store it as their idempotency key.
pub const MAX_ID_BYTES: usize = 256;

/// What is signed.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    /// Names the event, the same for every attempt; must not contain a dot.
    pub id: &'a str,
    /// The time of this attempt in Unix seconds; never the time of the event.
    pub timestamp: i64,
    /// The exact bytes sent.
    pub body: &'a [u8],
}

/// What an endpoint may choose about its signature headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignerOptions {
    /// The names of the Standard Webhooks headers; other profiles have fixed names.
    pub names: HeaderNames,
}

impl SignerOptions {
    /// Options with another prefix than `webhook`.
    ///
    /// # Errors
    /// When the prefix cannot be part of a header name.
    pub fn with_prefix(prefix: &str) -> Result<Self, PrefixError> {
        Ok(Self { names: HeaderNames::with_prefix(prefix)? })
    }
}

/// Why nothing was signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// No key was given; nothing may leave unsigned.
    #[error("there is no key to sign with")]
    NoKeys,
    /// More than [`MAX_SIGNING_KEYS`] keys were given.
    #[error("more than {MAX_SIGNING_KEYS} keys were given to sign with")]
    TooManyKeys,
    /// The profile has no place for signatures of such a key.
    #[error("profile {profile} cannot carry {algorithm} signatures")]
    UnsupportedAlgorithm {
        /// The profile asked for.
        profile: Profile,
        /// The algorithm of the key.
        algorithm: KeyAlgorithm,
    },
    /// The id is empty, too long, has a dot, or has characters that do not belong in a header.
    #[error("the message id is not 1 to {MAX_ID_BYTES} visible ASCII characters without a dot")]
    BadId,
    /// The time is before 1970; receivers read digits only.
    #[error("the timestamp is negative")]
    NegativeTimestamp,
    /// The signature library refused; not known to happen.
    #[error("the signature could not be computed")]
    Failed,
}

/// A header to put on the request: lower-case name and value.
pub type SignedHeader = (Cow<'static, str>, String);

/// Text buffers that [`sign_each`] uses again for every message.
#[derive(Default)]
pub struct SignScratch {
    timestamp: String,
    value: String,
}

/// Signs a message: header pairs ready to be put on the request.
///
/// `keys` are newest (active) first; each gives one signature where the profile has room for
/// several. [`Profile::HubSha256`] has not: there only the first key signs.
///
/// # Errors
/// When keys, profile and message do not fit together.
pub fn sign<K: Borrow<SigningKey>>(
    profile: Profile,
    keys: &[K],
    message: &Message<'_>,
    options: &SignerOptions,
) -> Result<Vec<SignedHeader>, SignError> {
    let mut headers = Vec::with_capacity(3);
    let mut scratch = SignScratch::default();
    sign_each(profile, keys, message, options, &mut scratch, |name, value| {
        headers.push((name.clone(), value.to_owned()));
    })?;
    Ok(headers)
}

/// [`sign`] for hot loops: hands each header to `emit` and allocates nothing once `scratch` has
/// grown to the size of a header.
///
/// `emit` is called only after every signature was computed.
///
/// # Errors
/// When keys, profile and message do not fit together.
pub fn sign_each<K: Borrow<SigningKey>>(
    profile: Profile,
    keys: &[K],
    message: &Message<'_>,
    options: &SignerOptions,
    scratch: &mut SignScratch,
    mut emit: impl FnMut(&Cow<'static, str>, &str),
) -> Result<(), SignError> {
    check_keys(profile, keys)?;
    scratch.value.clear();
    match profile {
        Profile::StandardWebhooks => {
            if !is_valid_id(message.id.as_bytes()) {
                return Err(SignError::BadId);
            }
            let timestamp = write_timestamp(&mut scratch.timestamp, message.timestamp)?;
            let id = message.id.as_bytes();
            let parts = [id, b".", timestamp.as_bytes(), b".", message.body];
            append_signatures(&mut scratch.value, keys, &parts, " ", append_standard)?;
            emit(options.names.id(), message.id);
            emit(options.names.timestamp(), timestamp);
            emit(options.names.signature(), &scratch.value);
        }
        Profile::TimestampedHex => {
            let timestamp = write_timestamp(&mut scratch.timestamp, message.timestamp)?;
            let parts = [timestamp.as_bytes(), b".", message.body];
            append_signatures(&mut scratch.value, keys, &parts, ",", |value, signature| {
                append_hex(value, "v1=", signature);
            })?;
            emit(&HEX_TIMESTAMP, timestamp);
            emit(&HEX_SIGNATURE, &scratch.value);
        }
        Profile::HubSha256 => {
            let active = keys.get(..1).unwrap_or_default();
            append_signatures(
                &mut scratch.value,
                active,
                &[message.body],
                "",
                |value, signature| {
                    append_hex(value, "sha256=", signature);
                },
            )?;
            emit(&HUB_SIGNATURE, &scratch.value);
            emit(&HUB_SIGNATURE_256, &scratch.value);
        }
    }
    Ok(())
}

fn check_keys<K: Borrow<SigningKey>>(profile: Profile, keys: &[K]) -> Result<(), SignError> {
    match keys.len() {
        0 => return Err(SignError::NoKeys),
        1..=MAX_SIGNING_KEYS => {}
        _ => return Err(SignError::TooManyKeys),
    }
    let mut algorithms = keys.iter().map(|key| key.borrow().algorithm());
    match algorithms.find(|algorithm| !profile.supports(*algorithm)) {
        Some(algorithm) => Err(SignError::UnsupportedAlgorithm { profile, algorithm }),
        None => Ok(()),
    }
}

/// Whether an id can be sent and signed. A dot would let the borders between id, time and body
/// be moved without changing the signed bytes.
pub(crate) fn is_valid_id(id: &[u8]) -> bool {
    (1..=MAX_ID_BYTES).contains(&id.len())
        && id.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'.')
}

fn write_timestamp(buffer: &mut String, timestamp: i64) -> Result<&str, SignError> {
    if timestamp < 0 {
        return Err(SignError::NegativeTimestamp);
    }
    buffer.clear();
    write!(buffer, "{timestamp}").map_err(|_| SignError::Failed)?;
    Ok(buffer)
}

fn append_signatures<K: Borrow<SigningKey>>(
    value: &mut String,
    keys: &[K],
    parts: &[&[u8]],
    separator: &str,
    append: impl Fn(&mut String, &RawSignature),
) -> Result<(), SignError> {
    for (index, key) in keys.iter().enumerate() {
        if index > 0 {
            value.push_str(separator);
        }
        let signature = key.borrow().sign_parts(parts).ok_or(SignError::Failed)?;
        append(value, &signature);
    }
    Ok(())
}

fn append_standard(value: &mut String, signature: &RawSignature) {
    match signature {
        RawSignature::Mac(mac) => {
            value.push_str("v1,");
            STANDARD.encode_string(mac, value);
        }
        RawSignature::Ed25519(signature) => {
            value.push_str("v1a,");
            STANDARD.encode_string(signature, value);
        }
    }
}

fn append_hex(value: &mut String, tag: &str, signature: &RawSignature) {
    let bytes: &[u8] = match signature {
        RawSignature::Mac(mac) => mac,
        RawSignature::Ed25519(signature) => signature,
    };
    value.push_str(tag);
    HEXLOWER.encode_append(bytes, value);
}
