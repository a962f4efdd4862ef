//! Configuration on both backends, through sea-orm.
//!
//! ```text
//!  ConfigStore ─► Write: begin ─ counter + 1, its row locked ─ checks ─ rows ─ audit entry ─ commit
//!  ConfigSource ─► snapshot: counter ─ rows changed after a revision
//! ```
//! One port method is one transaction. Writers take turns on the counter's row, so that a revision
//! that is visible means that every lower one is visible too: who follows by revision misses nothing.

mod cell;
mod entity;
mod record;
mod rings;
mod rules;
mod sealed;
mod source;
mod store;
mod table;
mod usage;
mod write;

use sea_orm::DatabaseConnection;

/// Configuration in Postgres or SQLite.
///
/// The pool needs a busy timeout and foreign keys on SQLite; on Postgres nothing in particular.
#[derive(Debug, Clone)]
pub struct ConfigDb {
    db: DatabaseConnection,
}

impl ConfigDb {
    /// Uses a database whose schema is current.
    #[must_use]
    pub const fn new(db: DatabaseConnection) -> Self {
        Self { db }
    }
}
