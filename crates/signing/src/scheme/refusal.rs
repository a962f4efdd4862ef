//! Why a request was refused.

use std::fmt;

use super::limits::{
    MAX_FORM_FIELDS, MAX_ITEMS, MAX_SIGNATURE_HEADER_BYTES, MAX_SIGNATURES, MAX_VERIFYING_KEYS,
};

/// What a value of the request was needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The signature or token.
    Signature,
    /// The time of the request.
    Timestamp,
    /// The message id.
    MessageId,
    /// A part of what is signed.
    SignedPart,
    /// A claim after the signature.
    Claim,
    /// The address of a certificate, or the name of a key.
    Key,
    /// The answer to a handshake.
    Handshake,
    /// A part of the event, after the verification.
    Event,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Signature => "signature",
            Self::Timestamp => "timestamp",
            Self::MessageId => "message id",
            Self::SignedPart => "signed part",
            Self::Claim => "claim",
            Self::Key => "key",
            Self::Handshake => "handshake",
            Self::Event => "event field",
        })
    }
}

/// Why a request was refused: for the operator's logs and metrics.
///
/// **The caller must get one constant answer for all of them** (401, same body). Telling a
/// stranger which check failed helps only an attacker. No variant holds bytes of the request or of
/// a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No key was given.
    #[error("there is no key to verify with")]
    NoKeys,
    /// More than [`MAX_VERIFYING_KEYS`] keys were given.
    #[error("more than {MAX_VERIFYING_KEYS} keys were given to verify with")]
    TooManyKeys,
    /// A setting that the scheme names was not given.
    #[error("a setting that the scheme needs is missing")]
    MissingSetting,
    /// A value is not there.
    #[error("the {0} is missing")]
    Missing(Role),
    /// A value that must be single came more than once.
    #[error("the {0} came more than once")]
    Repeated(Role),
    /// A value is not written as it should be.
    #[error("the {0} is malformed")]
    Malformed(Role),
    /// A value is longer than allowed.
    #[error("the {0} is too long")]
    TooLong(Role),
    /// The body is not the JSON that the scheme reads from.
    #[error("the body is not valid JSON")]
    MalformedBody,
    /// More than [`MAX_FORM_FIELDS`] fields to sort.
    #[error("the form has more than {MAX_FORM_FIELDS} fields")]
    TooManyFields,
    /// There are no items to verify.
    #[error("the body has no items")]
    NoItems,
    /// More than [`MAX_ITEMS`] items.
    #[error("the body has more than {MAX_ITEMS} items")]
    TooManyItems,
    /// The places of signatures hold more than [`MAX_SIGNATURE_HEADER_BYTES`].
    #[error("the signatures are longer than {MAX_SIGNATURE_HEADER_BYTES} bytes together")]
    SignaturesTooLong,
    /// More than [`MAX_SIGNATURES`] well-formed signatures.
    #[error("more than {MAX_SIGNATURES} signatures")]
    TooManySignatures,
    /// There are signatures, but none of the right kind, spelling and length.
    #[error("there is no well-formed signature of an algorithm in use")]
    NoUsableSignature,
    /// Every key was tried on every signature: none fits.
    #[error("no signature fits any key")]
    Mismatch,
    /// Signed properly, and too long ago.
    #[error("the request is {age_ms} ms old")]
    TooOld {
        /// Milliseconds.
        age_ms: u64,
    },
    /// Signed properly, with a time too far ahead of ours.
    #[error("the request is {ahead_ms} ms ahead of our clock")]
    TooNew {
        /// Milliseconds.
        ahead_ms: u64,
    },
    /// A claim does not hold.
    #[error("claim {0} does not hold")]
    ClaimMismatch(usize),
    /// The token names another algorithm than configured.
    #[error("the token is of another algorithm")]
    TokenAlgorithm,
    /// The token has expired.
    #[error("the token has expired")]
    TokenExpired,
    /// The token is not valid yet.
    #[error("the token is not valid yet")]
    TokenNotYet,
    /// The token has no time that bounds its life.
    #[error("the token has neither iat nor exp")]
    TokenWithoutTime,
    /// The token is from another issuer.
    #[error("the token is from another issuer")]
    TokenIssuer,
    /// The token is for another audience.
    #[error("the token is for another audience")]
    TokenAudience,
    /// The token vouches for another body.
    #[error("the token is for another body")]
    TokenBody,
    /// The token vouches for another URL.
    #[error("the token is for another URL")]
    TokenUrl,
    /// The address of the certificate is not on a host that is trusted with it.
    #[error("the certificate would come from a host that is not listed")]
    KeyAddress,
    /// The certificate does not lead to a trust anchor, is for another name or out of date.
    #[error("the certificate is not valid")]
    Certificate,
    /// The key set has no suitable key of that name.
    #[error("the key set has no such key")]
    UnknownKey,
}

impl Refusal {
    /// A short, stable name for metrics.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::NoKeys | Self::TooManyKeys | Self::MissingSetting => "misconfigured",
            Self::Missing(Role::Signature) => "missing-signature",
            Self::Missing(_) => "missing-value",
            Self::Repeated(_) => "repeated-value",
            Self::Malformed(_) | Self::MalformedBody | Self::NoItems => "malformed",
            Self::TooLong(_)
            | Self::TooManyFields
            | Self::TooManyItems
            | Self::SignaturesTooLong
            | Self::TooManySignatures => "too-large",
            Self::NoUsableSignature => "no-usable-signature",
            Self::Mismatch => "mismatch",
            Self::TooOld { .. } | Self::TokenExpired => "too-old",
            Self::TooNew { .. } | Self::TokenNotYet => "too-new",
            Self::ClaimMismatch(_)
            | Self::TokenAlgorithm
            | Self::TokenWithoutTime
            | Self::TokenIssuer
            | Self::TokenAudience
            | Self::TokenBody
            | Self::TokenUrl => "claim-mismatch",
            Self::KeyAddress | Self::Certificate | Self::UnknownKey => "untrusted-key",
        }
    }
}
