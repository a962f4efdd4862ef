//! Health of endpoints, and operational events that wait to be published.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DbBackend;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let sql = match manager.get_database_backend() {
            DbBackend::Postgres => include_str!("sql/health_postgres.sql"),
            _ => include_str!("sql/health_sqlite.sql"),
        };
        manager.get_connection().execute_unprepared(sql).await.map(drop)
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for undo in ["drop table notice", "drop table endpoint_health"] {
            manager.get_connection().execute_unprepared(undo).await?;
        }
        Ok(())
    }
}
