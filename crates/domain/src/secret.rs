//! Secrets at rest: sealed bytes, and the port that seals and opens them.

use crate::{EndpointId, KeyId, KeyOwner, TenantId};
use uuid::Uuid;
use zeroize::Zeroizing;

/// A secret encrypted under a key-encryption key that its bytes name. Safe to store and to send to
/// nodes; useless without the keyring.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedSecret(Vec<u8>);

impl SealedSecret {
    /// Wraps bytes made by a sealer.
    #[must_use]
    pub const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes to store.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for SealedSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SealedSecret({} bytes)", self.0.len())
    }
}

/// What a sealed secret belongs to. Bound into the encryption, so that a record moved to another
/// row does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealContext {
    /// Whose it is.
    pub tenant: TenantId,
    /// Whose ring the key is on.
    pub owner: KeyOwner,
    /// The key.
    pub key: KeyId,
}

impl SealContext {
    /// No place of any secret: for records that are about the keyring itself.
    pub const NOWHERE: Self = Self {
        tenant: TenantId::from_uuid(Uuid::nil()),
        owner: KeyOwner::Endpoint(EndpointId::from_uuid(Uuid::nil())),
        key: KeyId::from_uuid(Uuid::nil()),
    };
}

/// A secret could not be sealed or opened. Says nothing about the secret.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SealError {
    /// The record names a key-encryption key that the keyring lacks.
    #[error("key-encryption key {0} is not in the keyring")]
    UnknownKey(String),
    /// The record was changed, moved, or made by something else.
    #[error("the sealed record does not open in its place")]
    Corrupt,
    /// The operating system gave no randomness.
    #[error("no randomness from the operating system")]
    Randomness,
}

/// Seals and opens secrets.
pub trait SecretSealer: Send + Sync + 'static {
    /// Encrypts under the primary key-encryption key.
    ///
    /// # Errors
    /// When there is no randomness.
    fn seal(&self, context: SealContext, secret: &[u8]) -> Result<SealedSecret, SealError>;

    /// Decrypts with the key-encryption key the record names.
    ///
    /// # Errors
    /// When that key is missing, or the record does not belong here.
    fn open(
        &self,
        context: SealContext,
        sealed: &SealedSecret,
    ) -> Result<Zeroizing<Vec<u8>>, SealError>;
}
