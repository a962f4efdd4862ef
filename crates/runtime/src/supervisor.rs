//! Owns every long-lived task: nothing ends unseen, and everything stops together.
//!
//! ```text
//!  signal ─┐
//!          ├─► shutdown token ─► every task winds down ─► grace time ─► the rest is cut off
//!  critical task ended ─┘
//! ```

mod signals;
#[cfg(test)]
mod tests;

pub use signals::Signals;

use crate::text::chain;
use metrics::counter;
use std::{
    error::Error,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::task::{AbortHandle, JoinError};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// An error of any kind, as tasks return it.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// What the end of a task means while the process is not stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExit {
    /// The process cannot go on without it: everything stops.
    StopProcess,
    /// It is logged and counted, and the rest goes on.
    Log,
}

/// Why the process stopped other than by being asked to.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// A critical task ended, though nobody asked it to.
    #[error("task {task} ended early")]
    Ended {
        /// The task.
        task: &'static str,
    },
    /// A critical task failed.
    #[error("task {task} failed")]
    Failed {
        /// The task.
        task: &'static str,
        /// Its error.
        #[source]
        cause: BoxError,
    },
    /// A critical task panicked. The panic hook has told the rest.
    #[error("task {task} panicked")]
    Panicked {
        /// The task.
        task: &'static str,
    },
    /// Some tasks did not wind down in time and were cut off.
    #[error("not stopped within {} s: {}", .grace.as_secs_f64(), .tasks.join(", "))]
    GraceExceeded {
        /// The time they had.
        grace: Duration,
        /// The tasks.
        tasks: Vec<&'static str>,
    },
}

/// How a task ended.
enum Exit {
    Done,
    Failed(BoxError),
    Panicked,
    /// Cut off after the grace time.
    Aborted,
}

impl Exit {
    fn of(result: Result<Result<(), BoxError>, JoinError>) -> Self {
        match result {
            Ok(Ok(())) => Self::Done,
            Ok(Err(cause)) => Self::Failed(cause),
            Err(error) if error.is_panic() => Self::Panicked,
            Err(_) => Self::Aborted,
        }
    }

    const fn label(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed(_) => "failed",
            Self::Panicked => "panicked",
            Self::Aborted => "aborted",
        }
    }
}

/// Starts and watches the tasks of the process. Clones share everything.
#[derive(Clone, Default)]
pub struct Supervisor(Arc<Shared>);

#[derive(Default)]
struct Shared {
    shutdown: CancellationToken,
    /// The watchers of supervised tasks.
    watchers: TaskTracker,
    /// Short tasks that planes start themselves.
    short: TaskTracker,
    running: Mutex<Vec<(&'static str, AbortHandle)>>,
    /// The first failure: those after it are mostly its consequences.
    failure: Mutex<Option<Stopped>>,
}

impl Supervisor {
    /// No tasks yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The token that is cancelled when the process shall stop. Cancelling it stops the process.
    #[must_use]
    pub fn shutdown(&self) -> CancellationToken {
        self.0.shutdown.clone()
    }

    /// Where planes start short tasks, such as one attempt. They are waited for after the
    /// supervised tasks; a panic in one of them is its starter's to see.
    #[must_use]
    pub fn short_tasks(&self) -> TaskTracker {
        self.0.short.clone()
    }

    /// Starts a task and watches it. It must end soon after [`Supervisor::shutdown`] is cancelled.
    pub fn spawn<F, E>(&self, name: &'static str, on_exit: OnExit, task: F)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        // A task of its own, so that the watcher outlives a panic.
        let handle = tokio::spawn(async move { task.await.map_err(Into::into) });
        self.0.remember(name, handle.abort_handle());
        let shared = Arc::clone(&self.0);
        self.0.watchers.spawn(async move { shared.ended(name, on_exit, Exit::of(handle.await)) });
    }

    /// Starts a task that serves until the process has ended, the time of winding down included. It is
    /// not waited for.
    pub fn spawn_to_the_end<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        tokio::spawn(task);
    }

    /// Cancels the shutdown token at the first signal; a second one ends the process at once.
    pub fn stop_on(&self, signals: Signals) {
        // Not tracked: it waits for a second signal until the process has ended.
        tokio::spawn(signals.run(self.shutdown()));
    }

    /// Waits until the process is to stop, then for all tasks to wind down.
    ///
    /// # Errors
    /// Why it stopped, unless it was asked to and every task ended in time without an error.
    pub async fn run_until_stopped(self, grace: Duration) -> Result<(), Stopped> {
        self.0.shutdown.cancelled().await;
        tracing::info!(grace_seconds = grace.as_secs_f64(), "stopping");
        let in_time = tokio::time::timeout(grace, self.0.drained()).await.is_ok();
        let late = if in_time { Vec::new() } else { self.0.cut_off() };
        if !in_time {
            tracing::warn!(tasks = late.join(", "), "these did not stop in time and were cut off");
        }
        match lock(&self.0.failure).take() {
            Some(failure) => Err(failure),
            None if in_time => Ok(()),
            None => Err(Stopped::GraceExceeded { grace, tasks: late }),
        }
    }
}

impl Shared {
    fn remember(&self, name: &'static str, handle: AbortHandle) {
        let mut running = lock(&self.running);
        running.retain(|(_, earlier)| !earlier.is_finished());
        running.push((name, handle));
    }

    /// Runs when a task has ended: tells, and decides whether the process goes on.
    fn ended(&self, task: &'static str, on_exit: OnExit, exit: Exit) {
        let stopping = self.shutdown.is_cancelled();
        let critical = on_exit == OnExit::StopProcess;
        counter!("turnbuckle_task_exits_total", "task" => task, "exit" => exit.label())
            .increment(1);
        match &exit {
            Exit::Done if stopping || !critical => tracing::debug!(task, "task ended"),
            Exit::Done => tracing::error!(task, "task ended early"),
            Exit::Failed(cause) => {
                tracing::error!(task, error = %chain(cause.as_ref()), "task failed");
            }
            Exit::Panicked => tracing::error!(task, "task panicked"),
            Exit::Aborted => tracing::debug!(task, "task cut off"),
        }
        let failure = match exit {
            Exit::Done if !stopping => Stopped::Ended { task },
            Exit::Failed(cause) => Stopped::Failed { task, cause },
            Exit::Panicked => Stopped::Panicked { task },
            Exit::Done | Exit::Aborted => return,
        };
        if critical {
            // Noted before the token is cancelled, so that whoever wakes by it finds the reason.
            lock(&self.failure).get_or_insert(failure);
            self.shutdown.cancel();
        }
    }

    /// Supervised tasks first: winding down they may still start short ones.
    async fn drained(&self) {
        self.watchers.close();
        self.watchers.wait().await;
        self.short.close();
        self.short.wait().await;
    }

    /// Aborts what still runs and says what that was.
    fn cut_off(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for (name, handle) in lock(&self.running).iter().filter(|(_, handle)| !handle.is_finished())
        {
            handle.abort();
            names.push(*name);
        }
        if !self.short.is_empty() {
            names.push("short tasks");
        }
        names
    }
}

/// The guarded values are whole at any time, so a panic elsewhere does not spoil them.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
