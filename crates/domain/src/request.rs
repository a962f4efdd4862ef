//! Ids that callers give their requests, so that a repeat after a lost answer makes nothing twice.
//!
//! ```text
//!  first call  ─► change + note of it, in one transaction
//!  same again  ─► the note is found ─► the present state of what was made
//!  other content under the same id ─► refused
//! ```

use crate::{Caller, ChangeContext, Error, KeyId, TenantId, Timestamp};
use async_trait::async_trait;
use sha2::{Digest as _, Sha256};
use std::{fmt, time::Duration};
use uuid::Uuid;

/// Bounds of remembered requests, each with its reason.
pub mod request_limits {
    use std::time::Duration;

    /// How long a request is remembered: longer than any client goes on repeating.
    pub const KEPT: Duration = Duration::from_secs(24 * 3600);
    /// How long a repeat shows the secret again that the first answer carried: time for a client to
    /// come back after a lost connection, and not for somebody who finds its request later.
    pub const SECRET_SHOWN: Duration = Duration::from_secs(600);
}

/// A caller's id of a change with a hash of everything the request says, its caller included.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RequestKey {
    /// Chosen by the caller, unique within tenant and method.
    pub id: Uuid,
    /// SHA-256 of the request and who sent it.
    pub content: [u8; 32],
}

/// The text is no id of a request.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("is no UUID; send a fresh one such as 0190e5d8-7a44-7c1f-9d0e-5b1c2f6a7e10, or nothing")]
pub struct InvalidRequestId;

/// Separates these hashes from other uses of the function, and one form from the next.
const CONTENT_DOMAIN: &[u8] = b"turnbuckle request content 2";

impl RequestKey {
    /// Takes an id and everything that a repeat must say again. Who asks is part of it, and who vouches
    /// for that: a secret is shown again to nobody else.
    ///
    /// # Errors
    /// When the id is no UUID, or the nil one, which stands for a forgotten value.
    pub fn new<'a>(
        id: &str,
        caller: &'a Caller,
        parts: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, InvalidRequestId> {
        let id = Uuid::try_parse(id).map_err(|_| InvalidRequestId)?;
        if id.is_nil() {
            return Err(InvalidRequestId);
        }
        let mut hasher = Sha256::new();
        hasher.update(CONTENT_DOMAIN);
        let who = [caller.issuer.as_bytes(), caller.subject.as_bytes()];
        for part in who.into_iter().chain(parts) {
            // The length keeps ("ab", "c") and ("a", "bc") apart.
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        Ok(Self { id, content: hasher.finalize().into() })
    }
}

impl fmt::Debug for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// What a remembered request has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    /// The resource, or the endpoint whose key ring was changed.
    pub id: Uuid,
    /// The key that was made with it.
    pub key: Option<KeyId>,
    /// When.
    pub at: Timestamp,
}

impl Made {
    /// Whether a repeat at this time is still shown the secret.
    #[must_use]
    pub fn shows_secret_at(&self, now: Timestamp) -> bool {
        self.within(request_limits::SECRET_SHOWN, now)
    }

    /// Whether it is still remembered at this time.
    #[must_use]
    pub fn is_kept_at(&self, now: Timestamp) -> bool {
        self.within(request_limits::KEPT, now)
    }

    fn within(&self, span: Duration, now: Timestamp) -> bool {
        now.since(self.at) < span
    }
}

/// Reads and sweeps of remembered requests. They are written by the configuration store only, in
/// the transaction of the change they asked for.
#[async_trait]
pub trait RequestLog: Send + Sync + 'static {
    /// What this request made when it was seen before; none when it is new, has no id, or is
    /// remembered no longer. No tenant stands for tenants themselves.
    ///
    /// Fails with [`Error::RequestIdReused`] when the id was used for other content.
    async fn made_before(
        &self,
        tenant: Option<TenantId>,
        by: &ChangeContext,
    ) -> Result<Option<Made>, Error>;

    /// Forgets up to `limit` requests that were made before this time, oldest first. Says how many.
    async fn forget_requests(&self, made_before: Timestamp, limit: u32) -> Result<u64, Error>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;

    #[test]
    fn a_secret_is_shown_for_minutes_and_a_request_kept_for_a_day() {
        let at = Timestamp::from_micros(1_000_000);
        let made = Made { id: Uuid::nil(), key: None, at };
        let moment = Duration::from_micros(1);
        for (span, answer) in [
            (request_limits::SECRET_SHOWN, Made::shows_secret_at as fn(&Made, Timestamp) -> bool),
            (request_limits::KEPT, Made::is_kept_at),
        ] {
            assert!(answer(&made, at + span - moment));
            assert!(!answer(&made, at + span));
            // A clock that was set back makes nothing older.
            assert!(answer(&made, at - span));
        }
    }

    #[test]
    fn a_key_is_its_id_and_all_that_was_said() {
        let id = "0190e5d8-7a44-7c1f-9d0e-5b1c2f6a7e10";
        let caller = |subject: &str| Caller {
            issuer: "https://id.example.org".to_owned(),
            subject: subject.to_owned(),
            role: Role::Operator,
            tenant: None,
        };
        let key = |subject: &str, parts: &[&[u8]]| {
            RequestKey::new(id, &caller(subject), parts.iter().copied()).unwrap()
        };
        let other = Caller { issuer: "https://login.example.org".to_owned(), ..caller("alice") };
        assert_ne!(key("alice", &[]), RequestKey::new(id, &other, []).unwrap(), "another alice");
        assert_eq!(key("alice", &[b"ab", b"c"]), key("alice", &[b"ab", b"c"]));
        for other in [
            key("bob", &[b"ab", b"c"]),
            key("alice", &[b"a", b"bc"]),
            key("alice", &[b"ab", b"c", b""]),
        ] {
            assert_ne!(key("alice", &[b"ab", b"c"]), other);
        }
        for bad in ["", "1", "00000000-0000-0000-0000-000000000000", "0190e5d8-7a44-7c1f-9d0e"] {
            assert_eq!(RequestKey::new(bad, &caller(""), []), Err(InvalidRequestId), "{bad}");
        }
    }

    #[test]
    fn debug_text_shows_the_id_only() {
        let key = RequestKey { id: Uuid::nil(), content: [171; 32] };
        assert!(!format!("{key:?}").contains("171"));
    }
}
