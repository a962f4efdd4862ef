//! Storage: the only crate that knows SQL. Postgres for a cluster, SQLite for one process, behind
//! the same ports and held to the same contract suite.
//!
//! ```text
//!  EventLog ─┬─ append ──────┐        hot path: one statement (Postgres) or one
//!  Delivery  ├─ claim        ├──────► transaction on the writer thread (SQLite)
//!   Queue    └─ settle ──────┘        for a whole batch
//!  History, ConfigStore ────────────► sea-orm, the same code on both
//! ```
//!
//! # Invariants
//! - **I1** `append` returns after its commit is durable: `synchronous_commit` is checked at connect,
//!   SQLite runs with `synchronous = FULL`.
//! - **I4** `settle` changes a delivery only under a valid shard lease and only when its attempt
//!   count is the one the turn began with.
//! - **I12** Every read of rows takes a tenant.
//! - **I13** A job that fails on the writer thread fails alone.
//! - Payloads are bytes in every table; nothing parses them here.

mod channels;
pub mod config;
mod embedded;
mod error;
mod first;
mod history;
mod immediate;
mod order;
mod order_age;
mod postgres;
mod receipts;
mod replays;

use config::ConfigDb;
use embedded::{DirectoryLock, EmbeddedQueue};
use history::HistoryDb;
use postgres::{Deadline, PostgresQueue};
use receipts::ReceiptDb;
use replays::ReplayDb;
use sea_orm::{
    DatabaseConnection, SqlxPostgresConnector, SqlxSqliteConnector,
    sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use std::{path::Path, sync::Arc, time::Duration};
use turnbuckle_domain::{
    Clock, ConfigSource, ConfigStore, DeliveryQueue, EventLog, HealthStore, History, KeyUsageStore,
    NodeReports, PullQueue, Quotas, ReceiptLog, ReplayStore, SealedRecords, StoreError, Timestamp,
    dedup_limits, key_usage_limits, replay_limits,
};
use turnbuckle_migrations::SchemaStatus;

/// Readers of the embedded store beside its writer: operators' lists and configuration.
const EMBEDDED_CONNECTIONS: u32 = 4;

/// Statements of one sweep of old ids: in a minute more than any backend takes in a minute.
const DEDUP_SWEEP_STATEMENTS: u32 = 1_000;

/// An open store: every port on one backend.
#[derive(Clone)]
pub struct Store {
    /// The entrance of events.
    pub log: Arc<dyn EventLog>,
    /// The queue of deliveries.
    pub queue: Arc<dyn DeliveryQueue>,
    /// The queue as consumers of pull endpoints use it.
    pub pull: Arc<dyn PullQueue>,
    /// What happened, for people.
    pub history: Arc<dyn History>,
    /// Configuration.
    pub config: Arc<dyn ConfigStore>,
    /// What nodes say of it.
    pub nodes: Arc<dyn NodeReports>,
    /// What the ingress decided, request by request.
    pub receipts: Arc<dyn ReceiptLog>,
    /// Replays of deliveries and events.
    pub replays: Arc<dyn ReplayStore>,
    /// How keys are used.
    pub key_usage: Arc<dyn KeyUsageStore>,
    /// How endpoints are, and what waits to be told of them.
    pub health: Arc<dyn HealthStore>,
    /// Sealed records as a whole.
    pub sealed: Arc<dyn SealedRecords>,
    db: DatabaseConnection,
    postgres: Option<PostgresQueue>,
    embedded: Option<EmbeddedQueue>,
}

/// A store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The schema is older than this program needs.
    #[error("the database schema is {pending} migrations behind: run `turnbuckle migrate` first")]
    SchemaBehind {
        /// Migrations to run.
        pending: usize,
    },
    /// Nothing is there yet.
    #[error("the database has no schema yet: run `turnbuckle migrate` first")]
    SchemaEmpty,
    /// A migration failed; what it began was rolled back.
    #[error("the schema could not be migrated")]
    Migrate(#[from] turnbuckle_migrations::MigrateError),
    /// The schema was made by a newer program.
    #[error(
        "the database schema is newer than this program knows ({unknown}): run a newer turnbuckle"
    )]
    SchemaAhead {
        /// The first migration this program does not know.
        unknown: String,
    },
    /// The store itself.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Store {
    /// Whether a directory holds an embedded store already.
    #[must_use]
    pub fn embedded_exists(directory: &Path) -> bool {
        directory.join(embedded::DATABASE_FILE).exists()
    }

    /// Lets every tenant have this much configuration.
    #[must_use]
    pub fn with_quotas(self, quotas: Quotas) -> Self {
        let config = ConfigDb::new(self.db.clone()).with_quotas(quotas);
        Self { config: Arc::new(config), ..self }
    }

    /// Configuration as data planes read it.
    #[must_use]
    pub fn config_source(&self) -> Arc<dyn ConfigSource> {
        let config = Arc::clone(&self.config);
        match &self.postgres {
            Some(_) => Arc::new(Deadline(config)),
            None => config,
        }
    }

    /// Opens the embedded store in a directory, made and migrated when needed. One process at a time.
    ///
    /// # Errors
    /// When the directory is in use or not writable, or its schema is too new.
    pub async fn open_embedded(directory: &Path, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let lock = DirectoryLock::take(directory)?;
        let options = SqliteConnectOptions::new()
            .filename(lock.database())
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(embedded::BUSY_TIMEOUT)
            .foreign_keys(true);
        let pool = SqlitePoolOptions::new()
            .max_connections(EMBEDDED_CONNECTIONS)
            .test_before_acquire(false)
            .connect_with(options)
            .await
            .map_err(error::sqlx_error)?;
        let db = SqlxSqliteConnector::from_sqlx_sqlite_pool(pool);
        let status = turnbuckle_migrations::status(&db).await.map_err(error::store_error)?;
        if let SchemaStatus::Ahead { unknown } = status {
            return Err(OpenError::SchemaAhead { unknown: unknown.join(", ") });
        }
        turnbuckle_migrations::migrate(&db).await?;
        let queue = EmbeddedQueue::open(lock, clock).await?;
        Ok(Self {
            log: Arc::new(queue.clone()),
            queue: Arc::new(queue.clone()),
            pull: Arc::new(queue.clone()),
            history: Arc::new(HistoryDb::new(db.clone())),
            config: Arc::new(ConfigDb::new(db.clone())),
            nodes: Arc::new(ConfigDb::new(db.clone())),
            receipts: Arc::new(ReceiptDb::embedded(db.clone(), queue.clone())),
            replays: Arc::new(ReplayDb::embedded(db.clone(), queue.clone())),
            key_usage: Arc::new(ConfigDb::new(db.clone())),
            health: Arc::new(ConfigDb::new(db.clone())),
            sealed: Arc::new(ConfigDb::new(db.clone())),
            db,
            postgres: None,
            embedded: Some(queue),
        })
    }

    /// Opens a migrated Postgres database.
    ///
    /// # Errors
    /// When it does not answer, is not durable, or its schema does not fit this program.
    pub async fn open_postgres(url: &str, now: Timestamp) -> Result<Self, OpenError> {
        let queue = PostgresQueue::connect(url).await?;
        let pool = postgres::people_pool(url).await?;
        let db = SqlxPostgresConnector::from_sqlx_postgres_pool(pool);
        match turnbuckle_migrations::status(&db).await.map_err(error::store_error)? {
            SchemaStatus::Current => {}
            SchemaStatus::Empty => return Err(OpenError::SchemaEmpty),
            SchemaStatus::Behind { pending } => {
                return Err(OpenError::SchemaBehind { pending: pending.len() });
            }
            SchemaStatus::Ahead { unknown } => {
                return Err(OpenError::SchemaAhead { unknown: unknown.join(", ") });
            }
        }
        queue.ensure_partitions(now).await?;
        Ok(Self {
            log: Arc::new(Deadline(queue.clone())),
            queue: Arc::new(Deadline(queue.clone())),
            pull: Arc::new(Deadline(queue.clone())),
            history: Arc::new(HistoryDb::new(db.clone())),
            config: Arc::new(ConfigDb::new(db.clone())),
            nodes: Arc::new(ConfigDb::new(db.clone())),
            receipts: Arc::new(ReceiptDb::new(db.clone())),
            replays: Arc::new(ReplayDb::new(db.clone())),
            key_usage: Arc::new(ConfigDb::new(db.clone())),
            health: Arc::new(ConfigDb::new(db.clone())),
            sealed: Arc::new(ConfigDb::new(db.clone())),
            db,
            postgres: Some(queue),
            embedded: None,
        })
    }

    /// Brings a Postgres database to this program's schema. Replicas may run it together.
    ///
    /// # Errors
    /// When the database does not answer, or its schema is too new.
    pub async fn migrate_postgres(url: &str) -> Result<(), OpenError> {
        let pool = postgres::migration_pool(url).await?;
        let db = SqlxPostgresConnector::from_sqlx_postgres_pool(pool);
        let status = turnbuckle_migrations::status(&db).await.map_err(error::store_error)?;
        if let SchemaStatus::Ahead { unknown } = status {
            return Err(OpenError::SchemaAhead { unknown: unknown.join(", ") });
        }
        let migrated = turnbuckle_migrations::migrate(&db).await;
        db.close().await.map_err(error::store_error)?;
        Ok(migrated?)
    }

    /// Work that keeps the store in shape; run it every few hours.
    ///
    /// # Errors
    /// When the store does not answer; the next run makes up for it.
    pub async fn maintain(&self, now: Timestamp) -> Result<(), StoreError> {
        self.key_usage.forget_answers(now, key_usage_limits::ANSWERS_KEPT).await?;
        config::health::forget(&self.db).await?;
        order_age::prune(&self.db, now).await?;
        self.prune_replays(now).await?;
        match &self.postgres {
            Some(postgres) => postgres.ensure_partitions(now).await,
            None => Ok(()),
        }
    }

    /// Takes away replays that were finished long ago, all of them: a tenant makes few.
    async fn prune_replays(&self, now: Timestamp) -> Result<(), StoreError> {
        let most = u64::from(replay_limits::PRUNED_AT_ONCE);
        while self.replays.prune_replays(now - replay_limits::KEPT).await? >= most {
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Takes away ids whose window is over, and old anomalies; run it every minute. Ends when none is
    /// left, or after a bounded number of statements.
    ///
    /// # Errors
    /// When the store does not answer; the next run makes up for it.
    pub async fn sweep_dedup(&self, clock: &dyn Clock) -> Result<(), StoreError> {
        for _ in 0..DEDUP_SWEEP_STATEMENTS {
            let now = clock.now();
            let pruned = self.log.prune_dedup(now, now - dedup_limits::ANOMALY_KEPT).await?;
            if pruned < u64::from(dedup_limits::PRUNED_AT_ONCE) {
                break;
            }
            // Publishing goes first: the next statement waits until others had their turn.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Whether the store answers, for readiness.
    ///
    /// # Errors
    /// When it does not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        if let Some(embedded) = &self.embedded {
            embedded.ping().await?;
        }
        self.db.ping().await.map_err(error::store_error)
    }
}

/// A duration as the store keeps it.
pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
