//! The record of configuration changes.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DbBackend;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let sql = match manager.get_database_backend() {
            DbBackend::Postgres => include_str!("sql/audit_postgres.sql"),
            _ => include_str!("sql/audit_sqlite.sql"),
        };
        manager.get_connection().execute_unprepared(sql).await.map(drop)
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let connection = manager.get_connection();
        connection.execute_unprepared("drop table audit_head").await?;
        // With its triggers.
        connection.execute_unprepared("drop table audit_event").await?;
        if manager.get_database_backend() == DbBackend::Postgres {
            connection.execute_unprepared("drop function audit_event_is_append_only()").await?;
        }
        Ok(())
    }
}
