//! What a client needs to know.

use crate::publish::RetryLimits;
use std::{fmt, path::PathBuf, time::Duration};

/// Deadline of one call: above the server's own statement timeouts, below human patience.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(10);

/// Where the bearer token comes from.
#[derive(Clone, PartialEq, Eq)]
pub enum TokenSource {
    /// The token itself.
    Text(String),
    /// A file with the token and nothing else but white space, read again when it changes.
    File(PathBuf),
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(…)"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

/// How to reach a server and as whom.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// `http://host:port` or `https://host:port`.
    pub url: String,
    /// Bearer token. None sends none.
    pub token: Option<TokenSource>,
    /// Longest time for one call, also told to the server.
    pub deadline: Duration,
    /// Certificate authorities in PEM form that `https` servers may have besides the public ones.
    pub ca_pem: Option<Vec<u8>>,
    /// How `publish` repeats.
    pub retry: RetryLimits,
}

impl ClientOptions {
    /// Defaults for a URL: no token, 10 s for a call, up to 5 tries of a publish.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            token: None,
            deadline: DEFAULT_DEADLINE,
            ca_pem: None,
            retry: RetryLimits::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_text_never_shows_a_token() {
        let options = ClientOptions {
            token: Some(TokenSource::Text("eyJ-secret".into())),
            ..ClientOptions::new("http://localhost:1")
        };
        assert!(!format!("{options:?}").contains("secret"));
    }
}
