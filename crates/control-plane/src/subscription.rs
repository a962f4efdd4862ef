//! Use cases of subscriptions.

use crate::{
    Dependencies,
    by::By,
    names::{EndpointName, SubscriptionName},
    page::{Page, PageRequest},
    write::{Change, Upsert, upsert},
};
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};
use turnbuckle_domain::{
    Caller, Channels, EndpointId, Error, Filter, Labels, PayloadFormat, ResourceId, Revision,
    Subscription, SubscriptionId, Tenant, TypePattern,
};

/// Where a subscription's endpoint stands in requests.
const ENDPOINT_FIELD: &str = "subscription.endpoint";

/// A subscription with the names of its tenant and endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SubscriptionView {
    pub(crate) tenant: ResourceId,
    pub(crate) endpoint: ResourceId,
    pub(crate) subscription: Subscription,
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
        let endpoint = self.resolve(&tenant, &command.endpoint).await?;
        let id = SubscriptionId::from_uuid(self.0.ids.uuid());
        let slug = match &command.slug {
            Some(slug) => slug.clone(),
            None => ResourceId::new(id.to_string()).map_err(Error::internal)?,
        };
        let name = SubscriptionName { tenant: tenant.slug, id: slug.clone() };
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
        })
    }

    pub(crate) async fn get(
        &self,
        caller: &Caller,
        name: &SubscriptionName,
    ) -> Result<SubscriptionView, Error> {
        let subscription = self.read(caller, name).await?;
        self.view(name, subscription).await
    }

    pub(crate) async fn list(
        &self,
        caller: &Caller,
        command: &ListSubscriptions,
    ) -> Result<Page<SubscriptionView>, Error> {
        let tenant = self.0.enter(caller, &command.tenant).await?;
        let after = command.page.after.as_deref();
        let rows = self.0.store.subscriptions(tenant.id, after, command.page.fetch()).await?;
        let page = command.page.cut(rows, |row| row.slug.as_str());
        let ids: BTreeSet<EndpointId> = page.rows.iter().map(|row| row.endpoint).collect();
        let ids: Vec<EndpointId> = ids.into_iter().collect();
        let slugs = match ids.as_slice() {
            [] => HashMap::new(),
            ids => self.0.store.endpoint_slugs(tenant.id, ids).await?,
        };
        // An endpoint deleted since then has taken its subscriptions along.
        Ok(page.filter_map(|subscription| {
            let endpoint = slugs.get(&subscription.endpoint)?.clone();
            Some(SubscriptionView { tenant: tenant.slug.clone(), endpoint, subscription })
        }))
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
        self.view(&command.name, subscription).await
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
        subscription: Subscription,
    ) -> Result<SubscriptionView, Error> {
        let id = subscription.endpoint;
        let mut slugs = self.0.store.endpoint_slugs(subscription.tenant, &[id]).await?;
        // Without its endpoint it is gone too: both went in one transaction.
        let endpoint =
            slugs.remove(&id).ok_or_else(|| Error::NotFound { resource: name.to_string() })?;
        Ok(SubscriptionView { tenant: name.tenant.clone(), endpoint, subscription })
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
