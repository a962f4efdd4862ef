//! Remembered requests: written with the change they asked for, found by a repeat, swept after a day.

use super::{ConfigDb, entity::config_request, write::Write};
use crate::error::store_error;
use async_trait::async_trait;
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, ConnectionTrait, EntityTrait as _, QueryFilter as _,
    Statement, prelude::Uuid,
};
use turnbuckle_domain::{
    ChangeContext, Error, KeyId, KeyRing, Made, RequestKey, RequestLog, TenantId, Timestamp,
};

/// The oldest rows of the index on their time, by the primary key.
const FORGET: &str = "delete from config_request where (tenant_id, method, request_id) in \
                      (select tenant_id, method, request_id from config_request \
                       where made_at_us < $1 order by made_at_us limit $2)";

/// The key that a verb has put on a ring: the newest one.
pub(super) fn newest_key(ring: &KeyRing) -> Option<KeyId> {
    ring.keys.first().map(|key| key.id)
}

/// The place of tenants themselves.
fn owner(tenant: Option<TenantId>) -> Uuid {
    tenant.map_or_else(Uuid::nil, TenantId::uuid)
}

fn request_of(by: &ChangeContext) -> Option<&RequestKey> {
    by.request.as_ref().filter(|_| !by.validate_only)
}

impl Write {
    /// Notes what this change is going to make, when its request has an id. Changes take turns, so
    /// whoever comes second finds the note of the first.
    pub(super) async fn remember(
        &self,
        tenant: Option<TenantId>,
        made: (Uuid, Option<KeyId>),
        by: &ChangeContext,
    ) -> Result<(), Error> {
        let Some(request) = request_of(by) else {
            return Ok(());
        };
        if find(&self.transaction, tenant, by, request).await?.is_some() {
            return Err(Error::AlreadyExists { resource: format!("request {}", request.id) });
        }
        let (made_id, key) = made;
        let place = (owner(tenant), by.method.clone(), request.id);
        // One that is remembered no longer, and not swept yet.
        let old = config_request::Entity::delete_by_id(place.clone());
        old.exec(&self.transaction).await.map_err(store_error)?;
        let row = config_request::ActiveModel {
            tenant_id: Set(place.0),
            method: Set(place.1),
            request_id: Set(place.2),
            content_hash: Set(request.content.to_vec()),
            made_id: Set(made_id),
            key_id: Set(key.map(KeyId::uuid)),
            made_at_us: Set(by.at.micros()),
        };
        let insert = config_request::Entity::insert(row);
        insert.exec_without_returning(&self.transaction).await.map_err(store_error)?;
        Ok(())
    }
}

async fn find(
    db: &impl ConnectionTrait,
    tenant: Option<TenantId>,
    by: &ChangeContext,
    request: &RequestKey,
) -> Result<Option<Made>, Error> {
    use config_request::Column;
    let known = config_request::Entity::find()
        .filter(Column::TenantId.eq(owner(tenant)))
        .filter(Column::Method.eq(by.method.as_str()))
        .filter(Column::RequestId.eq(request.id));
    let Some(row) = known.one(db).await.map_err(store_error)? else {
        return Ok(None);
    };
    let made = row.made();
    if !made.is_kept_at(by.at) {
        return Ok(None);
    }
    match row.content_hash == request.content {
        true => Ok(Some(made)),
        false => Err(Error::RequestIdReused { request_id: request.id.to_string() }),
    }
}

#[async_trait]
impl RequestLog for ConfigDb {
    async fn made_before(
        &self,
        tenant: Option<TenantId>,
        by: &ChangeContext,
    ) -> Result<Option<Made>, Error> {
        match request_of(by) {
            Some(request) => find(&self.db, tenant, by, request).await,
            None => Ok(None),
        }
    }

    async fn forget_requests(&self, made_before: Timestamp, limit: u32) -> Result<u64, Error> {
        let values = [made_before.micros().into(), i64::from(limit).into()];
        let forget = Statement::from_sql_and_values(self.db.get_database_backend(), FORGET, values);
        let forgotten = self.db.execute_raw(forget).await.map_err(store_error)?;
        Ok(forgotten.rows_affected())
    }
}
