//! Rows that cannot be read: set aside by name, so that they hold nothing else back (I13).

use super::cell::Malformed;
use sea_orm::prelude::Uuid;
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};
use turnbuckle_domain::{ResourceKind, Revision, UnreadableResource};

/// States of rows that are remembered as told. More broken ones than that are told again.
const TOLD_MAX: usize = 10_000;

/// What a row is, besides what it holds.
pub(super) struct Place {
    pub(super) id: Uuid,
    pub(super) name: String,
    pub(super) revision: i64,
    pub(super) deleted: bool,
}

/// Which rows were told of: each state of a row once, however often it is read.
#[derive(Debug, Clone, Default)]
pub(super) struct Told(Arc<Mutex<BTreeSet<(ResourceKind, Uuid, i64)>>>);

impl Told {
    fn is_new(&self, kind: ResourceKind, place: &Place) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= TOLD_MAX {
            told.clear();
        }
        told.insert((kind, place.id, place.revision))
    }
}

/// Collects what one read has to leave out.
pub(super) struct Aside {
    told: Told,
    unreadable: Vec<UnreadableResource>,
}

impl Aside {
    pub(super) fn new(told: &Told) -> Self {
        Self { told: told.clone(), unreadable: Vec::new() }
    }

    /// Sets a row aside, and tells of it once.
    pub(super) fn put(&mut self, kind: ResourceKind, place: Place, malformed: &Malformed) {
        if self.told.is_new(kind, &place) {
            metrics::counter!("turnbuckle_config_unreadable_total", "kind" => kind.as_str())
                .increment(1);
            tracing::error!(
                resource.kind = kind.as_str(),
                resource.uid = %place.id,
                config.revision = place.revision,
                error = malformed as &dyn std::error::Error,
                "a resource cannot be read in the store; its version before stays in use"
            );
        }
        let Place { id, name, revision, deleted } = place;
        self.unreadable.push(UnreadableResource {
            kind,
            id,
            name: name.chars().take(UnreadableResource::NAME_CHARS).collect(),
            revision: Revision(revision),
            reason: malformed.to_string(),
            deleted,
        });
    }

    pub(super) fn finish(self) -> Vec<UnreadableResource> {
        self.unreadable
    }
}
