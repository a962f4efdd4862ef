//! Windows of dedup, receipts by day, and events as large as an ingress takes.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DbBackend;

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
                rewrite(connection, WIDEN).await?;
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
                rewrite(connection, NARROW).await?;
                let sql = include_str!("sql/windows_sqlite_down.sql");
                connection.execute_unprepared(sql).await?;
            }
        }
        Ok(())
    }
}

async fn rewrite(connection: &SchemaManagerConnection<'_>, sql: &str) -> Result<(), DbErr> {
    connection.execute_unprepared("pragma writable_schema = on").await?;
    let changed = connection.execute_unprepared(sql).await;
    connection.execute_unprepared("pragma writable_schema = reset").await?;
    match changed?.rows_affected() {
        1 => Ok(()),
        other => Err(DbErr::Migration(format!("{other} tables of events instead of one"))),
    }
}
