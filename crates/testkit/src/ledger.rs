//! What publishers were promised, held against what receivers saw.

use crate::receiver::Received;
use bytes::Bytes;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Header that names the event in a delivery.
const EVENT_ID: &str = "webhook-id";

/// Events a test tried to publish, and which of them were acknowledged.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    tried: BTreeMap<String, Bytes>,
    acknowledged: BTreeSet<String>,
}

/// What one endpoint received, compared with the ledger.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Acknowledged, and never received.
    pub lost: BTreeSet<String>,
    /// Received, and never published.
    pub strangers: BTreeSet<String>,
    /// Received with other bytes than were published.
    pub changed: BTreeSet<String>,
    /// Received more than once: how often beyond the first.
    pub repeats: BTreeMap<String, u64>,
}

impl Audit {
    /// Whether every acknowledged event came with its own bytes, and nothing else did.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.lost.is_empty() && self.strangers.is_empty() && self.changed.is_empty()
    }

    /// Requests beyond the first of each event.
    #[must_use]
    pub fn repeated(&self) -> u64 {
        self.repeats.values().sum()
    }
}

impl Ledger {
    /// Notes that an event is about to be published: from now on it may arrive.
    pub fn tries(&self, id: &str, body: Bytes) {
        self.lock().tried.insert(id.to_owned(), body);
    }

    /// Notes that the server has promised to deliver an event.
    pub fn acknowledged(&self, id: &str) {
        self.lock().acknowledged.insert(id.to_owned());
    }

    /// Number of acknowledged events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().acknowledged.len()
    }

    /// Whether nothing was acknowledged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Compares with what one endpoint received in the raw format.
    #[must_use]
    pub fn audit<'r>(&self, received: impl IntoIterator<Item = &'r Received>) -> Audit {
        let entries = self.lock();
        let mut audit = Audit { lost: entries.acknowledged.clone(), ..Audit::default() };
        let mut seen = BTreeSet::new();
        for request in received {
            let id = request.header(EVENT_ID).unwrap_or_default().to_owned();
            match entries.tried.get(&id) {
                None => drop(audit.strangers.insert(id.clone())),
                Some(body) if *body != request.body => drop(audit.changed.insert(id.clone())),
                Some(_) => {}
            }
            audit.lost.remove(&id);
            if !seen.insert(id.clone()) {
                *audit.repeats.entry(id).or_default() += 1;
            }
        }
        audit
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    fn request(id: &str, body: &'static str) -> Received {
        Received {
            sequence: 0,
            connection: 0,
            at: Instant::now(),
            unix_micros: 0,
            method: "POST".into(),
            path: "/".into(),
            headers: vec![(EVENT_ID.into(), id.as_bytes().to_vec())],
            body: Bytes::from_static(body.as_bytes()),
            answer: 200,
        }
    }

    #[test]
    fn losses_strangers_changes_and_repeats_are_told_apart() {
        let ledger = Ledger::default();
        for id in ["kept", "lost", "changed", "unanswered"] {
            ledger.tries(id, Bytes::from_static(b"{}"));
        }
        for id in ["kept", "lost", "changed"] {
            ledger.acknowledged(id);
        }
        let received = [
            request("kept", "{}"),
            request("kept", "{}"),
            request("changed", "[]"),
            request("unanswered", "{}"),
            request("stranger", "{}"),
        ];
        let audit = ledger.audit(&received);
        assert_eq!(audit.lost, BTreeSet::from(["lost".into()]));
        assert_eq!(audit.strangers, BTreeSet::from(["stranger".into()]));
        assert_eq!(audit.changed, BTreeSet::from(["changed".into()]));
        assert_eq!(audit.repeats, BTreeMap::from([("kept".into(), 1)]));
        assert!(!audit.is_complete());
        assert_eq!((audit.repeated(), ledger.len()), (1, 3));
    }
}
