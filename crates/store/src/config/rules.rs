//! Rules between resources, checked inside the transaction of the change.

use super::{
    entity::{endpoint, retry_policy, source, tenant},
    table::{Identity, Table, full_name, live_by_id, of_tenant},
    write::Write,
};
use crate::error::store_error;
use sea_orm::{
    ColumnTrait as _, EntityTrait as _, QueryFilter as _, QuerySelect as _, prelude::Uuid,
};
use turnbuckle_domain::{
    Endpoint, EndpointId, Error, KeyRing, Precondition, RetryPolicy, Revision, Source, SourceId,
    Tenant, TenantId,
};

/// The retry policy that an endpoint names is there.
pub(super) async fn retry_policy_lives(
    write: &Write,
    parent: &str,
    endpoint: &Endpoint,
) -> Result<(), Error> {
    let Some(policy) = endpoint.retry_policy else {
        return Ok(());
    };
    let id = policy.to_string();
    referred::<retry_policy::Entity>(write, parent, endpoint.tenant, (policy.uuid(), &id)).await?;
    Ok(())
}

/// The endpoint that something belongs to.
pub(super) async fn owner(
    write: &Write,
    parent: &str,
    tenant: TenantId,
    endpoint: EndpointId,
) -> Result<Endpoint, Error> {
    let id = endpoint.to_string();
    referred::<endpoint::Entity>(write, parent, tenant, (endpoint.uuid(), &id)).await
}

/// The source that something belongs to.
pub(super) async fn source(
    write: &Write,
    parent: &str,
    tenant: TenantId,
    source: SourceId,
) -> Result<Source, Error> {
    let id = source.to_string();
    referred::<source::Entity>(write, parent, tenant, (source.uuid(), &id)).await
}

async fn referred<E: Table>(
    write: &Write,
    parent: &str,
    tenant: TenantId,
    (id, name): (Uuid, &str),
) -> Result<E::Resource, Error> {
    let tenant = Some(tenant.uuid());
    let wanted = Identity { id, tenant, name, revision: Revision::ZERO };
    live_by_id::<E>(&write.transaction, parent, &wanted).await
}

/// The keys fit the endpoint's profile. Checked here and not only by the caller: the two have revisions
/// of their own, and may be changed at the same time.
pub(super) fn keys_fit(ring: &KeyRing, endpoint: &Endpoint, subject: &str) -> Result<(), Error> {
    if ring.fits(endpoint.signature_profile, endpoint.meta.updated_at) {
        return Ok(());
    }
    Err(Error::Precondition {
        kind: Precondition::ProfileMismatch,
        subject: subject.to_owned(),
        message: "Ed25519 keys sign Standard Webhooks only: use HMAC keys, or that profile".into(),
    })
}

/// No deleted tenant had the name. Tokens carry names of tenants: one that is bound to the old tenant
/// would open the new one.
pub(super) async fn tenant_name_is_new(write: &Write, tenant: &Tenant) -> Result<(), Error> {
    let deleted = tenant::Entity::find()
        .filter(tenant::Column::Slug.eq(tenant.slug.as_str()))
        .filter(tenant::Column::DeletedAtUs.is_not_null());
    if deleted.one(&write.transaction).await.map_err(store_error)?.is_none() {
        return Ok(());
    }
    let subject = full_name::<tenant::Entity>("", tenant.slug.as_str());
    Err(Error::Precondition {
        kind: Precondition::NameRetired,
        message: format!(
            "{subject} was deleted, and its name is not given again: old tokens are bound to it; \
             use another id"
        ),
        subject,
    })
}

/// No endpoint and no source is left in a tenant.
pub(super) async fn tenant_is_empty(
    write: &Write,
    parent: &str,
    tenant: &Tenant,
) -> Result<(), Error> {
    if let Some(slug) = any_endpoint(write, tenant.id, None).await? {
        return Err(in_use::<endpoint::Entity>(parent, parent, &slug));
    }
    match any_source(write, tenant.id).await? {
        Some(slug) => Err(in_use::<source::Entity>(parent, parent, &slug)),
        None => Ok(()),
    }
}

async fn any_source(write: &Write, tenant: TenantId) -> Result<Option<String>, Error> {
    let live = of_tenant::<source::Entity>(Some(tenant.uuid()))
        .filter(source::Column::DeletedAtUs.is_null());
    let first = live.select_only().column(source::Column::Slug).limit(1).into_tuple();
    Ok(first.one(&write.transaction).await.map_err(store_error)?)
}

/// No endpoint uses a retry policy.
pub(super) async fn retry_policy_is_unused(
    write: &Write,
    parent: &str,
    policy: &RetryPolicy,
) -> Result<(), Error> {
    match any_endpoint(write, policy.tenant, Some(policy.id.uuid())).await? {
        Some(slug) => {
            let subject = full_name::<retry_policy::Entity>(parent, policy.slug.as_str());
            Err(in_use::<endpoint::Entity>(parent, &subject, &slug))
        }
        None => Ok(()),
    }
}

async fn any_endpoint(
    write: &Write,
    tenant: TenantId,
    policy: Option<Uuid>,
) -> Result<Option<String>, Error> {
    let mut live = of_tenant::<endpoint::Entity>(Some(tenant.uuid()))
        .filter(endpoint::Column::DeletedAtUs.is_null());
    if let Some(policy) = policy {
        live = live.filter(endpoint::Column::RetryPolicyId.eq(policy));
    }
    let first = live.select_only().column(endpoint::Column::Slug).limit(1).into_tuple();
    Ok(first.one(&write.transaction).await.map_err(store_error)?)
}

fn in_use<E: Table>(parent: &str, subject: &str, slug: &str) -> Error {
    let user = full_name::<E>(parent, slug);
    Error::Precondition {
        kind: Precondition::InUse,
        subject: subject.to_owned(),
        message: format!("{subject} is in use by {user}: change or delete that one first"),
    }
}
