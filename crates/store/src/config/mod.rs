//! Configuration on both backends, through sea-orm.
//!
//! ```text
//!  ConfigStore ─► Write: begin ─ counter + 1, its row locked ─ checks ─ rows ─ audit entry ─ commit
//!  ConfigSource ─► snapshot: counter ─ rows changed after a revision
//! ```
//! One port method is one transaction. Writers take turns on the counter's row, so that a revision
//! that is visible means that every lower one is visible too: who follows by revision misses nothing.

mod api_tokens;
mod aside;
mod cell;
mod denials;
mod entity;
pub(crate) mod health;
mod keeps;
mod nodes;
mod policy_versions;
mod record;
mod request;
mod revoked;
mod ring_tables;
mod rings;
mod rules;
mod sealed;
mod source;
mod source_usage;
mod sources;
mod store;
mod table;
mod tombstone;
mod usage;
mod versions;
mod write;

use sea_orm::DatabaseConnection;
use turnbuckle_domain::Quotas;

/// Configuration in Postgres or SQLite.
///
/// The pool needs a busy timeout and foreign keys on SQLite; on Postgres nothing in particular.
#[derive(Debug, Clone)]
pub struct ConfigDb {
    db: DatabaseConnection,
    quotas: Quotas,
    told: aside::Told,
}

impl ConfigDb {
    /// Uses a database whose schema is current.
    #[must_use]
    pub fn new(db: DatabaseConnection) -> Self {
        Self { db, quotas: Quotas::DEFAULT, told: aside::Told::default() }
    }

    /// Lets every tenant have this much.
    #[must_use]
    pub fn with_quotas(self, quotas: Quotas) -> Self {
        Self { quotas, ..self }
    }
}
