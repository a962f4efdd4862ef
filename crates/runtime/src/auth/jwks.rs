//! The public keys of issuers: read from a file or an address, kept, and read again.
//!
//! ```text
//!  check ─► KeyCache::find ─┬─ known ────────────────────────────► key
//!                           ├─ unknown, read long ago ─► wish ─┐
//!                           └─ unknown, read just now ─► none  ▼
//!                            JwksRefresher: one task per issuer, one read at a time
//! ```
//!
//! # Invariants
//! - Tokens cannot make us read more often than the source's cooldown, whatever they name.
//! - A read that fails changes nothing: the last good keys stay.
//! - A read that succeeds is obeyed: a key that is gone is refused from then on.

mod cache;
mod document;
mod refresher;
mod source;

pub(super) use cache::{KeyCache, Lookup, Round};
pub use refresher::JwksRefresher;
pub use source::{JwksAnswer, JwksFetch, JwksFetchError, JwksRequest};

use std::{path::PathBuf, time::Duration};

/// Largest set of keys read. Real ones have a few KiB.
pub const JWKS_SIZE_MAX: usize = 1024 * 1024;

/// Longest time for one read from an address: callers with a new key wait for it.
pub const JWKS_FETCH_TIMEOUT: Duration = Duration::from_secs(5);

/// Keys of an issuer cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JwksError {
    /// The operating system refused.
    #[error("cannot read {path}: {cause}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not. Part of the text, so it is no `source`: a chain would say it twice.
        cause: std::io::Error,
    },
    /// The address gave no answer that counts.
    #[error(transparent)]
    Fetch(#[from] JwksFetchError),
    /// It took too long.
    #[error("no answer within {JWKS_FETCH_TIMEOUT:?}")]
    TimedOut,
    /// It is too large.
    #[error("it has more than {JWKS_SIZE_MAX} bytes")]
    TooLarge,
    /// The token for the address is not one.
    #[error("{} is not one line that can be sent as a token", .0.display())]
    Token(PathBuf),
    /// It is no set of keys.
    #[error("it is no JSON Web Key Set: {0}")]
    Malformed(String),
    /// At the start, a file without keys is a mistake.
    #[error("{path} has no {algorithm} key that can be used: see the log for why", path = .path.display())]
    NoKeys {
        /// The file.
        path: PathBuf,
        /// The issuer's algorithm.
        algorithm: String,
    },
}
