//! One change of configuration: a transaction that owns the next revision.

use super::{
    cell::Malformed,
    entity::{config_revision, tenant},
    record::{self, Notes},
    table::{Identity, Table, full_name, live_by_id},
};
use crate::{
    error::{is_unique_violation, store_error},
    immediate::begin_whole,
};
use sea_orm::{
    ActiveModelTrait as _, ActiveValue, ColumnTrait as _, ConnectionTrait as _, DatabaseConnection,
    DatabaseTransaction, DbBackend, EntityTrait, Iterable, QueryFilter as _, SqliteTransactionMode,
    Statement, TransactionOptions, Value,
    sea_query::Expr,
    {AccessMode, IsolationLevel},
};
use turnbuckle_domain::{
    Audited as _, ChangeContext, ConfigPosition, Epoch, Error, Fields, Quotas, Revision,
    StoreError, TenantId, Timestamp,
};

/// Most names an entry of the record lists of what went along with a resource; of more it says how
/// many they were. Keeps an entry, which every reader takes whole, at a few kilobytes.
pub(super) const ALONG_NAMED: usize = 100;

/// An open change. Dropped without [`Write::commit`], it is rolled back and its revision is given
/// to the next one, so that revisions have no gaps.
pub(super) struct Write {
    pub(super) transaction: DatabaseTransaction,
    pub(super) revision: Revision,
    /// Whether something long was added, or a long row became longer.
    pub(super) needs_room: bool,
    notes: Notes,
}

/// Bytes of a row's texts.
fn weight<E: Table>(row: &E::ActiveModel) -> usize {
    let bytes = |column: E::Column| match row.get(column) {
        ActiveValue::Set(Value::String(Some(text))) => text.len(),
        _ => 0,
    };
    <E::Column as Iterable>::iter().map(bytes).sum()
}

impl Write {
    /// Opens a change. The counter's row is locked from here to the commit, which makes changes
    /// commit in the order of their revisions; and since there is one writer at a time, whatever a
    /// change checks stays true until it commits.
    pub(super) async fn begin(db: &DatabaseConnection) -> Result<Self, Error> {
        let options = write_options(db.get_database_backend());
        let transaction = begin_whole(db, options).await.map_err(store_error)?;
        let next = Statement::from_string(
            transaction.get_database_backend(),
            "update config_revision set revision = revision + 1 where id = 1 returning revision",
        );
        let row = transaction.query_one_raw(next).await.map_err(store_error)?;
        let row = row.ok_or(Malformed { column: "config_revision.id" })?;
        let revision = row.try_get_by_index(0).map_err(store_error)?;
        let (revision, notes) = (Revision(revision), Notes::default());
        Ok(Self { transaction, revision, needs_room: false, notes })
    }

    /// Records the change and makes it last; or, when it was only to be validated, undoes it.
    pub(super) async fn commit(self, by: &ChangeContext) -> Result<Revision, Error> {
        record::write(&self.transaction, self.revision, self.notes, by).await?;
        let end = match by.validate_only {
            true => self.transaction.rollback().await,
            false => self.transaction.commit().await,
        };
        end.map_err(store_error)?;
        Ok(self.revision)
    }

    /// Notes for the record what goes along with the changed resource.
    pub(super) fn note_along(&mut self, before: Fields, after: Fields) {
        self.notes.before(before);
        self.notes.after(after);
    }

    /// Notes for the record the resource that is changed.
    pub(super) fn note(
        &mut self,
        (tenant, resource): (TenantId, String),
        before: Fields,
        after: Fields,
    ) {
        self.notes.subject(tenant, resource);
        self.notes.before(before);
        self.notes.after(after);
    }

    /// The same for a row of a table.
    pub(super) fn note_subject<E: Table>(
        &mut self,
        parent: &str,
        resource: &E::Resource,
        before: Fields,
        after: Fields,
    ) {
        self.note(subject::<E>(parent, resource), before, after);
    }

    /// The name of a tenant that is to get or change something.
    pub(super) async fn tenant_name(&self, tenant: TenantId) -> Result<String, Error> {
        tenant_name(&self.transaction, tenant).await
    }

    /// Adds a resource.
    pub(super) async fn insert<E: Table>(
        &mut self,
        parent: &str,
        resource: &E::Resource,
    ) -> Result<E::Resource, Error> {
        let mut added = resource.clone();
        E::meta(&mut added).revision = self.revision;
        let row = E::encode(&added)?;
        self.needs_room |= weight::<E>(&row) > Quotas::LONG_ROW;
        let insert = E::insert(row).exec_without_returning(&self.transaction);
        match insert.await {
            Ok(_) => {
                self.note(subject::<E>(parent, resource), Fields::new(), added.fields());
                Ok(added)
            }
            Err(error) if is_unique_violation(&error) => {
                let resource = full_name::<E>(parent, E::identity(resource).name);
                Err(Error::AlreadyExists { resource })
            }
            Err(error) => Err(store_error(error).into()),
        }
    }

    /// Replaces a resource that still has the revision `expected`. What names it stays.
    pub(super) async fn replace<E: Table>(
        &mut self,
        parent: &str,
        resource: &E::Resource,
        expected: Revision,
    ) -> Result<E::Resource, Error> {
        let wanted = E::identity(resource);
        let mut current = self.expect::<E>(parent, &wanted, expected).await?;
        let mut replaced = resource.clone();
        E::meta(&mut replaced).created_at = E::meta(&mut current).created_at;
        E::meta(&mut replaced).revision = self.revision;
        let mut row = E::encode(&replaced)?;
        let (before, after) = (weight::<E>(&E::encode(&current)?), weight::<E>(&row));
        self.needs_room |= after > before.max(Quotas::LONG_ROW);
        for fixed in [E::ID, E::NAME, E::CREATED].into_iter().chain(E::TENANT) {
            row.not_set(fixed);
        }
        let update = E::update_many().set(row).filter(E::ID.eq(wanted.id));
        update.exec(&self.transaction).await.map_err(store_error)?;
        self.note(subject::<E>(parent, resource), current.fields(), replaced.fields());
        Ok(replaced)
    }

    /// Makes a tombstone of a resource that is still as the caller read it.
    pub(super) async fn bury<E: Table>(
        &mut self,
        parent: &str,
        resource: &E::Resource,
        now: Timestamp,
    ) -> Result<(), Error> {
        let wanted = E::identity(resource);
        let current = self.expect::<E>(parent, &wanted, wanted.revision).await?;
        self.note(subject::<E>(parent, resource), current.fields(), Fields::new());
        self.bury_rows::<E>(E::ID, wanted.id, now).await
    }

    /// Makes tombstones of all live rows that have this id in this column. The record names them
    /// below what they go along with.
    pub(super) async fn bury_along<E: Table>(
        &mut self,
        column: E::Column,
        id: sea_orm::prelude::Uuid,
        now: Timestamp,
    ) -> Result<(), Error> {
        let live = E::find().filter(column.eq(id)).filter(E::DELETED.is_null());
        let rows = live.all(&self.transaction).await.map_err(store_error)?;
        let mut along = Fields::new();
        let count = rows.len();
        for row in rows.into_iter().take(ALONG_NAMED) {
            let gone = E::decode(row)?.value;
            let field = format!("{}.{}", E::COLLECTION, E::identity(&gone).name);
            along.insert(field, gone.fields().remove("uid").unwrap_or_default());
        }
        if count > ALONG_NAMED {
            along.insert(format!("{}.count", E::COLLECTION), count.to_string());
        }
        self.note_along(along, Fields::new());
        self.bury_rows::<E>(column, id, now).await
    }

    /// The same without a word in the record.
    pub(super) async fn bury_rows<E: Table>(
        &self,
        column: E::Column,
        id: sea_orm::prelude::Uuid,
        now: Timestamp,
    ) -> Result<(), Error> {
        let update = <E as EntityTrait>::update_many()
            .col_expr(E::DELETED, Expr::value(now.micros()))
            .col_expr(E::UPDATED, Expr::value(now.micros()))
            .col_expr(E::REVISION, Expr::value(self.revision.0))
            .filter(column.eq(id))
            .filter(E::DELETED.is_null());
        update.exec(&self.transaction).await.map_err(store_error)?;
        Ok(())
    }

    async fn expect<E: Table>(
        &self,
        parent: &str,
        wanted: &Identity<'_>,
        expected: Revision,
    ) -> Result<E::Resource, Error> {
        let current = live_by_id::<E>(&self.transaction, parent, wanted).await?;
        let Identity { name, revision, .. } = E::identity(&current);
        if revision == expected {
            return Ok(current);
        }
        Err(Error::Stale { resource: full_name::<E>(parent, name), current: revision.etag() })
    }
}

/// Whose record a change of a resource goes to, and under which name.
fn subject<E: Table>(parent: &str, resource: &E::Resource) -> (TenantId, String) {
    let Identity { id, tenant, name, .. } = E::identity(resource);
    // A tenant's own changes are in its own record.
    (TenantId::from_uuid(tenant.unwrap_or(id)), full_name::<E>(parent, name))
}

/// Takes the turn of a writer without making a revision: who writes entries of the audit record is
/// alone until the commit.
pub(super) async fn lock_revision(transaction: &DatabaseTransaction) -> Result<(), StoreError> {
    let lock = Statement::from_string(
        transaction.get_database_backend(),
        "update config_revision set revision = revision where id = 1",
    );
    transaction.execute_raw(lock).await.map_err(store_error)?;
    Ok(())
}

/// The name of a live tenant.
pub(super) async fn tenant_name(
    db: &impl sea_orm::ConnectionTrait,
    tenant: TenantId,
) -> Result<String, Error> {
    let text = tenant.to_string();
    let wanted =
        Identity { id: tenant.uuid(), tenant: None, name: &text, revision: Revision::ZERO };
    let tenant = live_by_id::<tenant::Entity>(db, "", &wanted).await?;
    Ok(full_name::<tenant::Entity>("", tenant.slug.as_str()))
}

/// The present state.
pub(super) async fn position(
    db: &impl sea_orm::ConnectionTrait,
) -> Result<ConfigPosition, StoreError> {
    let row = config_revision::Entity::find().one(db).await.map_err(store_error)?;
    let row = row.ok_or(Malformed { column: "config_revision.id" })?;
    let epoch = row.epoch.ok_or(Malformed { column: "config_revision.epoch" })?;
    Ok(ConfigPosition { epoch: Epoch::from_uuid(epoch), revision: Revision(row.revision) })
}

/// A transaction that sees one state of all tables, and changes none.
pub(super) async fn begin_snapshot(
    db: &DatabaseConnection,
) -> Result<DatabaseTransaction, StoreError> {
    let options = match db.get_database_backend() {
        DbBackend::Postgres => TransactionOptions {
            isolation_level: Some(IsolationLevel::RepeatableRead),
            access_mode: Some(AccessMode::ReadOnly),
            ..TransactionOptions::default()
        },
        // Every transaction of SQLite is a snapshot.
        _ => TransactionOptions::default(),
    };
    begin_whole(db, options).await.map_err(store_error)
}

/// How a transaction that writes begins.
pub(super) fn write_options(backend: DbBackend) -> TransactionOptions {
    match backend {
        // A higher level would refuse whoever waited for the counter instead of letting it go on.
        DbBackend::Postgres => TransactionOptions {
            isolation_level: Some(IsolationLevel::ReadCommitted),
            access_mode: Some(AccessMode::ReadWrite),
            ..TransactionOptions::default()
        },
        // Takes the write lock at once: a transaction that reads first may be refused its write.
        _ => TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        },
    }
}
