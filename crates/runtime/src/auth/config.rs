//! The file that names the issuers whose tokens are taken.

mod raw;

use super::{claims::TimeRules, issuer::Mapping};
use jsonwebtoken::Algorithm;
use std::{
    fmt, fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

/// Largest file read: thousands of subjects fit.
const SIZE_MAX: u64 = 1024 * 1024;

/// The file cannot be used. Lists everything wrong with it.
#[derive(Debug, thiserror::Error)]
pub enum AuthConfigError {
    /// The operating system refused.
    #[error("cannot read {path}: {cause}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not. Part of the text, so it is no `source`: a chain would say it twice.
        cause: io::Error,
    },
    /// It is larger than any such file.
    #[error("{} has more than {SIZE_MAX} bytes: it is no authentication configuration", .0.display())]
    TooLarge(PathBuf),
    /// What is wrong, each with its place in the file.
    #[error("{}", .0.join("; "))]
    Faults(Vec<String>),
}

/// Whose tokens are taken, and what they may do.
#[derive(Debug, Clone)]
pub struct AuthConfig {
    pub(super) issuers: Vec<IssuerConfig>,
}

/// One issuer, checked.
#[derive(Debug, Clone)]
pub(super) struct IssuerConfig {
    pub(super) issuer: String,
    pub(super) audiences: Vec<String>,
    pub(super) algorithm: Algorithm,
    pub(super) keys: KeysAt,
    pub(super) times: TimeRules,
    pub(super) mapping: Mapping,
}

/// Where an issuer's keys are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeysAt {
    /// In a file.
    File(PathBuf),
    /// At an address, which may ask for a token.
    Address { url: String, token_file: Option<PathBuf> },
}

impl AuthConfig {
    /// Reads the file. Paths in it are relative to its directory.
    ///
    /// # Errors
    /// Everything wrong with it at once.
    pub fn load(path: &Path) -> Result<Self, AuthConfigError> {
        let failed = |cause| AuthConfigError::File { path: path.to_owned(), cause };
        let mut text = String::new();
        let file = fs::File::open(path).map_err(failed)?;
        file.take(SIZE_MAX + 1).read_to_string(&mut text).map_err(failed)?;
        if u64::try_from(text.len()).unwrap_or(u64::MAX) > SIZE_MAX {
            return Err(AuthConfigError::TooLarge(path.to_owned()));
        }
        Self::parse(&text, path.parent().unwrap_or_else(|| Path::new("")))
    }

    /// Reads TOML. Paths in it are relative to the directory.
    ///
    /// # Errors
    /// Everything wrong with it at once.
    pub fn parse(text: &str, directory: &Path) -> Result<Self, AuthConfigError> {
        raw::read(text, directory).map_err(AuthConfigError::Faults)
    }

    /// Addresses that keys are fetched from, so that they can be judged at the start.
    pub fn addresses(&self) -> impl Iterator<Item = &str> {
        self.issuers.iter().filter_map(|issuer| match &issuer.keys {
            KeysAt::Address { url, .. } => Some(url.as_str()),
            KeysAt::File(_) => None,
        })
    }
}

impl fmt::Display for AuthConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.issuers.iter().map(|issuer| issuer.issuer.as_str()).collect();
        f.write_str(&names.join(", "))
    }
}
