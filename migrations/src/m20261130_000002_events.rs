//! The event log, the delivery queue and their history.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DbBackend;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

const TABLES: [&str; 8] = [
    "attempt",
    "delivery_done",
    "delivery",
    "event_anomaly",
    "event_dedup",
    "event",
    "shard_lease",
    "worker",
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let sql = match manager.get_database_backend() {
            DbBackend::Postgres => include_str!("sql/events_postgres.sql"),
            _ => include_str!("sql/events_sqlite.sql"),
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
