//! Where keys come from.

use super::{JWKS_FETCH_TIMEOUT, JWKS_SIZE_MAX, JwksError};
use async_trait::async_trait;
use http::HeaderValue;
use std::{
    fs::{File, Metadata},
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::time::timeout;
use zeroize::Zeroizing;

/// How often a file is looked at. Replaced keys count after this long.
const FILE_PERIOD: Duration = Duration::from_secs(5);
/// How soon after a look a token with an unknown key may ask for the next.
const FILE_COOLDOWN: Duration = Duration::from_secs(2);

/// The same for addresses: a flood of tokens costs the issuer two requests a minute.
const FETCH_COOLDOWN: Duration = Duration::from_secs(30);
/// Keys are read again at least this seldom, whatever the answer says: a mistaken header must not
/// make a flood.
const FRESH_MIN: Duration = Duration::from_secs(5 * 60);
/// And at least this often: a key that was withdrawn must go at last.
const FRESH_MAX: Duration = Duration::from_secs(24 * 3600);

/// Largest token sent to an address.
const TOKEN_MAX: u64 = 16 * 1024;

/// Reads keys from an address. Implemented where connections are made.
#[async_trait]
pub trait JwksFetch: Send + Sync + 'static {
    /// GETs the address. Follows no redirect, takes nothing but 200, and reads no more than
    /// [`JWKS_SIZE_MAX`] bytes. It is given up after [`JWKS_FETCH_TIMEOUT`].
    async fn fetch(&self, request: JwksRequest) -> Result<JwksAnswer, JwksFetchError>;
}

/// What to ask for.
#[derive(Debug, Clone)]
pub struct JwksRequest {
    /// The address.
    pub url: Arc<str>,
    /// Value of the `authorization` header, marked as sensitive.
    pub authorization: Option<HeaderValue>,
}

/// What came back.
#[derive(Debug, Clone)]
pub struct JwksAnswer {
    /// The body.
    pub body: Vec<u8>,
    /// The `cache-control` header.
    pub cache_control: Option<String>,
}

/// No answer, or none that counts: one sentence for the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JwksFetchError(pub String);

/// What a read brought.
pub(super) struct Reading {
    /// A document, unless it is the one that was read before.
    pub(super) document: Option<Vec<u8>>,
    /// How long it may be used.
    pub(super) fresh_for: Duration,
}

/// A place that keys are read from.
pub(super) enum Source {
    File(FileSource),
    Address(AddressSource),
}

impl Source {
    pub(super) async fn read(&mut self) -> Result<Reading, JwksError> {
        match self {
            Self::File(file) => {
                let (path, accepted) = (file.path.clone(), file.accepted);
                let reading = tokio::task::spawn_blocking(move || read_changed(&path, accepted));
                let read = reading.await.unwrap_or_else(|cause| {
                    Err(JwksError::File { path: file.path.clone(), cause: cause.into() })
                })?;
                Ok(file.keep(read))
            }
            Self::Address(address) => address.read().await,
        }
    }

    /// Told when the last document was good, so that only a changed one is read again.
    pub(super) fn accept(&mut self) {
        if let Self::File(file) = self {
            file.accepted = file.seen;
        }
    }

    pub(super) const fn cooldown(&self) -> Duration {
        match self {
            Self::File(_) => FILE_COOLDOWN,
            Self::Address(_) => FETCH_COOLDOWN,
        }
    }

    /// Where, for the log.
    pub(super) fn place(&self) -> String {
        match self {
            Self::File(file) => file.path.display().to_string(),
            Self::Address(address) => address.url.to_string(),
        }
    }
}

/// A file; changed by whoever gets the keys from the issuer.
pub(super) struct FileSource {
    path: PathBuf,
    seen: Option<Stamp>,
    accepted: Option<Stamp>,
}

/// What differs between one content of a file and the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    length: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

impl FileSource {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path, seen: None, accepted: None }
    }

    /// Reads in this thread, for the start.
    pub(super) fn read_here(&mut self) -> Result<Reading, JwksError> {
        let read = read_changed(&self.path, self.accepted)?;
        Ok(self.keep(read))
    }

    fn keep(&mut self, (stamp, document): (Stamp, Option<Vec<u8>>)) -> Reading {
        self.seen = Some(stamp);
        Reading { document, fresh_for: FILE_PERIOD }
    }
}

/// The content, unless it is the accepted one still.
fn read_changed(
    path: &Path,
    accepted: Option<Stamp>,
) -> Result<(Stamp, Option<Vec<u8>>), JwksError> {
    let failed = |cause: io::Error| JwksError::File { path: path.to_owned(), cause };
    let file = File::open(path).map_err(failed)?;
    // Before the content: a write in between shows as a change next time.
    let stamp = Stamp::of(&file.metadata().map_err(failed)?);
    if accepted == Some(stamp) {
        return Ok((stamp, None));
    }
    let limit = u64::try_from(JWKS_SIZE_MAX).unwrap_or(u64::MAX).saturating_add(1);
    let mut content = Vec::new();
    file.take(limit).read_to_end(&mut content).map_err(failed)?;
    Ok((stamp, Some(content)))
}

/// An address.
pub(super) struct AddressSource {
    pub(super) url: Arc<str>,
    pub(super) token_file: Option<PathBuf>,
    pub(super) fetch: Arc<dyn JwksFetch>,
}

impl AddressSource {
    async fn read(&self) -> Result<Reading, JwksError> {
        let request =
            JwksRequest { url: Arc::clone(&self.url), authorization: self.token().await? };
        let answer = timeout(JWKS_FETCH_TIMEOUT, self.fetch.fetch(request))
            .await
            .map_err(|_| JwksError::TimedOut)??;
        let fresh_for = freshness(answer.cache_control.as_deref().unwrap_or_default());
        Ok(Reading { document: Some(answer.body), fresh_for })
    }

    /// Read each time: such tokens are replaced under way.
    async fn token(&self) -> Result<Option<HeaderValue>, JwksError> {
        let Some(path) = self.token_file.clone() else {
            return Ok(None);
        };
        let reading = tokio::task::spawn_blocking(move || {
            let mut text = Zeroizing::new(String::new());
            let read =
                File::open(&path).and_then(|file| file.take(TOKEN_MAX).read_to_string(&mut text));
            read.map_err(|cause| JwksError::File { path: path.clone(), cause })?;
            let line = Zeroizing::new(format!("Bearer {}", text.trim()));
            let mut value = HeaderValue::from_str(&line).map_err(|_| JwksError::Token(path))?;
            value.set_sensitive(true);
            Ok(Some(value))
        });
        reading.await.map_err(|_| JwksError::TimedOut)?
    }
}

/// How long an answer may be used: its `max-age`, within our bounds.
fn freshness(cache_control: &str) -> Duration {
    let mut directives = cache_control.split(',').map(|part| part.trim().to_ascii_lowercase());
    let age = directives.find_map(|part| part.strip_prefix("max-age=")?.parse().ok());
    age.map_or(FRESH_MIN, Duration::from_secs).clamp(FRESH_MIN, FRESH_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_fresh_for_their_age_within_bounds() {
        for (header, seconds) in [
            ("", 300),
            ("no-store", 300),
            ("max-age=0", 300),
            ("public, Max-Age=3600, must-revalidate", 3600),
            ("max-age=999999999", 86_400),
            ("max-age=-1", 300),
            ("max-age=99999999999999999999999", 300),
            ("s-maxage=7200", 300),
        ] {
            assert_eq!(freshness(header).as_secs(), seconds, "{header}");
        }
    }
}
