//! Sources by the token of their path.

use super::SourceEntry;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};
use turnbuckle_domain::{
    ConfigDelta, ConfigPosition, Epoch, IngestPath, IngestToken, KeyRing, RefusedResource,
    ResourceId, ResourceKind, Revision, Source, SourceId, TenantId, Timestamp, Unreadables,
    node_limits,
};

/// All sources at one revision. Readers share it and never lock.
#[derive(Clone, Default)]
pub struct SourceIndex {
    epoch: Epoch,
    revision: Revision,
    by_id: HashMap<SourceId, Arc<SourceEntry>>,
    rings: HashMap<SourceId, KeyRing>,
    tenants: HashMap<ResourceId, TenantId>,
    by_token: HashMap<IngestToken, Arc<SourceEntry>>,
    /// Sources that cannot be used here, with no version before to use instead.
    unready: HashMap<SourceId, IngestPath>,
    /// What could not be built, and why.
    refused: BTreeMap<SourceId, RefusedResource>,
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

    /// What is configured and could not be taken over, at most as many as a report holds.
    #[must_use]
    pub fn refused(&self) -> Vec<RefusedResource> {
        let unreadable = self.unreadable.refused();
        let refused = self.refused.values().cloned().chain(unreadable);
        refused.take(node_limits::REFUSED_MAX).collect()
    }

    /// Goes on with what another index has of the sources that could not be built in this one: a new
    /// epoch is read from nothing, and their senders must not be turned away for it.
    pub(crate) fn keeping(mut self, before: &Self) -> Self {
        for id in self.refused.keys() {
            if self.by_id.contains_key(id) {
                continue;
            }
            if let Some(entry) = before.by_id.get(id) {
                // Keys are read apart from their source, and these are the newest.
                let entry = match self.rings.get(id) {
                    Some(ring) => Arc::new(entry.with_ring(ring.clone())),
                    None => Arc::clone(entry),
                };
                self.by_id.insert(*id, entry);
            }
        }
        self.by_token = tokens(&self.by_id);
        self
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

    /// Whether the path is somebody's whose source cannot be used here.
    pub(crate) fn is_unready(&self, token: &IngestToken, now: Timestamp) -> bool {
        let has = |path: &IngestPath| path.tokens_at(now).any(|taken| taken == token);
        self.unready.values().any(has)
    }

    /// The source of that name.
    pub(crate) fn by_name(
        &self,
        tenant: &ResourceId,
        slug: &ResourceId,
    ) -> Option<&Arc<SourceEntry>> {
        let tenant = self.tenants.get(tenant)?;
        let is_it = |entry: &&Arc<SourceEntry>| {
            entry.source().tenant == *tenant && entry.source().slug == *slug
        };
        self.by_id.values().find(is_it)
    }

    /// The state after a delta. A source that cannot be built keeps the version before.
    pub(crate) fn apply(&self, delta: ConfigDelta) -> Self {
        let mut next = self.clone();
        next.epoch = delta.epoch;
        next.revision = self.revision.max(delta.revision);
        next.unreadable.apply(&delta);
        for tenant in delta.tenants {
            if tenant.deleted {
                next.tenants.remove(&tenant.value.slug);
            } else {
                next.tenants.insert(tenant.value.slug, tenant.value.id);
            }
        }
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
                next.unready.remove(&id);
                next.refused.remove(&id);
            } else {
                next.put(source.value);
            }
        }
        next.by_token = tokens(&next.by_id);
        next
    }

    fn put(&mut self, source: Source) {
        let (id, revision) = (source.id, source.meta.revision);
        let ring = self.rings.get(&id).cloned().unwrap_or_default();
        let present = self.by_id.get(&id);
        let path = source.path.clone();
        match SourceEntry::build(source, ring, present.map(Arc::as_ref)) {
            Ok(entry) => {
                self.by_id.insert(id, Arc::new(entry));
                self.unready.remove(&id);
                self.refused.remove(&id);
            }
            Err(reason) => {
                let kept = present.is_some();
                if !kept {
                    self.unready.insert(id, path);
                }
                metrics::counter!("turnbuckle_ingress_sources_refused_total").increment(1);
                tracing::error!(source.id = %id, reason, kept, "a source cannot be used here");
                let reason = reason.chars().take(node_limits::REASON_CHARS).collect();
                let (kind, uid) = ("sources".to_owned(), id.to_string());
                self.refused.insert(id, RefusedResource { kind, uid, revision, reason });
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

#[cfg(test)]
mod tests;
