//! Questions that a provider asks before, or between, its webhooks.

use super::locator::Locator;
use super::names::named;

/// A question and its answer: a request that is no event, such as the check of a new URL.
///
/// Handshakes recur at some providers, so they belong to a source for good.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Handshake {
    /// Names it in logs and metrics, such as `url-verification`.
    pub name: String,
    /// All of these must hold; 1 to [`MAX_CONDITIONS`](super::limits::MAX_CONDITIONS).
    pub when: Vec<Condition>,
    /// Whether the request must pass the scheme's proof first. Where it need not, a MAC in the
    /// answer is made only over plain tokens (see [`Piece::Hmac`]).
    pub signed: bool,
    /// The answer.
    pub reply: Reply,
    /// Where the request brings the secret of all later ones, at senders that choose it
    /// themselves. Accepted only while the source has no key.
    pub learns_secret: Option<Locator>,
}

/// Something that holds for a request or does not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum Condition {
    /// The method is this one (upper case).
    Method(String),
    /// The value is there.
    Present(Locator),
    /// The value is there and equals the expected one; compared in constant time.
    Equals {
        /// Where the value stands.
        at: Locator,
        /// What it must be.
        expected: Expected,
    },
    /// The JSON array at the path is there and empty: heartbeats.
    EmptyArray(super::JsonPath),
}

/// What a value is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum Expected {
    /// This text.
    Text(String),
    /// A setting of the source, by name.
    Setting(String),
    /// Any of the source's keys, as text.
    Key,
}

/// The answer to a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Reply {
    /// 200 to 299.
    pub status: u16,
    /// `text/plain`, `application/json` or another; empty when there is no body.
    pub content_type: String,
    /// Further headers, lower-case name and value; at most
    /// [`MAX_REPLY_HEADERS`](super::limits::MAX_REPLY_HEADERS).
    pub headers: Vec<(String, Vec<Piece>)>,
    /// The body, at most [`MAX_PIECES`](super::limits::MAX_PIECES) pieces.
    pub body: Vec<Piece>,
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum Piece {
    /// Fixed text.
    Literal(String),
    /// A value of the request.
    Echo {
        /// Where it stands.
        at: Locator,
        /// How it is written into the answer.
        escape: Escape,
    },
    /// A setting of the source, by name.
    Setting(String),
    /// A MAC over a value of the request, under the first key that can make one.
    ///
    /// Without a check, anyone could have anything signed that way and send it back as a webhook.
    /// So the value must be a token: at most
    /// [`MAX_CHALLENGE_BYTES`](super::limits::MAX_CHALLENGE_BYTES) letters, digits and `-_.=+/`,
    /// which no JSON or form body is made of.
    Hmac {
        /// Where the value stands.
        of: Locator,
        /// How the MAC is written: hex or base64.
        encoding: super::Encoding,
    },
}

/// How a value of the request is written into an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Escape {
    /// As it is; only visible ASCII is echoed, so that an answer cannot become a page.
    Plain,
    /// With the escapes of a JSON string, without the quotes.
    Json,
}

named!(Escape, "escape", { Plain => "plain", Json => "json" });
