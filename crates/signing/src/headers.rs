//! Header names, and where a receiver's headers come from.

use std::borrow::Cow;

/// `X-Webhook-Timestamp` of the timestamped-hex profile.
pub(crate) const HEX_TIMESTAMP: Cow<'static, str> = Cow::Borrowed("x-webhook-timestamp");
/// `X-Webhook-Signature` of the timestamped-hex profile.
pub(crate) const HEX_SIGNATURE: Cow<'static, str> = Cow::Borrowed("x-webhook-signature");
/// The older of the two names of the hub profile.
pub(crate) const HUB_SIGNATURE: Cow<'static, str> = Cow::Borrowed("x-hub-signature");
/// The newer of the two names of the hub profile.
pub(crate) const HUB_SIGNATURE_256: Cow<'static, str> = Cow::Borrowed("x-hub-signature-256");

/// The longest prefix: far above real ones, and it keeps header names short.
pub const MAX_PREFIX_BYTES: usize = 64;

/// The three header names of Standard Webhooks under one prefix, lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderNames {
    id: Cow<'static, str>,
    timestamp: Cow<'static, str>,
    signature: Cow<'static, str>,
}

/// A prefix that cannot be part of a header name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a header prefix has 1 to {MAX_PREFIX_BYTES} letters, digits and inner hyphens")]
pub struct PrefixError;

impl HeaderNames {
    /// `webhook-id`, `webhook-timestamp`, `webhook-signature`.
    pub const WEBHOOK: Self = Self {
        id: Cow::Borrowed("webhook-id"),
        timestamp: Cow::Borrowed("webhook-timestamp"),
        signature: Cow::Borrowed("webhook-signature"),
    };

    /// `svix-id`, `svix-timestamp`, `svix-signature`, as senders of that family name them.
    pub const SVIX: Self = Self {
        id: Cow::Borrowed("svix-id"),
        timestamp: Cow::Borrowed("svix-timestamp"),
        signature: Cow::Borrowed("svix-signature"),
    };

    /// The names under another prefix, for endpoints moved from another sender.
    ///
    /// # Errors
    /// When the prefix is not 1 to [`MAX_PREFIX_BYTES`] letters, digits and inner hyphens.
    pub fn with_prefix(prefix: &str) -> Result<Self, PrefixError> {
        let prefix = prefix.to_ascii_lowercase();
        match prefix.as_str() {
            "webhook" => return Ok(Self::WEBHOOK),
            "svix" => return Ok(Self::SVIX),
            _ => {}
        }
        let bytes = prefix.as_bytes();
        let well_formed = (1..=MAX_PREFIX_BYTES).contains(&bytes.len())
            && bytes.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
            && !prefix.starts_with('-')
            && !prefix.ends_with('-');
        if !well_formed {
            return Err(PrefixError);
        }
        Ok(Self {
            id: Cow::Owned(format!("{prefix}-id")),
            timestamp: Cow::Owned(format!("{prefix}-timestamp")),
            signature: Cow::Owned(format!("{prefix}-signature")),
        })
    }

    /// The name of the header with the message id.
    #[must_use]
    pub const fn id(&self) -> &Cow<'static, str> {
        &self.id
    }

    /// The name of the header with the time of the attempt.
    #[must_use]
    pub const fn timestamp(&self) -> &Cow<'static, str> {
        &self.timestamp
    }

    /// The name of the header with the signatures.
    #[must_use]
    pub const fn signature(&self) -> &Cow<'static, str> {
        &self.signature
    }
}

impl Default for HeaderNames {
    fn default() -> Self {
        Self::WEBHOOK
    }
}

/// The headers of a received request, as bytes: a sender may put anything in them.
///
/// ```
/// use turnbuckle_signing::HeaderSource;
///
/// let headers = [("Webhook-Id", "msg_1"), ("x-other", "…")];
/// assert_eq!(headers.get_all("webhook-id"), [b"msg_1".as_slice()]);
/// ```
pub trait HeaderSource {
    /// All values of a header in the order received. `name` is lower case; the comparison must
    /// ignore case, as HTTP does.
    fn get_all(&self, name: &str) -> Vec<&[u8]>;
}

fn matching<'a, N: AsRef<str>, V: AsRef<[u8]>>(pairs: &'a [(N, V)], name: &str) -> Vec<&'a [u8]> {
    pairs
        .iter()
        .filter(|(candidate, _)| candidate.as_ref().eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_ref())
        .collect()
}

impl<N: AsRef<str>, V: AsRef<[u8]>> HeaderSource for &[(N, V)] {
    fn get_all(&self, name: &str) -> Vec<&[u8]> {
        matching(self, name)
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>, const COUNT: usize> HeaderSource for [(N, V); COUNT] {
    fn get_all(&self, name: &str) -> Vec<&[u8]> {
        matching(self, name)
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>> HeaderSource for Vec<(N, V)> {
    fn get_all(&self, name: &str) -> Vec<&[u8]> {
        matching(self, name)
    }
}
