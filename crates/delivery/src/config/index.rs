//! The immutable index: tenants, routes and endpoints at one revision.

use super::{EndpointEntry, Routes, Versions, route::Wanted, versions::KnownVersions};
use crate::{egress::EgressGuard, key_meter::KeyMeter};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, OnceLock},
};
use turnbuckle_domain::{
    ConfigDelta, ConfigPosition, Deletable, Endpoint, EndpointId, Epoch, EventTypeId,
    EventTypeVersion, EventTypeVersionId, KeyRing, RefusedResource, ResourceId, ResourceKind,
    RetryPolicyId, RetryRule, Revision, SecretSealer, SubscriptionId, Tenant, TenantId, TypeName,
    UnknownVersion, UnreadableResource, Unreadables, node_limits,
};

/// A tenant with its catalogue and subscriptions.
#[derive(Clone)]
struct TenantEntry {
    slug: ResourceId,
    types: HashMap<TypeName, TypeEntry>,
    /// By id, so by age: the oldest subscription that wants an event decides the format.
    subscriptions: BTreeMap<SubscriptionId, Arc<Wanted>>,
}

/// What holds for an event type is found when the first event of it comes, and kept until something
/// changes.
#[derive(Clone)]
struct TypeEntry {
    id: EventTypeId,
    unknown_version: UnknownVersion,
    rules: OnceLock<Arc<TypeRules>>,
}

/// What holds for the events of a type.
pub struct TypeRules {
    /// Who wants them.
    pub routes: Routes,
    /// What their payloads follow; none when nothing is to be checked.
    pub versions: Option<Versions>,
}

/// All configuration at one revision. Readers share it and never lock.
#[derive(Clone, Default)]
pub struct ConfigIndex {
    epoch: Epoch,
    revision: Revision,
    by_slug: HashMap<ResourceId, TenantId>,
    tenants: HashMap<TenantId, Arc<TenantEntry>>,
    endpoints: HashMap<EndpointId, Arc<EndpointEntry>>,
    rings: HashMap<EndpointId, Arc<KeyRing>>,
    rules: HashMap<RetryPolicyId, Arc<RetryRule>>,
    /// Of endpoints without a policy: one for all of them.
    default_rule: Arc<RetryRule>,
    versions: HashMap<EventTypeId, Arc<KnownVersions>>,
    unreadable: Unreadables,
    /// Endpoints whose retry policy is not known here. Mostly none.
    without_rule: BTreeSet<EndpointId>,
}

/// What building an entry needs besides the configuration.
pub(crate) struct Tools {
    pub(crate) guard: Arc<EgressGuard>,
    pub(crate) sealer: Arc<dyn SecretSealer>,
    pub(crate) meter: Arc<KeyMeter>,
}

impl ConfigIndex {
    /// The revision this is the state of.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// The state that this is.
    #[must_use]
    pub const fn position(&self) -> ConfigPosition {
        ConfigPosition { epoch: self.epoch, revision: self.revision }
    }

    /// The tenant of that name.
    #[must_use]
    pub fn tenant(&self, slug: &ResourceId) -> Option<TenantId> {
        self.by_slug.get(slug).copied()
    }

    /// The name of a tenant.
    #[must_use]
    pub fn tenant_slug(&self, tenant: TenantId) -> Option<&ResourceId> {
        self.tenants.get(&tenant).map(|entry| &entry.slug)
    }

    /// An endpoint, when it exists.
    #[must_use]
    pub fn endpoint(&self, id: EndpointId) -> Option<&Arc<EndpointEntry>> {
        self.endpoints.get(&id)
    }

    /// The endpoint of that name.
    #[must_use]
    pub fn endpoint_by_slug(
        &self,
        tenant: TenantId,
        slug: &ResourceId,
    ) -> Option<&Arc<EndpointEntry>> {
        self.endpoints
            .values()
            .find(|entry| entry.endpoint.tenant == tenant && entry.endpoint.slug == *slug)
    }

    /// What holds for events of this type; none when the type is not registered.
    #[must_use]
    pub fn type_rules(&self, tenant: TenantId, event_type: &TypeName) -> Option<Arc<TypeRules>> {
        let entry = self.tenants.get(&tenant)?;
        let type_entry = entry.types.get(event_type)?;
        let find = || {
            let known = self.versions.get(&type_entry.id);
            Arc::new(TypeRules {
                routes: self.find_routes(entry, event_type),
                versions: Versions::of(known, type_entry.unknown_version),
            })
        };
        Some(Arc::clone(type_entry.rules.get_or_init(find)))
    }

    /// Who wants events of a type that may not be registered; none when the tenant is not known.
    /// Found anew for each event: costs a look at every subscription of the tenant.
    pub(crate) fn routes_of(&self, tenant: TenantId, event_type: &TypeName) -> Option<Routes> {
        self.tenants.get(&tenant).map(|entry| self.find_routes(entry, event_type))
    }

    fn find_routes(&self, entry: &TenantEntry, event_type: &TypeName) -> Routes {
        let wants = |subscription: &&Wanted| {
            let endpoint = self.endpoints.get(&subscription.route.endpoint);
            let mut patterns = subscription.patterns.iter();
            endpoint.is_some_and(|endpoint| endpoint.endpoint.is_active())
                && patterns.any(|pattern| pattern.matches(event_type.as_str()))
        };
        Routes::new(entry.subscriptions.values().map(Arc::as_ref).filter(wants))
    }

    /// What is configured and could not be taken over, and endpoints that wait for such a thing.
    #[must_use]
    pub fn refused(&self) -> Vec<RefusedResource> {
        let mut refused = self.unreadable.refused();
        let room = node_limits::REFUSED_MAX.saturating_sub(refused.len());
        let waiting = self.without_rule.iter().filter_map(|id| self.endpoints.get(id));
        refused.extend(waiting.take(room).map(|entry| without_rule(&entry.endpoint)));
        refused
    }

    /// The state after a delta. The delta is newer, or says the same again (I14).
    pub(crate) fn apply(&self, delta: ConfigDelta, tools: &Tools) -> Self {
        let mut next = self.clone();
        next.epoch = delta.epoch;
        next.revision = self.revision.max(delta.revision);
        next.unreadable.apply(&delta);
        next.forget(&delta.unreadable);
        // Make before break: policies and keys before the endpoints that use them, those before
        // the subscriptions that lead to them.
        for tenant in delta.tenants {
            next.apply_tenant(tenant.value, tenant.deleted);
        }
        for event_type in delta.event_types {
            let value = event_type.value;
            next.change_tenant(value.tenant, |entry| {
                if event_type.deleted {
                    // The name may have been registered anew: only this one goes.
                    entry.types.retain(|_, known| known.id != value.id);
                } else {
                    let (id, unknown_version) = (value.id, value.unknown_version);
                    let known = TypeEntry { id, unknown_version, rules: OnceLock::new() };
                    entry.types.insert(value.type_name, known);
                }
            });
        }
        next.apply_versions(delta.event_type_versions);
        let mut stale: Vec<EndpointId> = Vec::new();
        for policy in delta.retry_policies {
            let (id, rule) = (policy.value.id, policy.value.rule);
            if policy.deleted {
                next.rules.remove(&id);
            } else {
                next.rules.insert(id, Arc::new(rule));
            }
            let users = next.endpoints.values();
            let users = users.filter(|entry| entry.endpoint.retry_policy == Some(id));
            stale.extend(users.map(|entry| entry.endpoint.id));
        }
        for (id, ring) in delta.key_rings {
            next.rings.insert(id, Arc::new(ring));
            stale.push(id);
        }
        for id in stale {
            if let Some(entry) = next.endpoints.get(&id) {
                let endpoint = entry.endpoint.clone();
                next.put_endpoint(endpoint, tools);
            }
        }
        for endpoint in delta.endpoints {
            let (id, tenant) = (endpoint.value.id, endpoint.value.tenant);
            if endpoint.deleted {
                next.forget_endpoint(id);
            } else {
                next.put_endpoint(endpoint.value, tools);
            }
            next.change_tenant(tenant, |_| {});
        }
        for subscription in delta.subscriptions {
            let value = subscription.value;
            next.change_tenant(value.tenant, |entry| {
                if subscription.deleted {
                    entry.subscriptions.remove(&value.id);
                } else {
                    entry.subscriptions.insert(value.id, Arc::new(value.into()));
                }
            });
        }
        next
    }

    /// Takes out what is deleted, though nobody can read what it was (I5).
    fn forget(&mut self, unreadable: &[UnreadableResource]) {
        for gone in unreadable.iter().filter(|one| one.deleted) {
            let id = gone.id;
            match gone.kind {
                ResourceKind::Tenant => self.forget_tenant(TenantId::from_uuid(id)),
                ResourceKind::Endpoint => {
                    self.forget_endpoint(EndpointId::from_uuid(id));
                    self.change_tenants(|_| {});
                }
                ResourceKind::RetryPolicy => drop(self.rules.remove(&RetryPolicyId::from_uuid(id))),
                ResourceKind::Subscription => self.change_tenants(|entry| {
                    entry.subscriptions.remove(&SubscriptionId::from_uuid(id));
                }),
                ResourceKind::EventType => self.change_tenants(|entry| {
                    entry.types.retain(|_, known| known.id.uuid() != id);
                }),
                ResourceKind::EventTypeVersion => {
                    for known in self.versions.values_mut() {
                        Arc::make_mut(known).remove(EventTypeVersionId::from_uuid(id));
                    }
                    self.versions.retain(|_, known| !known.is_empty());
                    self.change_tenants(|_| {});
                }
                // They go with their owner, or are no part of this.
                ResourceKind::KeyRing
                | ResourceKind::SourceKeyRing
                | ResourceKind::Source
                | ResourceKind::ApiToken => {}
            }
        }
    }

    fn change_tenants(&mut self, change: impl Fn(&mut TenantEntry)) {
        let all: Vec<TenantId> = self.tenants.keys().copied().collect();
        for tenant in all {
            self.change_tenant(tenant, &change);
        }
    }

    fn forget_endpoint(&mut self, id: EndpointId) {
        self.endpoints.remove(&id);
        self.rings.remove(&id);
        self.without_rule.remove(&id);
    }

    fn forget_tenant(&mut self, tenant: TenantId) {
        self.tenants.remove(&tenant);
        self.by_slug.retain(|_, id| *id != tenant);
    }

    fn apply_versions(&mut self, versions: Vec<Deletable<EventTypeVersion>>) {
        let touched: BTreeSet<TenantId> = versions.iter().map(|row| row.value.tenant).collect();
        for Deletable { value, deleted } in versions {
            let owner = value.event_type;
            let known = Arc::make_mut(self.versions.entry(owner).or_default());
            if deleted {
                known.remove(value.id);
            } else {
                known.put(value);
            }
            if known.is_empty() {
                self.versions.remove(&owner);
            }
        }
        for tenant in touched {
            self.change_tenant(tenant, |_| {});
        }
    }

    fn apply_tenant(&mut self, tenant: Tenant, deleted: bool) {
        if deleted {
            return self.forget_tenant(tenant.id);
        }
        self.by_slug.insert(tenant.slug.clone(), tenant.id);
        let fresh = TenantEntry {
            slug: tenant.slug,
            types: HashMap::new(),
            subscriptions: BTreeMap::new(),
        };
        self.tenants.entry(tenant.id).or_insert_with(|| Arc::new(fresh));
    }

    /// Changes a tenant's entry and forgets what was found for its types.
    fn change_tenant(&mut self, tenant: TenantId, change: impl FnOnce(&mut TenantEntry)) {
        if let Some(entry) = self.tenants.get_mut(&tenant) {
            let entry = Arc::make_mut(entry);
            change(entry);
            for known in entry.types.values_mut() {
                known.rules = OnceLock::new();
            }
        }
    }

    fn put_endpoint(&mut self, endpoint: Endpoint, tools: &Tools) {
        let rule = match endpoint.retry_policy {
            Some(policy) => self.rules.get(&policy).cloned(),
            None => Some(Arc::clone(&self.default_rule)),
        };
        match rule {
            Some(_) => self.without_rule.remove(&endpoint.id),
            None => self.without_rule.insert(endpoint.id),
        };
        let ring = self.rings.get(&endpoint.id).cloned().unwrap_or_default();
        let id = endpoint.id;
        let entry = EndpointEntry::new(
            endpoint,
            ring,
            rule,
            Arc::clone(&tools.guard),
            Arc::clone(&tools.sealer),
            &tools.meter,
        );
        self.endpoints.insert(id, Arc::new(entry));
    }
}

/// What a node reports of an endpoint whose deliveries wait for its retry policy.
fn without_rule(endpoint: &Endpoint) -> RefusedResource {
    let policy = endpoint.retry_policy.map(|id| id.to_string()).unwrap_or_default();
    let slug = &endpoint.slug;
    let reason =
        format!("{slug}: its retry policy {policy} cannot be used here, so its deliveries wait");
    RefusedResource {
        kind: ResourceKind::Endpoint.to_string(),
        uid: endpoint.id.to_string(),
        revision: endpoint.meta.revision,
        reason: reason.chars().take(node_limits::REASON_CHARS).collect(),
    }
}

#[cfg(test)]
mod tests;
