//! Rules between resources, checked inside the transaction of the change.

use super::{
    entity::{
        endpoint, event_type, event_type_version, retry_policy, source, subscription, tenant,
    },
    table::{Identity, Table, full_name, live_by_id, of_tenant},
    write::Write,
};
use crate::error::store_error;
use sea_orm::{
    ColumnTrait as _, ConnectionTrait as _, EntityTrait as _, QueryFilter as _, QuerySelect as _,
    Statement, prelude::Uuid,
};
use turnbuckle_domain::{
    Endpoint, EndpointId, Error, KeyRing, Precondition, Quotas, RetryPolicy, Revision, Source,
    SourceId, Subscription, Tenant, TenantId,
};

/// Bytes of a tenant's configuration.
const TENANT_BYTES: &str = include_str!("sql/tenant_bytes.sql");
const MIB: i64 = 1024 * 1024;

/// A kind of resource of which a tenant may have a number.
pub(super) trait Counted: Table {
    /// The server's setting.
    const SETTING: &'static str;

    fn limit(quotas: &Quotas) -> u32;
}

macro_rules! counted {
    ($($entity:ident: $field:ident, $setting:literal;)*) => {$(
        impl Counted for $entity::Entity {
            const SETTING: &'static str = $setting;

            fn limit(quotas: &Quotas) -> u32 {
                quotas.$field
            }
        }
    )*};
}

counted! {
    endpoint: endpoints, "--max-endpoints";
    subscription: subscriptions, "--max-subscriptions";
    event_type: event_types, "--max-event-types";
    retry_policy: retry_policies, "--max-retry-policies";
    source: sources, "--max-sources";
    event_type_version: event_type_versions, "--max-event-type-versions";
}

/// The tenant has no more of these than it may. Asked after the row is in: writers take turns, so
/// the count is exact.
pub(super) async fn quota<E: Counted>(
    write: &Write,
    parent: &str,
    tenant: TenantId,
    quotas: &Quotas,
) -> Result<(), Error> {
    let limit = E::limit(quotas);
    let live = of_tenant::<E>(Some(tenant.uuid())).filter(E::DELETED.is_null());
    let count = live.select_only().column_as(E::ID.count(), "count").into_tuple::<i64>();
    let count = count.one(&write.transaction).await.map_err(store_error)?.unwrap_or_default();
    if count <= i64::from(limit) {
        return room(write, parent, tenant, quotas).await;
    }
    Err(Error::QuotaExceeded {
        tenant: parent.to_owned(),
        what: E::COLLECTION,
        limit,
        setting: E::SETTING,
    })
}

/// The tenant has no more bytes of configuration than it may. Asked after the row is in, as above; a
/// change that makes nothing long longer needs no room.
pub(super) async fn room(
    write: &Write,
    parent: &str,
    tenant: TenantId,
    quotas: &Quotas,
) -> Result<(), Error> {
    if !write.needs_room {
        return Ok(());
    }
    let backend = write.transaction.get_database_backend();
    let sum = Statement::from_sql_and_values(backend, TENANT_BYTES, [tenant.uuid().into()]);
    let row = write.transaction.query_one_raw(sum).await.map_err(store_error)?;
    let bytes: i64 = match row {
        Some(row) => row.try_get_by_index(0).map_err(store_error)?,
        None => 0,
    };
    if bytes <= i64::from(quotas.config_mib) * MIB {
        return Ok(());
    }
    Err(Error::QuotaExceeded {
        tenant: parent.to_owned(),
        what: "MiB of configuration",
        limit: quotas.config_mib,
        setting: "--max-config-mib",
    })
}

/// The retry policy of an endpoint that comes back was not deleted meanwhile.
pub(super) async fn retry_policy_is_kept(
    write: &Write,
    parent: &str,
    endpoint: &Endpoint,
) -> Result<(), Error> {
    let subject = full_name::<endpoint::Entity>(parent, endpoint.slug.as_str());
    let kept = retry_policy_lives(write, parent, endpoint).await;
    kept.map_err(|error| reference_deleted(error, subject))
}

/// The endpoint of a subscription that comes back is there.
pub(super) async fn owner_is_kept(
    write: &Write,
    parent: &str,
    subscription: &Subscription,
) -> Result<(), Error> {
    let subject = full_name::<subscription::Entity>(parent, subscription.slug.as_str());
    match owner(write, parent, subscription.tenant, subscription.endpoint).await {
        Ok(_) => Ok(()),
        Err(error) => Err(reference_deleted(error, subject)),
    }
}

fn reference_deleted(error: Error, subject: String) -> Error {
    match error {
        Error::NotFound { resource } => Error::Precondition {
            kind: Precondition::ReferenceDeleted,
            message: format!(
                "{subject} needs {resource}, which is deleted: undelete that one first"
            ),
            subject,
        },
        other => other,
    }
}

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
