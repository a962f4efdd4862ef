//! Sealed records as a whole: which key-encryption key seals how many, and moving them to another.

use crate::{
    ChangeContext, Epoch, Error, KeyId, SealContext, SealError, SealedSecret, SecretSealer,
    StoreError, Timestamp,
};
use async_trait::async_trait;

/// Bounds of work on sealed records, each with its reason.
pub mod rewrap_limits {
    /// Records moved in one transaction: it holds up other writers of configuration for some
    /// milliseconds.
    pub const BATCH: u16 = 200;
    /// Records read at once where nothing is written.
    pub const SCAN: u16 = 1_000;
}

/// A sealer that can also tell which key-encryption key a record is under, and move it to the
/// primary one.
pub trait SecretRewrapper: SecretSealer {
    /// Id of the key that new records are sealed under.
    fn primary_key_id(&self) -> &str;

    /// Ids of all keys that records can be opened with.
    fn key_ids(&self) -> Vec<String>;

    /// Id of the key that a record is under; none when it is no record.
    fn key_id_of(&self, sealed: &SealedSecret) -> Option<String>;

    /// The same secret under the primary key; none when it is already. The secret itself is not
    /// opened, only its data key.
    ///
    /// # Errors
    /// When its key is missing, or the record does not belong here.
    fn rewrap(
        &self,
        context: SealContext,
        sealed: &SealedSecret,
    ) -> Result<Option<SealedSecret>, SealError>;
}

/// A sealed secret in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedRecord {
    /// Its place; the key's id orders all records.
    pub context: SealContext,
    /// The secret.
    pub sealed: SealedSecret,
}

/// A record whose content everybody knows: whether it opens shows whether a keyring is the one that
/// sealed this store's secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyringCanary {
    /// The key-encryption key it is under.
    pub key_id: String,
    /// The record.
    pub sealed: SealedSecret,
    /// When it was made.
    pub created_at: Timestamp,
}

/// How far moving all records to one key-encryption key has come. There is one such operation at a
/// time; runners of the same one share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewrapProgress {
    /// The key-encryption key that records are moved to.
    pub to: String,
    /// The last record that was looked at.
    pub after: Option<KeyId>,
    /// Records moved.
    pub moved: u64,
    /// Records that could not be opened, and stay as they are.
    pub unreadable: u64,
    /// When it began.
    pub started_at: Timestamp,
    /// When it last got on.
    pub updated_at: Timestamp,
    /// When it had looked at every record.
    pub finished_at: Option<Timestamp>,
}

/// One step of a re-wrap: a page of records, in the order of their keys' ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewrapBatch {
    /// The key-encryption key that records are moved to.
    pub to: String,
    /// Records to replace: as they were read, and as they are to be. One that has changed since is
    /// left alone.
    pub moves: Vec<(SealedRecord, SealedSecret)>,
    /// Records of the page that could not be opened.
    pub unreadable: u64,
    /// The last record of the page.
    pub up_to: KeyId,
    /// When.
    pub now: Timestamp,
}

/// Every sealed record of a store. Moving one is no change of configuration: the secret is the same,
/// and nodes that hold the record of before can open it with the keyring they have.
#[async_trait]
pub trait SealedRecords: Send + Sync + 'static {
    /// All canaries.
    async fn keyring_canaries(&self) -> Result<Vec<KeyringCanary>, StoreError>;

    /// Keeps a canary, unless there is one under the same key.
    async fn add_keyring_canary(&self, canary: &KeyringCanary) -> Result<(), StoreError>;

    /// Drops the canary of a key that is no longer used.
    async fn drop_keyring_canary(&self, key_id: &str) -> Result<(), StoreError>;

    /// Records in the order of their keys' ids, after the one given.
    async fn sealed_records(
        &self,
        after: Option<KeyId>,
        limit: u16,
    ) -> Result<Vec<SealedRecord>, StoreError>;

    /// The last re-wrap; none when there never was one.
    async fn rewrap_progress(&self) -> Result<Option<RewrapProgress>, StoreError>;

    /// Records that somebody has secrets moved to a key, in the platform's record.
    async fn record_rewrap(&self, to: &str, by: &ChangeContext) -> Result<(), Error>;

    /// Begins moving records to a key, or goes on with what is unfinished for the same key.
    async fn begin_rewrap(&self, to: &str, now: Timestamp) -> Result<RewrapProgress, StoreError>;

    /// Moves a page. Doing it twice, or by two runners at once, moves every record once.
    async fn rewrap_batch(&self, batch: &RewrapBatch) -> Result<RewrapProgress, StoreError>;

    /// Notes that every record was looked at. When records were moved, `next` becomes the epoch of the
    /// configuration: nodes that keep a copy of their own read everything anew, and the key before
    /// can go.
    async fn finish_rewrap(
        &self,
        to: &str,
        next: Epoch,
        now: Timestamp,
    ) -> Result<RewrapProgress, StoreError>;
}
