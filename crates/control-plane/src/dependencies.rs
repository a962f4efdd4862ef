//! What the use cases stand on.

use crate::names::TenantName;
use std::sync::Arc;
use turnbuckle_domain::{
    AppliedRevisions, Caller, Clock, ConfigStore, Error, History, IdGenerator, KeyUsageStore, Meta,
    Propagation, ReceiptLog, ReceiptReplay, ResourceId, Revision, SealedRecords, SecretRewrapper,
    SecretSealer, TargetPolicy, Tenant,
};

/// The ports of the control plane.
pub struct Dependencies {
    /// Where configuration is kept.
    pub store: Arc<dyn ConfigStore>,
    /// What the ingress decided.
    pub receipts: Arc<dyn ReceiptLog>,
    /// Takes kept requests again; none where this process has no way into the event log.
    pub replays: Option<Arc<dyn ReceiptReplay>>,
    /// What happened to events.
    pub history: Arc<dyn History>,
    /// Seals the material of keys.
    pub sealer: Arc<dyn SecretSealer>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Makes ids.
    pub ids: IdGenerator,
    /// Waits until this process uses a change.
    pub propagation: Arc<dyn Propagation>,
    /// Judges the URLs of receivers.
    pub targets: Arc<dyn TargetPolicy>,
    /// How keys are used.
    pub key_usage: Arc<dyn KeyUsageStore>,
    /// Which data planes use which revision.
    pub applied: Arc<dyn AppliedRevisions>,
    /// Sealed records as a whole.
    pub sealed: Arc<dyn SealedRecords>,
    /// Moves sealed records to the primary key-encryption key.
    pub rewrapper: Arc<dyn SecretRewrapper>,
    /// Whether secrets of keys may be shown again.
    pub reveals_keys: bool,
}

impl Dependencies {
    /// Lets the caller into a tenant, and reads it. Permission comes first: a caller bound to
    /// another tenant does not learn whether this one exists.
    pub(crate) async fn enter(&self, caller: &Caller, slug: &ResourceId) -> Result<Tenant, Error> {
        caller.enter(slug)?;
        self.store
            .tenant(slug)
            .await?
            .ok_or_else(|| Error::NotFound { resource: TenantName(slug.clone()).to_string() })
    }

    /// Times of a row made now. The store sets the revision.
    pub(crate) fn fresh_meta(&self) -> Meta {
        let now = self.clock.now();
        Meta { created_at: now, updated_at: now, revision: Revision::ZERO }
    }
}
