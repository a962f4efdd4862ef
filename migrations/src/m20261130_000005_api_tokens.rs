//! API tokens, and room in the audit record for denied calls and for what belongs to no tenant.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DbBackend;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let sql = match manager.get_database_backend() {
            DbBackend::Postgres => include_str!("sql/api_tokens_postgres.sql"),
            _ => include_str!("sql/api_tokens_sqlite.sql"),
        };
        manager.get_connection().execute_unprepared(sql).await.map(drop)
    }

    /// The audit record keeps its wider rules: entries that need them may be there.
    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.get_connection().execute_unprepared("drop table api_token").await.map(drop)
    }
}
