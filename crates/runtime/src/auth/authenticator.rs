//! From a bearer token to a caller.

use super::{
    ApiTokens, AuthConfig, TokenKey,
    issuer::{Issuer, Miss},
    jwks::{JwksError, JwksFetch, JwksRefresher, KeyCache},
    refusal::Refusal,
};
use http::HeaderValue;
use jsonwebtoken::dangerous::insecure_decode;
use serde::Deserialize;
use std::{collections::BTreeMap, fmt, sync::Arc};
use turnbuckle_domain::{ApiTokenSecret, Caller, Clock, Error};

/// Longest token looked at. Ours have about 300 bytes, those of identity providers with groups in
/// them a few thousand; checking costs time before trust.
const TOKEN_MAX: usize = 8 * 1024;

/// Dots in a signed token: header, claims, signature.
const JWT_DOTS: usize = 2;

/// Checks bearer tokens.
#[derive(Clone)]
pub struct Authenticator {
    /// By the name that tokens carry as `iss`.
    issuers: Arc<BTreeMap<String, Issuer>>,
    api_tokens: ApiTokens,
    clock: Arc<dyn Clock>,
}

/// The one claim that is read before the signature is checked: it only chooses who checks.
#[derive(Deserialize)]
struct Claimed {
    iss: String,
}

impl Authenticator {
    /// Takes tokens signed with this key; time comes from the clock.
    #[must_use]
    pub fn new(key: TokenKey, clock: Arc<dyn Clock>) -> Self {
        Self::of([Issuer::own(key)], clock)
    }

    /// Takes tokens of the configured issuers, and our own where there is a key. The refreshers
    /// must run as long as tokens are checked. Key files are read here, key addresses are not.
    ///
    /// # Errors
    /// When a key file cannot be read, or has no key that can be used.
    pub fn with_issuers(
        config: AuthConfig,
        key: Option<TokenKey>,
        fetch: &Arc<dyn JwksFetch>,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, Vec<JwksRefresher>), JwksError> {
        super::choose_crypto();
        let mut issuers: Vec<_> = key.map(Issuer::own).into_iter().collect();
        let mut refreshers = Vec::new();
        for issuer in config.issuers {
            let (cache, refresher) = KeyCache::open(&issuer, fetch, &clock)?;
            issuers.push(Issuer::published(issuer, cache));
            refreshers.push(refresher);
        }
        Ok((Self::of(issuers, clock), refreshers))
    }

    fn of(issuers: impl IntoIterator<Item = Issuer>, clock: Arc<dyn Clock>) -> Self {
        let named = issuers.into_iter().map(|issuer| (issuer.name().to_owned(), issuer));
        Self { issuers: Arc::new(named.collect()), api_tokens: ApiTokens::default(), clock }
    }

    /// Also takes these API tokens.
    #[must_use]
    pub fn with_api_tokens(self, api_tokens: ApiTokens) -> Self {
        Self { api_tokens, ..self }
    }

    /// The caller that an `authorization` header proves. Waits, for seconds at most, while the
    /// issuer's keys are read again because the token names one that is not known yet.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`], always with the same text.
    pub async fn authenticate(&self, header: &HeaderValue) -> Result<Caller, Error> {
        let outcome = match self.check(header) {
            Err(Miss::Waiting(round)) => {
                round.ended().await;
                self.check(header)
            }
            outcome => outcome,
        };
        outcome.map_err(|miss| miss.into_refusal().into_error())
    }

    /// Every kind of credential is known by its shape, and checked by one way only.
    pub(super) fn check(&self, header: &HeaderValue) -> Result<Caller, Miss> {
        let token = bearer(header)?;
        if ApiTokenSecret::is_meant(token) {
            return Ok(self.api_tokens.check(token, self.clock.now())?);
        }
        if token.bytes().filter(|byte| *byte == b'.').count() == JWT_DOTS {
            self.check_jwt(token)
        } else {
            Err(Refusal::Invalid.into())
        }
    }

    fn check_jwt(&self, token: &str) -> Result<Caller, Miss> {
        let claimed = insecure_decode::<Claimed>(token).map_err(|_| Refusal::Invalid)?;
        let issuer = self.issuers.get(&claimed.claims.iss).ok_or(Refusal::Issuer)?;
        issuer.check(token, &claimed.header, self.clock.now())
    }
}

impl Miss {
    /// For those who have waited already, or cannot.
    pub(super) fn into_refusal(self) -> Refusal {
        match self {
            Self::Refused(refusal) => refusal,
            Self::Waiting(_) => Refusal::Key,
        }
    }
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Authenticator").field(&self.issuers.keys()).finish()
    }
}

/// The token of a `Bearer` header. The scheme's case does not matter.
fn bearer(header: &HeaderValue) -> Result<&str, Refusal> {
    if header.len() > TOKEN_MAX {
        return Err(Refusal::Size);
    }
    let text = header.to_str().map_err(|_| Refusal::Scheme)?;
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token),
        Some(_) | None => Err(Refusal::Scheme),
    }
}
