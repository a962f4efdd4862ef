//! Ids of requests, and deleted resources that can be brought back until they are purged.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DbBackend;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

/// Resources that can be brought back.
const KEPT: [&str; 3] = ["endpoint", "subscription", "retry_policy"];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let sql = match manager.get_database_backend() {
            DbBackend::Postgres => include_str!("sql/request_ids_postgres.sql"),
            _ => include_str!("sql/request_ids_sqlite.sql"),
        };
        manager.get_connection().execute_unprepared(sql).await.map(drop)
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let connection = manager.get_connection();
        for table in KEPT {
            connection.execute_unprepared(&format!("drop index {table}_purgeable")).await?;
            let drop = format!("alter table {table} drop column purged_at_us");
            connection.execute_unprepared(&drop).await?;
        }
        connection.execute_unprepared("drop table config_request").await.map(drop)
    }
}
