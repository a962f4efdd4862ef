//! Adds the bearer token and the deadline to every call.

use crate::options::TokenSource;
use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};
use tonic::{
    Request, Status,
    metadata::{Ascii, MetadataValue},
    service::Interceptor,
};

/// Largest token file: a JWT with many claims is a few KiB, and a wrong path may be anything.
const MAX_TOKEN_BYTES: u64 = 16 * 1024;

/// Why a token cannot be used. Never holds the token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read the token file {path}: {cause}")]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The file is too long to be a token.
    #[error("the token file {0} has more than 16 KiB: is it the right file?")]
    TooLong(PathBuf),
    /// There is no token in it.
    #[error("the token is empty")]
    Empty,
    /// It has characters that no token has.
    #[error("the token has characters that cannot be sent in a header")]
    Malformed,
}

/// Interceptor of every generated client. Cloning shares the cached token.
#[derive(Clone)]
pub struct Auth {
    deadline: Duration,
    token: Option<Token>,
}

#[derive(Clone)]
enum Token {
    Fixed(MetadataValue<Ascii>),
    File(Arc<TokenFile>),
}

/// Cache of a token file by what a change of the file changes.
struct TokenFile {
    path: PathBuf,
    cached: Mutex<(Stamp, MetadataValue<Ascii>)>,
}

type Stamp = (Option<SystemTime>, u64);

impl Auth {
    pub(crate) fn new(source: Option<TokenSource>, deadline: Duration) -> Result<Self, TokenError> {
        let token = match source {
            None => None,
            Some(TokenSource::Text(text)) => Some(Token::Fixed(bearer(&text)?)),
            Some(TokenSource::File(path)) => {
                let cached = Mutex::new(read(&path)?);
                Some(Token::File(Arc::new(TokenFile { path, cached })))
            }
        };
        Ok(Self { deadline, token })
    }
}

impl Interceptor for Auth {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.token {
            let value = match token {
                Token::Fixed(value) => value.clone(),
                Token::File(file) => {
                    file.current().map_err(|error| Status::unauthenticated(error.to_string()))?
                }
            };
            request.metadata_mut().insert("authorization", value);
        }
        if request.metadata().get("grpc-timeout").is_none() {
            request.set_timeout(self.deadline);
        }
        Ok(request)
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = match &self.token {
            None => "none",
            Some(Token::Fixed(_)) => "fixed",
            Some(Token::File(_)) => "file",
        };
        f.debug_struct("Auth").field("deadline", &self.deadline).field("token", &token).finish()
    }
}

impl TokenFile {
    /// The token of now. While the file is being replaced and cannot be read, the one before.
    fn current(&self) -> Result<MetadataValue<Ascii>, TokenError> {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(metadata) = fs::metadata(&self.path) else {
            return Ok(cached.1.clone());
        };
        if cached.0 != stamp(&metadata) {
            *cached = read(&self.path)?;
        }
        Ok(cached.1.clone())
    }
}

fn stamp(metadata: &fs::Metadata) -> Stamp {
    (metadata.modified().ok(), metadata.len())
}

fn read(path: &Path) -> Result<(Stamp, MetadataValue<Ascii>), TokenError> {
    let unreadable = |cause| TokenError::Unreadable { path: path.to_owned(), cause };
    // The stamp is taken first: a change in between makes the next call read again.
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if metadata.len() > MAX_TOKEN_BYTES {
        return Err(TokenError::TooLong(path.to_owned()));
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    Ok((stamp(&metadata), bearer(&text)?))
}

fn bearer(token: &str) -> Result<MetadataValue<Ascii>, TokenError> {
    let token = token.trim();
    if token.is_empty() {
        return Err(TokenError::Empty);
    }
    let mut value =
        MetadataValue::try_from(format!("Bearer {token}")).map_err(|_| TokenError::Malformed)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(auth: &mut Auth) -> String {
        let request = auth.call(Request::new(())).unwrap();
        request.metadata().get("authorization").unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn a_text_token_goes_out_as_bearer_and_with_the_deadline() {
        let source = TokenSource::Text(" abc\n".into());
        let mut auth = Auth::new(Some(source), Duration::from_secs(3)).unwrap();
        let request = auth.call(Request::new(())).unwrap();
        assert_eq!(request.metadata().get("authorization").unwrap(), "Bearer abc");
        assert!(request.metadata().contains_key("grpc-timeout"));
    }

    #[test]
    fn a_deadline_of_the_call_itself_wins() {
        let mut auth = Auth::new(None, Duration::from_secs(3)).unwrap();
        let mut request = Request::new(());
        request.set_timeout(Duration::from_millis(7));
        let before = request.metadata().get("grpc-timeout").cloned();
        let after = auth.call(request).unwrap();
        assert_eq!(after.metadata().get("grpc-timeout").cloned(), before);
    }

    #[test]
    fn a_changed_token_file_is_read_again_and_a_missing_one_keeps_the_last_token() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "first\n").unwrap();
        let mut auth =
            Auth::new(Some(TokenSource::File(path.clone())), Duration::from_secs(1)).unwrap();
        assert_eq!(sent(&mut auth), "Bearer first");
        fs::write(&path, "second-token\n").unwrap();
        assert_eq!(sent(&mut auth), "Bearer second-token");
        fs::remove_file(&path).unwrap();
        assert_eq!(sent(&mut auth), "Bearer second-token");
    }

    #[test]
    fn empty_malformed_and_missing_tokens_are_told_apart_without_showing_them() {
        let text = |text: &str| {
            Auth::new(Some(TokenSource::Text(text.into())), Duration::from_secs(1)).unwrap_err()
        };
        assert!(matches!(text("  "), TokenError::Empty));
        let malformed = text("sec\u{1}ret");
        assert!(matches!(malformed, TokenError::Malformed));
        assert!(!malformed.to_string().contains("ret\u{1}"));
        let missing = TokenSource::File("/nonexistent/token".into());
        let error = Auth::new(Some(missing), Duration::from_secs(1)).unwrap_err();
        assert!(matches!(error, TokenError::Unreadable { .. }));
    }
}
