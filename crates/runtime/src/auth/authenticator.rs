//! From a bearer token to a caller.

use super::{AUDIENCE, ISSUER, TokenKey, is_subject};
use http::HeaderValue;
use jsonwebtoken::{Algorithm, Header, Validation, decode};
use metrics::counter;
use serde::{Deserialize, Deserializer};
use std::{fmt, sync::Arc, time::Duration};
use turnbuckle_domain::{Caller, Clock, Error, ResourceId, Role, Timestamp};

/// Longest token looked at. Ours have about 300 bytes; checking costs time before trust.
const TOKEN_MAX: usize = 8 * 1024;

/// How far the issuer's clock and ours may differ.
const LEEWAY: Duration = Duration::from_secs(10);

/// 9999-12-31T23:59:59Z: later expiry is a fault, and would overflow microseconds in the end.
const SECONDS_MAX: i64 = 253_402_300_799;

/// What a refused caller is told, whichever check failed.
const REFUSAL: &str = "no valid credentials: send a current token as authorization: Bearer <token>";

/// Why a token was refused. For the metric only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    Missing,
    Scheme,
    Size,
    Invalid,
    Claims,
    Expired,
    NotYetValid,
}

impl Refusal {
    const fn label(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Scheme => "scheme",
            Self::Size => "size",
            Self::Invalid => "invalid",
            Self::Claims => "claims",
            Self::Expired => "expired",
            Self::NotYetValid => "not_yet_valid",
        }
    }

    /// Counts the refusal and forgets the reason.
    pub(super) fn into_error(self) -> Error {
        counter!("turnbuckle_auth_refusals_total", "reason" => self.label()).increment(1);
        Error::Unauthenticated { message: REFUSAL }
    }
}

/// What we read of a token. Types are exact: a number where text belongs, or text where a number
/// belongs, refuses the token, as does a claim that is there twice.
#[derive(Deserialize)]
struct Claims {
    /// The library would take a list; we have one issuer.
    iss: String,
    sub: String,
    role: String,
    exp: i64,
    #[serde(default, deserialize_with = "present")]
    nbf: Option<i64>,
    #[serde(default, deserialize_with = "present")]
    tenant: Option<String>,
}

/// Reads a claim that may be left out but not null: an issuer that failed to find the tenant must
/// not make a token for all tenants.
fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Checks bearer tokens.
#[derive(Clone)]
pub struct Authenticator {
    key: TokenKey,
    clock: Arc<dyn Clock>,
    validation: Arc<Validation>,
}

impl Authenticator {
    /// Takes tokens signed with this key; time comes from the clock.
    #[must_use]
    pub fn new(key: TokenKey, clock: Arc<dyn Clock>) -> Self {
        // The algorithm is fixed here and never taken from a token.
        let mut validation = Validation::new(Algorithm::HS256);
        // By default the library takes a token without these claims, even when values are set.
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.set_issuer(&[ISSUER]);
        validation.set_audience(&[AUDIENCE]);
        // It would read the system's clock, and round a fractional time: see `check_time`.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        Self { key, clock, validation: Arc::new(validation) }
    }

    /// The caller that an `authorization` header proves.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`], always with the same text.
    pub fn authenticate(&self, header: &HeaderValue) -> Result<Caller, Error> {
        self.check(header).map_err(Refusal::into_error)
    }

    pub(super) fn check(&self, header: &HeaderValue) -> Result<Caller, Refusal> {
        let token = bearer(header)?;
        let decoded = decode::<Claims>(token, self.key.checking(), &self.validation)
            .map_err(|_| Refusal::Invalid)?;
        check_header(&decoded.header)?;
        check_time(&decoded.claims, self.clock.now())?;
        caller(decoded.claims).ok_or(Refusal::Claims)
    }
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authenticator(HS256)")
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

/// Refuses other kinds of signed objects, and headers that ask for special treatment.
fn check_header(header: &Header) -> Result<(), Refusal> {
    let plain = header.crit.is_none()
        && header.typ.as_deref().is_none_or(|kind| kind.eq_ignore_ascii_case("jwt"));
    if plain { Ok(()) } else { Err(Refusal::Invalid) }
}

fn check_time(claims: &Claims, now: Timestamp) -> Result<(), Refusal> {
    let expiry = point(claims.exp).ok_or(Refusal::Claims)?;
    if now >= expiry + LEEWAY {
        return Err(Refusal::Expired);
    }
    let Some(start) = claims.nbf else {
        return Ok(());
    };
    let start = point(start).ok_or(Refusal::Claims)?;
    if now + LEEWAY < start { Err(Refusal::NotYetValid) } else { Ok(()) }
}

fn point(seconds: i64) -> Option<Timestamp> {
    (0..=SECONDS_MAX)
        .contains(&seconds)
        .then(|| Timestamp::from_micros(seconds.saturating_mul(1_000_000)))
}

fn caller(claims: Claims) -> Option<Caller> {
    if claims.iss != ISSUER || !is_subject(&claims.sub) {
        return None;
    }
    let role = Role::parse(&claims.role)?;
    let tenant = claims.tenant.map(ResourceId::new).transpose().ok()?;
    Some(Caller { subject: claims.sub, role, tenant })
}
