//! The receiver's side.

use std::borrow::{Borrow, Cow};
use std::fmt;

use crate::entries::{self, MAX_SIGNATURE_HEADER_BYTES, MAX_SIGNATURES, Signature, Syntax};
use crate::headers::{
    HEX_SIGNATURE, HEX_TIMESTAMP, HUB_SIGNATURE, HUB_SIGNATURE_256, HeaderNames, HeaderSource,
    PrefixError,
};
use crate::profile::Profile;
use crate::sign::{MAX_ID_BYTES, is_valid_id};
use crate::verifying_key::VerifyingKey;

/// The most keys tried on one request: staged, active and retiring.
pub const MAX_VERIFYING_KEYS: usize = 3;

/// How old a request may be, in seconds: what every Standard Webhooks library allows.
pub const DEFAULT_MAX_AGE_SECONDS: u64 = 300;

/// How far ahead of our clock a request may be, in seconds. Much less than the age: only clock
/// error makes a request come from the future, and a wide window doubles the life of a replay.
pub const DEFAULT_MAX_FUTURE_SECONDS: u64 = 60;

const DEFAULT_PREFIXES: &[HeaderNames] = &[HeaderNames::WEBHOOK, HeaderNames::SVIX];

/// What a receiver decides; never taken from the request.
#[derive(Clone, Debug)]
pub struct VerifyOptions {
    /// The receiver's time in Unix seconds.
    pub now_unix: i64,
    /// The greatest age accepted, in seconds; exactly this age still passes.
    pub max_age: u64,
    /// The farthest future accepted, in seconds; exactly this far still passes.
    pub max_future: u64,
    /// Header names accepted under Standard Webhooks, in order of preference. The first set whose
    /// signature header is present is used alone; sets are never mixed.
    pub prefixes: Cow<'static, [HeaderNames]>,
}

impl VerifyOptions {
    /// The defaults at a given time: 300 s old, 60 s ahead, prefixes `webhook` and `svix`.
    #[must_use]
    pub const fn at(now_unix: i64) -> Self {
        Self {
            now_unix,
            max_age: DEFAULT_MAX_AGE_SECONDS,
            max_future: DEFAULT_MAX_FUTURE_SECONDS,
            prefixes: Cow::Borrowed(DEFAULT_PREFIXES),
        }
    }

    /// The same with other prefixes.
    ///
    /// # Errors
    /// When a prefix cannot be part of a header name.
    pub fn with_prefixes(mut self, prefixes: &[&str]) -> Result<Self, PrefixError> {
        let names: Result<Vec<_>, _> =
            prefixes.iter().map(|prefix| HeaderNames::with_prefix(prefix)).collect();
        self.prefixes = Cow::Owned(names?);
        Ok(self)
    }
}

/// An authentic request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The first of the given keys that signed it.
    pub key_index: usize,
    /// The signed message id, where the profile signs one.
    pub id: Option<String>,
    /// The signed time of the attempt in Unix seconds, where the profile signs one.
    pub timestamp: Option<i64>,
}

/// One of the headers a profile needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderPart {
    /// The message id.
    Id,
    /// The time of the attempt.
    Timestamp,
    /// The signatures.
    Signature,
}

impl fmt::Display for HeaderPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Id => "id",
            Self::Timestamp => "timestamp",
            Self::Signature => "signature",
        })
    }
}

/// Why a request was refused: for the operator's logs and metrics.
///
/// **The caller of the endpoint must get one constant answer for all of them** (401, same body).
/// Telling a stranger which check failed helps only an attacker. No variant holds bytes of the
/// request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// No key was given.
    #[error("there is no key to verify with")]
    NoKeys,
    /// More than [`MAX_VERIFYING_KEYS`] keys were given.
    #[error("more than {MAX_VERIFYING_KEYS} keys were given to verify with")]
    TooManyKeys,
    /// None of the keys can verify under this profile.
    #[error("no key of an algorithm that profile {0} uses")]
    NoUsableKey(Profile),
    /// A header the profile needs is not there.
    #[error("the {0} header is missing")]
    MissingHeader(HeaderPart),
    /// A header that must be single came more than once.
    #[error("the {0} header came more than once")]
    RepeatedHeader(HeaderPart),
    /// The id is empty, too long, has a dot or unprintable characters.
    #[error("the id is not 1 to {MAX_ID_BYTES} visible ASCII characters without a dot")]
    MalformedId,
    /// The timestamp is not a plain decimal number.
    #[error("the timestamp is not a plain number of seconds")]
    MalformedTimestamp,
    /// The signature headers are longer than any honest sender's.
    #[error("the signature headers have more than {MAX_SIGNATURE_HEADER_BYTES} bytes")]
    SignatureHeaderTooLong,
    /// There is a signature header, but no entry of a known kind and form in it.
    #[error("there is no well-formed signature of a known kind")]
    NoUsableSignature,
    /// More signatures than any honest sender makes.
    #[error("there are more than {MAX_SIGNATURES} signatures")]
    TooManySignatures,
    /// No signature fits any key: wrong key, changed bytes, or forged.
    #[error("no signature fits any key")]
    Mismatch,
    /// Authentic, but too old: delayed or replayed.
    #[error("the request is authentic but {age} s old")]
    TooOld {
        /// Seconds since it was signed.
        age: u64,
    },
    /// Authentic, but from the future: a clock is wrong.
    #[error("the request is authentic but {ahead} s ahead of the clock")]
    TooNew {
        /// Seconds until its time comes.
        ahead: u64,
    },
}

impl VerifyError {
    /// A short constant name, fit for a metric label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoKeys => "no_keys",
            Self::TooManyKeys => "too_many_keys",
            Self::NoUsableKey(_) => "no_usable_key",
            Self::MissingHeader(_) => "missing_header",
            Self::RepeatedHeader(_) => "repeated_header",
            Self::MalformedId => "malformed_id",
            Self::MalformedTimestamp => "malformed_timestamp",
            Self::SignatureHeaderTooLong => "signature_header_too_long",
            Self::NoUsableSignature => "no_usable_signature",
            Self::TooManySignatures => "too_many_signatures",
            Self::Mismatch => "mismatch",
            Self::TooOld { .. } => "too_old",
            Self::TooNew { .. } => "too_new",
        }
    }
}

/// The signed facts of a request besides its body, as received.
struct Envelope<'h> {
    id: Option<&'h str>,
    timestamp: Option<Timestamp<'h>>,
    signatures: Vec<Signature>,
}

/// The number for the window, the text for the signature: printing the number again could give
/// another text than the one that was signed.
#[derive(Clone, Copy)]
struct Timestamp<'h> {
    text: &'h [u8],
    seconds: i64,
}

/// Verifies a request over the exact bytes received, before anything parses them.
///
/// Every key is tried on every signature in the same way. The signature is judged before the
/// time, so [`VerifyError::TooOld`] and [`VerifyError::TooNew`] mean an authentic request.
///
/// # Errors
/// When the request is not proven authentic and fresh; see [`VerifyError`] on what to tell whom.
pub fn verify<K: Borrow<VerifyingKey>>(
    profile: Profile,
    keys: &[K],
    headers: &dyn HeaderSource,
    body: &[u8],
    options: &VerifyOptions,
) -> Result<Verified, VerifyError> {
    check_keys(profile, keys)?;
    let envelope = match profile {
        Profile::StandardWebhooks => read_standard(headers, &options.prefixes)?,
        Profile::TimestampedHex => read_hex(headers)?,
        Profile::HubSha256 => read_hub(headers)?,
    };
    let key_index = find_key(keys, &envelope, body).ok_or(VerifyError::Mismatch)?;
    if let Some(timestamp) = envelope.timestamp {
        check_window(timestamp.seconds, options)?;
    }
    Ok(Verified {
        key_index,
        id: envelope.id.map(str::to_owned),
        timestamp: envelope.timestamp.map(|timestamp| timestamp.seconds),
    })
}

fn check_keys<K: Borrow<VerifyingKey>>(profile: Profile, keys: &[K]) -> Result<(), VerifyError> {
    match keys.len() {
        0 => return Err(VerifyError::NoKeys),
        1..=MAX_VERIFYING_KEYS => {}
        _ => return Err(VerifyError::TooManyKeys),
    }
    if keys.iter().any(|key| profile.supports(key.borrow().algorithm())) {
        Ok(())
    } else {
        Err(VerifyError::NoUsableKey(profile))
    }
}

fn read_standard<'h>(
    headers: &'h dyn HeaderSource,
    prefixes: &[HeaderNames],
) -> Result<Envelope<'h>, VerifyError> {
    let (names, values) = prefixes
        .iter()
        .map(|names| (names, headers.get_all(names.signature())))
        .find(|(_, values)| !values.is_empty())
        .ok_or(VerifyError::MissingHeader(HeaderPart::Signature))?;
    let id = single(headers, names.id(), HeaderPart::Id)?;
    Ok(Envelope {
        id: Some(parse_id(id)?),
        timestamp: Some(read_timestamp(headers, names.timestamp())?),
        signatures: entries::parse(&values, Syntax::Standard)?,
    })
}

fn read_hex(headers: &dyn HeaderSource) -> Result<Envelope<'_>, VerifyError> {
    let values = present(headers.get_all(&HEX_SIGNATURE))?;
    Ok(Envelope {
        id: None,
        timestamp: Some(read_timestamp(headers, &HEX_TIMESTAMP)?),
        signatures: entries::parse(&values, Syntax::Hex)?,
    })
}

fn read_hub(headers: &dyn HeaderSource) -> Result<Envelope<'_>, VerifyError> {
    let mut values = headers.get_all(&HUB_SIGNATURE_256);
    values.extend(headers.get_all(&HUB_SIGNATURE));
    Ok(Envelope {
        id: None,
        timestamp: None,
        signatures: entries::parse(&present(values)?, Syntax::Hub)?,
    })
}

fn present(values: Vec<&[u8]>) -> Result<Vec<&[u8]>, VerifyError> {
    if values.is_empty() {
        return Err(VerifyError::MissingHeader(HeaderPart::Signature));
    }
    Ok(values)
}

/// A second value could be read by someone else in the chain, so it is refused, not ignored.
fn single<'h>(
    headers: &'h dyn HeaderSource,
    name: &str,
    part: HeaderPart,
) -> Result<&'h [u8], VerifyError> {
    match headers.get_all(name).as_slice() {
        [] => Err(VerifyError::MissingHeader(part)),
        [value] => Ok(value),
        _ => Err(VerifyError::RepeatedHeader(part)),
    }
}

fn parse_id(id: &[u8]) -> Result<&str, VerifyError> {
    if !is_valid_id(id) {
        return Err(VerifyError::MalformedId);
    }
    std::str::from_utf8(id).map_err(|_| VerifyError::MalformedId)
}

/// Digits only, as many as fit: signs, blanks, dots and exponents are how two parsers disagree.
fn read_timestamp<'h>(
    headers: &'h dyn HeaderSource,
    name: &str,
) -> Result<Timestamp<'h>, VerifyError> {
    /// Digits of the greatest 64-bit number.
    const MAX_DIGITS: usize = 19;
    let text = single(headers, name, HeaderPart::Timestamp)?;
    let plain = (1..=MAX_DIGITS).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    let seconds = std::str::from_utf8(text)
        .ok()
        .filter(|_| plain)
        .and_then(|text| text.parse().ok())
        .ok_or(VerifyError::MalformedTimestamp)?;
    Ok(Timestamp { text, seconds })
}

fn find_key<K: Borrow<VerifyingKey>>(
    keys: &[K],
    envelope: &Envelope<'_>,
    body: &[u8],
) -> Option<usize> {
    const DOT: &[u8] = b".";
    let mut parts: Vec<&[u8]> = Vec::with_capacity(5);
    if let Some(id) = envelope.id {
        parts.extend([id.as_bytes(), DOT]);
    }
    if let Some(timestamp) = envelope.timestamp {
        parts.extend([timestamp.text, DOT]);
    }
    parts.push(body);

    let mut found = None;
    for (index, key) in keys.iter().enumerate() {
        // Evaluated before looking at `found`: an early match must not save the later work.
        let matched = bool::from(key.borrow().matches_any(&parts, &envelope.signatures));
        if matched && found.is_none() {
            found = Some(index);
        }
    }
    found
}

fn check_window(seconds: i64, options: &VerifyOptions) -> Result<(), VerifyError> {
    let distance = options.now_unix.abs_diff(seconds);
    if seconds <= options.now_unix {
        if distance > options.max_age {
            return Err(VerifyError::TooOld { age: distance });
        }
    } else if distance > options.max_future {
        return Err(VerifyError::TooNew { ahead: distance });
    }
    Ok(())
}
