//! The way out for documents that others publish: keys, certificates, confirmations.

use async_trait::async_trait;
use std::time::Duration;

/// A document that was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedDocument {
    /// Its bytes.
    pub body: Vec<u8>,
    /// How long its owner says that it may be used.
    pub max_age: Option<Duration>,
}

/// Why there is no document. The texts are for operators and hold no part of the address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchFault {
    /// The address must not be asked.
    #[error("{0}")]
    Address(String),
    /// It was asked, and what it answered is no document: asking again at once is in vain.
    #[error("{0}")]
    Answer(String),
    /// It cannot be reached now.
    #[error("{0}")]
    Unreachable(String),
}

/// Fetches documents. Implemented where connections are made, behind the guard against unwanted
/// addresses.
#[async_trait]
pub trait DocumentFetch: Send + Sync + 'static {
    /// GETs the address: no redirect is followed, nothing but 200 counts, and no more than
    /// `max_bytes` are read. Given up after `timeout`.
    ///
    /// # Errors
    /// Why there is no document.
    async fn fetch(
        &self,
        url: &str,
        max_bytes: usize,
        timeout: Duration,
    ) -> Result<FetchedDocument, FetchFault>;
}
