//! The audit record: what a change notes while it is made, and the entry it leaves.

use super::{
    ConfigDb,
    entity::{audit_event, audit_head, tenant},
    table::{Table as _, find},
};
use crate::error::store_error;
use async_trait::async_trait;
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, Condition, ConnectionTrait, EntityTrait as _,
    QueryFilter as _, QueryOrder as _, QuerySelect as _, sea_query::OnConflict,
};
use turnbuckle_domain::{
    AuditEntry, AuditFilter, AuditHead, AuditOutcome, AuditTrail, ChangeContext, Error, Fields,
    ResourceId, Revision, StoreError, Tenant, TenantId, chain_hash, diff,
};

/// Separates a resource's name from what is below it, and the byte that follows it.
const BELOW: (char, char) = ('/', '0');

/// What an open change has done so far.
#[derive(Debug, Default)]
pub(super) struct Notes {
    subject: Option<(TenantId, String)>,
    before: Fields,
    after: Fields,
}

/// A change was to be committed that noted nothing: it would have left no entry.
#[derive(Debug, thiserror::Error)]
#[error("a change of configuration noted nothing for the audit record")]
struct NothingNoted;

impl Notes {
    /// Notes the resource that is changed. The first one names the entry; what goes along with it
    /// adds its fields.
    pub(super) fn subject(&mut self, tenant: TenantId, resource: String) {
        self.subject.get_or_insert((tenant, resource));
    }

    /// Notes what was.
    pub(super) fn before(&mut self, fields: Fields) {
        self.before.extend(fields);
    }

    /// Notes what is.
    pub(super) fn after(&mut self, fields: Fields) {
        self.after.extend(fields);
    }
}

/// Writes the entry of a change. The caller holds the lock on the revision, so nobody else is
/// between reading the head and moving it.
pub(super) async fn write(
    db: &impl ConnectionTrait,
    revision: Revision,
    notes: Notes,
    by: &ChangeContext,
) -> Result<(), Error> {
    let (tenant, resource) = notes.subject.ok_or_else(|| Error::internal(NothingNoted))?;
    let entry = AuditEntry {
        id: by.id,
        tenant,
        sequence: 0,
        at: by.at,
        subject: by.subject.clone(),
        role: by.role.as_str().to_owned(),
        method: by.method.clone(),
        resource,
        request_id: by.request_id.clone(),
        reason: by.reason.clone(),
        revision,
        outcome: AuditOutcome::Applied,
        changes: diff(&notes.before, &notes.after),
        hash: [0; 32],
    };
    append(db, entry).await
}

/// Writes an entry behind the newest one of its record. Number and hash are given here. The caller
/// holds the lock on the revision.
pub(super) async fn append(db: &impl ConnectionTrait, mut entry: AuditEntry) -> Result<(), Error> {
    let head = head(db, entry.tenant).await?;
    entry.sequence = head.as_ref().map_or(0, |head| head.sequence) + 1;
    entry.hash = chain_hash(head.as_ref().map(|head| &head.hash), &entry);
    let insert = audit_event::Entity::insert(audit_event::encode(&entry)?);
    insert.exec_without_returning(db).await.map_err(store_error)?;
    move_head(db, &entry).await
}

async fn move_head(db: &impl ConnectionTrait, entry: &AuditEntry) -> Result<(), Error> {
    use audit_head::Column;
    let row = audit_head::ActiveModel {
        tenant_id: Set(entry.tenant.uuid()),
        sequence: Set(entry.sequence),
        id: Set(entry.id.uuid()),
        hash: Set(entry.hash.to_vec()),
    };
    let replace = OnConflict::column(Column::TenantId)
        .update_columns([Column::Sequence, Column::Id, Column::Hash])
        .to_owned();
    let insert = audit_head::Entity::insert(row).on_conflict(replace);
    insert.exec_without_returning(db).await.map_err(store_error)?;
    Ok(())
}

async fn head(
    db: &impl ConnectionTrait,
    tenant: TenantId,
) -> Result<Option<AuditHead>, StoreError> {
    let row = audit_head::Entity::find_by_id(tenant.uuid()).one(db).await.map_err(store_error)?;
    Ok(row.map(audit_head::decode).transpose()?)
}

#[async_trait]
impl AuditTrail for ConfigDb {
    async fn audited_tenant(&self, slug: &ResourceId) -> Result<Option<Tenant>, Error> {
        if let Some(live) = find::<tenant::Entity>(&self.db, None, slug.as_str()).await? {
            return Ok(Some(live));
        }
        let deleted = tenant::Entity::find()
            .filter(tenant::Column::Slug.eq(slug.as_str()))
            .order_by_desc(tenant::Column::Revision)
            .limit(1);
        let row = deleted.one(&self.db).await.map_err(store_error)?;
        Ok(row.map(tenant::Entity::decode).transpose()?.map(|row| row.value))
    }

    async fn audit_entries(
        &self,
        tenant: TenantId,
        filter: &AuditFilter,
        below: Option<i64>,
        limit: u16,
    ) -> Result<Vec<AuditEntry>, Error> {
        let page = audit_event::Entity::find()
            .filter(condition(tenant, filter, below))
            .order_by_desc(audit_event::Column::Sequence)
            .limit(u64::from(limit));
        let rows = page.all(&self.db).await.map_err(store_error)?;
        rows.into_iter().map(|row| Ok(audit_event::decode(row)?)).collect()
    }

    async fn audit_head(&self, tenant: TenantId) -> Result<Option<AuditHead>, Error> {
        Ok(head(&self.db, tenant).await?)
    }
}

fn condition(tenant: TenantId, filter: &AuditFilter, below: Option<i64>) -> Condition {
    use audit_event::Column;
    let (slash, after_slash) = BELOW;
    let resource = filter.resource.as_ref().map(|name| {
        Condition::any().add(Column::Resource.eq(name.as_str())).add(
            Condition::all()
                .add(Column::Resource.gt(format!("{name}{slash}")))
                .add(Column::Resource.lt(format!("{name}{after_slash}"))),
        )
    });
    Condition::all()
        .add(Column::TenantId.eq(tenant.uuid()))
        .add_option(below.map(|below| Column::Sequence.lt(below)))
        .add_option(filter.subject.as_ref().map(|subject| Column::Subject.eq(subject.as_str())))
        .add_option(filter.from.map(|from| Column::AtUs.gte(from.micros())))
        .add_option(filter.until.map(|until| Column::AtUs.lt(until.micros())))
        .add_option(filter.outcome.map(|outcome| Column::Outcome.eq(outcome.as_str())))
        .add_option(resource)
}
