//! API tokens: opaque bearer tokens, of which only the hash is kept.
//!
//! ```text
//!  32 random bytes ─► tbk_{64 hex}{8 hex of a checksum} ─► shown once
//!                                  └─ SHA-256 ─► ApiToken.hash ─► store ─► every process that
//!                                                                         authenticates calls
//! ```
//!
//! # Invariants
//! - The text of a token is in no `Debug` text, and nowhere but in the answer that makes it (I7).
//! - A token has no more rights than whoever made it, and does not outlive the token it was made with.
//! - A revoked token stays revoked, and an expiry only ever moves closer.

use crate::{
    ApiTokenId, Audited, ChangeContext, Error, Fields, Meta, ResourceId, Revision, Role,
    StoreError, TenantId, Timestamp,
};
use async_trait::async_trait;
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use std::fmt;
use zeroize::Zeroizing;

/// Bounds of API tokens, each with its reason.
pub mod api_token_limits {
    use std::time::Duration;

    /// Life of a token when none is chosen: a quarter, as teams rotate by.
    pub const TTL_DEFAULT: Duration = Duration::from_secs(90 * 24 * 3600);
    /// Longest life: a year, and a month to be late.
    pub const TTL_MAX: Duration = Duration::from_secs(400 * 24 * 3600);
    /// Shortest life: below it a token may have expired before it is used everywhere.
    pub const TTL_MIN: Duration = Duration::from_secs(60);
    /// Valid tokens of one tenant, and of the platform: every process that authenticates calls
    /// holds them all.
    pub const VALID_MAX: u64 = 200;
    /// A token is taken out of the configuration this long after it expired, so that nodes do not
    /// hold every token there ever was. Not at once: a clock that was put forward and back again
    /// must not end tokens that are valid.
    pub const ENDED_AFTER: Duration = Duration::from_secs(7 * 24 * 3600);
}

/// What every token begins with: people and secret scanners know it by that.
const PREFIX: &str = "tbk_";

/// Second to last part of a token's name.
const COLLECTION: &str = "apiTokens";

/// Random bytes of a token: nobody guesses 256 bits, so that one fast hash protects them.
const RANDOM_BYTES: usize = 32;

/// Bytes of the checksum: one typing error in four thousand million passes it.
const CHECKSUM_BYTES: usize = 4;

/// Characters shown of a token later on. They are the checksum's, not the random part's.
const HINT_CHARS: usize = 4;

/// Separates the checksum from other uses of the function.
const CHECKSUM_DOMAIN: &[u8] = b"turnbuckle api token checksum 1";

/// SHA-256 of a token. Does not lead back to it; hidden in `Debug` all the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ApiTokenHash([u8; 32]);

impl ApiTokenHash {
    /// The hash as it was stored.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes to store.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for ApiTokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiTokenHash(…)")
    }
}

/// The text of a token. Wiped when dropped.
#[derive(Clone)]
pub struct ApiTokenSecret(Zeroizing<String>);

impl ApiTokenSecret {
    /// Makes a token of fresh randomness.
    #[must_use]
    pub fn from_random(random: &[u8; RANDOM_BYTES]) -> Self {
        let body = Zeroizing::new(HEXLOWER.encode(random));
        Self(Zeroizing::new(format!("{PREFIX}{}{}", *body, checksum(&body))))
    }

    /// Whether a bearer token is meant to be one of these, right or wrong.
    #[must_use]
    pub fn is_meant(token: &str) -> bool {
        token.starts_with(PREFIX)
    }

    /// The hash to look a presented token up by; none when it cannot be one that was ever made.
    #[must_use]
    pub fn hash_of(token: &str) -> Option<ApiTokenHash> {
        let body = token.strip_prefix(PREFIX)?;
        let (body, sum) = body.split_at_checked(2 * RANDOM_BYTES)?;
        (checksum(body) == sum).then(|| ApiTokenHash(Sha256::digest(token.as_bytes()).into()))
    }

    /// What is stored.
    #[must_use]
    pub fn hash(&self) -> ApiTokenHash {
        ApiTokenHash(Sha256::digest(self.0.as_bytes()).into())
    }

    /// The last characters, to tell tokens apart.
    #[must_use]
    pub fn hint(&self) -> String {
        let start = self.0.len().saturating_sub(HINT_CHARS);
        self.0.get(start..).unwrap_or_default().to_owned()
    }

    /// The text, for the one answer that shows it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiTokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiTokenSecret(…)")
    }
}

fn checksum(body: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update(CHECKSUM_DOMAIN);
    hasher.update(body.as_bytes());
    HEXLOWER.encode(hasher.finalize().get(..CHECKSUM_BYTES).unwrap_or_default())
}

/// The end of a token before its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revocation {
    /// When.
    pub at: Timestamp,
    /// Why; may be empty.
    pub reason: String,
}

/// Whether a token is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiTokenState {
    /// It is.
    Active,
    /// Its time is over.
    Expired,
    /// It was revoked.
    Revoked,
}

/// A bearer token, without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiToken {
    /// Unique for ever.
    pub id: ApiTokenId,
    /// The one tenant it is bound to; none means every tenant.
    pub tenant: Option<TenantId>,
    /// Last part of its name; never given again.
    pub slug: ResourceId,
    /// For people.
    pub description: String,
    /// What it may do.
    pub role: Role,
    /// SHA-256 of its text.
    pub hash: ApiTokenHash,
    /// The last characters of its text.
    pub hint: String,
    /// Subject of the caller that made it.
    pub creator: String,
    /// From then on it is refused.
    pub expires_at: Timestamp,
    /// When it was revoked, and why.
    pub revoked: Option<Revocation>,
    /// When it was last taken, coarsely. No part of the configuration: writes leave it alone.
    pub last_used_at: Option<Timestamp>,
    /// Times and revision.
    pub meta: Meta,
}

impl ApiToken {
    /// Whether it is taken at this time.
    #[must_use]
    pub fn state(&self, now: Timestamp) -> ApiTokenState {
        // One that ended by itself is marked as revoked later on, which is no news to people.
        let ended_before = self.revoked.as_ref().is_some_and(|end| end.at < self.expires_at);
        if now >= self.expires_at && !ended_before {
            ApiTokenState::Expired
        } else if self.revoked.is_some() {
            ApiTokenState::Revoked
        } else {
            ApiTokenState::Active
        }
    }

    /// The full name, which is also the subject of its calls; `tenant` is the name of its tenant.
    #[must_use]
    pub fn name(tenant: Option<&ResourceId>, slug: &ResourceId) -> String {
        match tenant {
            Some(tenant) => format!("tenants/{tenant}/{COLLECTION}/{slug}"),
            None => format!("{COLLECTION}/{slug}"),
        }
    }

    /// Whether a subject has the form of a token's name. Nobody else may have one: the record would
    /// name the wrong caller.
    #[must_use]
    pub fn is_name(subject: &str) -> bool {
        subject.split('/').rev().nth(1) == Some(COLLECTION)
    }

    /// Lets it expire sooner.
    ///
    /// # Errors
    /// What is wrong with the time.
    pub fn shorten(&mut self, expires_at: Timestamp) -> Result<(), &'static str> {
        if expires_at > self.expires_at {
            return Err("is later than it was; a token's life can only be shortened: make another");
        }
        self.expires_at = expires_at;
        Ok(())
    }
}

impl ApiToken {
    /// The expiry of a token made now: as wanted, or [`api_token_limits::TTL_DEFAULT`] from now; within
    /// bounds, and not after the token it is made with.
    ///
    /// # Errors
    /// What is wrong with the time.
    pub fn expiry(
        now: Timestamp,
        wanted: Option<Timestamp>,
        maker_expires_at: Option<Timestamp>,
    ) -> Result<Timestamp, String> {
        use api_token_limits::{TTL_DEFAULT, TTL_MAX, TTL_MIN};
        let last = maker_expires_at.unwrap_or(Timestamp::MAX);
        let wanted = wanted.unwrap_or_else(|| last.min(now + TTL_DEFAULT));
        if wanted < now + TTL_MIN {
            return Err(format!("is less than {} s ahead; use a later time", TTL_MIN.as_secs()));
        }
        if wanted > now + TTL_MAX {
            let days = TTL_MAX.as_secs() / (24 * 3600);
            return Err(format!("is more than {days} days ahead; use an earlier time"));
        }
        if wanted > last {
            return Err("is after the expiry of the token that it is made with".to_owned());
        }
        Ok(wanted)
    }
}

impl Audited for ApiToken {
    fn fields(&self) -> Fields {
        let mut fields = Fields::new();
        let mut put = |field: &str, value: String| {
            if !value.is_empty() {
                fields.insert(field.to_owned(), value);
            }
        };
        put("uid", self.id.to_string());
        put("description", self.description.clone());
        put("role", self.role.as_str().to_owned());
        put("expire_time", format!("{}us", self.expires_at.micros()));
        if let Some(Revocation { at, reason }) = &self.revoked {
            put("revoke_time", format!("{}us", at.micros()));
            put("revoke_reason", reason.clone());
        }
        fields
    }
}

/// Keeps API tokens. Rows are as in [`ConfigStore`](crate::ConfigStore): revisions, conditional
/// updates, an audit entry with every change. Those of no tenant are in the platform's record.
#[async_trait]
pub trait ApiTokenStore: Send + Sync + 'static {
    /// Adds a token. Fails with [`Error::AlreadyExists`] when the name was ever given, and with
    /// [`Error::Precondition`] when its owner has [`api_token_limits::VALID_MAX`] tokens that are
    /// valid when it is made.
    async fn create_api_token(
        &self,
        token: ApiToken,
        by: &ChangeContext,
    ) -> Result<ApiToken, Error>;

    /// Finds a token, whatever its state. No tenant means those for every tenant, here and below.
    async fn api_token(
        &self,
        tenant: Option<TenantId>,
        slug: &ResourceId,
    ) -> Result<Option<ApiToken>, Error>;

    /// Lists tokens by name, after the one given; only those that are valid at a time, or all.
    async fn api_tokens(
        &self,
        tenant: Option<TenantId>,
        valid_at: Option<Timestamp>,
        after: Option<&str>,
        limit: u16,
    ) -> Result<Vec<ApiToken>, Error>;

    /// Replaces description, expiry and revocation of a token that still has the revision
    /// `expected`.
    async fn update_api_token(
        &self,
        token: ApiToken,
        expected: Revision,
        by: &ChangeContext,
    ) -> Result<ApiToken, Error>;

    /// Ends one token that expired before this time, the one that expired first, for everybody who
    /// follows the configuration: they hear of it as of one that was revoked. Says which; none when
    /// nothing is due. Its row stays, since names are never given again.
    async fn end_expired_api_token(
        &self,
        expired_before: Timestamp,
        by: &ChangeContext,
    ) -> Result<Option<String>, Error>;

    /// Notes when tokens were last used. No change of configuration: it makes no revision and no
    /// audit entry, and an earlier time than the one noted changes nothing.
    async fn note_api_token_uses(&self, uses: &[(ApiTokenId, Timestamp)])
    -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn token() -> ApiToken {
        let secret = ApiTokenSecret::from_random(&[7; 32]);
        ApiToken {
            id: ApiTokenId::from_uuid(uuid::Uuid::from_u128(1)),
            tenant: None,
            slug: ResourceId::new("ci").unwrap(),
            description: String::new(),
            role: Role::Publisher,
            hash: secret.hash(),
            hint: secret.hint(),
            creator: "alice".to_owned(),
            expires_at: at(100),
            revoked: None,
            last_used_at: None,
            meta: Meta::default(),
        }
    }

    #[test]
    fn a_token_is_found_by_its_own_hash_and_has_one_form() {
        let secret = ApiTokenSecret::from_random(&[0xab; 32]);
        let text = secret.reveal();
        assert_eq!(text.len(), 76);
        assert!(text.starts_with("tbk_abab"), "{text}");
        assert!(ApiTokenSecret::is_meant(text));
        assert_eq!(ApiTokenSecret::hash_of(text), Some(secret.hash()));
        assert!(text.ends_with(&secret.hint()));
        let other = ApiTokenSecret::from_random(&[0xac; 32]);
        assert!(other.hash() != secret.hash());
    }

    #[test]
    fn what_was_never_made_is_known_without_a_look_up() {
        let good = ApiTokenSecret::from_random(&[3; 32]).reveal().to_owned();
        for index in 0..good.len() {
            let mut typed = good.clone().into_bytes();
            typed[index] = if typed[index] == b'1' { b'2' } else { b'1' };
            let typed = String::from_utf8(typed).unwrap();
            assert_eq!(ApiTokenSecret::hash_of(&typed), None, "{typed}");
        }
        let upper = good.to_uppercase();
        let longer = format!("{good}0");
        let wide = format!("tbk_{}", "ä".repeat(36));
        for bad in ["", "tbk_", &good[..75], &longer, &upper, &wide, "tbk_x", "eyJ.e30.x"] {
            assert_eq!(ApiTokenSecret::hash_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn no_debug_text_tells_a_token() {
        let secret = ApiTokenSecret::from_random(&[0xab; 32]);
        let text = format!("{secret:?} {:?} {:?}", secret.hash(), token());
        assert!(!text.contains("abab") && !text.contains("tbk_"), "{text}");
    }

    #[test]
    fn the_clock_and_a_revocation_end_a_token() {
        let mut token = token();
        assert_eq!(token.state(at(99)), ApiTokenState::Active);
        assert_eq!(token.state(at(100)), ApiTokenState::Expired);
        token.revoked = Some(Revocation { at: at(5), reason: String::new() });
        assert_eq!(token.state(at(99)), ApiTokenState::Revoked);
    }

    #[test]
    fn a_life_is_only_ever_shortened() {
        let mut token = token();
        assert!(token.shorten(at(101)).is_err());
        assert_eq!(token.shorten(at(50)), Ok(()));
        assert!(token.shorten(at(51)).is_err());
        assert_eq!(token.expires_at, at(50));
    }

    #[test]
    fn expiries_are_bounded_and_no_child_outlives_its_maker() {
        let now = at(0);
        let expiry = |wanted, maker| ApiToken::expiry(now, wanted, maker);
        assert_eq!(expiry(None, None), Ok(now + 90 * DAY));
        assert_eq!(expiry(None, Some(now + DAY)), Ok(now + DAY));
        assert_eq!(expiry(Some(now + 400 * DAY), None), Ok(now + 400 * DAY));
        for (wanted, maker) in [
            (now + 400 * DAY + Duration::from_micros(1), None),
            (now + Duration::from_secs(59), None),
            (now - DAY, None),
            (Timestamp::MAX, None),
            (now + 2 * DAY, Some(now + DAY)),
        ] {
            assert!(expiry(Some(wanted), maker).is_err(), "{wanted:?}");
        }
        assert!(expiry(None, Some(now + Duration::from_secs(1))).is_err());
    }

    #[test]
    fn names_of_tokens_are_told_from_other_subjects() {
        let shop = ResourceId::new("shop").unwrap();
        let slug = ResourceId::new("ci").unwrap();
        for tenant in [None, Some(&shop)] {
            assert!(ApiToken::is_name(&ApiToken::name(tenant, &slug)));
        }
        for other in ["alice", "apiTokens", "system:serviceaccount:a:b", "tenants/a", "a/apiTokens"]
        {
            assert!(!ApiToken::is_name(other), "{other}");
        }
    }
}
