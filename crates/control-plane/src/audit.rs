//! Use cases of the audit record: reads only. It is written by the store, with each change.

use crate::{
    Dependencies,
    names::TenantName,
    page::{Page, PageRequest},
};
use std::sync::Arc;
use turnbuckle_domain::{AuditEntry, AuditFilter, AuditHead, Caller, Error, ResourceId, Tenant};

/// An entry with the name of its tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuditView {
    pub(crate) tenant: ResourceId,
    pub(crate) entry: AuditEntry,
    /// The entry's number as page tokens carry it.
    pub(crate) place: String,
}

/// The newest entry with the name of its tenant; none before the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuditHeadView {
    pub(crate) tenant: ResourceId,
    pub(crate) head: Option<AuditHead>,
}

/// Which entries to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListAuditEvents {
    pub(crate) tenant: ResourceId,
    pub(crate) filter: AuditFilter,
    /// Only entries with lower numbers.
    pub(crate) below: Option<i64>,
    pub(crate) page: PageRequest,
}

/// What can be done with the audit record.
pub(crate) struct Audit(pub(crate) Arc<Dependencies>);

impl Audit {
    pub(crate) async fn list(
        &self,
        caller: &Caller,
        command: &ListAuditEvents,
    ) -> Result<Page<AuditView>, Error> {
        let tenant = self.enter(caller, &command.tenant).await?;
        let (filter, limit) = (&command.filter, command.page.fetch());
        let rows = self.0.store.audit_entries(tenant.id, filter, command.below, limit).await?;
        let views = rows.into_iter().map(|entry| AuditView {
            tenant: tenant.slug.clone(),
            place: entry.sequence.to_string(),
            entry,
        });
        Ok(command.page.cut(views.collect(), |view: &AuditView| view.place.as_str()))
    }

    pub(crate) async fn head(
        &self,
        caller: &Caller,
        tenant: &ResourceId,
    ) -> Result<AuditHeadView, Error> {
        let tenant = self.enter(caller, tenant).await?;
        let head = self.0.store.audit_head(tenant.id).await?;
        Ok(AuditHeadView { tenant: tenant.slug, head })
    }

    /// As [`Dependencies::enter`], also into a tenant that is deleted.
    async fn enter(&self, caller: &Caller, slug: &ResourceId) -> Result<Tenant, Error> {
        caller.enter(slug)?;
        let found = self.0.store.audited_tenant(slug).await?;
        found.ok_or_else(|| Error::NotFound { resource: TenantName(slug.clone()).to_string() })
    }
}
