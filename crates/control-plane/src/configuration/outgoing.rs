//! Messages of one step: a snapshot or changes, cut into parts of bounded size.

use std::{collections::VecDeque, sync::Arc};
use turnbuckle_config_stream::wire::{CHUNK_BYTES, Encoded, SnapshotHash, wire_epoch};
use turnbuckle_domain::Revision;
use turnbuckle_proto::v1::{
    ConfigChanges, ConfigRemoval, ResyncRequired, SnapshotBegin, SnapshotChunk, SnapshotEnd,
    watch_response::Message,
};

/// Removals of one message: far less than a chunk of resources.
const REMOVALS_MAX: usize = 4_096;

/// A step on its way out. Messages are made when they are asked for.
pub(super) struct Outgoing {
    encoded: Arc<Encoded>,
    /// What is said before the resources.
    first: VecDeque<Message>,
    /// The revision that changes are based on; none for a snapshot.
    from: Option<Revision>,
    /// Resources and removals that are out.
    sent: (usize, usize),
    hash: SnapshotHash,
    is_done: bool,
}

impl Outgoing {
    /// Everything; with the reason, when the node has something that is of no use.
    pub(super) fn snapshot(encoded: Arc<Encoded>, reason: Option<&str>) -> Self {
        let mut first = VecDeque::new();
        if let Some(reason) = reason {
            first.push_back(Message::ResyncRequired(ResyncRequired { reason: reason.to_owned() }));
        }
        first.push_back(Message::SnapshotBegin(SnapshotBegin {
            epoch: wire_epoch(encoded.at.epoch).to_string(),
            revision: encoded.at.revision.0,
        }));
        let hash = SnapshotHash::default();
        Self { encoded, first, from: None, sent: (0, 0), hash, is_done: false }
    }

    /// What changed after a revision.
    pub(super) fn changes(encoded: Arc<Encoded>, from: Revision) -> Self {
        let (first, hash) = (VecDeque::new(), SnapshotHash::default());
        Self { encoded, first, from: Some(from), sent: (0, 0), hash, is_done: false }
    }

    /// The next message; none at the end.
    pub(super) fn next(&mut self) -> Option<Message> {
        if let Some(message) = self.first.pop_front() {
            return Some(message);
        }
        if self.is_done {
            return None;
        }
        Some(match self.from {
            None => self.next_of_snapshot(),
            Some(from) => self.next_of_changes(from),
        })
    }

    fn next_of_snapshot(&mut self) -> Message {
        let resources = self.chunk();
        if resources.is_empty() {
            self.is_done = true;
            let count = i64::try_from(self.encoded.upserts.len()).unwrap_or(i64::MAX);
            let hash = std::mem::take(&mut self.hash).finish().to_vec();
            return Message::SnapshotEnd(SnapshotEnd { count, hash });
        }
        for resource in &resources {
            self.hash.add(resource);
        }
        Message::SnapshotChunk(SnapshotChunk { resources })
    }

    fn next_of_changes(&mut self, from: Revision) -> Message {
        let upserts = self.chunk();
        let mut removals = Vec::new();
        // In the order of the contract: removals after every resource.
        if self.sent.0 == self.encoded.upserts.len() {
            let left = &self.encoded.removals[self.sent.1..];
            removals.extend(
                left.iter()
                    .take(REMOVALS_MAX)
                    .map(|key| ConfigRemoval { kind: key.kind, id: key.id.as_bytes().to_vec() }),
            );
            self.sent.1 += removals.len();
        }
        self.is_done = self.sent == (self.encoded.upserts.len(), self.encoded.removals.len());
        Message::Changes(ConfigChanges {
            from_revision: from.0,
            to_revision: self.encoded.at.revision.0,
            upserts,
            removals,
            continues: !self.is_done,
        })
    }

    fn chunk(&mut self) -> Vec<Vec<u8>> {
        let mut bytes = 0;
        let left = &self.encoded.upserts[self.sent.0..];
        // One at least, whatever its size.
        let fits = |resource: &&Vec<u8>| {
            let is_first = bytes == 0;
            bytes += resource.len();
            is_first || bytes <= CHUNK_BYTES
        };
        let chunk: Vec<Vec<u8>> = left.iter().take_while(fits).cloned().collect();
        self.sent.0 += chunk.len();
        chunk
    }
}

#[cfg(test)]
mod tests;
