//! Questions that a provider asks before, or between, its webhooks.

use std::borrow::Cow;

use subtle::{Choice, ConstantTimeEq};

use super::entry::encode_text;
use super::json;
use super::key::SchemeKey;
use super::limits::{MAX_CHALLENGE_BYTES, MAX_HEX_CHALLENGE_BYTES, MAX_VALUE_BYTES};
use super::locator::Locator;
use super::names::named;
use super::refusal::{Refusal, Role};
use super::request::{Context, View};

/// A question and its answer: a request that is no event, such as the check of a new URL.
///
/// Handshakes recur at some providers, so they belong to a source for good.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
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
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
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
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Expected {
    /// This text.
    Text(String),
    /// A setting of the source, by name.
    Setting(String),
    /// Any of the source's keys, as text.
    Key,
}

/// The answer to a handshake.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
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
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
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
    /// [`MAX_CHALLENGE_BYTES`](super::limits::MAX_CHALLENGE_BYTES) letters, digits and `-_.+/`, with
    /// `=` only as padding, which no JSON or form body is made of. Where the scheme signs not the
    /// body but values out of it, only
    /// [`MAX_HEX_CHALLENGE_BYTES`](super::limits::MAX_HEX_CHALLENGE_BYTES) hexadecimal digits.
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

/// The answer to a handshake, ready to be sent.
pub struct HandshakeReply {
    /// The status.
    pub status: u16,
    /// Headers besides `content-length`; `x-content-type-options: nosniff` is among them.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
    /// The secret that the request brought, to be kept as the source's key. Only for a source that
    /// has none.
    pub learned_secret: Option<crate::SecretText>,
}

impl std::fmt::Debug for HandshakeReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Headers and body may hold a secret or a MAC.
        write!(f, "HandshakeReply({})", self.status)
    }
}

/// Why a handshake is not answered; for the operator alone, like a [`Refusal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// A value is missing, repeated, malformed or too long.
    #[error(transparent)]
    Value(#[from] Refusal),
    /// A value is not fit to be echoed: not visible ASCII.
    #[error("the value to be echoed is not visible ASCII")]
    NotPlain,
    /// A value is not fit to be signed: no plain token.
    #[error("the challenge is no plain token")]
    NotAChallenge,
    /// None of the keys can make a MAC.
    #[error("there is no key to answer with")]
    NoKey,
    /// The request brings a secret, and there is one already.
    #[error("the request brings a secret, and the source has one already")]
    SecretKnown,
}

impl Handshake {
    /// Whether a request is this handshake. A request that cannot be read is none.
    pub(crate) fn fits(&self, view: &View<'_>, keys: &[&SchemeKey], context: &Context<'_>) -> bool {
        self.when.iter().all(|condition| holds(condition, view, keys, context))
    }
}

fn holds(
    condition: &Condition,
    view: &View<'_>,
    keys: &[&SchemeKey],
    context: &Context<'_>,
) -> bool {
    match condition {
        Condition::Method(method) => view.request.method == method,
        Condition::Present(at) => value(view, at).is_ok(),
        Condition::EmptyArray(path) => json::is_empty_array(view.document, path),
        Condition::Equals { at, expected } => {
            let Ok(value) = value(view, at) else { return false };
            let equal = match expected {
                Expected::Text(text) => text.as_bytes().ct_eq(&value),
                Expected::Setting(name) => match context.setting(name) {
                    Ok(setting) => setting.as_bytes().ct_eq(&value),
                    Err(_) => Choice::from(0),
                },
                Expected::Key => {
                    keys.iter().fold(Choice::from(0), |equal, key| equal | key.is_token(&value))
                }
            };
            bool::from(equal)
        }
    }
}

fn value<'a>(view: &View<'a>, at: &Locator) -> Result<Cow<'a, [u8]>, Refusal> {
    view.need(at, Role::Handshake, MAX_VALUE_BYTES)
}

/// What an unsigned question may have signed with the source's own key.
#[derive(Clone, Copy)]
pub(crate) enum Challenge {
    /// A token in front of which, or around which, the scheme signs something that a token cannot
    /// be: a whole body.
    Token,
    /// A short hexadecimal number, where the scheme signs a single value that could be a token.
    Hex,
}

impl Challenge {
    pub(crate) fn of(scheme: &super::Scheme) -> Self {
        match &scheme.proof {
            super::Proof::Signature(proof) if proof.template.contains(&super::Part::Body) => {
                Self::Token
            }
            _ => Self::Hex,
        }
    }

    fn takes(self, bytes: &[u8]) -> bool {
        match self {
            // Padding stands at the end: `a=b` is a form.
            Self::Token => {
                let padding = bytes.iter().rev().take_while(|byte| **byte == b'=').count();
                let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.+/".contains(byte);
                (1..=MAX_CHALLENGE_BYTES).contains(&bytes.len())
                    && padding <= 2
                    && bytes.iter().take(bytes.len() - padding).all(allowed)
            }
            Self::Hex => {
                (1..=MAX_HEX_CHALLENGE_BYTES).contains(&bytes.len())
                    && bytes.iter().all(u8::is_ascii_hexdigit)
            }
        }
    }
}

pub(crate) fn answer(
    handshake: &Handshake,
    challenge: Challenge,
    view: &View<'_>,
    keys: &[&SchemeKey],
    context: &Context<'_>,
) -> Result<HandshakeReply, HandshakeError> {
    let learned_secret = match &handshake.learns_secret {
        Some(_) if !keys.is_empty() => return Err(HandshakeError::SecretKnown),
        Some(at) => {
            let bytes = value(view, at)?;
            Some(crate::SecretText::new(plain(&bytes)?))
        }
        None => None,
    };
    let reply = &handshake.reply;
    let mut headers = vec![("x-content-type-options".to_owned(), "nosniff".to_owned())];
    if !reply.content_type.is_empty() {
        headers.push(("content-type".to_owned(), reply.content_type.clone()));
    }
    for (name, pieces) in &reply.headers {
        let value = write(handshake, challenge, pieces, view, keys, context)?;
        headers.push((name.clone(), plain(value.as_bytes())?));
    }
    let body = write(handshake, challenge, &reply.body, view, keys, context)?;
    Ok(HandshakeReply { status: reply.status, headers, body, learned_secret })
}

fn write(
    handshake: &Handshake,
    challenge: Challenge,
    pieces: &[Piece],
    view: &View<'_>,
    keys: &[&SchemeKey],
    context: &Context<'_>,
) -> Result<String, HandshakeError> {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Literal(literal) => text.push_str(literal),
            Piece::Setting(name) => text.push_str(context.setting(name)?),
            Piece::Echo { at, escape } => {
                let bytes = value(view, at)?;
                text.push_str(&match escape {
                    Escape::Plain => plain(&bytes)?,
                    Escape::Json => json_escaped(&bytes)?,
                });
            }
            Piece::Hmac { of, encoding } => {
                let bytes = value(view, of)?;
                if !handshake.signed && !challenge.takes(&bytes) {
                    return Err(HandshakeError::NotAChallenge);
                }
                let mac = keys.iter().find_map(|key| key.mac(&bytes));
                let mac = mac.ok_or(HandshakeError::NoKey)?;
                text.push_str(&encode_text(mac.as_slice(), *encoding));
            }
        }
    }
    Ok(text)
}

/// Visible ASCII and blanks: no answer becomes a page or a second header.
fn plain(bytes: &[u8]) -> Result<String, HandshakeError> {
    let visible = bytes.iter().all(|byte| (0x20..0x7f).contains(byte));
    // A page needs an opening bracket.
    if visible && !bytes.contains(&b'<') {
        String::from_utf8(bytes.to_vec()).map_err(|_| HandshakeError::NotPlain)
    } else {
        Err(HandshakeError::NotPlain)
    }
}

fn json_escaped(bytes: &[u8]) -> Result<String, HandshakeError> {
    let text = std::str::from_utf8(bytes).map_err(|_| HandshakeError::NotPlain)?;
    let quoted = serde_json::to_string(text).map_err(|_| HandshakeError::NotPlain)?;
    let inner = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    Ok(inner.unwrap_or_default().to_owned())
}
