//! The Postgres backend: hot statements on sqlx, each in a reviewed `.sql` file.

mod append;
mod deadline;
mod hints;
mod order;
pub(crate) mod partitions;
mod pull;
mod queue;
mod settle;

pub(crate) use deadline::Deadline;

use crate::error::sqlx_error;
use sqlx::{
    ConnectOptions as _, PgPool, Row as _,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use std::{str::FromStr as _, time::Duration};
use tracing::log::LevelFilter;
use turnbuckle_domain::StoreError;

/// Two publish writers, settle, claim, discovery, heartbeat, hints out and hints in; a settle and two
/// claims of consumers; and two to spare.
const CONNECTIONS_MAX: u32 = 13;
/// Lists, look-ups and configuration of one process.
const PEOPLE_CONNECTIONS_MAX: u32 = 6;
/// Longest wait for a connection: past it a caller is better served by an error.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest statement. A frozen database must not freeze a loop for ever.
const STATEMENT_TIMEOUT_MS: &str = "15000";
/// Longest wait for a row lock.
const LOCK_TIMEOUT_MS: &str = "5000";
/// A transaction of ours is never idle; one that is would hold back vacuum.
const IDLE_IN_TRANSACTION_TIMEOUT_MS: &str = "30000";

/// The event log and delivery queue on Postgres.
#[derive(Clone)]
pub(crate) struct PostgresQueue {
    pool: PgPool,
}

impl PostgresQueue {
    /// Connects, and checks that commits are durable (I1).
    ///
    /// # Errors
    /// When the database does not answer, or `synchronous_commit` is off.
    pub(crate) async fn connect(url: &str) -> Result<Self, StoreError> {
        let options = connect_options(url)?;
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS_MAX)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            // A ping before each use costs as much as the statement; a broken connection shows anyway.
            .test_before_acquire(false)
            .connect_with(options)
            .await
            .map_err(sqlx_error)?;
        let queue = Self { pool };
        queue.check_durable().await?;
        Ok(queue)
    }

    async fn check_durable(&self) -> Result<(), StoreError> {
        let setting: String = sqlx::query("show synchronous_commit")
            .fetch_one(&self.pool)
            .await
            .map_err(sqlx_error)?
            .get(0);
        if setting == "off" {
            return Err(StoreError::Internal(
                "synchronous_commit is off: an acknowledged event could be lost; \
                 turn it on for this database or role"
                    .into(),
            ));
        }
        Ok(())
    }
}

/// Connection settings shared by every pool on this database.
pub(crate) fn connect_options(url: &str) -> Result<PgConnectOptions, StoreError> {
    let options = PgConnectOptions::from_str(url).map_err(sqlx_error)?;
    Ok(options
        .application_name("turnbuckle")
        .options([
            ("statement_timeout", STATEMENT_TIMEOUT_MS),
            ("lock_timeout", LOCK_TIMEOUT_MS),
            ("idle_in_transaction_session_timeout", IDLE_IN_TRANSACTION_TIMEOUT_MS),
            // The hot statements are long and their arrays tell the planner nothing: one plan serves.
            // Planning anew each time would cost more than running.
            ("plan_cache_mode", "force_generic_plan"),
            // Compiling a plan to machine code takes longer than any statement of ours runs.
            ("jit", "off"),
            // Plans are made once per connection, often while a table or the partition of tomorrow is
            // empty, when reading it as a whole looks cheapest, and are then used as it grows. Every
            // statement of ours has an index to go by.
            ("enable_seqscan", "off"),
        ])
        .log_statements(LevelFilter::Off))
}

/// Connections for lists, look-ups and configuration. Apart from the hot ones: whatever people ask for,
/// heartbeats and results never wait for it (I6).
pub(crate) async fn people_pool(url: &str) -> Result<PgPool, StoreError> {
    PgPoolOptions::new()
        .max_connections(PEOPLE_CONNECTIONS_MAX)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .test_before_acquire(false)
        .connect_with(connect_options(url)?)
        .await
        .map_err(sqlx_error)
}

/// Connections for migrating: one holds the lock, the other works. A migration may take as long as
/// it takes, so there is no statement timeout.
pub(crate) async fn migration_pool(url: &str) -> Result<PgPool, StoreError> {
    let options = PgConnectOptions::from_str(url).map_err(sqlx_error)?;
    PgPoolOptions::new()
        .max_connections(2)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .connect_with(options.application_name("turnbuckle-migrate"))
        .await
        .map_err(sqlx_error)
}
