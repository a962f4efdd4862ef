//! A child process under test: its log as it comes, its signals, its end.

use anyhow::Context as _;
use std::{
    io::{BufRead as _, BufReader},
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};
use tokio::{sync::watch, time::MissedTickBehavior};

/// How often a child is asked whether it has ended.
const EXIT_POLL: Duration = Duration::from_millis(5);

/// Signals that tests send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Ends the process without a word, as a power failure does.
    Kill,
    /// Asks it to stop.
    Terminate,
    /// Stops its time.
    Freeze,
    /// Lets it go on.
    Thaw,
}

impl Signal {
    const fn name(self) -> &'static str {
        match self {
            Self::Kill => "KILL",
            Self::Terminate => "TERM",
            Self::Freeze => "STOP",
            Self::Thaw => "CONT",
        }
    }
}

/// A running child. Dropping it kills the process.
#[derive(Debug)]
pub struct Process {
    child: Mutex<Child>,
    log: Arc<Log>,
    reader: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Log {
    lines: Mutex<Vec<String>>,
    /// Lines so far, and whether there can be more.
    level: watch::Sender<(usize, bool)>,
}

impl Process {
    /// Starts a command and collects its standard error, line by line.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(command: &mut Command) -> anyhow::Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let errors = child.stderr.take().context("standard error is piped")?;
        let log = Arc::new(Log { lines: Mutex::default(), level: watch::Sender::new((0, false)) });
        let collecting = Arc::clone(&log);
        let reader = std::thread::Builder::new().spawn(move || collecting.collect(errors))?;
        Ok(Self { child: Mutex::new(child), log, reader: Some(reader) })
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child().id()
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// When the process has ended already: its number may be another's by now.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let mut child = self.child();
        if let Some(status) = child.try_wait()? {
            anyhow::bail!("the process has ended ({status})");
        }
        // A shell's own kill is everywhere, and needs no unsafe code here.
        let sent = Command::new("sh")
            .args(["-c", &format!("kill -s {} {}", signal.name(), child.id())])
            .status()?;
        anyhow::ensure!(sent.success(), "the signal could not be sent");
        Ok(())
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// After the deadline.
    pub async fn exit(&self, deadline: Duration) -> anyhow::Result<ExitStatus> {
        let ended = async {
            let mut ticks = tokio::time::interval(EXIT_POLL);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                if let Some(status) = self.child().try_wait()? {
                    return anyhow::Ok(status);
                }
            }
        };
        tokio::time::timeout(deadline, ended)
            .await
            .with_context(|| format!("the process still runs after {deadline:?}"))?
    }

    /// Waits for a line of its log that `find` makes something of.
    ///
    /// # Errors
    /// After the deadline, or when the log ends without such a line; with the log.
    pub async fn wait_for_line<T>(
        &self,
        deadline: Duration,
        mut find: impl FnMut(&str) -> Option<T>,
    ) -> anyhow::Result<T> {
        let mut level = self.log.level.subscribe();
        let mut seen = 0;
        let found = async {
            loop {
                let (count, ended) = *level.borrow_and_update();
                let fresh = self.log.lock()[seen..count].to_vec();
                seen = count;
                if let Some(found) = fresh.iter().find_map(|line| find(line)) {
                    return Some(found);
                }
                if ended || level.changed().await.is_err() {
                    return None;
                }
            }
        };
        match tokio::time::timeout(deadline, found).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) => anyhow::bail!("the process ended without it:\n{}", self.log()),
            Err(_) => anyhow::bail!("not logged within {deadline:?}:\n{}", self.log()),
        }
    }

    /// Its whole standard error so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.lock().join("\n")
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let mut child = self.child();
        // It may have ended by itself.
        drop(child.kill());
        drop(child.wait());
        drop(child);
        if let Some(reader) = self.reader.take() {
            drop(reader.join());
        }
    }
}

impl Log {
    fn collect(&self, errors: ChildStderr) {
        let mut lines = BufReader::new(errors).split(b'\n');
        while let Some(Ok(line)) = lines.next() {
            self.lock().push(String::from_utf8_lossy(&line).into_owned());
            self.level.send_modify(|(count, _)| *count += 1);
        }
        self.level.send_modify(|(_, ended)| *ended = true);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longest wait of a test: it is only used up when something is broken.
    const PATIENCE: Duration = Duration::from_secs(10);

    fn shell(script: &str) -> Process {
        Process::start(Command::new("sh").args(["-c", script])).unwrap()
    }

    #[tokio::test]
    async fn lines_are_found_as_they_come_and_the_exit_code_is_kept() {
        let process = shell("echo one >&2; echo port 7420 >&2; exit 3");
        let port = process
            .wait_for_line(PATIENCE, |line| line.strip_prefix("port ").map(str::to_owned))
            .await
            .unwrap();
        assert_eq!(port, "7420");
        assert_eq!(process.exit(PATIENCE).await.unwrap().code(), Some(3));
        let missing = process.wait_for_line(PATIENCE, |line| (line == "two").then_some(())).await;
        assert!(missing.unwrap_err().to_string().contains("one"));
        assert!(process.signal(Signal::Terminate).is_err());
    }

    #[tokio::test]
    async fn a_signal_arrives() {
        let process = shell("trap 'exit 7' TERM; echo ready >&2; while :; do sleep 0.05; done");
        process.wait_for_line(PATIENCE, |line| (line == "ready").then_some(())).await.unwrap();
        process.signal(Signal::Terminate).unwrap();
        assert_eq!(process.exit(PATIENCE).await.unwrap().code(), Some(7));
    }
}
