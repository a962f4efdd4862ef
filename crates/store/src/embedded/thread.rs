//! The one writer and the one reader thread of the embedded store.
//!
//! SQLite has one writer anyway. Giving it a thread of its own lets everything that waits share a
//! commit: the thread takes what has queued up while the last commit was syncing, runs it in one
//! transaction, and answers all of it at once. The busier the store, the cheaper an event.

use super::error::sqlite_error;
use rusqlite::{Connection, OpenFlags};
use std::{path::Path, thread, time::Duration};
use tokio::sync::{mpsc, oneshot};
use turnbuckle_domain::StoreError;

/// Jobs that may wait. Callers past it wait for room, which is the back-pressure.
const QUEUE: usize = 1_024;
/// Jobs of one transaction: bounds how long the first of them waits for the last.
const GROUP_MAX: usize = 64;
/// Configuration is written through another connection; both wait for each other this long.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Page cache of the writer, in KiB. Enough for the pages that are written again and again; the rest
/// is in the system's cache. A larger one costs: when a tree was rebalanced, a commit walks the whole
/// hash table of the cache.
const CACHE_KIB: i64 = 16 * 1024;
/// Pages in the write-ahead log before it is folded back: 32 MiB, so that folding is rare.
const CHECKPOINT_PAGES: i64 = 8_192;

trait Job: Send {
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()>;
    fn finish(self: Box<Self>, commit: Result<(), StoreError>);
}

struct TypedJob<T, F> {
    work: F,
    result: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Job for TypedJob<T, F>
where
    T: Send,
    F: FnMut(&Connection) -> rusqlite::Result<T> + Send,
{
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.result = Some((self.work)(connection)?);
        Ok(())
    }

    fn finish(self: Box<Self>, commit: Result<(), StoreError>) {
        let Self { result, reply, .. } = *self;
        // The caller may have gone; what it asked for is done all the same.
        drop(reply.send(commit.and_then(|()| result.ok_or_else(stopped))));
    }
}

/// A handle to a thread that owns a connection.
#[derive(Clone)]
pub(crate) struct Worker {
    jobs: mpsc::Sender<Box<dyn Job>>,
}

impl Worker {
    /// Starts the writer.
    pub(crate) fn writer(path: &Path) -> Result<Self, StoreError> {
        let connection = Connection::open(path).map_err(sqlite_error)?;
        configure(&connection).map_err(sqlite_error)?;
        Self::start("turnbuckle-writer", connection, run_group)
    }

    /// Starts the reader. It sees what is committed, and never waits for the writer.
    pub(crate) fn reader(path: &Path) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(sqlite_error)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(sqlite_error)?;
        Self::start("turnbuckle-reader", connection, run_each)
    }

    fn start(
        name: &str,
        connection: Connection,
        run: fn(&Connection, Vec<Box<dyn Job>>),
    ) -> Result<Self, StoreError> {
        let (jobs, mut queue) = mpsc::channel::<Box<dyn Job>>(QUEUE);
        let serve = move || {
            while let Some(first) = queue.blocking_recv() {
                let mut group = vec![first];
                while group.len() < GROUP_MAX
                    && let Ok(job) = queue.try_recv()
                {
                    group.push(job);
                }
                run(&connection, group);
            }
        };
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(serve)
            .map_err(|error| StoreError::Internal(error.into()))?;
        Ok(Self { jobs })
    }

    /// Runs `work` on the thread and waits for its commit. `work` may run twice, when another job
    /// of its group failed.
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(TypedJob { work, result: None, reply });
        self.jobs.send(job).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    // FULL syncs the log at every commit: what is acknowledged survives a power cut (I1).
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// One transaction for all; when a job fails, each gets one of its own, so that only it fails (I13).
fn run_group(connection: &Connection, mut group: Vec<Box<dyn Job>>) {
    match commit_together(connection, &mut group) {
        Ok(()) => group.into_iter().for_each(|job| job.finish(Ok(()))),
        Err(error) => match sqlite_error(error) {
            StoreError::Internal(_) if group.len() > 1 => {
                for mut job in group {
                    let outcome = commit_together(connection, std::slice::from_mut(&mut job));
                    job.finish(outcome.map_err(sqlite_error));
                }
            }
            // What passes by itself would fail each of them in turn, and slowly.
            error => fail(group, error),
        },
    }
}

fn fail(group: Vec<Box<dyn Job>>, error: StoreError) {
    let again = || StoreError::Unavailable("the store failed a whole group".into());
    let mut error = error;
    for job in group {
        job.finish(Err(std::mem::replace(&mut error, again())));
    }
}

fn commit_together(connection: &Connection, group: &mut [Box<dyn Job>]) -> rusqlite::Result<()> {
    connection.execute_batch("begin immediate")?;
    let outcome = group
        .iter_mut()
        .try_for_each(|job| job.run(connection))
        .and_then(|()| connection.execute_batch("commit"));
    if outcome.is_err() && !connection.is_autocommit() {
        connection.execute_batch("rollback")?;
    }
    outcome
}

fn run_each(connection: &Connection, group: Vec<Box<dyn Job>>) {
    for mut job in group {
        let outcome = job.run(connection).map_err(sqlite_error);
        job.finish(outcome);
    }
}

fn stopped() -> StoreError {
    StoreError::Unavailable("the embedded store is closed".into())
}
