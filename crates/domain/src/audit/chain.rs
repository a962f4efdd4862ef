//! The chain of hashes over a tenant's record, and how it is checked.
//!
//! Whoever changes, removes or reorders entries has to change every later hash too. Whoever does that,
//! or cuts the newest entries off, is found by a head that was noted somewhere else.

use super::{AuditEntry, AuditHead};
use sha2::{Digest as _, Sha256};

/// Names the form of the hashed bytes, so that another form can follow.
const FORM: &[u8] = b"turnbuckle audit entry 1";

/// What the first entry of a record is chained to.
const NOTHING_BEFORE: [u8; 32] = [0; 32];

/// Number of the first entry.
const FIRST: i64 = 1;

/// The hash of an entry that follows one with the hash `previous`; none for the first. The entry's
/// own hash plays no part.
///
/// Every field is hashed with its length in front, so that no two entries have the same bytes.
#[must_use]
pub fn chain_hash(previous: Option<&[u8; 32]>, entry: &AuditEntry) -> [u8; 32] {
    let mut hasher = Sha256::new();
    let mut part = |bytes: &[u8]| {
        // A length is below 2^64 on every machine there is.
        hasher.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
        hasher.update(bytes);
    };
    part(FORM);
    part(previous.unwrap_or(&NOTHING_BEFORE));
    part(entry.tenant.uuid().as_bytes());
    part(&entry.sequence.to_be_bytes());
    part(entry.id.uuid().as_bytes());
    part(&entry.at.micros().to_be_bytes());
    for text in [
        &entry.subject,
        &entry.role,
        &entry.method,
        &entry.resource,
        &entry.request_id,
        &entry.reason,
    ] {
        part(text.as_bytes());
    }
    part(&entry.revision.0.to_be_bytes());
    part(entry.outcome.as_str().as_bytes());
    part(&u64::try_from(entry.changes.len()).unwrap_or(u64::MAX).to_be_bytes());
    for change in &entry.changes {
        part(change.field.as_bytes());
        for value in [&change.before, &change.after] {
            // No value is something else than an empty one.
            part(&[u8::from(value.is_some())]);
            part(value.as_deref().unwrap_or_default().as_bytes());
        }
    }
    hasher.finalize().into()
}

/// What is wrong with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The entry, or the one before it, is not what it was when it was written.
    #[error("does not follow from the entry before it: one of the two was changed")]
    Altered,
    /// There is no entry with this number.
    #[error("is missing")]
    Missing,
    /// The head that was noted elsewhere has another hash.
    #[error("is not the entry that was noted elsewhere: the record was written anew up to there")]
    Rewritten,
    /// An entry of another tenant.
    #[error("belongs to another tenant's record")]
    Foreign,
}

/// The first broken entry of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("entry {sequence} {fault}")]
pub struct ChainFault {
    /// Its number.
    pub sequence: i64,
    /// What is wrong.
    pub fault: Fault,
}

/// Checks a record from its newest entry to its first, holding one entry at a time.
#[derive(Debug)]
pub struct ChainCheck {
    head: AuditHead,
    anchor: Option<(i64, [u8; 32])>,
    /// The entry whose predecessor has not been seen yet.
    open: Option<AuditEntry>,
    oldest_fault: Option<ChainFault>,
    entries: u64,
}

impl ChainCheck {
    /// Begins below this head. Entries above it are not looked at: they are newer than the check.
    #[must_use]
    pub const fn new(head: AuditHead) -> Self {
        Self { head, anchor: None, open: None, oldest_fault: None, entries: 0 }
    }

    /// Also wants the entry with this number to have this hash, as an earlier check noted it.
    #[must_use]
    pub const fn with_anchor(mut self, sequence: i64, hash: [u8; 32]) -> Self {
        self.anchor = Some((sequence, hash));
        self
    }

    /// Takes the next older entry.
    pub fn step(&mut self, entry: AuditEntry) {
        if entry.sequence > self.head.sequence {
            return;
        }
        self.entries += 1;
        if self.anchor.is_some_and(|(at, hash)| at == entry.sequence && hash != entry.hash) {
            self.note(entry.sequence, Fault::Rewritten);
        }
        match self.open.take() {
            None => self.check_newest(&entry),
            Some(newer) => self.check_pair(&entry, &newer),
        }
        self.open = Some(entry);
    }

    /// Ends the check: how many entries there are.
    ///
    /// # Errors
    /// The first broken entry.
    pub fn finish(mut self) -> Result<u64, ChainFault> {
        if let Some((at, _)) = self.anchor
            && at > self.head.sequence
        {
            self.note(at, Fault::Missing);
        }
        match self.open.take() {
            None => self.note(FIRST, Fault::Missing),
            Some(first) if first.sequence != FIRST => self.note(FIRST, Fault::Missing),
            Some(first) if chain_hash(None, &first) != first.hash => {
                self.note(first.sequence, Fault::Altered);
            }
            Some(_) => {}
        }
        self.oldest_fault.map_or(Ok(self.entries), Err)
    }

    fn check_newest(&mut self, newest: &AuditEntry) {
        if newest.sequence < self.head.sequence {
            self.note(newest.sequence + 1, Fault::Missing);
        } else if newest.hash != self.head.hash || newest.id != self.head.id {
            self.note(newest.sequence, Fault::Altered);
        }
    }

    fn check_pair(&mut self, older: &AuditEntry, newer: &AuditEntry) {
        if older.tenant != newer.tenant {
            self.note(older.sequence, Fault::Foreign);
        } else if older.sequence + 1 != newer.sequence {
            self.note(older.sequence.saturating_add(1), Fault::Missing);
        } else if chain_hash(Some(&older.hash), newer) != newer.hash {
            self.note(newer.sequence, Fault::Altered);
        }
    }

    /// The check goes backwards, so what it finds later is earlier in the record.
    const fn note(&mut self, sequence: i64, fault: Fault) {
        let earlier = match self.oldest_fault {
            Some(found) => sequence <= found.sequence,
            None => true,
        };
        if earlier {
            self.oldest_fault = Some(ChainFault { sequence, fault });
        }
    }
}

/// Checks a whole record, newest entry first, against its head.
///
/// # Errors
/// The first broken entry.
pub fn verify_chain(
    head: &AuditHead,
    newest_first: impl IntoIterator<Item = AuditEntry>,
) -> Result<u64, ChainFault> {
    let mut check = ChainCheck::new(head.clone());
    for entry in newest_first {
        check.step(entry);
    }
    check.finish()
}

#[cfg(test)]
mod tests;
