//! How the requests of a source are taken. Stored as one document: a field that a stored document
//! lacks has its default, and one that this build does not know is left alone.

use super::{JsonPath, source_limits as limits, text};
use crate::TypePattern;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Everything between the signature and the answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceSettings {
    /// What kind of event a request is.
    pub event: EventMapping,
    /// When a request is a repeat.
    pub dedup: Dedup,
    /// What is done with events out of order.
    pub ordering: Ordering,
    /// How old and how early a timestamp may be. None: as the scheme says.
    pub timestamp: Option<TimestampWindow>,
    /// What is read at all.
    pub limits: IntakeLimits,
    /// What the sender is told.
    pub answers: Answers,
    /// Whether the scheme's handshake is answered.
    pub handshake: HandshakeChoice,
    /// What becomes of a request that is theirs and cannot be used.
    pub unprocessable: Unprocessable,
    /// What is kept of each request.
    pub receipts: ReceiptSettings,
}

/// A part of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValuePart {
    /// A request header, by its lower-case name.
    Header(String),
    /// A place in the payload.
    JsonPath(JsonPath),
    /// A parameter of the URL.
    Query(String),
    /// A field of a form body.
    Form(String),
    /// This text.
    Fixed(String),
}

/// One way to find a value: its parts, joined. It gives nothing when one of them is missing or empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueSource {
    /// At least one.
    pub parts: Vec<ValuePart>,
    /// What stands between them.
    #[serde(default)]
    pub separator: String,
}

impl ValueSource {
    /// A header.
    #[must_use]
    pub fn header(name: &str) -> Self {
        Self::single(ValuePart::Header(name.to_owned()))
    }

    /// A value of one part.
    #[must_use]
    pub fn single(part: ValuePart) -> Self {
        Self { parts: vec![part], separator: String::new() }
    }
}

/// What kind of event a request is. Of each list the first that gives a value counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventMapping {
    /// The event type. Empty: the field `event_type`, else `type`, of the payload.
    pub event_type: Vec<ValueSource>,
    /// The version of its payload. Empty: the field `event_version`, else `1`.
    pub event_version: Vec<ValueSource>,
    /// When it happened. Empty: the field `occurred_at`, else when it arrived.
    pub occurred_at: Vec<ValueSource>,
    /// Versions that are taken. Empty: all.
    pub known_versions: Vec<String>,
    /// What becomes of the other ones.
    pub unknown_version: UnknownVersionMode,
    /// The array whose items are events. None: the request is one event.
    pub items: Option<JsonPath>,
    /// The field of form bodies that holds the payload. Other bodies are the payload themselves.
    pub form_field: Option<String>,
}

/// What becomes of an unknown version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownVersionMode {
    /// 422, recorded.
    #[default]
    Refuse,
    /// Answered as accepted, kept as a dead letter.
    DeadLetter,
}

/// When a request is a repeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dedup {
    /// The event id. Empty: the id that the scheme signs, else the field `event_id`, else `id`.
    pub event_id: Vec<ValueSource>,
    /// What is done without one.
    pub without_id: WithoutId,
    /// How long an id is remembered.
    #[serde(with = "text::duration")]
    pub window: Duration,
    /// Fields that the sender changes from attempt to attempt: not part of the content hash.
    pub excluded_fields: Vec<JsonPath>,
    /// How long a signed body is remembered beside an id that its signature does not cover. Zero: not.
    #[serde(with = "text::duration")]
    pub unsigned_id_window: Duration,
}

impl Default for Dedup {
    fn default() -> Self {
        Self {
            event_id: Vec::new(),
            without_id: WithoutId::default(),
            window: limits::WINDOW_DEFAULT,
            excluded_fields: Vec::new(),
            unsigned_id_window: limits::BODY_HASH_WINDOW_DEFAULT,
        }
    }
}

/// What is done with a request that has no event id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WithoutId {
    /// The hash of its body is its id, for a short time.
    BodyHash {
        /// How long.
        #[serde(with = "text::duration")]
        window: Duration,
    },
    /// Every request is a new event.
    Accept,
    /// It is unprocessable.
    Refuse,
}

impl Default for WithoutId {
    fn default() -> Self {
        Self::BodyHash { window: limits::BODY_HASH_WINDOW_DEFAULT }
    }
}

/// What is done with events out of order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ordering {
    /// What is done.
    pub policy: OrderingPolicy,
    /// Where subject and sequence stand; the first rule for an event's type counts.
    pub rules: Vec<OrderingRule>,
    /// States that are not left again.
    pub final_states: Option<FinalStates>,
    /// How long a subject's last sequence is remembered.
    #[serde(with = "text::duration")]
    pub retention: Duration,
}

impl Default for Ordering {
    fn default() -> Self {
        Self {
            policy: OrderingPolicy::Pass,
            rules: Vec::new(),
            final_states: None,
            retention: limits::ORDER_RETENTION_DEFAULT,
        }
    }
}

/// What is done with an event whose sequence is not the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderingPolicy {
    /// Nothing.
    Pass,
    /// It goes on with a header that says so.
    Mark,
    /// An older one is recorded and goes no further.
    DropStale,
    /// A newer one waits for the gap to close, and then goes on.
    Hold {
        /// At most this long.
        #[serde(with = "text::duration")]
        timeout: Duration,
    },
}

/// Where subject and sequence of some types stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderingRule {
    /// For which types; any match suffices.
    #[serde(with = "text::patterns")]
    pub patterns: Vec<TypePattern>,
    /// The object an event is about.
    pub subject: JsonPath,
    /// That object's version, a whole number.
    pub sequence: JsonPath,
}

/// States of a subject that are not left again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinalStates {
    /// Where the state stands.
    pub path: JsonPath,
    /// The final ones.
    pub values: Vec<String>,
}

/// How far a timestamp may be from now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimestampWindow {
    /// How old.
    #[serde(with = "text::duration")]
    pub past: Duration,
    /// How early.
    #[serde(with = "text::duration")]
    pub future: Duration,
}

impl Default for TimestampWindow {
    fn default() -> Self {
        Self { past: limits::TOLERANCE_DEFAULT, future: limits::TOLERANCE_DEFAULT }
    }
}

/// What is read of a request before anything is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IntakeLimits {
    /// Largest body.
    pub body_bytes: u32,
    /// Bytes of all headers together.
    pub header_bytes: u32,
    /// Number of headers.
    pub headers: u32,
    /// Time from the first byte to the last.
    #[serde(with = "text::duration")]
    pub read_timeout: Duration,
    /// Requests a second.
    pub requests_per_second: u32,
    /// Requests a second from one address.
    pub requests_per_second_per_address: u32,
    /// Connections from one address.
    pub connections_per_address: u32,
    /// Media types that are taken, without parameters, lower case. Empty: all.
    pub content_types: Vec<String>,
}

impl Default for IntakeLimits {
    fn default() -> Self {
        Self {
            body_bytes: limits::BODY_BYTES_DEFAULT,
            header_bytes: limits::HEADER_BYTES_DEFAULT,
            headers: limits::HEADERS_DEFAULT,
            read_timeout: limits::READ_TIMEOUT_DEFAULT,
            requests_per_second: limits::RATE_DEFAULT,
            requests_per_second_per_address: limits::ADDRESS_RATE_DEFAULT,
            connections_per_address: limits::ADDRESS_CONNECTIONS_DEFAULT,
            content_types: Vec::new(),
        }
    }
}

/// What the sender is told when all is well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answers {
    /// Status for an accepted request.
    pub accepted: u16,
    /// Status for a repeat.
    pub duplicate: DuplicateAnswer,
    /// Whether these answers say anything besides their status.
    pub body: AnswerBody,
}

impl Answers {
    /// Statuses a sender can be told. 204 has no body.
    pub const ACCEPTED: [u16; 4] = [200, 201, 202, 204];
    /// Status when nothing else is known of the sender.
    pub const ACCEPTED_DEFAULT: u16 = 202;
}

impl Default for Answers {
    fn default() -> Self {
        Self {
            accepted: Self::ACCEPTED_DEFAULT,
            duplicate: DuplicateAnswer::default(),
            body: AnswerBody::default(),
        }
    }
}

/// What an answer says besides its status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerBody {
    /// What became of the request, in JSON.
    #[default]
    Status,
    /// Nothing: there are senders that take no body for success.
    None,
}

/// What the sender of a repeat is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DuplicateAnswer {
    /// 200 and when the first one was processed; 204 where that is the answer to accepted ones.
    #[default]
    Ok,
    /// 409.
    Conflict,
}

/// Whether the scheme's handshake is answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandshakeChoice {
    /// When the scheme has one.
    #[default]
    AsScheme,
    /// Never: it is a request like any other.
    Off,
}

/// What becomes of a request that is validly signed and cannot be used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unprocessable {
    /// 400, recorded.
    #[default]
    Refuse,
    /// Answered as accepted, kept as a dead letter.
    DeadLetter,
}

/// What is kept of each request besides the decision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReceiptSettings {
    /// How long payloads are kept. Zero: not at all.
    #[serde(with = "text::duration")]
    pub payload_retention: Duration,
    /// Headers whose values are kept, lower case.
    pub headers: Vec<String>,
}
