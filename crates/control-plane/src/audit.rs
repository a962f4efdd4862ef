//! Use cases of the audit record: reads only. It is written by the store, with each change,
//! and with calls that are denied.

use crate::{
    Dependencies,
    names::TenantName,
    page::{Page, PageRequest},
};
use std::sync::Arc;
use turnbuckle_domain::{
    AuditEntry, AuditFilter, AuditHead, Caller, Error, PLATFORM, ResourceId, TenantId,
};

/// An entry with the name of its tenant; none in the platform's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuditView {
    pub(crate) tenant: Option<ResourceId>,
    pub(crate) entry: AuditEntry,
    /// The entry's number as page tokens carry it.
    pub(crate) place: String,
}

/// The newest entry with the name of its tenant; none before the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuditHeadView {
    pub(crate) tenant: Option<ResourceId>,
    pub(crate) head: Option<AuditHead>,
}

/// Which entries to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListAuditEvents {
    /// None for the platform's record.
    pub(crate) tenant: Option<ResourceId>,
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
        let trail = self.enter(caller, command.tenant.as_ref()).await?;
        let (filter, limit) = (&command.filter, command.page.fetch());
        let rows = self.0.store.audit_entries(trail, filter, command.below, limit).await?;
        let views = rows.into_iter().map(|entry| AuditView {
            tenant: command.tenant.clone(),
            place: entry.sequence.to_string(),
            entry,
        });
        Ok(command.page.cut(views.collect(), |view: &AuditView| view.place.as_str()))
    }

    pub(crate) async fn head(
        &self,
        caller: &Caller,
        tenant: Option<&ResourceId>,
    ) -> Result<AuditHeadView, Error> {
        let trail = self.enter(caller, tenant).await?;
        let head = self.0.store.audit_head(trail).await?;
        Ok(AuditHeadView { tenant: tenant.cloned(), head })
    }

    /// As [`Dependencies::enter`], also into a tenant that is deleted. The platform's record is for
    /// callers that are bound to no tenant.
    async fn enter(&self, caller: &Caller, slug: Option<&ResourceId>) -> Result<TenantId, Error> {
        let Some(slug) = slug else {
            return caller.enter_platform().map(|()| PLATFORM);
        };
        caller.enter(slug)?;
        let found = self.0.store.audited_tenant(slug).await?;
        let tenant =
            found.ok_or_else(|| Error::NotFound { resource: TenantName(slug.clone()).to_string() });
        Ok(tenant?.id)
    }
}
