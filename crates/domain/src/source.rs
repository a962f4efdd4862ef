//! Sources: third parties that send to our ingress, and how what they send is taken.
//!
//! ```text
//!  POST /in/{token} ─► source ─► scheme + key ring: is it theirs? ─► settings: what is it, was it seen,
//!                                                                     in which order, what is answered
//! ```
//! A source says how, the ingress does it. The verification scheme is a document that the domain
//! keeps and does not read: what it means belongs to the signing crate.

mod json_path;
mod rules;
mod settings;
mod text;

pub use json_path::{JsonPath, JsonStep};
pub use rules::may_hold_credential;
pub use settings::{
    AnswerBody, Answers, Dedup, DuplicateAnswer, EventMapping, FinalStates, HandshakeChoice,
    IntakeLimits, Ordering, OrderingPolicy, OrderingRule, ReceiptSettings, SourceSettings,
    TimestampWindow, UnknownVersionMode, Unprocessable, ValuePart, ValueSource, WithoutId,
};

use crate::{Labels, Meta, ResourceId, SourceId, TenantId, Timestamp};
use std::{collections::BTreeMap, fmt, time::Duration};

/// Bounds of sources, each with its reason.
pub mod source_limits {
    use std::time::Duration;

    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;

    /// Longest scheme document: many times the longest preset.
    pub const SCHEME_BYTES: usize = 16 * 1024;
    /// Ways to find one value, tried in turn.
    pub const VALUE_SOURCES: usize = 8;
    /// Parts joined to one value.
    pub const VALUE_PARTS: usize = 8;
    /// Longest header name, fixed text or separator.
    pub const TEXT_CHARS: usize = 128;
    /// Fields left out of the content hash.
    pub const EXCLUDED_FIELDS: usize = 32;
    /// Known versions of payloads.
    pub const KNOWN_VERSIONS: usize = 64;
    /// Rules that say where subject and sequence stand.
    pub const ORDERING_RULES: usize = 32;
    /// States that are not left again.
    pub const FINAL_STATES: usize = 32;
    /// Accepted media types.
    pub const CONTENT_TYPES: usize = 32;
    /// Headers kept in receipts.
    pub const RECEIPT_HEADERS: usize = 32;

    /// How long an id is remembered when nothing is chosen: longer than nearly every provider retries.
    pub const WINDOW_DEFAULT: Duration = Duration::from_secs(7 * DAY);
    /// Longest window: a provider that retries for 30 days, and a day more.
    pub const WINDOW_MAX: Duration = Duration::from_secs(31 * DAY);
    /// How long the hash of a body without an id is remembered: longer would take equal, honest
    /// heartbeats for repeats.
    pub const BODY_HASH_WINDOW_DEFAULT: Duration = Duration::from_secs(10 * MINUTE);
    /// Shortest of these windows: below it a quick retry is a new event.
    pub const BODY_HASH_WINDOW_MIN: Duration = Duration::from_secs(MINUTE);
    /// Age and lead of a timestamp when nothing else is known: what every library of Standard Webhooks
    /// allows.
    pub const TOLERANCE_DEFAULT: Duration = Duration::from_secs(5 * MINUTE);
    /// Shortest tolerance: clocks that nobody watches differ by more than a second.
    pub const TOLERANCE_MIN: Duration = Duration::from_secs(1);
    /// Longest tolerance: a captured request stays valid for that long.
    pub const TOLERANCE_MAX: Duration = Duration::from_secs(DAY);
    /// How long an early event waits for the one before it when nothing is chosen.
    pub const HOLD_DEFAULT: Duration = Duration::from_secs(MINUTE);
    /// Shortest hold.
    pub const HOLD_MIN: Duration = Duration::from_secs(1);
    /// Longest hold: who waits longer has lost the event.
    pub const HOLD_MAX: Duration = Duration::from_secs(DAY);
    /// How long the last sequence of a subject is remembered when nothing is chosen.
    pub const ORDER_RETENTION_DEFAULT: Duration = Duration::from_secs(30 * DAY);
    /// Shortest memory of a sequence.
    pub const ORDER_RETENTION_MIN: Duration = Duration::from_secs(HOUR);
    /// Longest memory of a sequence.
    pub const ORDER_RETENTION_MAX: Duration = Duration::from_secs(400 * DAY);
    /// Texts that a scheme asks its sources for.
    pub const SCHEME_SETTINGS: usize = 8;
    /// Longest of these texts.
    pub const SCHEME_SETTING_CHARS: usize = 500;
    /// Longest time that payloads of receipts are kept.
    pub const RECEIPT_PAYLOAD_MAX: Duration = Duration::from_secs(30 * DAY);

    /// Largest body when nothing is chosen: above what all known providers send.
    pub const BODY_BYTES_DEFAULT: u32 = 1024 * 1024;
    /// Smallest bound of a body.
    pub const BODY_BYTES_MIN: u32 = 1024;
    /// Largest bound of a body: it is held in memory.
    pub const BODY_BYTES_MAX: u32 = 4 * 1024 * 1024;
    /// Bytes of all headers when nothing is chosen: what common servers take.
    pub const HEADER_BYTES_DEFAULT: u32 = 16 * 1024;
    /// Smallest bound of headers.
    pub const HEADER_BYTES_MIN: u32 = 1024;
    /// Largest bound of headers.
    pub const HEADER_BYTES_MAX: u32 = 64 * 1024;
    /// Headers when nothing is chosen.
    pub const HEADERS_DEFAULT: u32 = 100;
    /// Most headers.
    pub const HEADERS_MAX: u32 = 256;
    /// Time to read a request when nothing is chosen.
    pub const READ_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
    /// Shortest time to read a request: a body of the largest size on a slow line.
    pub const READ_TIMEOUT_MIN: Duration = Duration::from_secs(1);
    /// Longest time to read a request: a slow sender holds a connection for that long.
    pub const READ_TIMEOUT_MAX: Duration = Duration::from_secs(30);
    /// Requests a second when nothing is chosen.
    pub const RATE_DEFAULT: u32 = 500;
    /// Most requests a second.
    pub const RATE_MAX: u32 = 100_000;
    /// Requests a second from one address when nothing is chosen. Providers send from few addresses.
    pub const ADDRESS_RATE_DEFAULT: u32 = 200;
    /// Connections from one address when nothing is chosen.
    pub const ADDRESS_CONNECTIONS_DEFAULT: u32 = 64;
    /// Most connections from one address.
    pub const ADDRESS_CONNECTIONS_MAX: u32 = 4_096;

    /// How long the path before is still taken when nothing is chosen: as long as a key before.
    pub const PATH_OVERLAP_DEFAULT: Duration = Duration::from_secs(3 * DAY);
    /// Longest of these times.
    pub const PATH_OVERLAP_MAX: Duration = Duration::from_secs(30 * DAY);
}

/// How requests of a source are verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemeChoice {
    /// As a provider documents it: the name of a preset that this build knows.
    Preset(String),
    /// A scheme of the tenant's own.
    Custom(SchemeDocument),
}

/// A verification scheme as text. Written by the control plane, which has checked it; read by the
/// ingress. Holds no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemeDocument(String);

/// The document is empty or too long.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("has {0} bytes; use 1 to {max}", max = source_limits::SCHEME_BYTES)]
pub struct InvalidSchemeDocument(usize);

impl SchemeDocument {
    /// Keeps a document.
    ///
    /// # Errors
    /// When it is empty or too long.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidSchemeDocument> {
        let text = text.into();
        match text.len() {
            1..=source_limits::SCHEME_BYTES => Ok(Self(text)),
            length => Err(InvalidSchemeDocument(length)),
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The part of a source's path that nobody can guess. It names the source to its sender and lets
/// nobody in, but who has it can send requests to be refused; so `Debug` hides it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IngestToken(String);

/// Symbols of a token: 32 of them without look-alikes, so that a byte's low bits pick one evenly.
const TOKEN_SYMBOLS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

impl IngestToken {
    /// 26 symbols of 5 bits each.
    pub const LENGTH: usize = 26;

    /// A token of random bytes. Where it must not be guessed, they come from the operating system.
    #[must_use]
    pub fn from_random(bytes: [u8; Self::LENGTH]) -> Self {
        Self(bytes.map(|byte| char::from(TOKEN_SYMBOLS[usize::from(byte & 31)])).iter().collect())
    }

    /// Reads a token; none when the text cannot be one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let fits =
            text.len() == Self::LENGTH && text.bytes().all(|byte| TOKEN_SYMBOLS.contains(&byte));
        fits.then(|| Self(text.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for IngestToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IngestToken(…)")
    }
}

/// Where a source's requests arrive: a token, and the one before it for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestPath {
    /// The one to use.
    pub token: IngestToken,
    /// The one before, and until when it is taken.
    pub previous: Option<(IngestToken, Timestamp)>,
}

impl IngestPath {
    /// What stands before the token.
    pub const PREFIX: &'static str = "/in/";

    /// A path that was never another.
    #[must_use]
    pub const fn new(token: IngestToken) -> Self {
        Self { token, previous: None }
    }

    /// The tokens taken now, the one to use first.
    pub fn tokens_at(&self, now: Timestamp) -> impl Iterator<Item = &IngestToken> {
        let before = self.previous.as_ref().filter(move |(_, until)| now < *until);
        std::iter::once(&self.token).chain(before.map(|(token, _)| token))
    }

    /// Puts a new token in place; the present one is taken for `overlap` longer, one before it no more.
    pub fn rotate(&mut self, token: IngestToken, overlap: Duration, now: Timestamp) {
        let before = std::mem::replace(&mut self.token, token);
        self.previous = (!overlap.is_zero()).then(|| (before, now + overlap));
    }
}

/// A third party that sends to our ingress.
#[derive(Clone, PartialEq, Eq)]
pub struct Source {
    /// Unique for ever.
    pub id: SourceId,
    /// Whose it is.
    pub tenant: TenantId,
    /// Last part of its name; also the `source` of its events.
    pub slug: ResourceId,
    /// For people.
    pub display_name: String,
    /// How its requests are verified.
    pub scheme: SchemeChoice,
    /// Texts that the scheme asks its sources for, such as the id of a webhook. Not secret.
    pub scheme_settings: BTreeMap<String, String>,
    /// Where they arrive.
    pub path: IngestPath,
    /// The URL its sender calls, where signatures cover it. None: the address of the ingress.
    pub public_url: Option<String>,
    /// How they are taken.
    pub settings: SourceSettings,
    /// Why nothing is taken for now; none: it is enabled.
    pub disabled: Option<String>,
    /// Free pairs.
    pub labels: Labels,
    /// Times and revision.
    pub meta: Meta,
}

/// Hides the URL and the scheme's texts, which may carry credentials all the same.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("id", &self.id)
            .field("tenant", &self.tenant)
            .field("slug", &self.slug)
            .field("scheme", &self.scheme)
            .field("settings", &self.settings)
            .field("labels", &self.labels)
            .field("meta", &self.meta)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
