//! Versions of event types, and channels of subscriptions and events.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DbBackend;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

/// What was added to tables that were there.
const COLUMNS: [(&str, &str); 4] = [
    ("event", "channels"),
    ("subscription", "channels"),
    ("event_type", "unknown_version"),
    ("event_type", "compatibility"),
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let sql = match manager.get_database_backend() {
            DbBackend::Postgres => include_str!("sql/event_type_versions_postgres.sql"),
            _ => include_str!("sql/event_type_versions_sqlite.sql"),
        };
        manager.get_connection().execute_unprepared(sql).await.map(drop)
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let connection = manager.get_connection();
        connection.execute_unprepared("drop table event_type_version").await?;
        for (table, column) in COLUMNS {
            let drop = format!("alter table {table} drop column {column}");
            connection.execute_unprepared(&drop).await?;
        }
        Ok(())
    }
}
