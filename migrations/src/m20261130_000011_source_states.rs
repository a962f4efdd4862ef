//! States of sources, and how their keys are used.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DbBackend;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

/// What takes it back.
const DOWN: [&str; 4] = [
    "drop table source_key_usage",
    "drop index source_purgeable",
    "alter table source drop column purged_at_us",
    "alter table source drop column disable_reason",
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let sql = match manager.get_database_backend() {
            DbBackend::Postgres => include_str!("sql/source_states_postgres.sql"),
            _ => include_str!("sql/source_states_sqlite.sql"),
        };
        manager.get_connection().execute_unprepared(sql).await.map(drop)
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for statement in DOWN {
            manager.get_connection().execute_unprepared(statement).await?;
        }
        Ok(())
    }
}
