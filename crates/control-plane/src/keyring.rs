//! Key-encryption keys: what is under which, and moving everything to the primary one.
//!
//! A page of records is read, moved and noted in one transaction of the store; then the next one. So a
//! crash loses at most a page of work, which is done again without harm, and two runners share the
//! pages as they come.

use crate::{Dependencies, by::By};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use turnbuckle_domain::{
    Caller, Epoch, Error, KeyId, Precondition, RewrapBatch, RewrapProgress, SealedRecord,
    rewrap_limits,
};

/// How long one call goes on: below the deadline that callers commonly set.
const CALL_TIME: Duration = Duration::from_secs(5);

/// A key-encryption key and what is under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyEncryptionKey {
    /// Empty for records that name none.
    pub(crate) id: String,
    pub(crate) is_primary: bool,
    pub(crate) in_keyring: bool,
    pub(crate) records: u64,
}

impl KeyEncryptionKey {
    /// Whether nothing is lost when it is taken out of the keyring.
    pub(crate) const fn is_droppable(&self) -> bool {
        self.in_keyring && !self.is_primary && self.records == 0
    }
}

/// What is under which key-encryption key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyringStatus {
    pub(crate) keys: Vec<KeyEncryptionKey>,
    pub(crate) rewrap: Option<RewrapProgress>,
}

impl KeyringStatus {
    /// In words.
    pub(crate) fn summary(&self) -> String {
        let primary = self.keys.iter().find(|key| key.is_primary);
        let primary = primary.map_or("", |key| key.id.as_str());
        let lost: Vec<&KeyEncryptionKey> = self.keys.iter().filter(|key| !key.in_keyring).collect();
        let old: Vec<&KeyEncryptionKey> = self
            .keys
            .iter()
            .filter(|key| key.in_keyring && !key.is_primary && key.records > 0)
            .collect();
        let mut text = format!("New secrets are sealed under {primary}.");
        for key in lost {
            let id = if key.id.is_empty() { "no key at all" } else { &key.id };
            text += &format!(
                " {} secrets are under {id}, which this process lacks: put it back into the keyring.",
                key.records
            );
        }
        for key in &old {
            text += &format!(" {} secrets are still under {}.", key.records, key.id);
        }
        if !old.is_empty() {
            text += " Move them with `turnbuckle keyring rewrap` before you take a key out.";
        }
        for key in self.keys.iter().filter(|key| key.is_droppable()) {
            text += &format!(" Nothing is under {}: it may be taken out.", key.id);
        }
        text
    }
}

/// What can be done with key-encryption keys.
pub(crate) struct KeyEncryption(pub(crate) Arc<Dependencies>);

impl KeyEncryption {
    pub(crate) async fn status(&self, caller: &Caller) -> Result<KeyringStatus, Error> {
        caller.enter_all()?;
        let rewrapper = &self.0.rewrapper;
        let in_keyring = rewrapper.key_ids();
        let mut records: BTreeMap<String, u64> =
            in_keyring.iter().map(|id| (id.clone(), 0)).collect();
        let mut after = None;
        loop {
            let page = self.0.sealed.sealed_records(after, rewrap_limits::SCAN).await?;
            for record in &page {
                let id = rewrapper.key_id_of(&record.sealed).unwrap_or_default();
                *records.entry(id).or_default() += 1;
            }
            after = page.last().map(|record| record.context.key);
            if page.len() < usize::from(rewrap_limits::SCAN) {
                break;
            }
        }
        let keys = records.into_iter().map(|(id, records)| KeyEncryptionKey {
            is_primary: id == rewrapper.primary_key_id(),
            in_keyring: in_keyring.contains(&id),
            id,
            records,
        });
        Ok(KeyringStatus { keys: keys.collect(), rewrap: self.0.sealed.rewrap_progress().await? })
    }

    pub(crate) async fn rewrap(
        &self,
        by: &By,
        max_records: Option<u32>,
    ) -> Result<RewrapProgress, Error> {
        by.caller.enter_all()?;
        let to = self.0.rewrapper.primary_key_id();
        self.0.sealed.record_rewrap(to, &by.change).await?;
        self.run(max_records).await
    }

    /// Goes on until everything was looked at, the time is over, or so many records were.
    pub(crate) async fn run(&self, max_records: Option<u32>) -> Result<RewrapProgress, Error> {
        let to = self.0.rewrapper.primary_key_id().to_owned();
        let started = self.0.clock.now();
        let mut progress = self.0.sealed.begin_rewrap(&to, started).await?;
        let mut left = max_records.unwrap_or(u32::MAX);
        while left > 0 && self.0.clock.now().since(started) < CALL_TIME {
            let limit = u16::try_from(left).unwrap_or(u16::MAX).min(rewrap_limits::BATCH);
            let page = self.0.sealed.sealed_records(progress.after, limit).await?;
            let Some(up_to) = page.last().map(|record| record.context.key) else {
                let (next, now) = (Epoch::from_uuid(self.0.ids.uuid()), self.0.clock.now());
                progress = self.0.sealed.finish_rewrap(&to, next, now).await?;
                tracing::info!(to, moved = progress.moved, "every sealed record was looked at");
                break;
            };
            left -= u32::try_from(page.len()).unwrap_or(left).min(left);
            progress = self.0.sealed.rewrap_batch(&self.batch(&to, page, up_to)).await?;
            if progress.to != to {
                return Err(overtaken(&to, &progress.to));
            }
        }
        Ok(progress)
    }

    /// What is to be done with a page. A record that does not open stays, and stops nothing (I13).
    fn batch(&self, to: &str, page: Vec<SealedRecord>, up_to: KeyId) -> RewrapBatch {
        let (mut moves, mut unreadable) = (Vec::new(), 0);
        for record in page {
            match self.0.rewrapper.rewrap(record.context, &record.sealed) {
                Ok(Some(sealed)) => moves.push((record, sealed)),
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(key.id = %record.context.key, %error, "a record stays as it is");
                    unreadable += 1;
                }
            }
        }
        RewrapBatch { to: to.to_owned(), moves, unreadable, up_to, now: self.0.clock.now() }
    }
}

fn overtaken(own: &str, other: &str) -> Error {
    Error::Precondition {
        kind: Precondition::InUse,
        subject: "keyring".to_owned(),
        message: format!(
            "another process moves secrets to {other} while the primary key here is {own}: give all \
             processes the same keyring first"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str, is_primary: bool, in_keyring: bool, records: u64) -> KeyEncryptionKey {
        KeyEncryptionKey { id: id.to_owned(), is_primary, in_keyring, records }
    }

    #[test]
    fn a_summary_says_what_may_be_taken_out_and_what_may_not() {
        let keys = vec![
            key("k1", false, true, 3),
            key("k2", true, true, 5),
            key("k3", false, true, 0),
            key("k4", false, false, 1),
        ];
        let text = KeyringStatus { keys, rewrap: None }.summary();
        for part in [
            "New secrets are sealed under k2.",
            "3 secrets are still under k1. Move them",
            "Nothing is under k3: it may be taken out.",
            "1 secrets are under k4, which this process lacks",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
