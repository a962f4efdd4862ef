//! Who calls, and whether they may: bearer tokens, and the permission that the proto demands.
//!
//! ```text
//!  request ─► path known? ─► token valid? ─► role allows the method's permission? ─► handler
//!               │ no             │ no                │ no                             (Caller in
//!               ▼                ▼                   ▼                                 extensions)
//!          UNIMPLEMENTED   UNAUTHENTICATED    PERMISSION_DENIED ─► Denials ─► audit record
//! ```
//!
//! # Invariants
//! - A method without a permission in the proto stops the start; a method that the descriptors do
//!   not know is not reachable.
//! - Refusals have constant texts. Which check failed is counted, and never sent.
//! - Expiry is judged by the clock port.
//! - A token is signed by an issuer, or it is an API token: its form says which, and then nothing else
//!   is tried.
//! - What is denied to a known caller is noted for the audit record.
//! - Nothing in a token chooses how it is checked: its `iss` finds the issuer, and the issuer's
//!   configuration says which algorithm, keys and audiences count.

mod api_tokens;
mod authenticator;
mod claims;
mod config;
mod denials;
mod issuer;
mod jwks;
mod layer;
mod policy;
mod refusal;
mod token;
mod watch;

#[cfg(test)]
mod tests;

pub use api_tokens::{
    ApiTokenFollower, ApiTokenPropagation, ApiTokenUses, ApiTokens, ObservedConfig,
};
pub use authenticator::Authenticator;
pub use config::{AuthConfig, AuthConfigError};
pub use denials::Denials;
pub use jwks::{
    JWKS_FETCH_TIMEOUT, JWKS_SIZE_MAX, JwksAnswer, JwksError, JwksFetch, JwksFetchError,
    JwksRefresher, JwksRequest,
};
pub use layer::{AuthLayer, AuthMode, AuthService};
pub use policy::PolicyError;
pub use token::{TokenKey, TokenKeyError};
pub use watch::Watched;

use jsonwebtoken::crypto::rust_crypto::DEFAULT_PROVIDER;
use turnbuckle_domain::ApiToken;

/// The `iss` claim of our tokens.
const ISSUER: &str = "turnbuckle";

/// The `aud` claim of tokens for the API.
const AUDIENCE: &str = "turnbuckle-api";

/// Longest subject: it is logged and stored with changes.
const SUBJECT_MAX: usize = 256;

/// Whether a text can be the subject of a signed token: something readable of bounded length, and no
/// name of an API token, which the audit record would take for that token.
fn is_subject(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= SUBJECT_MAX
        && !text.chars().any(char::is_control)
        && !ApiToken::is_name(text)
}

/// Another crate may switch on the token library's second backend; with two and no choice made, the
/// first use would panic. An error means that a choice was made before, which is as good.
fn choose_crypto() {
    DEFAULT_PROVIDER.install_default().unwrap_or_default();
}
