//! Why a token is refused: counted, and never told.

use metrics::counter;
use turnbuckle_domain::Error;

/// What a refused caller is told, whichever check failed.
const MESSAGE: &str = "no valid credentials: send a current token as authorization: Bearer <token>";

/// Why a token was refused. For the metric only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    Missing,
    Scheme,
    Size,
    Invalid,
    Issuer,
    Key,
    Claims,
    Expired,
    /// An API token that is mistyped, revoked, or was never made.
    ApiToken,
    NotYetValid,
}

impl Refusal {
    const fn label(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Scheme => "scheme",
            Self::Size => "size",
            Self::Invalid => "invalid",
            Self::Issuer => "issuer",
            Self::Key => "key",
            Self::Claims => "claims",
            Self::Expired => "expired",
            Self::ApiToken => "api_token",
            Self::NotYetValid => "not_yet_valid",
        }
    }

    /// Counts the refusal and forgets the reason.
    pub(super) fn into_error(self) -> Error {
        counter!("turnbuckle_auth_refusals_total", "reason" => self.label()).increment(1);
        Error::Unauthenticated { message: MESSAGE }
    }
}
