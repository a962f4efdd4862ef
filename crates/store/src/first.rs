//! Dedup inside a batch and against what is stored, the same for every backend.

use std::collections::{HashMap, HashSet};
use turnbuckle_domain::{Append, AppendResult, Event, EventUid, TenantId, Timestamp};

/// What names an event: tenant, event id, source.
pub(crate) type Key = (TenantId, String, String);

/// What was stored first under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FirstSeen {
    pub(crate) uid: EventUid,
    pub(crate) content_hash: [u8; 32],
    pub(crate) accepted_at: Timestamp,
}

/// Which appends of a batch are written, and which only repeat an earlier one of the same batch.
pub(crate) struct Plan {
    /// Indexes to write, sorted by key: writers that meet on the same ids take their locks in one order.
    pub(crate) writers: Vec<usize>,
    /// For each index of the batch, the index of the first with its key.
    pub(crate) leader: Vec<usize>,
}

pub(crate) fn key_of(event: &Event) -> Key {
    (event.tenant, event.event_id.clone(), event.source.clone())
}

pub(crate) fn plan(batch: &[Append]) -> Plan {
    let mut seen: HashMap<(TenantId, &str, &str), usize> = HashMap::with_capacity(batch.len());
    let mut writers = Vec::with_capacity(batch.len());
    let mut leader = Vec::with_capacity(batch.len());
    for (index, append) in batch.iter().enumerate() {
        let event = &append.event;
        let first = if append.dedup {
            *seen.entry((event.tenant, &event.event_id, &event.source)).or_insert(index)
        } else {
            index
        };
        if first == index {
            writers.push(index);
        }
        leader.push(first);
    }
    let sort_key = |&index: &usize| {
        let event = &batch[index].event;
        (event.tenant, event.event_id.as_str(), event.source.as_str())
    };
    writers.sort_unstable_by(|a, b| sort_key(a).cmp(&sort_key(b)));
    Plan { writers, leader }
}

/// Turns what the store refused into one answer per append.
pub(crate) fn resolve(
    batch: &[Append],
    plan: &Plan,
    refused: &HashSet<EventUid>,
    firsts: &HashMap<Key, FirstSeen>,
) -> Vec<AppendResult> {
    let answer = |(index, append): (usize, &Append)| {
        let leader = &batch[plan.leader[index]];
        let first = if refused.contains(&leader.event.uid) {
            match firsts.get(&key_of(&leader.event)) {
                Some(first) => *first,
                // It was pruned in between, or could not be read: a repeat settles it.
                None => return AppendResult::Unknown,
            }
        } else if plan.leader[index] == index {
            return AppendResult::Accepted;
        } else {
            FirstSeen {
                uid: leader.event.uid,
                content_hash: leader.content_hash,
                accepted_at: leader.event.accepted_at,
            }
        };
        if first.content_hash == append.content_hash {
            AppendResult::Duplicate { uid: first.uid, accepted_at: first.accepted_at }
        } else {
            AppendResult::Anomaly
        }
    };
    batch.iter().enumerate().map(answer).collect()
}

/// The event that was first under the key of an anomaly: stored before, or earlier in the same batch.
pub(crate) fn first_uid(
    batch: &[Append],
    plan: &Plan,
    firsts: &HashMap<Key, FirstSeen>,
    index: usize,
) -> EventUid {
    let leader = &batch[plan.leader[index]].event;
    firsts.get(&key_of(leader)).map_or(leader.uid, |first| first.uid)
}
