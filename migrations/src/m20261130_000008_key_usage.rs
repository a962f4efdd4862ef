//! How keys are used, pauses of rotations, and the state of the key-encryption keys.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DbBackend;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

/// What takes it back, in this order: a column goes before those that its check names.
const DOWN: [&str; 8] = [
    "drop table keyring_rewrap",
    "drop table keyring_canary",
    "drop table key_answers",
    "drop table key_usage",
    "alter table signing_key drop column held",
    "alter table key_ring drop column paused_at_us",
    "alter table key_ring drop column resumed_at_us",
    "alter table key_ring drop column pause_reason",
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let sql = match manager.get_database_backend() {
            DbBackend::Postgres => include_str!("sql/key_usage_postgres.sql"),
            _ => include_str!("sql/key_usage_sqlite.sql"),
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
