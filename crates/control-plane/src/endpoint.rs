//! Use cases of endpoints.

use crate::{
    Dependencies,
    by::By,
    kept::{Listed, Lookup, Undelete, live_page_of, page_of, place_of, to_bring_back},
    key_material::{KeyText, WantedKey},
    key_ring::check_profile,
    names::{EndpointName, RetryPolicyName},
    page::{Page, PageRequest},
    repeat::gone,
    target::TargetChange,
    write::{Change, Upsert, check_etag, upsert},
};
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};
use turnbuckle_domain::{
    Caller, Endpoint, EndpointId, EndpointState, EndpointTarget, Error, Kept, KeyAlgorithm,
    KeyRing, KeyState, Labels, Made, ResourceId, RetryPolicyId, Revision, SignatureProfile, Tenant,
    TenantId, Timestamp, Violations,
};

/// Where an endpoint's retry policy stands in requests.
const RETRY_POLICY_FIELD: &str = "endpoint.retry_policy";

/// Why a pull endpoint has no signature profile.
pub(crate) const UNSIGNED: &str = "is for http endpoints; leave it unset, since nothing is signed";

/// Why a pull endpoint has no slots.
pub(crate) const NOT_SENT: &str = "is for http endpoints; use pull.max_outstanding";

/// An endpoint with the names of its tenant and retry policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EndpointView {
    pub(crate) tenant: ResourceId,
    pub(crate) retry_policy: Option<ResourceId>,
    pub(crate) endpoint: Endpoint,
    /// When it was deleted; none while it lives.
    pub(crate) deleted_at: Option<Timestamp>,
}

/// An endpoint, with the one look at its secret when it was just made.
#[derive(Debug)]
pub(crate) struct CreatedEndpoint {
    pub(crate) view: EndpointView,
    pub(crate) secret: Option<KeyText>,
}

/// An endpoint to be made.
#[derive(Debug, Clone)]
pub(crate) struct CreateEndpoint {
    pub(crate) tenant: ResourceId,
    /// None: the server makes one.
    pub(crate) slug: Option<ResourceId>,
    pub(crate) display_name: String,
    pub(crate) target: EndpointTarget,
    pub(crate) signature_profile: SignatureProfile,
    /// None: the built-in default.
    pub(crate) retry_policy: Option<RetryPolicyName>,
    pub(crate) max_in_flight: u16,
    pub(crate) labels: Labels,
    /// None for a pull endpoint, which signs nothing.
    pub(crate) key: Option<WantedKey>,
}

/// Which endpoints to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListEndpoints {
    pub(crate) tenant: ResourceId,
    pub(crate) page: PageRequest,
    pub(crate) show_deleted: bool,
}

/// New values of an endpoint's fields; none keeps the old one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UpdateEndpoint {
    pub(crate) name: EndpointName,
    pub(crate) etag: Option<Revision>,
    pub(crate) display_name: Option<String>,
    pub(crate) target: TargetChange,
    pub(crate) signature_profile: Option<SignatureProfile>,
    /// Some(none): back to the built-in default.
    pub(crate) retry_policy: Option<Option<RetryPolicyName>>,
    pub(crate) max_in_flight: Option<u16>,
    pub(crate) labels: Option<Labels>,
}

impl UpdateEndpoint {
    fn apply(
        &self,
        retry_policy: Option<Option<RetryPolicyId>>,
        endpoint: &mut Endpoint,
    ) -> Result<(), Error> {
        if let Some(display_name) = &self.display_name {
            endpoint.display_name.clone_from(display_name);
        }
        self.target.apply(&mut endpoint.target)?;
        self.check_kind(endpoint)?;
        endpoint.signature_profile = self.signature_profile.unwrap_or(endpoint.signature_profile);
        endpoint.retry_policy = retry_policy.unwrap_or(endpoint.retry_policy);
        endpoint.max_in_flight = self.max_in_flight.unwrap_or(endpoint.max_in_flight);
        if let Some(labels) = &self.labels {
            endpoint.labels.clone_from(labels);
        }
        Ok(())
    }

    /// What makes sense for the kind of target only. Its kind is known here first.
    fn check_kind(&self, endpoint: &Endpoint) -> Result<(), Error> {
        let mut violations = Violations::new();
        if endpoint.target.pull().is_some() {
            if self.signature_profile.is_some_and(|profile| profile != endpoint.signature_profile) {
                violations.add("endpoint.signature_profile", UNSIGNED);
            }
            if self.max_in_flight.is_some_and(|most| most != endpoint.max_in_flight) {
                violations.add("endpoint.max_in_flight", NOT_SENT);
            }
        }
        violations.finish()
    }
}

/// An endpoint to be deleted or enabled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EndpointVerb {
    pub(crate) name: EndpointName,
    pub(crate) etag: Option<Revision>,
}

/// An endpoint to be disabled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DisableEndpoint {
    pub(crate) name: EndpointName,
    pub(crate) etag: Option<Revision>,
    pub(crate) reason: String,
}

/// What can be done with endpoints.
pub(crate) struct Endpoints(pub(crate) Arc<Dependencies>);

impl Endpoints {
    pub(crate) async fn create(
        &self,
        by: &By,
        command: &CreateEndpoint,
    ) -> Result<CreatedEndpoint, Error> {
        let tenant = self.0.enter(&by.caller, &command.tenant).await?;
        let again = |made| self.made(&tenant, made);
        self.0.once(by, Some(tenant.id), self.make(by, &tenant, command), again).await
    }

    async fn make(
        &self,
        by: &By,
        tenant: &Tenant,
        command: &CreateEndpoint,
    ) -> Result<CreatedEndpoint, Error> {
        let endpoint = self.draft(tenant, command).await?;
        let name = EndpointName { tenant: tenant.slug.clone(), id: endpoint.slug.clone() };
        let profile = endpoint.signature_profile;
        check_profile(profile, command.key.as_ref().map(WantedKey::algorithm), &name.to_string())?;
        let (ring, secret) = self.first_ring(by, &endpoint, command.key.as_ref())?;
        let write = self.0.store.create_endpoint(endpoint, ring, &by.change);
        let endpoint = self.0.create(by, &name.to_string(), write).await?;
        let retry_policy = command.retry_policy.as_ref().map(|policy| policy.id.clone());
        Ok(CreatedEndpoint {
            view: EndpointView { tenant: name.tenant, retry_policy, endpoint, deleted_at: None },
            secret,
        })
    }

    async fn made(&self, tenant: &Tenant, made: Made) -> Result<CreatedEndpoint, Error> {
        let id = EndpointId::from_uuid(made.id);
        let kept = self.0.store.kept_endpoint(tenant.id, id).await?;
        let kept = kept.ok_or_else(gone(id))?;
        self.0.propagation.applied(kept.value.meta.revision).await;
        let secret = self.0.secret_again(&kept.value, &made).await?;
        Ok(CreatedEndpoint { view: self.view(&tenant.slug, kept).await?, secret })
    }

    pub(crate) async fn get(
        &self,
        caller: &Caller,
        command: &Lookup<EndpointName>,
    ) -> Result<EndpointView, Error> {
        let name = &command.name;
        let error = match self.read(caller, name).await {
            Ok(endpoint) => return self.view(&name.tenant, Kept::live(endpoint)).await,
            Err(error) => error,
        };
        if !command.show_deleted || !matches!(error, Error::NotFound { .. }) {
            return Err(error);
        }
        let tenant = self.0.enter(caller, &name.tenant).await?;
        let deleted = self.0.store.deleted_endpoint(tenant.id, &name.id).await?;
        self.view(&tenant.slug, deleted.ok_or(error)?).await
    }

    pub(crate) async fn undelete(
        &self,
        by: &By,
        command: &Undelete<EndpointName, EndpointId>,
    ) -> Result<EndpointView, Error> {
        let (name, store) = (&command.name, &self.0.store);
        let tenant = self.0.enter(&by.caller, &name.tenant).await?;
        let found = match command.uid {
            Some(uid) => store.kept_endpoint(tenant.id, uid).await?,
            None => store.deleted_endpoint(tenant.id, &name.id).await?,
        };
        let found = found.filter(|kept| kept.value.slug == name.id);
        let lives = store.endpoint(tenant.id, &name.id).await?.is_some();
        let resource = name.to_string();
        let deleted = to_bring_back(found, lives, &resource)?;
        check_etag(command.etag, deleted.meta.revision, &resource)?;
        let write = store.undelete_endpoint(&deleted, self.0.clock.now(), &by.change);
        let endpoint = self.0.create(by, &resource, write).await?;
        self.view(&tenant.slug, Kept::live(endpoint)).await
    }

    pub(crate) async fn list(
        &self,
        caller: &Caller,
        command: &ListEndpoints,
    ) -> Result<Page<Listed<EndpointView>>, Error> {
        let (page, store) = (&command.page, &self.0.store);
        let tenant = self.0.enter(caller, &command.tenant).await?;
        let rows = if command.show_deleted {
            let after = place_of(page, EndpointId::uuid)?;
            let rows = store.kept_endpoints(tenant.id, after.as_ref(), page.fetch()).await?;
            page_of(page, rows, |row| (&row.slug, row.id))
        } else {
            let rows = store.endpoints(tenant.id, page.after.as_deref(), page.fetch()).await?;
            live_page_of(page, rows, |row| &row.slug)
        };
        let ids = rows.rows.iter().filter_map(|listed| listed.row.value.retry_policy);
        let slugs = self.policy_slugs(tenant.id, ids.collect(), command.show_deleted).await?;
        Ok(rows.filter_map(|Listed { place, row: Kept { value, deleted_at } }| {
            let retry_policy = value.retry_policy.and_then(|id| slugs.get(&id).cloned());
            let tenant = tenant.slug.clone();
            let row = EndpointView { tenant, retry_policy, endpoint: value, deleted_at };
            Some(Listed { place, row })
        }))
    }

    /// Last parts of the names of these policies; of deleted ones too where they are asked for.
    async fn policy_slugs(
        &self,
        tenant: TenantId,
        ids: BTreeSet<RetryPolicyId>,
        deleted_too: bool,
    ) -> Result<HashMap<RetryPolicyId, ResourceId>, Error> {
        let ids: Vec<RetryPolicyId> = ids.into_iter().collect();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let mut slugs = self.0.store.retry_policy_slugs(tenant, &ids).await?;
        for id in ids.into_iter().filter(|_| deleted_too) {
            if slugs.contains_key(&id) {
                continue;
            }
            if let Some(kept) = self.0.store.kept_retry_policy(tenant, id).await? {
                slugs.insert(id, kept.value.slug);
            }
        }
        Ok(slugs)
    }

    pub(crate) async fn update(
        &self,
        by: &By,
        command: &UpdateEndpoint,
    ) -> Result<EndpointView, Error> {
        let retry_policy = match &command.retry_policy {
            Some(wanted) => {
                let tenant = self.0.enter(&by.caller, &command.name.tenant).await?;
                Some(self.resolve(&tenant, wanted.as_ref()).await?)
            }
            None => None,
        };
        let resource = command.name.to_string();
        let change = Change { resource: &resource, etag: command.etag };
        let endpoint = self
            .0
            .update(
                by,
                &change,
                || self.read(&by.caller, &command.name),
                |endpoint| command.apply(retry_policy, endpoint),
                |endpoint: Endpoint, seen| async move {
                    if command.signature_profile.is_some() {
                        self.keys_fit(&endpoint, &command.name).await?;
                    }
                    self.0.store.update_endpoint(endpoint, seen, &by.change).await
                },
            )
            .await?;
        self.view(&command.name.tenant, Kept::live(endpoint)).await
    }

    pub(crate) async fn delete(&self, by: &By, command: &EndpointVerb) -> Result<(), Error> {
        let change = Change { resource: &command.name.to_string(), etag: command.etag };
        self.0
            .delete(
                &change,
                || self.read(&by.caller, &command.name),
                |endpoint| async move {
                    self.0.store.delete_endpoint(&endpoint, self.0.clock.now(), &by.change).await
                },
            )
            .await
    }

    pub(crate) async fn disable(
        &self,
        by: &By,
        command: &DisableEndpoint,
    ) -> Result<EndpointView, Error> {
        let state = EndpointState::Disabled { reason: command.reason.clone() };
        self.set_state(by, &command.name, command.etag, &state).await
    }

    pub(crate) async fn enable(
        &self,
        by: &By,
        command: &EndpointVerb,
    ) -> Result<EndpointView, Error> {
        self.set_state(by, &command.name, command.etag, &EndpointState::Active).await
    }

    async fn set_state(
        &self,
        by: &By,
        name: &EndpointName,
        etag: Option<Revision>,
        state: &EndpointState,
    ) -> Result<EndpointView, Error> {
        let change = Change { resource: &name.to_string(), etag };
        let endpoint = self
            .0
            .update(
                by,
                &change,
                || self.read(&by.caller, name),
                |endpoint: &mut Endpoint| {
                    endpoint.state.clone_from(state);
                    Ok(())
                },
                |endpoint, seen| self.0.store.update_endpoint(endpoint, seen, &by.change),
            )
            .await?;
        self.view(&name.tenant, Kept::live(endpoint)).await
    }

    pub(crate) async fn upsert(
        &self,
        by: &By,
        command: &Upsert<UpdateEndpoint, CreateEndpoint>,
    ) -> Result<CreatedEndpoint, Error> {
        if by.change.request.is_none() {
            return self.put(by, command).await;
        }
        let tenant = self.0.enter(&by.caller, &command.update.name.tenant).await?;
        let again = |made| self.made(&tenant, made);
        self.0.once(by, Some(tenant.id), self.put(by, command), again).await
    }

    async fn put(
        &self,
        by: &By,
        command: &Upsert<UpdateEndpoint, CreateEndpoint>,
    ) -> Result<CreatedEndpoint, Error> {
        let Upsert { update, create } = command;
        let change = Change { resource: &update.name.to_string(), etag: update.etag };
        let present = || async {
            let view = self.update(by, update).await?;
            Ok(CreatedEndpoint { view, secret: None })
        };
        upsert(&change, create.as_ref(), present, |create| self.create(by, create)).await
    }

    /// The ring of a new endpoint; an empty one when nothing is to be made.
    fn first_ring(
        &self,
        by: &By,
        endpoint: &Endpoint,
        wanted: Option<&WantedKey>,
    ) -> Result<(KeyRing, Option<KeyText>), Error> {
        let Some(wanted) = wanted.filter(|_| !by.validates_only()) else {
            return Ok((KeyRing::default(), None));
        };
        let signing_key = wanted.make()?;
        let now = endpoint.meta.created_at;
        let key = self.0.seal_key(endpoint, &signing_key, now)?;
        Ok((KeyRing::with_first(key, now), Some(KeyText::signing(&signing_key))))
    }

    async fn draft(&self, tenant: &Tenant, command: &CreateEndpoint) -> Result<Endpoint, Error> {
        let id = EndpointId::from_uuid(self.0.ids.uuid());
        let slug = match &command.slug {
            Some(slug) => slug.clone(),
            None => ResourceId::new(id.to_string()).map_err(Error::internal)?,
        };
        Ok(Endpoint {
            id,
            tenant: tenant.id,
            slug,
            display_name: command.display_name.clone(),
            target: command.target.clone(),
            signature_profile: command.signature_profile,
            retry_policy: self.resolve(tenant, command.retry_policy.as_ref()).await?,
            max_in_flight: command.max_in_flight,
            state: EndpointState::Active,
            labels: command.labels.clone(),
            meta: self.0.fresh_meta(),
        })
    }

    async fn read(&self, caller: &Caller, name: &EndpointName) -> Result<Endpoint, Error> {
        let tenant = self.0.enter(caller, &name.tenant).await?;
        let found = self.0.store.endpoint(tenant.id, &name.id).await?;
        found.ok_or_else(|| Error::NotFound { resource: name.to_string() })
    }

    async fn resolve(
        &self,
        tenant: &Tenant,
        wanted: Option<&RetryPolicyName>,
    ) -> Result<Option<RetryPolicyId>, Error> {
        let Some(name) = wanted else {
            return Ok(None);
        };
        match self.0.store.retry_policy(tenant.id, &name.id).await? {
            Some(policy) => Ok(Some(policy.id)),
            None => Err(Error::invalid(
                RETRY_POLICY_FIELD,
                format!("{name} does not exist: create it first, or leave the field empty"),
            )),
        }
    }

    /// No key that signs, or may sign at the next verb, may be of a kind the profile cannot carry.
    async fn keys_fit(&self, endpoint: &Endpoint, name: &EndpointName) -> Result<(), Error> {
        let ring = self.0.store.key_ring(endpoint.tenant, endpoint.id.into()).await?;
        let now = self.0.clock.now();
        let usable = ring.keys.iter().filter(|key| {
            matches!(key.state_at(now), KeyState::Staged | KeyState::Active | KeyState::Retiring)
        });
        let algorithms: Vec<KeyAlgorithm> = usable.map(|key| key.algorithm).collect();
        check_profile(endpoint.signature_profile, algorithms, &name.to_string())
    }

    async fn view(&self, tenant: &ResourceId, kept: Kept<Endpoint>) -> Result<EndpointView, Error> {
        let Kept { value: endpoint, deleted_at } = kept;
        let ids = endpoint.retry_policy.into_iter().collect();
        let slugs = self.policy_slugs(endpoint.tenant, ids, deleted_at.is_some()).await?;
        let retry_policy = slugs.into_values().next();
        Ok(EndpointView { tenant: tenant.clone(), retry_policy, endpoint, deleted_at })
    }
}
