//! All resources of a node at one revision, encoded as they came.

use crate::{
    Usable,
    wire::{self, Header, Key, Record},
};
use std::{collections::BTreeMap, sync::Arc};
use turnbuckle_domain::{
    ApiToken, ConfigDelta, ConfigPosition, Deletable, RefusedResource, ResourceKind, Revision,
    Revocation, node_limits,
};
use uuid::Uuid;

/// One resource. Kept encoded, which takes a fraction of the memory and is what the file needs.
#[derive(Debug, Clone)]
struct Held {
    revision: Revision,
    /// Shared with the writer of the file, which needs its time.
    bytes: Arc<[u8]>,
}

/// One that cannot be used here. Kept all the same: the control plane sends it once only, and the next
/// version of this program may be able to use it.
#[derive(Debug, Clone)]
struct Refused {
    told: RefusedResource,
    bytes: Arc<[u8]>,
}

/// What a node has. Behind the index of its plane, which is built from it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Replica {
    at: ConfigPosition,
    live: BTreeMap<Key, Held>,
    /// What went since the plane last took changes, with its last state: the plane finds by it what
    /// to take out.
    gone: BTreeMap<Key, Held>,
    refused: BTreeMap<Key, Refused>,
    usable: Usable,
}

/// The bytes are no resource: the other side, or the way between, is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a resource has no kind and id that can be read")]
pub(crate) struct NoResource;

impl Replica {
    pub(crate) fn new(at: ConfigPosition, usable: Usable) -> Self {
        Self { at, usable, ..Self::default() }
    }

    pub(crate) const fn at(&self) -> ConfigPosition {
        self.at
    }

    /// How many resources there are.
    pub(crate) fn len(&self) -> usize {
        self.live.len()
    }

    /// The resources, in the order in which they are built on each other, and behind them those that
    /// were refused. Who takes them in in this order comes to the same state; or, knowing more, to a
    /// better one.
    pub(crate) fn resources(&self) -> Vec<Arc<[u8]>> {
        let live = self.live.values().map(|held| &held.bytes);
        live.chain(self.refused.values().map(|refused| &refused.bytes)).map(Arc::clone).collect()
    }

    /// What decides whether a resource is usable.
    pub(crate) fn usable(&self) -> Usable {
        self.usable.clone()
    }

    /// What could not be used, at most as much as a report holds.
    pub(crate) fn refused(&self) -> Vec<RefusedResource> {
        let refused = self.refused.values().take(node_limits::REFUSED_MAX);
        refused.map(|refused| refused.told.clone()).collect()
    }

    /// Whether everything that exists is here in some version. When not, what is missing may exist.
    pub(crate) fn is_complete(&self) -> bool {
        self.refused.keys().all(|key| self.live.contains_key(key))
    }

    /// Takes a resource in, or refuses it and keeps its version before. A resource is kept whose
    /// kind is unknown: the next version of this program knows it, and finds it in the file.
    pub(crate) fn upsert(&mut self, bytes: Vec<u8>) -> Result<(), NoResource> {
        let (Header { key, revision }, resource) = wire::header(&bytes).ok_or(NoResource)?;
        // What the store cannot read has no content at all.
        let usable = match resource.unreadable.is_empty() {
            false => Err(reason(&resource.slug, &resource.unreadable)),
            true => wire::decode(resource)
                .map_err(|unusable| unusable.to_string())
                .and_then(|record| self.usable.check(&record).map(|()| record)),
        };
        let held = Held { revision, bytes: bytes.into() };
        match usable {
            Ok(record) if is_over(&record) => {
                self.refused.remove(&key);
                if self.live.remove(&key).is_some() {
                    self.gone.insert(key, held);
                }
            }
            Ok(_) => {
                self.refused.remove(&key);
                self.gone.remove(&key);
                self.live.insert(key, held);
            }
            Err(reason) => self.refuse(key, held, reason),
        }
        Ok(())
    }

    fn refuse(&mut self, key: Key, Held { revision, bytes }: Held, reason: String) {
        let told = RefusedResource {
            kind: wire::kind_name(key.kind).to_owned(),
            uid: match wire::domain_kind(key.kind) {
                Some(kind) => kind.uid(key.id),
                None => key.id.to_string(),
            },
            revision,
            reason,
        };
        tracing::warn!(
            resource.kind = told.kind,
            resource.uid = told.uid,
            config.revision = revision.0,
            reason = told.reason,
            "a resource cannot be used here; its version before stays in use"
        );
        self.refused.insert(key, Refused { told, bytes });
    }

    /// Takes a resource out.
    pub(crate) fn remove(&mut self, key: Key, revision: Revision) {
        self.refused.remove(&key);
        if let Some(held) = self.live.remove(&key) {
            self.gone.insert(key, Held { revision, ..held });
        }
    }

    /// Everything is applied up to this revision.
    pub(crate) fn reach(&mut self, revision: Revision) {
        self.at.revision = revision;
    }

    /// How many resources of this state another one lacks.
    pub(crate) fn missing_in(&self, next: &Self) -> usize {
        let is_missing =
            |key: &&Key| !next.live.contains_key(*key) && !next.refused.contains_key(*key);
        self.live.keys().filter(is_missing).count()
    }

    /// Takes the place of another state: what that one has, and this one lacks, is gone; what this
    /// one had to refuse stays in the version before.
    pub(crate) fn replace(mut self, before: Self) -> Self {
        for (key, held) in before.gone.into_iter().chain(before.live) {
            if self.live.contains_key(&key) {
                continue;
            }
            if self.refused.contains_key(&key) {
                self.live.insert(key, held);
            } else {
                let revision = self.at.revision;
                self.gone.insert(key, Held { revision, ..held });
            }
        }
        self
    }

    /// What the plane needs to come from a revision to this state. It has taken everything up to
    /// there, so that what went before is forgotten.
    pub(crate) fn changes_since(&mut self, known: Revision) -> ConfigDelta {
        let at = self.at;
        let mut delta =
            ConfigDelta { epoch: at.epoch, revision: at.revision, ..ConfigDelta::default() };
        if known == Revision::ZERO {
            self.gone.clear();
        } else {
            self.gone.retain(|_, held| held.revision > known);
        }
        let changed = |(_, held): &(&Key, &Held)| held.revision > known;
        make_room(&mut delta, self.live.iter().filter(changed).map(|(key, _)| key.kind));
        for (_, held) in self.live.iter().filter(changed) {
            add(&mut delta, &held.bytes, false);
        }
        for held in self.gone.values() {
            add(&mut delta, &held.bytes, true);
        }
        delta
    }
}

/// Lists that grow by doubling take twice their size, and three times while they move: a large snapshot
/// has its size once.
fn make_room(delta: &mut ConfigDelta, kinds: impl Iterator<Item = i32>) {
    let mut counts: BTreeMap<i32, usize> = BTreeMap::new();
    for kind in kinds {
        *counts.entry(kind).or_default() += 1;
    }
    for (kind, count) in counts {
        match wire::domain_kind(kind) {
            Some(ResourceKind::Endpoint) => delta.endpoints.reserve_exact(count),
            Some(ResourceKind::KeyRing) => delta.key_rings.reserve_exact(count),
            Some(ResourceKind::Subscription) => delta.subscriptions.reserve_exact(count),
            // There are few of the others.
            _ => {}
        }
    }
}

/// Adds a resource that was checked when it came.
pub(crate) fn add(delta: &mut ConfigDelta, bytes: &[u8], deleted: bool) {
    let Some((_, resource)) = wire::header(bytes) else { return };
    let Ok(record) = wire::decode(resource) else { return };
    match record {
        Record::Tenant(value) => delta.tenants.push(Deletable { value, deleted }),
        Record::EventType(value) => delta.event_types.push(Deletable { value, deleted }),
        Record::RetryPolicy(value) => delta.retry_policies.push(Deletable { value, deleted }),
        // A ring goes when its endpoint goes.
        Record::KeyRing(owner, ring) if !deleted => delta.key_rings.push((owner, ring)),
        Record::KeyRing(..) | Record::Unknown => {}
        Record::Endpoint(value) => delta.endpoints.push(Deletable { value: *value, deleted }),
        Record::Subscription(value) => delta.subscriptions.push(Deletable { value, deleted }),
        Record::EventTypeVersion(value) => {
            delta.event_type_versions.push(Deletable { value, deleted });
        }
        Record::SourceKeyRing(owner, ring) if !deleted => {
            delta.source_key_rings.push((owner, ring))
        }
        Record::SourceKeyRing(..) => {}
        Record::Source(value) => delta.sources.push(Deletable { value: *value, deleted }),
        Record::ApiToken(value) => delta.api_tokens.push(match deleted {
            false => *value,
            // One goes when it is revoked, or its tenant is gone.
            true => ended(*value),
        }),
    }
}

/// Whether the record says of itself that it is over. A snapshot would not have it, so nothing may
/// stay of it: else every node gathers what no snapshot has, and holds the next one back.
fn is_over(record: &Record) -> bool {
    matches!(record, Record::ApiToken(token) if token.revoked.is_some())
}

/// A token that is no longer taken.
fn ended(token: ApiToken) -> ApiToken {
    let revocation = Revocation { at: token.meta.updated_at, reason: String::new() };
    ApiToken { revoked: token.revoked.or(Some(revocation)), ..token }
}

/// Why a resource is refused that the store cannot read.
fn reason(name: &str, unreadable: &str) -> String {
    format!("{name}: {unreadable}").chars().take(node_limits::REASON_CHARS).collect()
}

/// The id of a removal; none when it has another length.
pub(crate) fn removed_key(kind: i32, id: &[u8]) -> Option<Key> {
    Some(Key { kind, id: Uuid::from_slice(id).ok()? })
}

#[cfg(test)]
mod history_tests;
#[cfg(test)]
mod tests;
