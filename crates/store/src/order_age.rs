//! Subjects of which nothing was heard for their retention are forgotten.

use crate::error::store_error;
use sea_orm::{ConnectionTrait as _, DatabaseBackend, DatabaseConnection, Statement};
use turnbuckle_domain::{StoreError, Timestamp, order_limits};

const PRUNE_POSTGRES: &str = include_str!("order_age/prune_postgres.sql");
const PRUNE_SQLITE: &str = include_str!("order_age/prune_sqlite.sql");

/// Statements of one run: five million subjects, after which other maintenance has its turn. What is
/// left counts as forgotten all the same, and goes with the next run.
const STATEMENTS_MAX: usize = 1_000;

/// Takes away the rows whose time is over, a bounded number at a time, so that nobody waits for long.
pub(crate) async fn prune(db: &DatabaseConnection, now: Timestamp) -> Result<(), StoreError> {
    let backend = db.get_database_backend();
    let sql = match backend {
        DatabaseBackend::Postgres => PRUNE_POSTGRES,
        _ => PRUNE_SQLITE,
    };
    let most = order_limits::PRUNED_AT_ONCE;
    for _ in 0..STATEMENTS_MAX {
        let values = vec![now.micros().into(), i64::from(most).into()];
        let prune = Statement::from_sql_and_values(backend, sql, values);
        let gone = db.execute_raw(prune).await.map_err(store_error)?.rows_affected();
        if gone < u64::from(most) {
            break;
        }
    }
    Ok(())
}
