//! Use cases of retry policies.

use crate::{
    Dependencies,
    by::By,
    kept::{Listed, Lookup, Undelete, live_page_of, page_of, place_of, to_bring_back},
    names::RetryPolicyName,
    page::{Page, PageRequest},
    repeat::gone,
    write::{Change, Upsert, check_etag, upsert},
};
use std::{sync::Arc, time::Duration};
use turnbuckle_domain::{
    Backoff, Caller, Error, Jitter, Kept, Labels, Made, PlannedAttempt, ResourceId, RetryPolicy,
    RetryPolicyId, RetryRule, Revision, Tenant, Timestamp,
};

/// Version of a new policy.
const FIRST_VERSION: i64 = 1;

/// A retry policy with the name of its tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RetryPolicyView {
    pub(crate) tenant: ResourceId,
    pub(crate) policy: RetryPolicy,
    /// When it was deleted; none while it lives.
    pub(crate) deleted_at: Option<Timestamp>,
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
    pub(crate) show_deleted: bool,
}

/// Whose versions to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListRetryPolicyVersions {
    pub(crate) name: RetryPolicyName,
    pub(crate) page: PageRequest,
}

/// Whose attempts to plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PreviewedPolicy {
    Stored(RetryPolicyName),
    Given(RetryRule),
}

/// Attempts to be planned.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PreviewRetryPolicy {
    pub(crate) tenant: ResourceId,
    pub(crate) policy: PreviewedPolicy,
    pub(crate) attempt_duration: Duration,
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
        let again = |made| self.made(&tenant, made);
        self.0.once(by, Some(tenant.id), self.make(by, &tenant, command), again).await
    }

    async fn make(
        &self,
        by: &By,
        tenant: &Tenant,
        command: &CreateRetryPolicy,
    ) -> Result<RetryPolicyView, Error> {
        let id = RetryPolicyId::from_uuid(self.0.ids.uuid());
        let slug = match &command.slug {
            Some(slug) => slug.clone(),
            None => ResourceId::new(id.to_string()).map_err(Error::internal)?,
        };
        let name = RetryPolicyName { tenant: tenant.slug.clone(), id: slug.clone() };
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
        Ok(live(name.tenant, policy))
    }

    async fn made(&self, tenant: &Tenant, made: Made) -> Result<RetryPolicyView, Error> {
        let id = RetryPolicyId::from_uuid(made.id);
        let kept = self.0.store.kept_retry_policy(tenant.id, id).await?;
        let kept = kept.ok_or_else(gone(id))?;
        self.0.propagation.applied(kept.value.meta.revision).await;
        Ok(view(&tenant.slug, kept))
    }

    pub(crate) async fn get(
        &self,
        caller: &Caller,
        command: &Lookup<RetryPolicyName>,
    ) -> Result<RetryPolicyView, Error> {
        let name = &command.name;
        let error = match self.read(caller, name).await {
            Ok(policy) => return Ok(live(name.tenant.clone(), policy)),
            Err(error) => error,
        };
        if !command.show_deleted || !matches!(error, Error::NotFound { .. }) {
            return Err(error);
        }
        let tenant = self.0.enter(caller, &name.tenant).await?;
        let deleted = self.0.store.deleted_retry_policy(tenant.id, &name.id).await?;
        Ok(view(&tenant.slug, deleted.ok_or(error)?))
    }

    pub(crate) async fn preview(
        &self,
        caller: &Caller,
        command: &PreviewRetryPolicy,
    ) -> Result<Vec<PlannedAttempt>, Error> {
        let rule = match &command.policy {
            PreviewedPolicy::Stored(name) => self.read(caller, name).await?.rule,
            PreviewedPolicy::Given(rule) => {
                self.0.enter(caller, &command.tenant).await?;
                rule.clone()
            }
        };
        Ok(rule.preview(command.attempt_duration))
    }

    pub(crate) async fn undelete(
        &self,
        by: &By,
        command: &Undelete<RetryPolicyName, RetryPolicyId>,
    ) -> Result<RetryPolicyView, Error> {
        let (name, store) = (&command.name, &self.0.store);
        let tenant = self.0.enter(&by.caller, &name.tenant).await?;
        let found = match command.uid {
            Some(uid) => store.kept_retry_policy(tenant.id, uid).await?,
            None => store.deleted_retry_policy(tenant.id, &name.id).await?,
        };
        let found = found.filter(|kept| kept.value.slug == name.id);
        let lives = store.retry_policy(tenant.id, &name.id).await?.is_some();
        let resource = name.to_string();
        let deleted = to_bring_back(found, lives, &resource)?;
        check_etag(command.etag, deleted.meta.revision, &resource)?;
        let write = store.undelete_retry_policy(&deleted, self.0.clock.now(), &by.change);
        let policy = self.0.create(by, &resource, write).await?;
        Ok(live(tenant.slug, policy))
    }

    pub(crate) async fn list(
        &self,
        caller: &Caller,
        command: &ListRetryPolicies,
    ) -> Result<Page<Listed<RetryPolicyView>>, Error> {
        let (page, store) = (&command.page, &self.0.store);
        let tenant = self.0.enter(caller, &command.tenant).await?;
        let rows = if command.show_deleted {
            let after = place_of(page, RetryPolicyId::uuid)?;
            let rows = store.kept_retry_policies(tenant.id, after.as_ref(), page.fetch()).await?;
            page_of(page, rows, |row| (&row.slug, row.id))
        } else {
            let rows = store.retry_policies(tenant.id, page.after.as_deref(), page.fetch()).await?;
            live_page_of(page, rows, |row| &row.slug)
        };
        Ok(rows.filter_map(|Listed { place, row }| {
            Some(Listed { place, row: view(&tenant.slug, row) })
        }))
    }

    /// What a policy is and was, the newest first.
    pub(crate) async fn versions(
        &self,
        caller: &Caller,
        command: &ListRetryPolicyVersions,
    ) -> Result<Page<Listed<RetryPolicyView>>, Error> {
        let (name, page) = (&command.name, &command.page);
        let before = page.after.as_ref().map(|after| after.parse::<i64>()).transpose();
        let before =
            before.map_err(|_| Error::invalid("page_token", "is not a token of this list"))?;
        let present = self.read(caller, name).await?;
        let mut rows = Vec::new();
        if before.is_none_or(|before| present.version < before) {
            rows.push(present.clone());
        }
        // Read after the present one: a version made meanwhile is left out, and none is twice.
        let before = before.unwrap_or(present.version).min(present.version);
        let former = self.0.store.former_retry_policies(&present, before, page.fetch()).await?;
        rows.extend(former);
        let listed = rows.into_iter().map(|policy| Listed {
            place: policy.version.to_string(),
            row: live(name.tenant.clone(), policy),
        });
        Ok(page.cut(listed.collect(), |listed: &Listed<RetryPolicyView>| listed.place.as_str()))
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
        Ok(live(command.name.tenant.clone(), policy))
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

const fn live(tenant: ResourceId, policy: RetryPolicy) -> RetryPolicyView {
    RetryPolicyView { tenant, policy, deleted_at: None }
}

fn view(tenant: &ResourceId, kept: Kept<RetryPolicy>) -> RetryPolicyView {
    RetryPolicyView { tenant: tenant.clone(), policy: kept.value, deleted_at: kept.deleted_at }
}
