//! What the messages of the stream make of a node's configuration.

use crate::{
    Usable,
    replica::{NoResource, Replica, removed_key},
    wire::SnapshotHash,
};
use turnbuckle_domain::{
    ConfigPosition, Epoch, HeldSnapshot, RefusedResource, Revision, Timestamp, node_limits,
};
use turnbuckle_proto::v1::{
    Checkpoint, ConfigChanges, SnapshotBegin, SnapshotChunk, SnapshotEnd, watch_response::Message,
};
use uuid::Uuid;

/// Most bytes of a snapshot that is being received: far above a million endpoints, and an end to
/// what a broken peer can make a node keep.
const SNAPSHOT_BYTES_MAX: usize = 2 * 1024 * 1024 * 1024;

/// The stream cannot go on. A new one begins with what the node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    #[error(transparent)]
    NoResource(#[from] NoResource),
    #[error("a snapshot is damaged: its count or hash does not fit")]
    Damaged,
    #[error("a message came out of turn")]
    OutOfTurn,
    #[error("an epoch or an id cannot be read")]
    Malformed,
    #[error("the changes begin at another revision than the one that is here")]
    Gap,
    #[error("a lower revision of the same epoch is never applied")]
    Backwards,
    #[error("a snapshot is too large")]
    TooLarge,
}

/// What a message did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Not everything is there yet.
    None,
    /// The store was read, and nothing is new.
    Proven,
    /// There is a new state.
    Changed,
    /// There is a new state that waits for an operator's word.
    Held,
}

/// A snapshot on its way in.
#[derive(Debug)]
struct Incoming {
    replica: Replica,
    hash: SnapshotHash,
    count: i64,
    bytes: usize,
}

/// A snapshot that would take away too much. Changes go on top of it.
#[derive(Debug)]
struct Waiting {
    /// The revision of the snapshot itself: the one that an operator accepts.
    snapshot: ConfigPosition,
    replica: Replica,
}

/// What a node has, what it is receiving, and what it holds back.
#[derive(Debug, Default)]
pub(crate) struct State {
    present: Option<Replica>,
    waiting: Option<Waiting>,
    incoming: Option<Incoming>,
    /// Parts of changes whose last part has not come.
    parts: Vec<ConfigChanges>,
    accepted: Option<ConfigPosition>,
    proven_at: Option<Timestamp>,
    usable: Usable,
}

impl State {
    /// Begins with nothing.
    pub(crate) fn new(usable: Usable) -> Self {
        Self { usable, ..Self::default() }
    }

    /// Begins with what the file has.
    pub(crate) fn restore(replica: Replica, proven_at: Option<Timestamp>) -> Self {
        Self { usable: replica.usable(), present: Some(replica), proven_at, ..Self::default() }
    }

    pub(crate) const fn present(&self) -> Option<&Replica> {
        self.present.as_ref()
    }

    pub(crate) fn present_mut(&mut self) -> Option<&mut Replica> {
        self.present.as_mut()
    }

    /// When it was last proved that nothing newer is committed.
    pub(crate) const fn proven_at(&self) -> Option<Timestamp> {
        self.proven_at
    }

    /// Whether what is missing here does not exist.
    pub(crate) fn is_complete(&self) -> bool {
        self.waiting.is_none() && self.present.as_ref().is_some_and(Replica::is_complete)
    }

    pub(crate) fn refused(&self) -> Vec<RefusedResource> {
        self.present.as_ref().map(Replica::refused).unwrap_or_default()
    }

    pub(crate) fn held(&self) -> Option<HeldSnapshot> {
        let Waiting { snapshot, replica } = self.waiting.as_ref()?;
        let present = self.present.as_ref()?;
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Some(HeldSnapshot {
            at: *snapshot,
            present: count(present.len()),
            removed: count(present.missing_in(replica)),
        })
    }

    /// What a new stream begins with: parts of the one before are worth nothing.
    pub(crate) fn begin(&mut self) -> Option<ConfigPosition> {
        self.incoming = None;
        self.parts.clear();
        self.present.as_ref().map(Replica::at)
    }

    /// An operator lets this snapshot through.
    pub(crate) fn accept(&mut self, snapshot: ConfigPosition) -> Effect {
        self.accepted = Some(snapshot);
        self.settle()
    }

    pub(crate) fn apply(&mut self, message: Message, now: Timestamp) -> Result<Effect, Fault> {
        let effect = match message {
            Message::ResyncRequired(resync) => {
                tracing::info!(reason = resync.reason, "all configuration is read anew");
                Effect::None
            }
            Message::SnapshotBegin(begin) => self.snapshot_begin(&begin)?,
            Message::SnapshotChunk(chunk) => self.snapshot_chunk(chunk)?,
            Message::SnapshotEnd(end) => self.snapshot_end(&end)?,
            Message::Changes(changes) => self.changes(changes)?,
            Message::Checkpoint(checkpoint) => self.checkpoint(&checkpoint)?,
        };
        if matches!(effect, Effect::Proven | Effect::Changed) && self.waiting.is_none() {
            self.proven_at = Some(now);
        }
        Ok(effect)
    }

    fn snapshot_begin(&mut self, begin: &SnapshotBegin) -> Result<Effect, Fault> {
        let epoch = epoch(&begin.epoch)?;
        let at = ConfigPosition { epoch, revision: Revision(begin.revision) };
        if self.present.as_ref().is_some_and(|present| goes_back(present.at(), at)) {
            return Err(Fault::Backwards);
        }
        self.parts.clear();
        let hash = SnapshotHash::default();
        let replica = Replica::new(at, self.usable.clone());
        self.incoming = Some(Incoming { replica, hash, count: 0, bytes: 0 });
        Ok(Effect::None)
    }

    fn snapshot_chunk(&mut self, chunk: SnapshotChunk) -> Result<Effect, Fault> {
        let incoming = self.incoming.as_mut().ok_or(Fault::OutOfTurn)?;
        for resource in chunk.resources {
            incoming.hash.add(&resource);
            incoming.count += 1;
            incoming.bytes += resource.len();
            if incoming.bytes > SNAPSHOT_BYTES_MAX {
                return Err(Fault::TooLarge);
            }
            incoming.replica.upsert(resource)?;
        }
        Ok(Effect::None)
    }

    fn snapshot_end(&mut self, end: &SnapshotEnd) -> Result<Effect, Fault> {
        let Incoming { replica, hash, count, .. } = self.incoming.take().ok_or(Fault::OutOfTurn)?;
        if count != end.count || hash.finish().as_slice() != end.hash {
            return Err(Fault::Damaged);
        }
        self.waiting = Some(Waiting { snapshot: replica.at(), replica });
        Ok(self.settle())
    }

    /// Decides whether what waits takes the place of what is present.
    fn settle(&mut self) -> Effect {
        let Some(waiting) = self.waiting.take() else { return Effect::None };
        let is_accepted = self.accepted.is_some_and(|accepted| {
            let snapshot = waiting.snapshot;
            accepted.epoch == snapshot.epoch && accepted.revision >= snapshot.revision
        });
        let takes_too_much =
            self.present.as_ref().is_some_and(|present| wipes(present, &waiting.replica));
        if takes_too_much && !is_accepted {
            self.waiting = Some(waiting);
            return Effect::Held;
        }
        let before = self.present.take();
        self.present = Some(match before {
            Some(before) => waiting.replica.replace(before),
            None => waiting.replica,
        });
        Effect::Changed
    }

    fn changes(&mut self, changes: ConfigChanges) -> Result<Effect, Fault> {
        let first = self.parts.first();
        let same = |part: &ConfigChanges| {
            (part.from_revision, part.to_revision) == (changes.from_revision, changes.to_revision)
        };
        if self.incoming.is_some() || first.is_some_and(|first| !same(first)) {
            return Err(Fault::OutOfTurn);
        }
        let (base, to) = (self.base()?.at().revision, Revision(changes.to_revision));
        if base != Revision(changes.from_revision) {
            return Err(Fault::Gap);
        }
        if to < base {
            return Err(Fault::Backwards);
        }
        let continues = changes.continues;
        self.parts.push(changes);
        if continues {
            return Ok(Effect::None);
        }
        let parts = std::mem::take(&mut self.parts);
        // Looked at as a whole first: changes are applied together or not at all.
        let mut resources = parts.iter().flat_map(|part| &part.upserts);
        let mut removals = parts.iter().flat_map(|part| &part.removals);
        if resources.any(|resource| crate::wire::header(resource).is_none())
            || removals.any(|removal| removed_key(removal.kind, &removal.id).is_none())
        {
            return Err(Fault::Malformed);
        }
        let is_held = self.waiting.is_some();
        let base = self.base()?;
        for part in parts {
            for resource in part.upserts {
                base.upsert(resource)?;
            }
            for removal in part.removals {
                let key = removed_key(removal.kind, &removal.id).ok_or(Fault::Malformed)?;
                base.remove(key, to);
            }
        }
        base.reach(to);
        Ok(if is_held { self.settle() } else { Effect::Changed })
    }

    fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<Effect, Fault> {
        if self.incoming.is_some() || !self.parts.is_empty() {
            return Err(Fault::OutOfTurn);
        }
        let base = self.base()?;
        if base.at().revision != Revision(checkpoint.revision) {
            return Err(Fault::Gap);
        }
        Ok(if self.waiting.is_some() { Effect::Held } else { Effect::Proven })
    }

    /// What changes are based on: what the stream sent last.
    fn base(&mut self) -> Result<&mut Replica, Fault> {
        match (&mut self.waiting, &mut self.present) {
            (Some(waiting), _) => Ok(&mut waiting.replica),
            (None, Some(present)) => Ok(present),
            (None, None) => Err(Fault::OutOfTurn),
        }
    }
}

fn epoch(text: &str) -> Result<Epoch, Fault> {
    Uuid::parse_str(text).map(Epoch::from_uuid).map_err(|_| Fault::Malformed)
}

fn goes_back(present: ConfigPosition, next: ConfigPosition) -> bool {
    next.epoch == present.epoch && next.revision < present.revision
}

/// Whether a state would take away more than half of another one.
fn wipes(present: &Replica, next: &Replica) -> bool {
    present.len() >= node_limits::HOLD_FROM && present.missing_in(next) * 2 > present.len()
}

#[cfg(test)]
mod tests;
