//! Whether a keyring is the one of a store, found out before anything depends on it.
//!
//! The store holds a record with known content under every key-encryption key that was ever primary.
//! A keyring fits when it opens at least one of them, every one that it has the key of, and lacks only
//! keys that nothing is under.

use super::Keyring;
use turnbuckle_domain::{
    KeyringCanary, SealContext, SealedRecords, SecretRewrapper as _, SecretSealer as _, StoreError,
    Timestamp, rewrap_limits,
};

/// What the records hold.
const CONTENT: &[u8] = b"turnbuckle keyring canary 1";

/// The keyring does not fit the store. Says nothing about its keys but their ids.
#[derive(Debug, thiserror::Error)]
pub enum CanaryError {
    /// A key has the right id and the wrong bytes.
    #[error(
        "key {0} of the keyring is not the key of that id that sealed the secrets in this store: \
         start with the keyring that this store was used with"
    )]
    OtherKey(String),
    /// No key of the store is in the keyring.
    #[error(
        "the keyring has none of the keys that sealed the secrets in this store ({0}): start with \
         the keyring that this store was used with"
    )]
    OtherKeyring(String),
    /// A key was taken out too early.
    #[error(
        "key {key_id} is not in the keyring, but {records} secrets in this store are still sealed \
         under it: put it back, run `turnbuckle keyring rewrap`, and take it out when `turnbuckle \
         keyring status` counts none under it"
    )]
    StillInUse {
        /// The missing key.
        key_id: String,
        /// What is under it.
        records: usize,
    },
    /// The canary could not be made.
    #[error("the keyring cannot seal: {0}")]
    Seal(#[from] turnbuckle_domain::SealError),
    /// The store itself.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Checks a keyring against a store, and leaves a canary under its primary key.
///
/// # Errors
/// When it does not fit; then nothing was changed.
pub async fn check_keyring(
    keyring: &Keyring,
    store: &dyn SealedRecords,
    now: Timestamp,
) -> Result<(), CanaryError> {
    let canaries = store.keyring_canaries().await?;
    judge(keyring, &canaries)?;
    let has = |id: &str| keyring.keys.iter().any(|key| key.id == id);
    // A store from before canaries has none that names a key: then every record is looked at.
    let missing = canaries.iter().filter(|canary| !has(&canary.key_id)).count();
    if missing > 0 || canaries.is_empty() {
        look_at_records(keyring, store).await?;
    }
    for canary in canaries.iter().filter(|canary| !has(&canary.key_id)) {
        store.drop_keyring_canary(&canary.key_id).await?;
    }
    let primary = keyring.primary_id();
    if !canaries.iter().any(|canary| canary.key_id == primary) {
        let sealed = keyring.seal(SealContext::NOWHERE, CONTENT)?;
        let key_id = primary.to_owned();
        store.add_keyring_canary(&KeyringCanary { key_id, sealed, created_at: now }).await?;
        // Another process may have been faster, with another keyring.
        judge(keyring, &store.keyring_canaries().await?)?;
    }
    Ok(())
}

fn judge(keyring: &Keyring, canaries: &[KeyringCanary]) -> Result<(), CanaryError> {
    let mut opened = canaries.is_empty();
    for canary in canaries {
        if !keyring.keys.iter().any(|key| key.id == canary.key_id) {
            continue;
        }
        let content = keyring.open(SealContext::NOWHERE, &canary.sealed);
        if content.is_ok_and(|content| content.as_slice() == CONTENT) {
            opened = true;
        } else {
            return Err(CanaryError::OtherKey(canary.key_id.clone()));
        }
    }
    if opened {
        return Ok(());
    }
    let ids: Vec<&str> = canaries.iter().map(|canary| canary.key_id.as_str()).collect();
    Err(CanaryError::OtherKeyring(ids.join(", ")))
}

/// Looks for secrets that this keyring cannot open: for want of a key, of which the first one found
/// missing is told with its count, or because none opens at all.
async fn look_at_records(keyring: &Keyring, store: &dyn SealedRecords) -> Result<(), CanaryError> {
    let (mut after, mut lost, mut records) = (None, None::<String>, 0);
    let (mut opened, mut refused) = (false, None);
    loop {
        let page = store.sealed_records(after, rewrap_limits::SCAN).await?;
        for record in &page {
            let Some(id) = keyring.key_id_of(&record.sealed) else { continue };
            if keyring.key(&id).is_ok() {
                // One that opens is enough: a single broken record must not stop every start.
                if !opened {
                    opened = keyring.open(record.context, &record.sealed).is_ok();
                    refused.get_or_insert(id);
                }
                continue;
            }
            records += usize::from(*lost.get_or_insert_with(|| id.clone()) == id);
        }
        after = page.last().map(|record| record.context.key);
        if page.len() < usize::from(rewrap_limits::SCAN) {
            break;
        }
    }
    match (lost, refused) {
        (Some(key_id), _) => Err(CanaryError::StillInUse { key_id, records }),
        (None, Some(key_id)) if !opened => Err(CanaryError::OtherKey(key_id)),
        (None, _) => Ok(()),
    }
}
