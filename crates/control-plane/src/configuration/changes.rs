//! Changes, read and encoded once for all streams that need them.

use std::sync::{Arc, Weak};
use tokio::sync::Mutex;
use turnbuckle_config_stream::wire::{Encoded, encode};
use turnbuckle_domain::{ConfigPosition, ConfigSource, NodeRole, Revision, StoreError};

/// Changes up to this size are kept for the next stream that asks; larger ones only while somebody
/// is sending them, so that a snapshot does not stay in memory.
const KEPT_BYTES: usize = 1024 * 1024;

struct Known {
    role: NodeRole,
    from: Revision,
    encoded: Kept,
}

enum Kept {
    Here(Arc<Encoded>),
    WhileSent(Weak<Encoded>),
}

impl Kept {
    fn new(encoded: &Arc<Encoded>) -> Self {
        let bytes: usize = encoded.upserts.iter().map(Vec::len).sum();
        match bytes <= KEPT_BYTES {
            true => Self::Here(Arc::clone(encoded)),
            false => Self::WhileSent(Arc::downgrade(encoded)),
        }
    }

    fn get(&self) -> Option<Arc<Encoded>> {
        match self {
            Self::Here(encoded) => Some(Arc::clone(encoded)),
            Self::WhileSent(encoded) => encoded.upgrade(),
        }
    }
}

pub(super) struct Changes {
    source: Arc<dyn ConfigSource>,
    /// The last of each role. One reads at a time, and those who wait find what they wait for.
    known: Mutex<Vec<Known>>,
}

impl Changes {
    pub(super) fn new(source: Arc<dyn ConfigSource>) -> Self {
        Self { source, known: Mutex::default() }
    }

    /// What changed after `from` for a role, at least up to a state.
    pub(super) async fn since(
        &self,
        role: NodeRole,
        from: Revision,
        wanted: ConfigPosition,
    ) -> Result<Arc<Encoded>, StoreError> {
        let mut known = self.known.lock().await;
        let found = known
            .iter()
            .filter(|known| known.role == role && known.from == from)
            .find_map(|known| known.encoded.get());
        let is_enough = |found: &Arc<Encoded>| {
            found.at.epoch == wanted.epoch && found.at.revision >= wanted.revision
        };
        if let Some(found) = found.filter(is_enough) {
            return Ok(found);
        }
        let delta = self.source.changes_since(from).await?;
        let encoded = Arc::new(encode(&delta, role));
        known.retain(|known| known.role != role);
        known.push(Known { role, from, encoded: Kept::new(&encoded) });
        Ok(encoded)
    }
}
