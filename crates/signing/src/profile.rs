//! The closed sets of signature profiles and key algorithms.

use std::fmt;
use std::str::FromStr;

/// How a request is signed: which headers, which bytes, which encoding.
///
/// The profile is configuration of the endpoint or source. It is never taken from the request,
/// otherwise an attacker would choose the weakest rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Profile {
    /// Standard Webhooks 1.0: `id.timestamp.body`, `v1` (HMAC-SHA256) and `v1a` (Ed25519).
    #[default]
    StandardWebhooks,
    /// `X-Webhook-Timestamp` and `X-Webhook-Signature: v1=<hex>` over `timestamp.body`.
    TimestampedHex,
    /// `X-Hub-Signature: sha256=<hex>` over the body alone; replay is not covered by it.
    HubSha256,
}

impl Profile {
    /// Every profile, for listings and exhaustive tests.
    pub const ALL: [Self; 3] = [Self::StandardWebhooks, Self::TimestampedHex, Self::HubSha256];

    /// The name used in configuration, APIs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StandardWebhooks => "standard-webhooks",
            Self::TimestampedHex => "timestamped-hex",
            Self::HubSha256 => "hub-sha256",
        }
    }

    /// Whether keys of this algorithm can sign under the profile.
    #[must_use]
    pub const fn supports(self, algorithm: KeyAlgorithm) -> bool {
        matches!(
            (self, algorithm),
            (_, KeyAlgorithm::HmacSha256) | (Self::StandardWebhooks, KeyAlgorithm::Ed25519)
        )
    }

    /// Whether the signature covers a time, so that old requests can be told from new ones.
    ///
    /// Where it does not, only deduplication by id protects against replay.
    #[must_use]
    pub const fn signs_timestamp(self) -> bool {
        !matches!(self, Self::HubSha256)
    }
}

/// What a key can compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyAlgorithm {
    /// A secret shared by sender and receiver.
    HmacSha256,
    /// A private key at the sender, a public one at the receiver.
    Ed25519,
}

impl KeyAlgorithm {
    /// Every algorithm, for listings and exhaustive tests.
    pub const ALL: [Self; 2] = [Self::HmacSha256, Self::Ed25519];

    /// The name used in configuration, APIs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::HmacSha256 => "hmac-sha256",
            Self::Ed25519 => "ed25519",
        }
    }
}

/// A name that is neither a profile nor an algorithm; it holds no copy of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what}; known are: {known}")]
pub struct UnknownName {
    what: &'static str,
    known: &'static str,
}

impl UnknownName {
    pub(crate) const fn new(what: &'static str, known: &'static str) -> Self {
        Self { what, known }
    }
}

impl FromStr for Profile {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|profile| profile.as_str() == text).ok_or(UnknownName {
            what: "signature profile",
            known: "standard-webhooks, timestamped-hex, hub-sha256",
        })
    }
}

impl FromStr for KeyAlgorithm {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|algorithm| algorithm.as_str() == text)
            .ok_or(UnknownName { what: "key algorithm", known: "hmac-sha256, ed25519" })
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for KeyAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
