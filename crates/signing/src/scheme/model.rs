//! The scheme as a whole.

use super::handshake::Handshake;
use super::json_path::JsonPath;
use super::locator::Locator;
use super::names::named;
use super::proof::Proof;

/// How webhooks of one kind of sender are verified.
///
/// Plain data, free to build; what checks it and works with it is the verifier, which takes only
/// schemes without violations.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheme {
    /// How a request proves where it comes from.
    pub proof: Proof,
    /// Where keys come from.
    pub key_source: KeySource,
    /// The time of the request and how far it may be off. It must be covered by the proof. None
    /// where a sender signs no time: then only deduplication protects against replay.
    pub timestamp: Option<TimestampRule>,
    /// Where the message id stands: the first place that has one counts. At most
    /// [`MAX_ID_SOURCES`](super::limits::MAX_ID_SOURCES). Required by a template that has
    /// [`Part::MessageId`](super::Part::MessageId); otherwise a request without id passes.
    pub message_id: Vec<Locator>,
    /// What must hold after the proof; at most [`MAX_CLAIMS`](super::limits::MAX_CLAIMS).
    pub claims: Vec<Claim>,
    /// Which bytes of a compressed body are signed. None where that is not known: then no compressed body
    /// can be verified.
    #[serde(default)]
    pub body_form: Option<BodyForm>,
    /// For bodies whose items are signed one by one: where the items are. Every item must verify,
    /// 1 to [`MAX_ITEMS`](super::limits::MAX_ITEMS); JSON locators start at the item.
    pub items: Option<JsonPath>,
    /// Names of the texts that a source must give beside its keys, such as `webhook_id`; at most
    /// [`MAX_SETTINGS`](super::limits::MAX_SETTINGS).
    pub settings: Vec<String>,
    /// Questions the sender asks; at most [`MAX_HANDSHAKES`](super::limits::MAX_HANDSHAKES).
    pub handshakes: Vec<Handshake>,
}

/// Where keys come from.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum KeySource {
    /// From the key ring of the source.
    KeyRing,
    /// From a certificate whose address stands in the request. Its host must be one of these;
    /// the chain must lead to a public trust anchor.
    Certificate {
        /// Where the address stands.
        url: Locator,
        /// Hosts, such as `api.paypal.com`; `*` stands for one label, and a port stands behind a
        /// colon where it is not 443. 1 to
        /// [`MAX_HOSTS`](super::limits::MAX_HOSTS).
        hosts: Vec<String>,
        /// What the path must end with, such as `.pem`; may be empty.
        path_suffix: String,
        /// The name the certificate must be for, such as `sns.amazonaws.com`; `None` for the host
        /// it came from.
        subject: Option<String>,
        /// Whether a certificate that comes alone is taken without the certificates of those who
        /// issued it, which some senders leave out. Its name and its dates count all the same; that
        /// it is genuine rests on the TLS of the listed host alone.
        #[serde(default)]
        leaf_alone: bool,
    },
    /// From a JSON Web Key Set; the token's `kid` names the key.
    KeySet {
        /// The fixed address (https).
        url: String,
    },
}

/// The time of a request.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimestampRule {
    /// Where it stands.
    pub at: Locator,
    /// How it is written.
    pub unit: TimeUnit,
    /// The greatest age in seconds, 1 to
    /// [`MAX_TOLERANCE_SECONDS`](super::limits::MAX_TOLERANCE_SECONDS); exactly this age passes.
    pub max_age_seconds: u32,
    /// The farthest future in seconds, 0 to
    /// [`MAX_TOLERANCE_SECONDS`](super::limits::MAX_TOLERANCE_SECONDS); exactly this far passes.
    pub max_future_seconds: u32,
}

/// How a time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// Unix seconds: digits alone.
    Seconds,
    /// Unix milliseconds: digits alone.
    Milliseconds,
    /// RFC 3339, such as `2026-01-31T12:00:00.123Z` or with an offset.
    Rfc3339,
}

named!(TimeUnit, "time unit", {
    Seconds => "seconds",
    Milliseconds => "milliseconds",
    Rfc3339 => "rfc3339",
});

/// A spelling of the URL. The URL itself is the configured public one with the path and query of
/// the request, never one made of `Host` or `X-Forwarded-…` headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UrlVariant {
    /// As configured.
    AsIs,
    /// With the port written out, the scheme's own if there is none.
    WithPort,
    /// Without a port.
    WithoutPort,
    /// With percent-escapes of some characters (`:/?@!$'()*,;`) decoded.
    Unescaped,
    /// With `'` written as `%27`.
    QuoteEscaped,
}

named!(UrlVariant, "URL variant", {
    AsIs => "as-is",
    WithPort => "with-port",
    WithoutPort => "without-port",
    Unescaped => "unescaped",
    QuoteEscaped => "quote-escaped",
});

/// Something that must hold after the proof; compared in constant time.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Where the value stands.
    pub at: Locator,
    /// What it must equal.
    pub equals: ClaimValue,
}

/// What a claim's value must equal.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ClaimValue {
    /// This text.
    Text(String),
    /// A setting of the source, by name.
    Setting(String),
    /// The SHA-256 of the body in hex, either case.
    BodySha256Hex,
}

/// Which bytes of a compressed body are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BodyForm {
    /// The bytes as they came over the wire.
    Wire,
    /// The bytes after content decoding.
    Decoded,
}

named!(BodyForm, "body form", { Wire => "wire", Decoded => "decoded" });
