//! The key that signs bearer tokens, and the tokens it signs.

use super::{AUDIENCE, ISSUER, choose_crypto, is_subject};
use crate::{RandomnessError, random::os_bytes, secret_file, secret_file::SecretFileError};
use data_encoding::BASE64;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, encode};
use serde::Serialize;
use std::{fmt, path::Path, time::Duration};
use turnbuckle_domain::{Error, ResourceId, Role, Timestamp};
use zeroize::Zeroizing;

/// Shortest key: HS256 is no stronger than its key, and asks for the length of its hash.
const KEY_LENGTH_MIN: usize = 32;

/// A token key cannot be used. Says nothing about the key.
#[derive(Debug, thiserror::Error)]
pub enum TokenKeyError {
    /// The file cannot be read or made.
    #[error("token key: {0}")]
    File(#[from] SecretFileError),
    /// Too short to be safe.
    #[error("the token key has {0} bytes; it needs at least {KEY_LENGTH_MIN}")]
    TooShort(usize),
    /// The key was not accepted by the token library.
    #[error("the token key is unusable")]
    Unusable,
    /// The operating system gave no randomness for a key.
    #[error(transparent)]
    Randomness(#[from] RandomnessError),
}

#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    aud: &'a str,
    sub: &'a str,
    role: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a str>,
    iat: i64,
    exp: i64,
}

/// A symmetric key (HS256): whoever can check tokens can also make them. Wiped when dropped.
#[derive(Clone)]
pub struct TokenKey {
    signing: EncodingKey,
    checking: DecodingKey,
}

impl TokenKey {
    /// Takes the bytes of a key.
    ///
    /// # Errors
    /// When there are fewer than 32.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TokenKeyError> {
        if bytes.len() < KEY_LENGTH_MIN {
            return Err(TokenKeyError::TooShort(bytes.len()));
        }
        choose_crypto();
        Ok(Self {
            signing: EncodingKey::from_secret(bytes).map_err(|_| TokenKeyError::Unusable)?,
            checking: DecodingKey::from_secret(bytes).map_err(|_| TokenKeyError::Unusable)?,
        })
    }

    /// A key that ends with the process, for development and demonstrations.
    ///
    /// # Errors
    /// When the operating system gives no randomness.
    pub fn generate_in_memory() -> Result<Self, TokenKeyError> {
        Self::from_bytes(&*Zeroizing::new(os_bytes::<KEY_LENGTH_MIN>()?))
    }

    /// Reads a key file: base64, or else the bytes themselves. A file that is valid base64 is
    /// always read as such.
    ///
    /// # Errors
    /// When others may read the file, or the key is too short.
    pub fn load(path: &Path) -> Result<Self, TokenKeyError> {
        let content = secret_file::read(path)?;
        match BASE64.decode(content.trim_ascii()).map(Zeroizing::new) {
            Ok(bytes) => Self::from_bytes(&bytes),
            Err(_) => Self::from_bytes(&content),
        }
    }

    /// Makes a key file with a fresh key. Never overwrites a file.
    ///
    /// # Errors
    /// When the file exists or cannot be written.
    pub fn create(path: &Path) -> Result<Self, TokenKeyError> {
        let key = Zeroizing::new(os_bytes::<KEY_LENGTH_MIN>()?);
        let mut text = Zeroizing::new(BASE64.encode(&*key));
        text.push('\n');
        secret_file::create(path, text.as_bytes())?;
        Self::from_bytes(&*key)
    }

    /// Makes a token.
    ///
    /// # Errors
    /// When the subject is empty, overlong or has control characters.
    pub fn issue(
        &self,
        subject: &str,
        role: Role,
        tenant: Option<ResourceId>,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<String, Error> {
        if !is_subject(subject) {
            return Err(Error::invalid(
                "subject",
                "use 1 to 256 bytes without control characters, and no name of an API token",
            ));
        }
        let claims = Claims {
            iss: ISSUER,
            aud: AUDIENCE,
            sub: subject,
            role: role.as_str(),
            tenant: tenant.as_ref().map(ResourceId::as_str),
            iat: now.unix_seconds(),
            exp: (now + ttl).unix_seconds(),
        };
        encode(&Header::new(Algorithm::HS256), &claims, &self.signing).map_err(Error::internal)
    }

    pub(super) const fn checking(&self) -> &DecodingKey {
        &self.checking
    }

    #[cfg(test)]
    pub(super) const fn signing(&self) -> &EncodingKey {
        &self.signing
    }
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey(…)")
    }
}
