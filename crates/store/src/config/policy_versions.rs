//! Former versions of retry policies: kept when the policy changes, gone when it is purged.

use super::{cell, entity::retry_policy_version, write::Write};
use crate::error::store_error;
use retry_policy_version::{Column, Entity, Model};
use sea_orm::{
    ColumnTrait as _, ConnectionTrait, EntityTrait as _, QueryFilter as _, QueryOrder as _,
    QuerySelect as _, Statement, prelude::Uuid,
};
use turnbuckle_domain::{Error, Meta, RetryPolicy, Revision, Timestamp, retry_limits};

/// Copies the present row.
const KEEP: &str = include_str!("sql/keep_retry_policy_version.sql");

/// Keeps what the policy is before it becomes `next`, and drops what is too old. A change that is
/// refused afterwards takes this back with it.
pub(super) async fn keep(write: &Write, next: &RetryPolicy) -> Result<(), Error> {
    let db = &write.transaction;
    let id = next.id.uuid();
    let copy = Statement::from_sql_and_values(db.get_database_backend(), KEEP, [id.into()]);
    db.execute_raw(copy).await.map_err(store_error)?;
    let oldest = next.version.saturating_sub(retry_limits::VERSIONS_KEPT);
    let old = Entity::delete_many()
        .filter(Column::RetryPolicyId.eq(id))
        .filter(Column::Version.lt(oldest))
        .exec(db);
    old.await.map_err(store_error)?;
    Ok(())
}

/// Former versions of a policy, older than this one, the newest first.
pub(super) async fn list(
    db: &impl ConnectionTrait,
    policy: &RetryPolicy,
    before: i64,
    limit: u16,
) -> Result<Vec<RetryPolicy>, Error> {
    let page = Entity::find()
        .filter(Column::TenantId.eq(policy.tenant.uuid()))
        .filter(Column::RetryPolicyId.eq(policy.id.uuid()))
        .filter(Column::Version.lt(before))
        .order_by_desc(Column::Version)
        .limit(u64::from(limit));
    let rows = page.all(db).await.map_err(store_error)?;
    rows.into_iter().map(|row| former(policy, row)).collect()
}

/// The policy as it was. Its id, its name and the time it was made never change.
fn former(policy: &RetryPolicy, row: Model) -> Result<RetryPolicy, Error> {
    Ok(RetryPolicy {
        id: policy.id,
        tenant: policy.tenant,
        slug: policy.slug.clone(),
        version: row.version,
        rule: cell::expect("rule", serde_json::from_str(&row.rule).ok())?,
        labels: cell::labels(&row.labels)?,
        meta: Meta {
            created_at: policy.meta.created_at,
            updated_at: Timestamp::from_micros(row.updated_at_us),
            revision: Revision(row.revision),
        },
    })
}

/// Forgets all of a policy.
pub(super) async fn forget(write: &Write, policy: Uuid) -> Result<(), Error> {
    let all = Entity::delete_many().filter(Column::RetryPolicyId.eq(policy));
    all.exec(&write.transaction).await.map_err(store_error)?;
    Ok(())
}
