//! The migrated database that test databases are copies of.

use anyhow::Context;
use sha2::{Digest, Sha256};
use sqlx::PgConnection;

use super::{execute, with_database};

/// Makes sure that the template for `key` exists and returns its name.
///
/// Processes that come at the same time wait for the first one, on a lock of the server: it is
/// released even when its holder is killed, and the unfinished database is then built again.
pub(crate) async fn ensure(
    connection: &mut PgConnection,
    maintenance_url: &str,
    key: &str,
    migrate: impl AsyncFnOnce(&str) -> anyhow::Result<()>,
) -> anyhow::Result<String> {
    let digest = Sha256::digest(key.as_bytes());
    let name = template_name(&digest);
    if exists(connection, &name).await? {
        return Ok(name);
    }
    let lock = lock_number(&digest);
    sqlx::query("SELECT pg_advisory_lock($1)").bind(lock).execute(&mut *connection).await?;
    let built = build(connection, maintenance_url, &name, migrate).await;
    sqlx::query("SELECT pg_advisory_unlock($1)").bind(lock).execute(&mut *connection).await?;
    built.map(|()| name)
}

/// The name appears only when the template is complete: it is built under another one.
async fn build(
    connection: &mut PgConnection,
    maintenance_url: &str,
    name: &str,
    migrate: impl AsyncFnOnce(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if exists(connection, name).await? {
        return Ok(());
    }
    let unfinished = format!("{name}_unfinished");
    execute(connection, format!("DROP DATABASE IF EXISTS {unfinished} WITH (FORCE)")).await?;
    execute(connection, format!("CREATE DATABASE {unfinished} TEMPLATE template0")).await?;
    migrate(&with_database(maintenance_url, &unfinished)?).await.context("migration failed")?;
    // A pool that the migration has closed may still be saying good-bye, and a database in use
    // can be neither renamed nor copied. The wait is part of the function.
    sqlx::query("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1")
        .bind(&unfinished)
        .execute(&mut *connection)
        .await?;
    execute(connection, format!("ALTER DATABASE {unfinished} ALLOW_CONNECTIONS false")).await?;
    execute(connection, format!("ALTER DATABASE {unfinished} RENAME TO {name}")).await
}

async fn exists(connection: &mut PgConnection, name: &str) -> anyhow::Result<bool> {
    Ok(sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)")
        .bind(name)
        .fetch_one(connection)
        .await?)
}

/// Long enough that two keys of one run never meet, short enough for a Postgres name.
fn template_name(digest: &[u8]) -> String {
    format!("turnbuckle_template_{}", data_encoding::HEXLOWER.encode(&digest[..8]))
}

fn lock_number(digest: &[u8]) -> i64 {
    digest.iter().take(8).fold(0, |number, byte| (number << 8) | i64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_key_has_another_template_and_another_lock() {
        let [one, two] = ["schema 1", "schema 2"].map(|key| Sha256::digest(key.as_bytes()));
        assert_ne!(template_name(&one), template_name(&two));
        assert_ne!(lock_number(&one), lock_number(&two));
    }
}
