//! The embedded backend: SQLite in WAL mode with full synchronisation, for one process.

mod append;
mod error;
mod order;
mod pull;
mod queue;
mod replay;
mod statement;
mod thread;

use error::io_error;
use std::{
    fs::{DirBuilder, File, TryLockError},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};
pub(crate) use thread::BUSY_TIMEOUT;
use thread::Worker;
use turnbuckle_domain::{Clock, StoreError};

/// Name of the database file inside the data directory.
pub(crate) const DATABASE_FILE: &str = "turnbuckle.db";
const LOCK_FILE: &str = "turnbuckle.lock";

/// Holds the data directory for this process. A second process is told so instead of sharing lanes.
pub(crate) struct DirectoryLock {
    _file: File,
    database: PathBuf,
}

impl DirectoryLock {
    /// Creates the directory when needed and takes it.
    pub(crate) fn take(directory: &Path) -> Result<Self, StoreError> {
        // Payloads and endpoint headers lie in it: nobody but its owner looks in.
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(io_error)?;
        let file = File::create(directory.join(LOCK_FILE)).map_err(io_error)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file, database: directory.join(DATABASE_FILE) }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Internal(
                format!(
                    "another process uses this data directory, {}: stop it, or choose another with --data-dir",
                    directory.display()
                )
                .into(),
            )),
            Err(TryLockError::Error(error)) => Err(io_error(error)),
        }
    }

    pub(crate) fn database(&self) -> &Path {
        &self.database
    }
}

/// The event log and delivery queue on SQLite.
#[derive(Clone)]
pub(crate) struct EmbeddedQueue {
    writer: Worker,
    reader: Worker,
    clock: Arc<dyn Clock>,
    _lock: Arc<DirectoryLock>,
}

impl EmbeddedQueue {
    /// Opens a migrated database whose directory is held.
    pub(crate) async fn open(
        lock: DirectoryLock,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let writer = Worker::writer(lock.database())?;
        let reader = Worker::reader(lock.database())?;
        let queue = Self { writer, reader, clock, _lock: Arc::new(lock) };
        queue.drop_old_leases().await?;
        Ok(queue)
    }

    /// Whether the writer works.
    pub(crate) async fn ping(&self) -> Result<(), StoreError> {
        self.writer.run(|connection| connection.execute_batch("select 1")).await
    }

    /// The directory is ours alone, so whoever holds a lease in it is dead: no need to wait for expiry.
    /// Consumers lost their streams with the process; that is no attempt of theirs.
    async fn drop_old_leases(&self) -> Result<(), StoreError> {
        let now = self.clock.now().micros();
        let work = move |connection: &rusqlite::Connection| {
            connection.execute_batch(
                "delete from worker; update shard_lease set worker_id = null, expires_at_us = 0; \
                 update replay set worker_id = null, lease_until_us = 0 where state = 'running'",
            )?;
            connection.execute(
                "update delivery set due_at_us = min(due_at_us, ?1), leased_at_us = null \
                 where lease_token > 0 and leased_at_us is not null",
                [now],
            )?;
            Ok(())
        };
        self.writer.run(work).await
    }
}
