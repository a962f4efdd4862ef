//! Day partitions, made ahead of time. An id outside every partition lands in the default one, so a
//! late run of this loses nothing.

use super::PostgresQueue;
use crate::error::sqlx_error;
use sqlx::AssertSqlSafe;
use turnbuckle_domain::{StoreError, Timestamp};
use uuid::Uuid;

const DAY_US: i64 = 24 * 3600 * 1_000_000;
/// Days made ahead: a week without this task is noticed before it matters.
const DAYS_AHEAD: i64 = 7;
const TABLES: [&str; 3] = ["event", "delivery_done", "attempt"];
/// Serialises replicas that start together; any constant of ours does.
const LOCK: i64 = 0x7475_726e_7061_7274;

impl PostgresQueue {
    /// Makes the partitions of today and the week after. Idempotent; replicas may run it together.
    ///
    /// # Errors
    /// When the database does not answer.
    pub(crate) async fn ensure_partitions(&self, now: Timestamp) -> Result<(), StoreError> {
        let mut transaction = self.pool.begin().await.map_err(sqlx_error)?;
        sqlx::query("select pg_advisory_xact_lock($1)")
            .bind(LOCK)
            .execute(&mut *transaction)
            .await
            .map_err(sqlx_error)?;
        let today = now.micros().div_euclid(DAY_US);
        for day in today..=today + DAYS_AHEAD {
            for table in TABLES {
                let statement = create_partition(table, day);
                sqlx::query(AssertSqlSafe(statement))
                    .execute(&mut *transaction)
                    .await
                    .map_err(sqlx_error)?;
            }
        }
        transaction.commit().await.map_err(sqlx_error)
    }
}

/// Only constants and numbers of ours go into the text.
fn create_partition(table: &str, day: i64) -> String {
    let (from, to) = (first_id(day), first_id(day + 1));
    format!(
        "create table if not exists {table}_d{day} partition of {table} for values from ('{from}') to ('{to}')"
    )
}

/// The smallest UUIDv7 of a day.
fn first_id(day: i64) -> Uuid {
    let millis = u128::try_from(day * DAY_US / 1000).unwrap_or(0);
    Uuid::from_u128(millis << 80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_holds_its_ids_and_no_others() {
        let day = 20_787;
        let id = |micros: i64| {
            let millis = u64::try_from(micros / 1000).unwrap();
            uuid::Builder::from_unix_timestamp_millis(millis, &[0xff; 10]).into_uuid()
        };
        assert!(id(day * DAY_US) >= first_id(day));
        assert!(id((day + 1) * DAY_US - 1000) < first_id(day + 1));
        assert!(id(day * DAY_US - 1000) < first_id(day));
    }
}
