//! Use cases of subscriptions.

use crate::{
    Dependencies,
    by::By,
    kept::{Listed, Lookup, Undelete, live_page_of, page_of, place_of, to_bring_back},
    names::{EndpointName, SubscriptionName},
    page::{Page, PageRequest},
    repeat::gone,
    write::{Change, Upsert, check_etag, upsert},
};
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};
use turnbuckle_domain::{
    Caller, Channels, EndpointId, Error, Filter, Kept, Labels, Made, PayloadFormat, ResourceId,
    Revision, Subscription, SubscriptionId, Tenant, TenantId, Timestamp, TypePattern,
};

/// Where a subscription's endpoint stands in requests.
const ENDPOINT_FIELD: &str = "subscription.endpoint";

/// A subscription with the names of its tenant and endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SubscriptionView {
    pub(crate) tenant: ResourceId,
    pub(crate) endpoint: ResourceId,
    pub(crate) subscription: Subscription,
    /// When it was deleted; none while it lives.
    pub(crate) deleted_at: Option<Timestamp>,
}

/// A subscription to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CreateSubscription {
    pub(crate) tenant: ResourceId,
    /// None: the server makes one.
    pub(crate) slug: Option<ResourceId>,
    pub(crate) endpoint: EndpointName,
    pub(crate) patterns: Vec<TypePattern>,
    pub(crate) format: PayloadFormat,
    pub(crate) filter: Option<Filter>,
    pub(crate) channels: Channels,
    pub(crate) labels: Labels,
}

/// Which subscriptions to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListSubscriptions {
    pub(crate) tenant: ResourceId,
    pub(crate) page: PageRequest,
    pub(crate) show_deleted: bool,
}

/// New values of a subscription's fields; none keeps the old one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UpdateSubscription {
    pub(crate) name: SubscriptionName,
    pub(crate) etag: Option<Revision>,
    /// The endpoint the caller believes it has: it cannot be changed.
    pub(crate) endpoint: Option<EndpointName>,
    pub(crate) patterns: Option<Vec<TypePattern>>,
    pub(crate) format: Option<PayloadFormat>,
    /// A new filter, or none from now on.
    pub(crate) filter: Option<Option<Filter>>,
    pub(crate) channels: Option<Channels>,
    pub(crate) labels: Option<Labels>,
}

impl UpdateSubscription {
    fn apply(&self, subscription: &mut Subscription) {
        if let Some(patterns) = &self.patterns {
            subscription.patterns.clone_from(patterns);
        }
        subscription.format = self.format.unwrap_or(subscription.format);
        if let Some(filter) = &self.filter {
            subscription.filter.clone_from(filter);
        }
        if let Some(channels) = &self.channels {
            subscription.channels.clone_from(channels);
        }
        if let Some(labels) = &self.labels {
            subscription.labels.clone_from(labels);
        }
    }
}

/// A subscription to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeleteSubscription {
    pub(crate) name: SubscriptionName,
    pub(crate) etag: Option<Revision>,
}

/// What can be done with subscriptions.
pub(crate) struct Subscriptions(pub(crate) Arc<Dependencies>);

impl Subscriptions {
    pub(crate) async fn create(
        &self,
        by: &By,
        command: &CreateSubscription,
    ) -> Result<SubscriptionView, Error> {
        let tenant = self.0.enter(&by.caller, &command.tenant).await?;
        let again = |made| self.made(&tenant, made);
        self.0.once(by, Some(tenant.id), self.make(by, &tenant, command), again).await
    }

    async fn made(&self, tenant: &Tenant, made: Made) -> Result<SubscriptionView, Error> {
        let id = SubscriptionId::from_uuid(made.id);
        let kept = self.0.store.kept_subscription(tenant.id, id).await?;
        let kept = kept.ok_or_else(gone(id))?;
        self.0.propagation.applied(kept.value.meta.revision).await;
        let name = SubscriptionName { tenant: tenant.slug.clone(), id: kept.value.slug.clone() };
        self.view(&name, kept).await
    }

    async fn make(
        &self,
        by: &By,
        tenant: &Tenant,
        command: &CreateSubscription,
    ) -> Result<SubscriptionView, Error> {
        let endpoint = self.resolve(tenant, &command.endpoint).await?;
        let id = SubscriptionId::from_uuid(self.0.ids.uuid());
        let slug = match &command.slug {
            Some(slug) => slug.clone(),
            None => ResourceId::new(id.to_string()).map_err(Error::internal)?,
        };
        let name = SubscriptionName { tenant: tenant.slug.clone(), id: slug.clone() };
        let subscription = Subscription {
            id,
            tenant: tenant.id,
            slug,
            endpoint,
            patterns: command.patterns.clone(),
            format: command.format,
            filter: command.filter.clone(),
            channels: command.channels.clone(),
            labels: command.labels.clone(),
            meta: self.0.fresh_meta(),
        };
        let write = self.0.store.create_subscription(subscription, &by.change);
        let subscription = self.0.create(by, &name.to_string(), write).await?;
        Ok(SubscriptionView {
            tenant: name.tenant,
            endpoint: command.endpoint.id.clone(),
            subscription,
            deleted_at: None,
        })
    }

    pub(crate) async fn get(
        &self,
        caller: &Caller,
        command: &Lookup<SubscriptionName>,
    ) -> Result<SubscriptionView, Error> {
        let name = &command.name;
        let error = match self.read(caller, name).await {
            Ok(subscription) => return self.view(name, Kept::live(subscription)).await,
            Err(error) => error,
        };
        if !command.show_deleted || !matches!(error, Error::NotFound { .. }) {
            return Err(error);
        }
        let tenant = self.0.enter(caller, &name.tenant).await?;
        let deleted = self.0.store.deleted_subscription(tenant.id, &name.id).await?;
        self.view(name, deleted.ok_or(error)?).await
    }

    pub(crate) async fn undelete(
        &self,
        by: &By,
        command: &Undelete<SubscriptionName, SubscriptionId>,
    ) -> Result<SubscriptionView, Error> {
        let (name, store) = (&command.name, &self.0.store);
        let tenant = self.0.enter(&by.caller, &name.tenant).await?;
        let found = match command.uid {
            Some(uid) => store.kept_subscription(tenant.id, uid).await?,
            None => store.deleted_subscription(tenant.id, &name.id).await?,
        };
        let found = found.filter(|kept| kept.value.slug == name.id);
        let lives = store.subscription(tenant.id, &name.id).await?.is_some();
        let resource = name.to_string();
        let deleted = to_bring_back(found, lives, &resource)?;
        check_etag(command.etag, deleted.meta.revision, &resource)?;
        let write = store.undelete_subscription(&deleted, self.0.clock.now(), &by.change);
        let subscription = self.0.create(by, &resource, write).await?;
        self.view(name, Kept::live(subscription)).await
    }

    pub(crate) async fn list(
        &self,
        caller: &Caller,
        command: &ListSubscriptions,
    ) -> Result<Page<Listed<SubscriptionView>>, Error> {
        let (page, store) = (&command.page, &self.0.store);
        let tenant = self.0.enter(caller, &command.tenant).await?;
        let rows = if command.show_deleted {
            let after = place_of(page, SubscriptionId::uuid)?;
            let rows = store.kept_subscriptions(tenant.id, after.as_ref(), page.fetch()).await?;
            page_of(page, rows, |row| (&row.slug, row.id))
        } else {
            let rows = store.subscriptions(tenant.id, page.after.as_deref(), page.fetch()).await?;
            live_page_of(page, rows, |row| &row.slug)
        };
        let ids = rows.rows.iter().map(|listed| listed.row.value.endpoint);
        let slugs = self.endpoint_slugs(tenant.id, ids.collect(), command.show_deleted).await?;
        // An endpoint deleted since then has taken its subscriptions along.
        Ok(rows.filter_map(|Listed { place, row: Kept { value, deleted_at } }| {
            let endpoint = slugs.get(&value.endpoint)?.clone();
            let tenant = tenant.slug.clone();
            let row = SubscriptionView { tenant, endpoint, subscription: value, deleted_at };
            Some(Listed { place, row })
        }))
    }

    /// Last parts of the names of these endpoints; of deleted ones too where they are asked for.
    async fn endpoint_slugs(
        &self,
        tenant: TenantId,
        ids: BTreeSet<EndpointId>,
        deleted_too: bool,
    ) -> Result<HashMap<EndpointId, ResourceId>, Error> {
        let ids: Vec<EndpointId> = ids.into_iter().collect();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let mut slugs = self.0.store.endpoint_slugs(tenant, &ids).await?;
        for id in ids.into_iter().filter(|_| deleted_too) {
            if slugs.contains_key(&id) {
                continue;
            }
            if let Some(kept) = self.0.store.kept_endpoint(tenant, id).await? {
                slugs.insert(id, kept.value.slug);
            }
        }
        Ok(slugs)
    }

    pub(crate) async fn update(
        &self,
        by: &By,
        command: &UpdateSubscription,
    ) -> Result<SubscriptionView, Error> {
        let expected = match &command.endpoint {
            Some(endpoint) => {
                let tenant = self.0.enter(&by.caller, &command.name.tenant).await?;
                let found = self.0.store.endpoint(tenant.id, &endpoint.id).await?;
                Some(found.map(|endpoint| endpoint.id))
            }
            None => None,
        };
        let change = Change { resource: &command.name.to_string(), etag: command.etag };
        let subscription = self
            .0
            .update(
                by,
                &change,
                || self.read(&by.caller, &command.name),
                |subscription: &mut Subscription| {
                    check_endpoint(expected, subscription.endpoint)?;
                    command.apply(subscription);
                    Ok(())
                },
                |subscription, seen| {
                    self.0.store.update_subscription(subscription, seen, &by.change)
                },
            )
            .await?;
        self.view(&command.name, Kept::live(subscription)).await
    }

    pub(crate) async fn upsert(
        &self,
        by: &By,
        command: &Upsert<UpdateSubscription, CreateSubscription>,
    ) -> Result<SubscriptionView, Error> {
        let Upsert { update, create } = command;
        let change = Change { resource: &update.name.to_string(), etag: update.etag };
        let present = || self.update(by, update);
        upsert(&change, create.as_ref(), present, |create| self.create(by, create)).await
    }

    pub(crate) async fn delete(&self, by: &By, command: &DeleteSubscription) -> Result<(), Error> {
        let change = Change { resource: &command.name.to_string(), etag: command.etag };
        self.0
            .delete(
                &change,
                || self.read(&by.caller, &command.name),
                |subscription| async move {
                    self.0
                        .store
                        .delete_subscription(&subscription, self.0.clock.now(), &by.change)
                        .await
                },
            )
            .await
    }

    async fn read(&self, caller: &Caller, name: &SubscriptionName) -> Result<Subscription, Error> {
        let tenant = self.0.enter(caller, &name.tenant).await?;
        let found = self.0.store.subscription(tenant.id, &name.id).await?;
        found.ok_or_else(|| Error::NotFound { resource: name.to_string() })
    }

    async fn resolve(&self, tenant: &Tenant, name: &EndpointName) -> Result<EndpointId, Error> {
        let found = self.0.store.endpoint(tenant.id, &name.id).await?;
        found.map(|endpoint| endpoint.id).ok_or_else(|| {
            Error::invalid(
                ENDPOINT_FIELD,
                format!("{name} does not exist: create it first, or name another endpoint"),
            )
        })
    }

    async fn view(
        &self,
        name: &SubscriptionName,
        kept: Kept<Subscription>,
    ) -> Result<SubscriptionView, Error> {
        let Kept { value: subscription, deleted_at } = kept;
        let id = subscription.endpoint;
        let ids = BTreeSet::from([id]);
        let mut slugs = self.endpoint_slugs(subscription.tenant, ids, deleted_at.is_some()).await?;
        // Without its endpoint it is gone too: both went in one transaction.
        let endpoint = slugs.remove(&id).ok_or_else(gone(name))?;
        Ok(SubscriptionView { tenant: name.tenant.clone(), endpoint, subscription, deleted_at })
    }
}

/// The endpoint is fixed; a caller that sends back what it read is let through. `expected` is none
/// when the caller sent no endpoint, and holds none when it named one that does not exist.
fn check_endpoint(expected: Option<Option<EndpointId>>, present: EndpointId) -> Result<(), Error> {
    match expected {
        Some(expected) if expected != Some(present) => Err(Error::invalid(
            ENDPOINT_FIELD,
            "is fixed once created: delete the subscription and create another",
        )),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_of_a_subscription_is_fixed() {
        let present = "ep_00000000000000000000000000".parse().unwrap();
        let other = "ep_0123456789abcdefghjkmnpqr0".parse().unwrap();
        assert!(check_endpoint(None, present).is_ok());
        assert!(check_endpoint(Some(Some(present)), present).is_ok());
        for moved in [Some(other), None] {
            let error = check_endpoint(Some(moved), present).unwrap_err();
            assert!(error.to_string().contains("subscription.endpoint: is fixed"), "{error}");
        }
    }
}
