//! A Postgres database of its own for every test, from a migrated template.
//!
//! ```text
//!  one cluster per run ──► one template per key ──► one database per test
//!  (xtask's, yours, or     (migrated once, under    (cloned in some 30 ms,
//!   this process' own)      an advisory lock)        dropped at the end)
//! ```
//!
//! Tests run in parallel, in many processes, and never see each other's rows.

mod server;
mod template;

use std::time::Duration;

use anyhow::Context;
use sqlx::{Connection, PgConnection};
use turnbuckle_pg_harness::skip;
use uuid::Uuid;

/// Dropping takes some 20 ms; a server that is gone must not hold a test for longer than this.
const DROP_DEADLINE: Duration = Duration::from_secs(5);

/// A database that belongs to one test and is dropped with this value.
///
/// ```no_run
/// # async fn example() -> anyhow::Result<()> {
/// use turnbuckle_testkit::postgres::TestDatabase;
///
/// let migrate = async |url: &str| { /* connect to `url`, migrate, disconnect */ Ok(()) };
/// let Some(database) = TestDatabase::create("schema 3f9a", migrate).await? else {
///     return Ok(()); // no Postgres here: said on standard error and counted by xtask
/// };
/// println!("{}", database.url());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TestDatabase {
    name: String,
    url: String,
    maintenance_url: String,
}

impl TestDatabase {
    /// Creates one, or says on standard error that the calling test is skipped and returns `None`
    /// when no Postgres is to be had.
    ///
    /// `migrate` brings an empty database to the wanted schema; it runs once per `template_key`
    /// and server, whichever process comes first. The key must name the schema (a list or hash of
    /// its migrations), because a server that outlives the run keeps its templates. `migrate`
    /// must close its connections.
    ///
    /// # Errors
    /// When the server cannot be reached or `migrate` fails.
    pub async fn create(
        template_key: &str,
        migrate: impl AsyncFnOnce(&str) -> anyhow::Result<()>,
    ) -> anyhow::Result<Option<Self>> {
        let Some(maintenance_url) = server::maintenance_url()? else {
            skip::report("no Postgres", turnbuckle_pg_harness::HOW_TO_GET_POSTGRES);
            return Ok(None);
        };
        let mut connection = connect(&maintenance_url).await?;
        let template = template::ensure(&mut connection, &maintenance_url, template_key, migrate)
            .await
            .context("cannot prepare the template database")?;
        let name = format!("turnbuckle_test_{}", Uuid::now_v7().simple());
        execute(&mut connection, format!("CREATE DATABASE {name} TEMPLATE {template}")).await?;
        connection.close().await?;
        let url = with_database(&maintenance_url, &name)?;
        Ok(Some(Self { name, url, maintenance_url }))
    }

    /// Where to connect.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs a statement behind the back of the program under test, to play another program.
    ///
    /// # Errors
    /// When the server does not answer or refuses it.
    pub async fn execute(&self, statement: &'static str) -> anyhow::Result<()> {
        let mut connection = connect(&self.url).await?;
        execute(&mut connection, statement.to_owned()).await?;
        Ok(connection.close().await?)
    }
}

/// Every column of the program's tables, and how to look for bytes in it.
const COLUMNS: &str = "select table_name, column_name, data_type = 'bytea' \
    from information_schema.columns where table_schema = 'public' order by 1, 2";

impl TestDatabase {
    /// Columns that hold this text, as `table.column`; bytes are searched as they are.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn columns_with(&self, text: &str) -> anyhow::Result<Vec<String>> {
        let mut connection = connect(&self.url).await?;
        let columns: Vec<(String, String, bool)> =
            sqlx::query_as(COLUMNS).fetch_all(&mut connection).await?;
        let mut found = Vec::new();
        for (table, column, is_bytes) in columns {
            let value = match is_bytes {
                true => format!("{column:?}"),
                false => format!("convert_to({column:?}::text, 'UTF8')"),
            };
            let look =
                format!("select exists (select from {table:?} where position($1 in {value}) > 0)");
            let look = sqlx::query_scalar(sqlx::AssertSqlSafe(look)).bind(text.as_bytes());
            if look.fetch_one(&mut connection).await? {
                found.push(format!("{table}.{column}"));
            }
        }
        connection.close().await?;
        Ok(found)
    }
}

impl Drop for TestDatabase {
    /// Waits until the database is gone, on another thread and not for long: a test process may
    /// end right after this, and nobody else would clean up.
    #[expect(clippy::print_stderr, reason = "the test harness captures standard error per test")]
    fn drop(&mut self) {
        let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let url = self.maintenance_url.clone();
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let work = async {
                    let mut connection = connect(&url).await?;
                    execute(&mut connection, statement).await
                };
                tokio::time::timeout(DROP_DEADLINE, work).await?
            })
        });
        let result = dropping.join().unwrap_or_else(|_| Err(anyhow::anyhow!("panicked")));
        if let Err(error) = result {
            eprintln!("test database {} was not dropped: {error:#}", self.name);
        }
    }
}

async fn connect(url: &str) -> anyhow::Result<PgConnection> {
    PgConnection::connect(url).await.context("cannot connect to the test server")
}

/// Runs a statement made of names that this module has chosen: identifiers cannot be bound.
async fn execute(connection: &mut PgConnection, statement: String) -> anyhow::Result<()> {
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(connection).await?;
    Ok(())
}

/// `url` with another database; user, address and parameters stay.
fn with_database(url: &str, database: &str) -> anyhow::Result<String> {
    let (base, parameters) = match url.split_once('?') {
        Some((base, parameters)) => (base, format!("?{parameters}")),
        None => (url, String::new()),
    };
    let (scheme, rest) = base.split_once("://").context("the server's URL has no scheme")?;
    let authority = rest.split('/').next().unwrap_or(rest);
    Ok(format!("{scheme}://{authority}/{database}{parameters}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "testkit's own table";

    async fn migrate(url: &str) -> anyhow::Result<()> {
        let mut connection = connect(url).await?;
        execute(&mut connection, "CREATE TABLE note (text text NOT NULL)".into()).await?;
        connection.close().await?;
        Ok(())
    }

    async fn count(url: &str) -> i64 {
        let mut connection = connect(url).await.unwrap();
        sqlx::query_scalar("SELECT count(*) FROM note").fetch_one(&mut connection).await.unwrap()
    }

    #[test]
    fn only_the_database_changes_in_a_url() {
        let url = "postgres://me:pw@h:5433/postgres?sslmode=disable";
        let expected = "postgres://me:pw@h:5433/mine?sslmode=disable";
        assert_eq!(with_database(url, "mine").unwrap(), expected);
        assert_eq!(with_database("postgres://h", "mine").unwrap(), "postgres://h/mine");
        assert!(with_database("h/postgres", "mine").is_err());
    }

    #[tokio::test]
    async fn two_tests_share_a_schema_and_no_rows() {
        let (first, second) =
            tokio::join!(TestDatabase::create(KEY, migrate), TestDatabase::create(KEY, migrate));
        let (Some(first), Some(second)) = (first.unwrap(), second.unwrap()) else {
            return;
        };
        let mut connection = connect(first.url()).await.unwrap();
        execute(&mut connection, "INSERT INTO note VALUES ('mine')".into()).await.unwrap();
        assert_eq!(count(first.url()).await, 1);
        assert_eq!(count(second.url()).await, 0);
    }

    #[tokio::test]
    async fn a_database_is_gone_after_its_test_even_with_a_connection_open() {
        let Some(database) = TestDatabase::create(KEY, migrate).await.unwrap() else {
            return;
        };
        let open = connect(database.url()).await.unwrap();
        let url = database.url().to_owned();
        drop(database);
        assert!(connect(&url).await.is_err());
        drop(open);
    }

    #[tokio::test]
    async fn a_failed_migration_is_reported_and_tried_again_by_the_next_test() {
        let key = format!("fails once {}", Uuid::now_v7());
        let failed = TestDatabase::create(&key, async |_: &str| anyhow::bail!("bad SQL")).await;
        let Err(error) = failed else { return };
        assert!(format!("{error:#}").contains("bad SQL"), "{error:#}");
        let second = TestDatabase::create(&key, migrate).await.unwrap().unwrap();
        assert_eq!(count(second.url()).await, 0);
    }
}
