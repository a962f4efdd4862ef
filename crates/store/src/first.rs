//! Dedup inside a batch and against what is stored, the same for every backend.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};
use turnbuckle_domain::{Append, AppendResult, EventUid, SignedBody, TenantId, Timestamp, id_mark};

/// What names an event: tenant, event id, source.
pub(crate) type Key = (TenantId, String, String);

/// Events that the store refused, and by which of their keys.
pub(crate) type Refused = HashMap<EventUid, RefusedBy>;

/// The key that was known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusedBy {
    /// The event id.
    Id,
    /// The signed body beside an id that is not signed.
    Body,
}

/// What was stored first under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FirstSeen {
    pub(crate) uid: EventUid,
    /// Under the key of a body: the mark of the id that came with it.
    pub(crate) content_hash: [u8; 32],
    pub(crate) accepted_at: Timestamp,
}

/// Which appends of a batch are written, and which only repeat an earlier one of the same batch.
pub(crate) struct Plan {
    /// Indexes to write, sorted by key: writers that meet on the same ids take their locks in one order.
    pub(crate) writers: Vec<usize>,
    /// For each index of the batch, the index of the first with its key.
    pub(crate) leader: Vec<usize>,
    /// Indexes whose leader has the same body under another id.
    replays: HashSet<usize>,
}

pub(crate) fn key_of(append: &Append) -> Key {
    (append.event.tenant, append.event.event_id.clone(), scope_of(append).into_owned())
}

/// What the keys of an event belong to.
pub(crate) fn scope_of(append: &Append) -> Cow<'_, str> {
    let source = append.event.source.as_str();
    append.dedup.as_ref().map_or(Cow::Borrowed(source), |rule| rule.scope_of(source))
}

/// The key of the signed body beside an id that is not signed.
pub(crate) fn body_key_of(append: &Append) -> Option<Key> {
    let tenant = append.event.tenant;
    body_of(append).map(|body| (tenant, body.key(), scope_of(append).into_owned()))
}

pub(crate) fn body_of(append: &Append) -> Option<SignedBody> {
    append.dedup.and_then(|rule| rule.body)
}

/// The key that an event was refused by.
pub(crate) fn lost_key(append: &Append, by: RefusedBy) -> Key {
    let body = (by == RefusedBy::Body).then(|| body_key_of(append)).flatten();
    body.unwrap_or_else(|| key_of(append))
}

pub(crate) fn plan(batch: &[Append]) -> Plan {
    let mut seen: HashMap<(TenantId, &str, Cow<'_, str>), usize> =
        HashMap::with_capacity(batch.len());
    let mut bodies: HashMap<Key, usize> = HashMap::new();
    let mut writers = Vec::with_capacity(batch.len());
    let mut leader = Vec::with_capacity(batch.len());
    let mut replays = HashSet::new();
    for (index, append) in batch.iter().enumerate() {
        let event = &append.event;
        if append.dedup.is_none() {
            writers.push(index);
            leader.push(index);
            continue;
        }
        let id = (event.tenant, event.event_id.as_str(), scope_of(append));
        if let Some(&first) = seen.get(&id) {
            leader.push(first);
            continue;
        }
        let body = body_key_of(append);
        if let Some(&first) = body.as_ref().and_then(|key| bodies.get(key)) {
            leader.push(first);
            replays.insert(index);
            continue;
        }
        seen.insert(id, index);
        bodies.extend(body.map(|key| (key, index)));
        writers.push(index);
        leader.push(index);
    }
    let sort_key = |&index: &usize| {
        let Append { event, dedup, .. } = &batch[index];
        let scope = dedup.and_then(|rule| rule.scope).map(|scope| scope.uuid());
        (event.tenant, event.event_id.as_str(), scope, event.source.as_str())
    };
    writers.sort_unstable_by(|a, b| sort_key(a).cmp(&sort_key(b)));
    Plan { writers, leader, replays }
}

/// Turns what the store refused into one answer per append.
pub(crate) fn resolve(
    batch: &[Append],
    plan: &Plan,
    refused: &Refused,
    firsts: &HashMap<Key, FirstSeen>,
) -> Vec<AppendResult> {
    let answer = |(index, append): (usize, &Append)| {
        let leader = &batch[plan.leader[index]];
        let is_leader = plan.leader[index] == index;
        let by = refused.get(&leader.event.uid).copied();
        let first = match by {
            None if is_leader => return AppendResult::Accepted,
            None => FirstSeen {
                uid: leader.event.uid,
                content_hash: leader.content_hash,
                accepted_at: leader.event.accepted_at,
            },
            Some(by) => match firsts.get(&lost_key(leader, by)) {
                Some(first) => *first,
                // It was pruned in between, or could not be read: a repeat settles it.
                None => return AppendResult::Unknown,
            },
        };
        let (uid, accepted_at) = (first.uid, first.accepted_at);
        let is_own =
            by == Some(RefusedBy::Body) && first.content_hash == id_mark(&append.event.event_id);
        match by {
            _ if is_own => AppendResult::Duplicate { uid, accepted_at },
            _ if plan.replays.contains(&index) => AppendResult::Replay { uid, accepted_at },
            Some(RefusedBy::Body) if is_leader || append.content_hash == leader.content_hash => {
                AppendResult::Replay { uid, accepted_at }
            }
            // Its leader took no id, so it may be new: a repeat settles it.
            Some(RefusedBy::Body) => AppendResult::Unknown,
            _ if first.content_hash == append.content_hash => {
                AppendResult::Duplicate { uid, accepted_at }
            }
            _ => AppendResult::Anomaly,
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
    let leader = &batch[plan.leader[index]];
    firsts.get(&key_of(leader)).map_or(leader.event.uid, |first| first.uid)
}
