//! What the use cases stand on.

use crate::names::TenantName;
use std::sync::Arc;
use turnbuckle_domain::{
    Caller, Clock, ConfigStore, Error, IdGenerator, Meta, Propagation, ReceiptLog, ResourceId,
    Revision, SecretSealer, TargetPolicy, Tenant,
};

/// The ports of the control plane.
pub struct Dependencies {
    /// Where configuration is kept.
    pub store: Arc<dyn ConfigStore>,
    /// What the ingress decided.
    pub receipts: Arc<dyn ReceiptLog>,
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
