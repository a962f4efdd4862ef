//! Sources by the token of their path.

use super::SourceEntry;
use std::{collections::HashMap, sync::Arc};
use turnbuckle_domain::{
    ConfigDelta, ConfigPosition, Epoch, IngestToken, KeyRing, RefusedResource, ResourceKind,
    Revision, Source, SourceId, Timestamp, UnreadableResource, Unreadables,
};

/// All sources at one revision. Readers share it and never lock.
#[derive(Clone, Default)]
pub struct SourceIndex {
    epoch: Epoch,
    revision: Revision,
    by_id: HashMap<SourceId, Arc<SourceEntry>>,
    rings: HashMap<SourceId, KeyRing>,
    by_token: HashMap<IngestToken, Arc<SourceEntry>>,
    unreadable: Unreadables,
}

impl SourceIndex {
    /// The revision this is the state of.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// The state that this is.
    #[must_use]
    pub const fn position(&self) -> ConfigPosition {
        ConfigPosition { epoch: self.epoch, revision: self.revision }
    }

    /// The source whose path has this token now.
    pub(crate) fn by_token(
        &self,
        token: &IngestToken,
        now: Timestamp,
    ) -> Option<&Arc<SourceEntry>> {
        let entry = self.by_token.get(token)?;
        entry.source().path.tokens_at(now).any(|taken| taken == token).then_some(entry)
    }

    /// What is configured and could not be taken over.
    #[must_use]
    pub fn refused(&self) -> Vec<RefusedResource> {
        self.unreadable.refused()
    }

    /// The state after a delta. A source that cannot be built keeps the version before.
    pub(crate) fn apply(&self, delta: ConfigDelta) -> Self {
        let mut next = self.clone();
        next.epoch = delta.epoch;
        next.revision = self.revision.max(delta.revision);
        next.unreadable.apply(&delta);
        let gone = delta.unreadable.iter().filter(|one| one.deleted);
        for gone in gone.filter(|one| one.kind == ResourceKind::Source) {
            next.by_id.remove(&SourceId::from_uuid(gone.id));
            next.rings.remove(&SourceId::from_uuid(gone.id));
        }
        // Keys before the sources that use them.
        for (id, ring) in delta.source_key_rings {
            if let Some(present) = next.by_id.get(&id) {
                next.by_id.insert(id, Arc::new(present.with_ring(ring.clone())));
            }
            next.rings.insert(id, ring);
        }
        for source in delta.sources {
            let id = source.value.id;
            if source.deleted {
                next.by_id.remove(&id);
                next.rings.remove(&id);
            } else {
                next.put(source.value);
            }
        }
        next.by_token = tokens(&next.by_id);
        next
    }

    fn put(&mut self, source: Source) {
        let id = source.id;
        let ring = self.rings.get(&id).cloned().unwrap_or_default();
        let present = self.by_id.get(&id);
        let (name, revision) = (source.slug.to_string(), source.meta.revision);
        match SourceEntry::build(source, ring, present.map(Arc::as_ref)) {
            Ok(entry) => {
                self.by_id.insert(id, Arc::new(entry));
            }
            Err(reason) => {
                let kept = present.is_some();
                metrics::counter!("turnbuckle_ingress_sources_refused_total").increment(1);
                tracing::error!(source.id = %id, reason, kept, "a source cannot be used here");
                self.unreadable.refuse(UnreadableResource {
                    kind: ResourceKind::Source,
                    id: id.uuid(),
                    name,
                    revision,
                    reason,
                    deleted: false,
                });
            }
        }
    }
}

fn tokens(entries: &HashMap<SourceId, Arc<SourceEntry>>) -> HashMap<IngestToken, Arc<SourceEntry>> {
    let mut tokens = HashMap::with_capacity(entries.len());
    for entry in entries.values() {
        let path = &entry.source().path;
        let before = path.previous.iter().map(|(token, _)| token);
        for token in std::iter::once(&path.token).chain(before) {
            tokens.insert(token.clone(), Arc::clone(entry));
        }
    }
    tokens
}
