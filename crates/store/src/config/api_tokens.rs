//! API tokens. Their table is not like those of other resources: its rows may belong to no tenant, end
//! without going away, and are touched by uses that are no changes.

use super::{
    ConfigDb,
    aside::{Aside, Place},
    entity::api_token,
    write::{ALONG_NAMED, Write, lock_revision, write_options},
};
use crate::error::{is_unique_violation, store_error};
use async_trait::async_trait;
use sea_orm::{
    ActiveModelTrait as _, ColumnTrait as _, Condition, ConnectionTrait, EntityTrait as _,
    PaginatorTrait as _, QueryFilter as _, QueryOrder as _, QuerySelect as _,
    TransactionTrait as _, prelude::Uuid, sea_query::Expr,
};
use turnbuckle_domain::{
    ApiToken, ApiTokenId, ApiTokenStore, Audited as _, ChangeContext, Error, Fields, PLATFORM,
    Precondition, ResourceId, ResourceKind, Revision, StoreError, TenantId, Timestamp,
    api_token_limits,
};

/// Why the tokens of a deleted tenant are revoked.
const TENANT_DELETED: &str = "tenant deleted";

/// Why a token is over that nobody revoked.
const EXPIRED: &str = "expired";

#[async_trait]
impl ApiTokenStore for ConfigDb {
    async fn create_api_token(
        &self,
        token: ApiToken,
        by: &ChangeContext,
    ) -> Result<ApiToken, Error> {
        let mut write = Write::begin(&self.db).await?;
        let name = name(&write, &token).await?;
        write.remember(token.tenant, (token.id.uuid(), None), by).await?;
        room_for_another(&write, &token, &name).await?;
        let mut added = token;
        added.meta.revision = write.revision;
        let insert = api_token::Entity::insert(api_token::encode(&added));
        match insert.exec_without_returning(&write.transaction).await {
            Ok(_) => {}
            Err(error) if is_unique_violation(&error) => {
                return Err(Error::AlreadyExists { resource: name });
            }
            Err(error) => return Err(store_error(error).into()),
        }
        write.note((trail(&added), name), Fields::new(), added.fields());
        write.commit(by).await?;
        Ok(added)
    }

    async fn api_token(
        &self,
        tenant: Option<TenantId>,
        slug: &ResourceId,
    ) -> Result<Option<ApiToken>, Error> {
        let found = api_token::Entity::find()
            .filter(of(tenant))
            .filter(api_token::Column::Slug.eq(slug.as_str()));
        let row = found.one(&self.db).await.map_err(store_error)?;
        Ok(row.map(api_token::decode).transpose()?)
    }

    async fn api_tokens(
        &self,
        tenant: Option<TenantId>,
        valid_at: Option<Timestamp>,
        after: Option<&str>,
        limit: u16,
    ) -> Result<Vec<ApiToken>, Error> {
        let page = api_token::Entity::find()
            .filter(of(tenant))
            .filter(Condition::all().add_option(valid_at.map(valid)))
            .filter(
                Condition::all().add_option(after.map(|after| api_token::Column::Slug.gt(after))),
            )
            .order_by_asc(api_token::Column::Slug)
            .limit(u64::from(limit));
        let rows = page.all(&self.db).await.map_err(store_error)?;
        rows.into_iter().map(|row| Ok(api_token::decode(row)?)).collect()
    }

    async fn update_api_token(
        &self,
        token: ApiToken,
        expected: Revision,
        by: &ChangeContext,
    ) -> Result<ApiToken, Error> {
        let mut write = Write::begin(&self.db).await?;
        let name = name(&write, &token).await?;
        let found = api_token::Entity::find_by_id(token.id.uuid()).filter(of(token.tenant));
        let row = found.one(&write.transaction).await.map_err(store_error)?;
        let Some(current) = row.map(api_token::decode).transpose()? else {
            return Err(Error::NotFound { resource: name });
        };
        if current.meta.revision != expected {
            return Err(Error::Stale { resource: name, current: current.meta.revision.etag() });
        }
        let mut replaced = ApiToken { last_used_at: current.last_used_at, ..token };
        replaced.meta.created_at = current.meta.created_at;
        replaced.meta.revision = write.revision;
        replace(&write, &replaced).await?;
        write.note((trail(&replaced), name), current.fields(), replaced.fields());
        write.commit(by).await?;
        Ok(replaced)
    }

    async fn end_expired_api_token(
        &self,
        expired_before: Timestamp,
        by: &ChangeContext,
    ) -> Result<Option<String>, Error> {
        // Looks without taking a turn among the writers: mostly nothing is due.
        if first_expired(&self.db, expired_before).await?.is_none() {
            return Ok(None);
        }
        let mut write = Write::begin(&self.db).await?;
        let first = first_expired(&write.transaction, expired_before).await?;
        let Some((id, tenant, slug)) = first else { return Ok(None) };
        let tenant = tenant.map(TenantId::from_uuid);
        // Tokens of deleted tenants were revoked with them.
        let name = match tenant {
            Some(tenant) => format!("{}/apiTokens/{slug}", write.tenant_name(tenant).await?),
            None => format!("apiTokens/{slug}"),
        };
        revoke(&write, Condition::all().add(api_token::Column::Id.eq(id)), EXPIRED, by.at).await?;
        let fields = |end: Option<&str>| {
            let uid = [("uid".to_owned(), ApiTokenId::from_uuid(id).to_string())];
            let end = end.map(|end| ("revoke_reason".to_owned(), end.to_owned()));
            uid.into_iter().chain(end).collect::<Fields>()
        };
        let whose = tenant.unwrap_or(PLATFORM);
        write.note((whose, name.clone()), fields(None), fields(Some(EXPIRED)));
        write.commit(by).await?;
        Ok(Some(name))
    }

    async fn note_api_token_uses(
        &self,
        uses: &[(ApiTokenId, Timestamp)],
    ) -> Result<(), StoreError> {
        let options = write_options(self.db.get_database_backend());
        let transaction = self.db.begin_with_options(options).await.map_err(store_error)?;
        // In turn with whoever changes tokens, so that nobody waits for rows in a circle.
        lock_revision(&transaction).await?;
        for (id, at) in uses {
            let column = api_token::Column::LastUsedAtUs;
            let update = api_token::Entity::update_many()
                .col_expr(column, Expr::value(at.micros()))
                .filter(api_token::Column::Id.eq(id.uuid()))
                .filter(Condition::any().add(column.is_null()).add(column.lt(at.micros())));
            update.exec(&transaction).await.map_err(store_error)?;
        }
        transaction.commit().await.map_err(store_error)
    }
}

/// Tokens changed after a revision, oldest change first. Who knows nothing needs none that are revoked.
pub(super) async fn changed_since(
    db: &impl ConnectionTrait,
    known: Revision,
    aside: &mut Aside,
) -> Result<Vec<ApiToken>, StoreError> {
    let mut rows = api_token::Entity::find().filter(api_token::Column::Revision.gt(known.0));
    if known == Revision::ZERO {
        rows = rows.filter(api_token::Column::RevokedAtUs.is_null());
    }
    let rows = rows
        .order_by_asc(api_token::Column::Revision)
        .order_by_asc(api_token::Column::Id)
        .all(db)
        .await
        .map_err(store_error)?;
    let mut readable = Vec::with_capacity(rows.len());
    for row in rows {
        let (name, deleted) = (row.slug.clone(), row.revoked_at_us.is_some());
        let place = Place { id: row.id, name, revision: row.revision, deleted };
        match api_token::decode(row) {
            Ok(token) => readable.push(token),
            Err(malformed) => aside.put(ResourceKind::ApiToken, place, &malformed),
        }
    }
    Ok(readable)
}

/// Revokes what a deleted tenant leaves. The record names them below the tenant.
pub(super) async fn revoke_along(
    write: &mut Write,
    tenant: TenantId,
    now: Timestamp,
) -> Result<(), Error> {
    let valid =
        Condition::all().add(of(Some(tenant))).add(api_token::Column::RevokedAtUs.is_null());
    let names = api_token::Entity::find().filter(valid.clone()).select_only();
    let names = names.column(api_token::Column::Slug).column(api_token::Column::Id);
    let names = names.order_by_asc(api_token::Column::Slug).into_tuple::<(String, Uuid)>();
    let names = names.all(&write.transaction).await.map_err(store_error)?;
    let mut along: Fields = names
        .iter()
        .take(ALONG_NAMED)
        .map(|(slug, id)| (format!("apiTokens.{slug}"), ApiTokenId::from_uuid(*id).to_string()))
        .collect();
    if names.len() > ALONG_NAMED {
        along.insert("apiTokens.count".to_owned(), names.len().to_string());
    }
    write.note_along(along, Fields::new());
    revoke(write, valid, TENANT_DELETED, now).await
}

async fn revoke(
    write: &Write,
    which: Condition,
    reason: &str,
    now: Timestamp,
) -> Result<(), Error> {
    let update = api_token::Entity::update_many()
        .col_expr(api_token::Column::RevokedAtUs, Expr::value(now.micros()))
        .col_expr(api_token::Column::RevokeReason, Expr::value(reason))
        .col_expr(api_token::Column::UpdatedAtUs, Expr::value(now.micros()))
        .col_expr(api_token::Column::Revision, Expr::value(write.revision.0))
        .filter(which);
    update.exec(&write.transaction).await.map_err(store_error)?;
    Ok(())
}

/// The token that expired first, of those that nobody revoked: its id, tenant and last part of its
/// name. Its other columns are not read: a row that holds what it should not ends like any other.
async fn first_expired(
    db: &impl ConnectionTrait,
    before: Timestamp,
) -> Result<Option<(Uuid, Option<Uuid>, String)>, Error> {
    use api_token::Column;
    let due = api_token::Entity::find()
        .filter(Column::RevokedAtUs.is_null())
        .filter(Column::ExpiresAtUs.lt(before.micros()))
        .order_by_asc(Column::ExpiresAtUs)
        .select_only()
        .columns([Column::Id, Column::TenantId, Column::Slug])
        .limit(1);
    Ok(due.into_tuple().one(db).await.map_err(store_error)?)
}

/// Rows of one tenant, or those of no tenant (I12).
fn of(tenant: Option<TenantId>) -> Condition {
    let column = api_token::Column::TenantId;
    Condition::all().add(match tenant {
        Some(tenant) => column.eq(tenant.uuid()),
        None => column.is_null(),
    })
}

fn valid(at: Timestamp) -> Condition {
    Condition::all()
        .add(api_token::Column::RevokedAtUs.is_null())
        .add(api_token::Column::ExpiresAtUs.gt(at.micros()))
}

/// The full name; fails when its tenant is gone.
async fn name(write: &Write, token: &ApiToken) -> Result<String, Error> {
    let own = ApiToken::name(None, &token.slug);
    Ok(match token.tenant {
        Some(tenant) => format!("{}/{own}", write.tenant_name(tenant).await?),
        None => own,
    })
}

/// Whose audit record a change of a token goes to.
fn trail(token: &ApiToken) -> TenantId {
    token.tenant.unwrap_or(PLATFORM)
}

async fn room_for_another(write: &Write, token: &ApiToken, name: &str) -> Result<(), Error> {
    let tokens = api_token::Entity::find().filter(of(token.tenant));
    let tokens = tokens.filter(valid(token.meta.created_at));
    let count = tokens.count(&write.transaction).await.map_err(store_error)?;
    if count < api_token_limits::VALID_MAX {
        return Ok(());
    }
    Err(Error::Precondition {
        kind: Precondition::LimitReached,
        subject: name.to_owned(),
        message: format!("there are {count} valid API tokens, the most there may be: revoke some"),
    })
}

/// Writes what may change of a token.
async fn replace(write: &Write, token: &ApiToken) -> Result<(), Error> {
    use api_token::Column;
    let mut row = api_token::encode(token);
    for fixed in [
        Column::Id,
        Column::TenantId,
        Column::Slug,
        Column::Role,
        Column::Hash,
        Column::Hint,
        Column::Creator,
        Column::CreatedAtUs,
        Column::LastUsedAtUs,
    ] {
        row.not_set(fixed);
    }
    let update = api_token::Entity::update_many().set(row).filter(Column::Id.eq(token.id.uuid()));
    update.exec(&write.transaction).await.map_err(store_error)?;
    Ok(())
}
