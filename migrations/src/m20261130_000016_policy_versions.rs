//! Former versions of retry policies, and an index of revoked keys whose material is kept.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DbBackend;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let sql = match manager.get_database_backend() {
            DbBackend::Postgres => include_str!("sql/policy_versions_postgres.sql"),
            _ => include_str!("sql/policy_versions_sqlite.sql"),
        };
        manager.get_connection().execute_unprepared(sql).await.map(drop)
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for undo in ["drop index verification_key_revoked", "drop table retry_policy_version"] {
            manager.get_connection().execute_unprepared(undo).await?;
        }
        Ok(())
    }
}
