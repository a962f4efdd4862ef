//! Use cases of tenants.

use crate::{
    Dependencies,
    by::By,
    names::TenantName,
    page::{Page, PageRequest},
    repeat::gone,
    write::Change,
};
use std::sync::Arc;
use turnbuckle_domain::{Caller, Error, Labels, Made, ResourceId, Revision, Tenant, TenantId};

/// A tenant to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CreateTenant {
    pub(crate) slug: ResourceId,
    pub(crate) display_name: String,
    pub(crate) labels: Labels,
}

/// New values of a tenant's fields; none keeps the old one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UpdateTenant {
    pub(crate) name: TenantName,
    pub(crate) etag: Option<Revision>,
    pub(crate) display_name: Option<String>,
    pub(crate) labels: Option<Labels>,
}

impl UpdateTenant {
    fn apply(&self, tenant: &mut Tenant) {
        if let Some(display_name) = &self.display_name {
            tenant.display_name.clone_from(display_name);
        }
        if let Some(labels) = &self.labels {
            tenant.labels.clone_from(labels);
        }
    }
}

/// A tenant to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeleteTenant {
    pub(crate) name: TenantName,
    pub(crate) etag: Option<Revision>,
}

/// What can be done with tenants.
pub(crate) struct Tenants(pub(crate) Arc<Dependencies>);

impl Tenants {
    pub(crate) async fn create(&self, by: &By, command: &CreateTenant) -> Result<Tenant, Error> {
        by.caller.enter(&command.slug)?;
        let resource = TenantName(command.slug.clone()).to_string();
        let again = |made: Made| async move {
            let kept = self.0.store.kept_tenant(TenantId::from_uuid(made.id)).await?;
            let live = kept.filter(|kept| kept.deleted_at.is_none());
            let tenant = live.ok_or_else(gone(TenantName(command.slug.clone())))?.value;
            self.0.propagation.applied(tenant.meta.revision).await;
            Ok(tenant)
        };
        self.0.once(by, None, self.make(by, command, &resource), again).await
    }

    async fn make(&self, by: &By, command: &CreateTenant, resource: &str) -> Result<Tenant, Error> {
        let tenant = Tenant {
            id: TenantId::from_uuid(self.0.ids.uuid()),
            slug: command.slug.clone(),
            display_name: command.display_name.clone(),
            labels: command.labels.clone(),
            meta: self.0.fresh_meta(),
        };
        self.0.create(by, resource, self.0.store.create_tenant(tenant, &by.change)).await
    }

    pub(crate) async fn get(&self, caller: &Caller, name: &TenantName) -> Result<Tenant, Error> {
        self.0.enter(caller, &name.0).await
    }

    /// A caller bound to a tenant sees only that one.
    pub(crate) async fn list(
        &self,
        caller: &Caller,
        request: &PageRequest,
    ) -> Result<Page<Tenant>, Error> {
        let after = request.after.as_deref();
        let rows = match &caller.tenant {
            None => self.0.store.tenants(after, request.fetch()).await?,
            Some(own) if after.is_none_or(|after| after < own.as_str()) => {
                self.0.store.tenant(own).await?.into_iter().collect()
            }
            Some(_) => Vec::new(),
        };
        Ok(request.cut(rows, |row| row.slug.as_str()))
    }

    pub(crate) async fn update(&self, by: &By, command: &UpdateTenant) -> Result<Tenant, Error> {
        let change = Change { resource: &command.name.to_string(), etag: command.etag };
        self.0
            .update(
                by,
                &change,
                || self.0.enter(&by.caller, &command.name.0),
                |tenant| {
                    command.apply(tenant);
                    Ok(())
                },
                |tenant, seen| self.0.store.update_tenant(tenant, seen, &by.change),
            )
            .await
    }

    pub(crate) async fn delete(&self, by: &By, command: &DeleteTenant) -> Result<(), Error> {
        let change = Change { resource: &command.name.to_string(), etag: command.etag };
        self.0
            .delete(
                &change,
                || self.0.enter(&by.caller, &command.name.0),
                |tenant| async move {
                    self.0.store.delete_tenant(&tenant, self.0.clock.now(), &by.change).await
                },
            )
            .await
    }
}
