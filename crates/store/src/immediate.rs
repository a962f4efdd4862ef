//! Write transactions that cannot fail half-way for want of the write lock, and transactions that
//! cannot be left half-begun.

use sea_orm::{
    DatabaseConnection, DatabaseTransaction, DbErr, RuntimeErr, SqliteTransactionMode,
    TransactionOptions, TransactionTrait as _,
};
use sqlx::{PgPool, Postgres, Transaction};

/// Begins a transaction that will write. On SQLite it takes the write lock at once, since a reader
/// that wants to write later is refused without waiting.
pub(crate) async fn begin_write(db: &DatabaseConnection) -> Result<DatabaseTransaction, DbErr> {
    let options = TransactionOptions {
        sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        ..TransactionOptions::default()
    };
    begin_whole(db, options).await
}

/// Begins a transaction wholly or not at all. A caller may go away at any time, as one does whose
/// connection breaks: a transaction that was just being begun then would stay open on its connection,
/// and whoever gets that connection next would work inside it. So it is begun by a task of its own,
/// which rolls it back when nobody takes it.
pub(crate) async fn begin_whole(
    db: &DatabaseConnection,
    options: TransactionOptions,
) -> Result<DatabaseTransaction, DbErr> {
    let db = db.clone();
    let begun = tokio::spawn(async move { db.begin_with_options(options).await });
    // Only a runtime that stops ends the task early: there will be no answer here.
    begun.await.unwrap_or_else(|error| Err(DbErr::Conn(RuntimeErr::Internal(error.to_string()))))
}

/// [`begin_whole`] on a pool of Postgres. Whoever goes away later leaves nothing open: a transaction that
/// was begun wholly is rolled back when it is dropped.
pub(crate) async fn begin_on(pool: &PgPool) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    let pool = pool.clone();
    let begun = tokio::spawn(async move { pool.begin().await });
    begun.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
}
