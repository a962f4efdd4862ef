//! Windows of dedup, receipts by day, and events as large as an ingress takes.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::{DbBackend, Statement};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

/// The bound of a payload, before and after. SQLite changes no constraint, and copying every event would
/// stop a large store for minutes; a wider bound makes no stored row wrong, so its text is changed, as
/// the documentation of SQLite describes.
const WIDEN: &str = "update sqlite_schema set sql = \
    replace(sql, 'length(data) <= 262144', 'length(data) <= 4194304') \
    where type = 'table' and name = 'event'";
const NARROW: &str = "update sqlite_schema set sql = \
    replace(sql, 'length(data) <= 4194304', 'length(data) <= 262144') \
    where type = 'table' and name = 'event'";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let connection = manager.get_connection();
        match manager.get_database_backend() {
            DbBackend::Postgres => {
                connection.execute_unprepared(include_str!("sql/windows_postgres.sql")).await?;
            }
            _ => {
                rewrite(connection, WIDEN, "length(data) <= 4194304").await?;
                // Its statements also tell every connection that the schema changed.
                connection.execute_unprepared(include_str!("sql/windows_sqlite.sql")).await?;
            }
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let connection = manager.get_connection();
        match manager.get_database_backend() {
            DbBackend::Postgres => {
                let sql = include_str!("sql/windows_postgres_down.sql");
                connection.execute_unprepared(sql).await?;
            }
            _ => {
                rewrite(connection, NARROW, "length(data) <= 262144").await?;
                let sql = include_str!("sql/windows_sqlite_down.sql");
                connection.execute_unprepared(sql).await?;
            }
        }
        Ok(())
    }
}

/// Changes the text of the table; afterwards `bound` stands in it.
async fn rewrite(
    connection: &SchemaManagerConnection<'_>,
    sql: &str,
    bound: &str,
) -> Result<(), DbErr> {
    // In one go: a pragma holds for its connection, and behind this may be several.
    let whole = format!("pragma writable_schema = on; {sql}; pragma writable_schema = reset");
    connection.execute_unprepared(&whole).await?;
    let bound =
        format!("select count(*) from sqlite_schema where name = 'event' and sql like '%{bound}%'");
    let count = Statement::from_string(DbBackend::Sqlite, bound);
    let found: i64 = match connection.query_one_raw(count).await? {
        Some(row) => row.try_get_by_index(0)?,
        None => 0,
    };
    match found {
        1 => Ok(()),
        other => Err(DbErr::Migration(format!("{other} tables of events instead of one"))),
    }
}
