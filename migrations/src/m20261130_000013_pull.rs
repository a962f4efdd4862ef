//! Pull endpoints, and leases of their deliveries.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DbBackend;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let sql = match manager.get_database_backend() {
            DbBackend::Postgres => include_str!("sql/pull_postgres.sql"),
            _ => include_str!("sql/pull_sqlite.sql"),
        };
        manager.get_connection().execute_unprepared(sql).await.map(drop)
    }

    /// Leaves the wider check of attempts: what it lets in is not to be thrown away.
    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let connection = manager.get_connection();
        for statement in [
            "drop index delivery_pulled",
            "alter table delivery drop column leased_at_us",
            "alter table delivery drop column lease_token",
            "alter table endpoint drop column pull_ordered",
            "alter table endpoint drop column pull_max_outstanding",
            "alter table endpoint drop column pull_lease_us",
        ] {
            connection.execute_unprepared(statement).await?;
        }
        Ok(())
    }
}
