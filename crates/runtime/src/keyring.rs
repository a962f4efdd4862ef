//! Secrets at rest: every secret under its own data key, every data key under a named
//! key-encryption key of the keyring.
//!
//! ```text
//!  secret ──AES-256-GCM(data key, fresh)──► ciphertext ┐
//!  data key ──AES-256-GCM(primary key)────► wrapped    ├─► one record, which names the primary key
//! ```
//!
//! Because the record names its key, old records stay readable while a new primary is in use, and
//! re-wrapping needs no plaintext of the secret.

mod canary;
mod file;
mod record;
mod rewrap;
#[cfg(test)]
mod tests;

pub use canary::{CanaryError, check_keyring};

use crate::{RandomnessError, random::os_bytes, secret_file, secret_file::SecretFileError};
use aes_gcm::{
    Aes256Gcm, KeyInit as _, Nonce,
    aead::{Aead as _, Payload},
};
use record::{Purpose, Record, associated_data};
use std::{fmt, path::Path};
use turnbuckle_domain::{SealContext, SealError, SealedSecret, SecretSealer};
use zeroize::Zeroizing;

/// Length of a key-encryption key and of a data key: AES-256.
const KEY_LENGTH: usize = 32;

/// Id of the first key of a new keyring.
const FIRST_ID: &str = "k1";

/// A keyring cannot be used. Says nothing about its keys.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    /// The file cannot be read or made.
    #[error("keyring: {0}")]
    File(#[from] SecretFileError),
    /// The file is no keyring. The position only: an excerpt could be key material.
    #[error("the keyring is not valid JSON of the expected form (line {line}, column {column})")]
    Form {
        /// Line of the fault.
        line: usize,
        /// Column of the fault.
        column: usize,
    },
    /// There is no key in it.
    #[error("the keyring has no keys")]
    Empty,
    /// An id has other characters or is too long.
    #[error("a key id of the keyring is invalid: use 1 to 64 characters of A-Z, a-z, 0-9, ., _, -")]
    InvalidId,
    /// Two keys share an id.
    #[error("the keyring has two keys named {0}")]
    DuplicateId(String),
    /// The primary key is not among the keys.
    #[error("the keyring's primary key {0} is not among its keys")]
    UnknownPrimary(String),
    /// A key is not 32 bytes in base64.
    #[error("key {0} of the keyring is not 32 bytes in base64")]
    InvalidKey(String),
    /// The operating system gave no randomness for a key.
    #[error(transparent)]
    Randomness(#[from] RandomnessError),
}

/// One key-encryption key. The cipher wipes its schedule when dropped.
struct KeyEncryptionKey {
    id: String,
    cipher: Aes256Gcm,
}

/// The key-encryption keys of this process.
pub struct Keyring {
    keys: Vec<KeyEncryptionKey>,
    primary: usize,
}

impl Keyring {
    /// Reads a keyring file: `{"primary":"k1","keys":[{"id":"k1","key":"<base64 of 32 bytes>"}]}`.
    ///
    /// # Errors
    /// When others may read the file, or it is no valid keyring.
    pub fn load(path: &Path) -> Result<Self, KeyringError> {
        file::parse(&secret_file::read(path)?)
    }

    /// Makes a keyring file with one fresh key. Never overwrites a file.
    ///
    /// # Errors
    /// When the file exists or cannot be written.
    pub fn create(path: &Path) -> Result<Self, KeyringError> {
        let key = Zeroizing::new(os_bytes::<KEY_LENGTH>()?);
        secret_file::create(path, &file::render(FIRST_ID, &key))?;
        Self::from_keys(FIRST_ID, vec![(FIRST_ID.to_owned(), key)])
    }

    /// A keyring that ends with the process, for development and demonstrations.
    ///
    /// # Errors
    /// When the operating system gives no randomness.
    pub fn generate_in_memory() -> Result<Self, KeyringError> {
        let key = Zeroizing::new(os_bytes::<KEY_LENGTH>()?);
        Self::from_keys(FIRST_ID, vec![(FIRST_ID.to_owned(), key)])
    }

    /// Id of the key that new secrets are sealed under.
    #[must_use]
    pub fn primary_id(&self) -> &str {
        self.keys.get(self.primary).map_or("", |key| &key.id)
    }

    fn from_keys(
        primary: &str,
        keys: Vec<(String, Zeroizing<[u8; KEY_LENGTH]>)>,
    ) -> Result<Self, KeyringError> {
        if keys.is_empty() {
            return Err(KeyringError::Empty);
        }
        let mut ring: Vec<KeyEncryptionKey> = Vec::with_capacity(keys.len());
        for (id, key) in keys {
            if !record::is_key_id(&id) {
                return Err(KeyringError::InvalidId);
            }
            if ring.iter().any(|earlier| earlier.id == id) {
                return Err(KeyringError::DuplicateId(id));
            }
            ring.push(KeyEncryptionKey { id, cipher: Aes256Gcm::new((&*key).into()) });
        }
        let primary = ring
            .iter()
            .position(|key| key.id == primary)
            .ok_or_else(|| KeyringError::UnknownPrimary(primary.chars().take(64).collect()))?;
        Ok(Self { keys: ring, primary })
    }

    fn key(&self, id: &str) -> Result<&KeyEncryptionKey, SealError> {
        self.keys
            .iter()
            .find(|key| key.id == id)
            .ok_or_else(|| SealError::UnknownKey(id.to_owned()))
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keyring({} keys)", self.keys.len())
    }
}

/// The secret itself is bound to its place but to no key-encryption key, so that wrapping its data key
/// under another one leaves it readable. The wrapped data key is bound to the id.
const NO_KEY_ID: &str = "";

impl SecretSealer for Keyring {
    fn seal(&self, context: SealContext, secret: &[u8]) -> Result<SealedSecret, SealError> {
        // `from_keys` makes no keyring without its primary key.
        let wrapping = self.keys.get(self.primary).ok_or(SealError::Corrupt)?;
        let data_key = Zeroizing::new(fresh::<KEY_LENGTH>()?);
        let (wrap_nonce, nonce) = (fresh()?, fresh()?);
        let wrap_data = associated_data(Purpose::DataKey, &wrapping.id, context);
        let secret_data = associated_data(Purpose::Secret, NO_KEY_ID, context);
        let wrapped_key = encrypt(&wrapping.cipher, wrap_nonce, &*data_key, &wrap_data)?;
        let cipher = Aes256Gcm::new((&*data_key).into());
        let ciphertext = encrypt(&cipher, nonce, secret, &secret_data)?;
        let record = Record {
            key_id: &wrapping.id,
            wrap_nonce,
            wrapped_key: &wrapped_key,
            nonce,
            ciphertext: &ciphertext,
        };
        Ok(SealedSecret::from_bytes(record.to_bytes()))
    }

    fn open(
        &self,
        context: SealContext,
        sealed: &SealedSecret,
    ) -> Result<Zeroizing<Vec<u8>>, SealError> {
        let record = Record::parse(sealed.as_bytes()).ok_or(SealError::Corrupt)?;
        let wrapping = self.key(record.key_id)?;
        let wrap_data = associated_data(Purpose::DataKey, record.key_id, context);
        let secret_data = associated_data(Purpose::Secret, NO_KEY_ID, context);
        let data_key =
            decrypt(&wrapping.cipher, record.wrap_nonce, record.wrapped_key, &wrap_data)?;
        let cipher = Aes256Gcm::new_from_slice(&data_key).map_err(|_| SealError::Corrupt)?;
        decrypt(&cipher, record.nonce, record.ciphertext, &secret_data)
    }
}

fn fresh<const N: usize>() -> Result<[u8; N], SealError> {
    os_bytes().map_err(|_| SealError::Randomness)
}

fn encrypt(
    cipher: &Aes256Gcm,
    nonce: [u8; record::NONCE_LENGTH],
    plain: &[u8],
    bound: &[u8],
) -> Result<Vec<u8>, SealError> {
    cipher
        .encrypt(&Nonce::from(nonce), Payload { msg: plain, aad: bound })
        .map_err(|_| SealError::Corrupt)
}

fn decrypt(
    cipher: &Aes256Gcm,
    nonce: [u8; record::NONCE_LENGTH],
    ciphertext: &[u8],
    bound: &[u8],
) -> Result<Zeroizing<Vec<u8>>, SealError> {
    cipher
        .decrypt(&Nonce::from(nonce), Payload { msg: ciphertext, aad: bound })
        .map(Zeroizing::new)
        .map_err(|_| SealError::Corrupt)
}
