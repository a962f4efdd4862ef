//! Day partitions, made ahead of time. An id outside every partition lands in the default one, so a
//! late run of this loses nothing.

use super::PostgresQueue;
use crate::{error::sqlx_error, immediate::begin_on};
use sqlx::{AssertSqlSafe, Row as _};
use std::collections::HashSet;
use turnbuckle_domain::{StoreError, Timestamp};
use uuid::Uuid;

const DAY_US: i64 = 24 * 3600 * 1_000_000;
/// Days made ahead: a week without this task is noticed before it matters.
const DAYS_AHEAD: i64 = 7;
const TABLES: [&str; 4] = ["event", "delivery_done", "attempt", "receipt"];
/// Serialises replicas that start together; any constant of ours does.
const LOCK: i64 = 0x7475_726e_7061_7274;

impl PostgresQueue {
    /// Makes the partitions of today and the week after. Idempotent; replicas may run it together.
    ///
    /// # Errors
    /// When the database does not answer.
    pub(crate) async fn ensure_partitions(&self, now: Timestamp) -> Result<(), StoreError> {
        let today = day_of(now);
        let wanted = (today..=today + DAYS_AHEAD)
            .flat_map(|day| TABLES.map(|table| (partition_name(table, day), table, day)));
        let existing = self.partitions().await?;
        for (name, table, day) in wanted.filter(|(name, ..)| !existing.contains(name)) {
            match self.create(create_partition(&name, table, day)).await {
                Err(sqlx::Error::Database(error)) if error.is_check_violation() => {
                    // A node whose clock was ahead has put rows of that day into the default
                    // partition. They are fine there, and so are those to come.
                    tracing::warn!(partition = name, "the default partition has rows of this day");
                }
                created => created.map_err(sqlx_error)?,
            }
        }
        Ok(())
    }

    async fn partitions(&self) -> Result<HashSet<String>, StoreError> {
        let names = "select c.relname::text from pg_inherits i \
                     join pg_class c on c.oid = i.inhrelid \
                     join pg_class parent on parent.oid = i.inhparent \
                     where parent.relname::text = any($1) \
                     and parent.relnamespace = current_schema()::text::regnamespace";
        let rows = sqlx::query(names).bind(&TABLES[..]).fetch_all(&self.pool).await;
        Ok(rows.map_err(sqlx_error)?.iter().map(|row| row.get(0)).collect())
    }

    /// Each partition in a transaction of its own: making one locks its default partition against
    /// readers, and who holds two such locks can dead-lock with a reader of both tables.
    async fn create(&self, statement: String) -> Result<(), sqlx::Error> {
        let mut transaction = begin_on(&self.pool).await?;
        sqlx::query("select pg_advisory_xact_lock($1)")
            .bind(LOCK)
            .execute(&mut *transaction)
            .await?;
        sqlx::query(AssertSqlSafe(statement)).execute(&mut *transaction).await?;
        transaction.commit().await
    }
}

fn partition_name(table: &str, day: i64) -> String {
    format!("{table}_d{day}")
}

/// Only constants and numbers of ours go into the text.
fn create_partition(name: &str, table: &str, day: i64) -> String {
    let (from, to) = (first_id(day), first_id(day + 1));
    format!(
        "create table if not exists {name} partition of {table} for values from ('{from}') to ('{to}')"
    )
}

/// Partitions of a table whose rows are all older than this. Days count from the epoch, and stand in
/// the names.
pub(crate) const OLD_PARTITIONS: &str = "select c.relname::text from pg_inherits i \
     join pg_class c on c.oid = i.inhrelid \
     join pg_class parent on parent.oid = i.inhparent \
     where parent.relname::text = $1 \
     and parent.relnamespace = current_schema()::text::regnamespace \
     and c.relname::text ~ ('^' || $1 || '_d[0-9]+$') \
     and substring(c.relname::text from '[0-9]+$')::bigint < $2";

/// The day of a time, as partitions are named after it.
pub(crate) const fn day_of(at: Timestamp) -> i64 {
    at.micros().div_euclid(DAY_US)
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
