//! Schema migrations for both backends.
//!
//! Every migration follows the expand and contract rule of this crate's README: binaries of the
//! release before and after it run on the schema it makes.

mod m20261130_000001_config;
mod m20261130_000002_events;
mod m20261130_000003_audit;
mod m20261130_000004_event_type_versions;
mod m20261130_000005_api_tokens;
mod m20261130_000006_nodes;
mod m20261130_000007_sources;
mod m20261130_000008_key_usage;
mod m20261130_000009_request_ids;
mod m20261130_000010_receipts;
mod m20261130_000011_source_states;
mod m20261130_000012_subject_order;
mod m20261130_000013_pull;
mod m20261130_000015_windows;
mod m20261130_000016_policy_versions;
mod m20261130_000023_replays;
mod m20261130_000025_health;
mod run;
mod status;

use sea_orm_migration::prelude::*;

pub use run::{MigrateError, migrate};
pub use status::{SchemaStatus, expected_version, status};

/// All migrations, oldest first.
#[derive(Debug, Clone, Copy)]
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m20261130_000001_config::Migration),
            Box::new(m20261130_000002_events::Migration),
            Box::new(m20261130_000003_audit::Migration),
            Box::new(m20261130_000004_event_type_versions::Migration),
            Box::new(m20261130_000005_api_tokens::Migration),
            Box::new(m20261130_000006_nodes::Migration),
            Box::new(m20261130_000007_sources::Migration),
            Box::new(m20261130_000008_key_usage::Migration),
            Box::new(m20261130_000009_request_ids::Migration),
            Box::new(m20261130_000010_receipts::Migration),
            Box::new(m20261130_000011_source_states::Migration),
            Box::new(m20261130_000012_subject_order::Migration),
            Box::new(m20261130_000013_pull::Migration),
            Box::new(m20261130_000015_windows::Migration),
            Box::new(m20261130_000016_policy_versions::Migration),
            Box::new(m20261130_000023_replays::Migration),
            Box::new(m20261130_000025_health::Migration),
        ]
    }
}
