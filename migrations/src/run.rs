//! Applying migrations, by one process at a time.

use crate::{Migrator, SchemaStatus, status};
use sea_orm_migration::{
    prelude::*,
    sea_orm::{
        DatabaseConnection, DatabaseTransaction, DbBackend, SqliteTransactionMode, Statement,
        TransactionOptions, TransactionTrait as _,
    },
};
use std::time::Duration;

/// Names the lock among all advisory locks of the database: "turnbuck" in ASCII.
const LOCK: i64 = 0x7475_726e_6275_636b;
/// Between two looks at the lock: short against a migration, long against a round trip.
const LOCK_POLL: Duration = Duration::from_millis(200);
/// How long another process may migrate before this one gives up and says so: as long as an
/// orchestrator commonly waits for a new process to become ready.
const LOCK_WAIT: Duration = Duration::from_secs(600);
/// One connection holds the lock, another one migrates.
const POSTGRES_CONNECTIONS: u32 = 2;

/// The schema was not brought up to date. What was applied before stays; nothing is half applied.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// Another process holds the lock for too long.
    #[error(
        "another process has been migrating this database for {} s; look what it does, then start \
         again",
        LOCK_WAIT.as_secs()
    )]
    Locked,
    /// The pool is too small.
    #[error("migrating needs a pool of at least {POSTGRES_CONNECTIONS} connections")]
    PoolTooSmall,
    /// The database does not answer, or a migration failed.
    #[error("the database could not be migrated")]
    Database(#[from] DbErr),
}

/// Applies what is missing. Processes that call this at the same time take turns; each returns when
/// the schema is complete. A database that is ahead is left alone.
///
/// On Postgres every migration is a transaction of its own, on SQLite all of them are one: a process
/// that is killed in the middle leaves nothing half made. Needs two connections on Postgres.
///
/// # Errors
/// When the database does not answer, a migration fails, or another process never finishes.
pub async fn migrate(db: &DatabaseConnection) -> Result<(), MigrateError> {
    if !needs_migrating(db).await? {
        return Ok(());
    }
    match db.get_database_backend() {
        DbBackend::Postgres => migrate_postgres(db).await,
        _ => migrate_sqlite(db).await,
    }
}

async fn needs_migrating(db: &DatabaseConnection) -> Result<bool, DbErr> {
    let status = status(db).await?;
    Ok(matches!(status, SchemaStatus::Empty | SchemaStatus::Behind { .. }))
}

async fn migrate_postgres(db: &DatabaseConnection) -> Result<(), MigrateError> {
    if db.get_postgres_connection_pool().options().get_max_connections() < POSTGRES_CONNECTIONS {
        return Err(MigrateError::PoolTooSmall);
    }
    let lock = lock_postgres(db).await?;
    // The one before us may have done everything.
    if needs_migrating(db).await? {
        Migrator::up(db, None).await?;
    }
    Ok(lock.rollback().await?)
}

/// Takes the lock, in a transaction that does nothing else: its end, or that of its connection,
/// frees the lock. Asking again and again instead of waiting inside a statement matters: a waiting
/// statement holds a snapshot, and building an index concurrently waits for every older snapshot,
/// so that two replicas would wait for each other for ever.
async fn lock_postgres(db: &DatabaseConnection) -> Result<DatabaseTransaction, MigrateError> {
    let mut waited = Duration::ZERO;
    loop {
        let transaction = db.begin().await?;
        if try_lock(&transaction).await? {
            // However long a migration takes, the idle owner of the lock is not thrown out.
            let keep = "set local idle_in_transaction_session_timeout = 0";
            transaction.execute_unprepared(keep).await?;
            return Ok(transaction);
        }
        transaction.rollback().await?;
        if waited >= LOCK_WAIT {
            return Err(MigrateError::Locked);
        }
        tokio::time::sleep(LOCK_POLL).await;
        waited += LOCK_POLL;
    }
}

async fn try_lock(transaction: &DatabaseTransaction) -> Result<bool, DbErr> {
    let ask = Statement::from_sql_and_values(
        DbBackend::Postgres,
        "select pg_try_advisory_xact_lock($1)",
        [LOCK.into()],
    );
    let row = transaction.query_one_raw(ask).await?;
    row.map_or(Ok(false), |row| row.try_get_by_index(0))
}

/// One write transaction around everything: SQLite's schema is transactional, and whoever comes
/// second waits for it inside the busy timeout of its pool.
async fn migrate_sqlite(db: &DatabaseConnection) -> Result<(), MigrateError> {
    let immediate = TransactionOptions {
        sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        ..TransactionOptions::default()
    };
    let transaction = db.begin_with_options(immediate).await?;
    Migrator::up(&transaction, None).await?;
    Ok(transaction.commit().await?)
}
