//! Configuration: tenants and what they own.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DbBackend;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

/// Referring tables first.
const TABLES: [&str; 8] = [
    "subscription",
    "signing_key",
    "key_ring",
    "endpoint",
    "retry_policy",
    "event_type",
    "tenant",
    "config_revision",
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let sql = match manager.get_database_backend() {
            DbBackend::Postgres => include_str!("sql/config_postgres.sql"),
            _ => include_str!("sql/config_sqlite.sql"),
        };
        manager.get_connection().execute_unprepared(sql).await.map(drop)
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in TABLES {
            let drop = format!("drop table {table}");
            manager.get_connection().execute_unprepared(&drop).await?;
        }
        Ok(())
    }
}
