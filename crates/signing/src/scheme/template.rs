//! What is signed.

use super::locator::Locator;

/// One part of what is signed. The signed bytes are the parts of a template one after another,
/// with nothing between them that is not a part itself.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Part {
    /// Fixed text, such as `.` or `v0:`.
    Literal(String),
    /// The body, exactly as it came (see [`BodyForm`](super::BodyForm)).
    Body,
    /// The time, exactly as it was sent (see [`TimestampRule`](super::TimestampRule)).
    Timestamp,
    /// The message id, exactly as it was sent. It must not contain the first character of the
    /// literal behind it, so that the border between them cannot be moved.
    MessageId,
    /// The request's method, upper case.
    Method,
    /// The URL as the sender knows it, in each of the
    /// [`url_variants`](super::SignatureProof::url_variants).
    Url,
    /// A value out of the request.
    Value {
        /// Where it stands.
        at: Locator,
        /// What happens without it.
        when_absent: WhenAbsent,
        /// Text in front of it, only where the value is present.
        before: String,
        /// Text behind it, only where the value is present.
        after: String,
    },
    /// A setting of the source, by name (not secret: a webhook's id, for example).
    Setting(String),
    /// The key itself: only for digests without a MAC, and needed there.
    Secret,
    /// The fields of a form body, sorted by name, then value: name and value of each, decoded,
    /// with nothing between them; a field that repeats with the same value counts once.
    SortedForm,
    /// The CRC-32 of the body in decimal.
    BodyCrc32,
    /// The SHA-256 of the body in lower-case hex.
    BodySha256Hex,
}

/// What happens without a [`Part::Value`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum WhenAbsent {
    /// The request is refused.
    Refuse,
    /// It counts as empty, as does a JSON null.
    Empty,
}
