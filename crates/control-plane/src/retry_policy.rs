//! Use cases of retry policies.

use crate::{
    Dependencies,
    by::By,
    names::RetryPolicyName,
    page::{Page, PageRequest},
    write::{Change, Upsert, upsert},
};
use std::{sync::Arc, time::Duration};
use turnbuckle_domain::{
    Backoff, Caller, Error, Jitter, Labels, ResourceId, RetryPolicy, RetryPolicyId, RetryRule,
    Revision,
};

/// Version of a new policy.
const FIRST_VERSION: i64 = 1;

/// A retry policy with the name of its tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RetryPolicyView {
    pub(crate) tenant: ResourceId,
    pub(crate) policy: RetryPolicy,
}

/// A retry policy to be made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CreateRetryPolicy {
    pub(crate) tenant: ResourceId,
    /// None: the server makes one.
    pub(crate) slug: Option<ResourceId>,
    pub(crate) rule: RetryRule,
    pub(crate) labels: Labels,
}

/// Which retry policies to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListRetryPolicies {
    pub(crate) tenant: ResourceId,
    pub(crate) page: PageRequest,
}

/// New values of a retry policy's fields; none keeps the old one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UpdateRetryPolicy {
    pub(crate) name: RetryPolicyName,
    pub(crate) etag: Option<Revision>,
    pub(crate) backoff: Option<Backoff>,
    pub(crate) jitter: Option<Jitter>,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) horizon: Option<Duration>,
    pub(crate) max_retry_after: Option<Duration>,
    pub(crate) retry_statuses: Option<Vec<u16>>,
    pub(crate) labels: Option<Labels>,
}

impl UpdateRetryPolicy {
    fn apply(&self, policy: &mut RetryPolicy) {
        let rule = &mut policy.rule;
        if let Some(backoff) = &self.backoff {
            rule.backoff.clone_from(backoff);
        }
        rule.jitter = self.jitter.unwrap_or(rule.jitter);
        rule.max_attempts = self.max_attempts.unwrap_or(rule.max_attempts);
        rule.horizon = self.horizon.unwrap_or(rule.horizon);
        rule.max_retry_after = self.max_retry_after.unwrap_or(rule.max_retry_after);
        if let Some(statuses) = &self.retry_statuses {
            rule.retry_statuses.clone_from(statuses);
        }
        if let Some(labels) = &self.labels {
            policy.labels.clone_from(labels);
        }
    }
}

/// A retry policy to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeleteRetryPolicy {
    pub(crate) name: RetryPolicyName,
    pub(crate) etag: Option<Revision>,
}

/// What can be done with retry policies.
pub(crate) struct RetryPolicies(pub(crate) Arc<Dependencies>);

impl RetryPolicies {
    pub(crate) async fn create(
        &self,
        by: &By,
        command: &CreateRetryPolicy,
    ) -> Result<RetryPolicyView, Error> {
        let tenant = self.0.enter(&by.caller, &command.tenant).await?;
        let id = RetryPolicyId::from_uuid(self.0.ids.uuid());
        let slug = match &command.slug {
            Some(slug) => slug.clone(),
            None => ResourceId::new(id.to_string()).map_err(Error::internal)?,
        };
        let name = RetryPolicyName { tenant: tenant.slug, id: slug.clone() };
        let policy = RetryPolicy {
            id,
            tenant: tenant.id,
            slug,
            version: FIRST_VERSION,
            rule: command.rule.clone(),
            labels: command.labels.clone(),
            meta: self.0.fresh_meta(),
        };
        let write = self.0.store.create_retry_policy(policy, &by.change);
        let policy = self.0.create(by, &name.to_string(), write).await?;
        Ok(RetryPolicyView { tenant: name.tenant, policy })
    }

    pub(crate) async fn get(
        &self,
        caller: &Caller,
        name: &RetryPolicyName,
    ) -> Result<RetryPolicyView, Error> {
        let policy = self.read(caller, name).await?;
        Ok(RetryPolicyView { tenant: name.tenant.clone(), policy })
    }

    pub(crate) async fn list(
        &self,
        caller: &Caller,
        command: &ListRetryPolicies,
    ) -> Result<Page<RetryPolicyView>, Error> {
        let tenant = self.0.enter(caller, &command.tenant).await?;
        let after = command.page.after.as_deref();
        let rows = self.0.store.retry_policies(tenant.id, after, command.page.fetch()).await?;
        let view = |policy| Some(RetryPolicyView { tenant: tenant.slug.clone(), policy });
        Ok(command.page.cut(rows, |row| row.slug.as_str()).filter_map(view))
    }

    pub(crate) async fn update(
        &self,
        by: &By,
        command: &UpdateRetryPolicy,
    ) -> Result<RetryPolicyView, Error> {
        let change = Change { resource: &command.name.to_string(), etag: command.etag };
        let policy = self
            .0
            .update(
                by,
                &change,
                || self.read(&by.caller, &command.name),
                |policy| {
                    command.apply(policy);
                    Ok(())
                },
                |mut policy: RetryPolicy, seen| {
                    policy.version += 1;
                    self.0.store.update_retry_policy(policy, seen, &by.change)
                },
            )
            .await?;
        Ok(RetryPolicyView { tenant: command.name.tenant.clone(), policy })
    }

    pub(crate) async fn upsert(
        &self,
        by: &By,
        command: &Upsert<UpdateRetryPolicy, CreateRetryPolicy>,
    ) -> Result<RetryPolicyView, Error> {
        let Upsert { update, create } = command;
        let change = Change { resource: &update.name.to_string(), etag: update.etag };
        let present = || self.update(by, update);
        upsert(&change, create.as_ref(), present, |create| self.create(by, create)).await
    }

    pub(crate) async fn delete(&self, by: &By, command: &DeleteRetryPolicy) -> Result<(), Error> {
        let change = Change { resource: &command.name.to_string(), etag: command.etag };
        self.0
            .delete(
                &change,
                || self.read(&by.caller, &command.name),
                |policy| async move {
                    self.0.store.delete_retry_policy(&policy, self.0.clock.now(), &by.change).await
                },
            )
            .await
    }

    async fn read(&self, caller: &Caller, name: &RetryPolicyName) -> Result<RetryPolicy, Error> {
        let tenant = self.0.enter(caller, &name.tenant).await?;
        let found = self.0.store.retry_policy(tenant.id, &name.id).await?;
        found.ok_or_else(|| Error::NotFound { resource: name.to_string() })
    }
}
