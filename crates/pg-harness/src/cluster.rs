//! One running cluster and its end.

use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

use crate::account::Account;
use crate::binaries::PostgresBinaries;

/// Start-up takes about a second; a loaded two-core machine gets a generous multiple of that.
const START_DEADLINE: Duration = Duration::from_secs(60);

/// How often the status file is read while the server starts; short against the start itself.
const START_POLL: Duration = Duration::from_millis(20);

/// Another process may take the free port between our look and the server's bind.
const PORT_TRIES: u32 = 5;

/// Enough of the server's log to see why it ended, not so much that it hides the message.
const LOG_TAIL_LINES: usize = 15;

/// Runs the server until its standard input ends, then stops it and removes the directory.
/// Arguments: directory, program, its arguments. SIGQUIT is Postgres' immediate shutdown: nothing
/// here is worth a checkpoint. A server that ends by itself leaves `ended` behind and the
/// directory stays until the owner has read the log.
const WARDEN: &str = r#"
trap '' INT TERM HUP
directory=$1; shift
exec 3<&0
"$@" </dev/null 3<&- >"$directory/server.log" 2>&1 &
server=$!
( read -r _ <&3; [ -e "$directory/ended" ] || kill -QUIT "$server" ) &
owner=$!
exec 3<&-
wait "$server"
: >"$directory/ended"
wait "$owner"
cd /
rm -rf "$directory"
"#;

/// Where the warden (see its script) sends what the server prints.
const LOG_FILE: &str = "server.log";

/// The cluster's files, inside the temporary directory.
const DATA_DIRECTORY: &str = "data";

/// Settings of the server. Tests kill the product, never Postgres, so its files need not survive;
/// `synchronous_commit` stays on because the product refuses to start without it.
const SETTINGS: [&str; 9] = [
    "fsync=off",
    "full_page_writes=off",
    "synchronous_commit=on",
    "max_connections=300",
    "shared_buffers=128MB",
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "autovacuum_naptime=10s",
    "log_min_messages=warning",
];

/// A Postgres server in a temporary directory, gone when this value is dropped or this process
/// ends.
#[derive(Debug)]
pub struct Cluster {
    warden: Child,
    url: String,
}

impl Cluster {
    /// Creates and starts a cluster; returns when it accepts connections.
    ///
    /// # Errors
    /// When the programs cannot be run or the server does not come up; the message carries the
    /// end of its log.
    pub fn start(binaries: &PostgresBinaries) -> anyhow::Result<Self> {
        Self::start_with(binaries, &[])
    }

    /// The same with settings (`name=value`) that override the ones made for tests: a measurement
    /// must run with `fsync=on`.
    ///
    /// # Errors
    /// As [`Cluster::start`], also when the server refuses a setting.
    pub fn start_with(binaries: &PostgresBinaries, settings: &[&str]) -> anyhow::Result<Self> {
        let mut tries = 0;
        loop {
            tries += 1;
            match Self::start_once(binaries, settings) {
                Err(error) if tries < PORT_TRIES && is_port_taken(&error) => {}
                result => return result,
            }
        }
    }

    fn start_once(binaries: &PostgresBinaries, settings: &[&str]) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("turnbuckle-pg-").tempdir()?;
        let account = Account::needed_for(directory.path())?;
        if let Some(account) = account {
            account.give(directory.path())?;
        }
        create(binaries, account, directory.path())?;
        let port = free_port()?;
        let mut warden = run(binaries, account, directory.path(), port, settings)?;
        if let Err(error) = wait_until_ready(directory.path()) {
            let log = log_tail(&directory.path().join(LOG_FILE));
            stop(&mut warden);
            return Err(error.context(log));
        }
        // From here on the warden removes the directory.
        let _kept = directory.keep();
        let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
        Ok(Self { warden, url })
    }

    /// URL of the maintenance database, as a role that may do everything.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        stop(&mut self.warden);
    }
}

/// Closes the pipe and waits for the warden, which ends when server and directory are gone.
fn stop(warden: &mut Child) {
    drop(warden.stdin.take());
    // It was our child and has no other way to fail than being gone already.
    let _status = warden.wait();
}

fn is_port_taken(error: &anyhow::Error) -> bool {
    format!("{error:#}").contains("already in use")
}

fn create(
    binaries: &PostgresBinaries,
    account: Option<Account>,
    directory: &Path,
) -> anyhow::Result<()> {
    let mut command = Command::new(binaries.initdb());
    command
        .current_dir(directory)
        .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"])
        .arg("--pgdata")
        .arg(directory.join(DATA_DIRECTORY));
    if let Some(account) = account {
        account.assume(&mut command);
    }
    let output = command.output().context("cannot run initdb")?;
    if !output.status.success() {
        bail!("initdb failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

fn run(
    binaries: &PostgresBinaries,
    account: Option<Account>,
    directory: &Path,
    port: u16,
    settings: &[&str],
) -> anyhow::Result<Child> {
    let mut command = Command::new("sh");
    command
        .current_dir(directory)
        .args(["-c", WARDEN, "turnbuckle-pg-warden"])
        .arg(directory)
        .arg(binaries.postgres())
        .arg("-D")
        .arg(directory.join(DATA_DIRECTORY))
        .args(["-p", &port.to_string()])
        // Of two values for one setting the server takes the later.
        .args(SETTINGS.iter().chain(settings).flat_map(|setting| ["-c", setting]))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Out of the terminal's group: Ctrl-C must first end the tests, then the server.
        .process_group(0);
    if let Some(account) = account {
        account.assume(&mut command);
    }
    command.spawn().context("cannot run sh")
}

/// The server writes `ready` into the last line of `postmaster.pid`, which is also what `pg_ctl`
/// waits for.
fn wait_until_ready(directory: &Path) -> anyhow::Result<()> {
    let status_file = directory.join(DATA_DIRECTORY).join("postmaster.pid");
    let polls = START_DEADLINE.as_millis() / START_POLL.as_millis();
    for _ in 0..polls {
        if is_ready(&status_file) {
            return Ok(());
        }
        if directory.join("ended").exists() {
            bail!("the server ended while starting");
        }
        pause(START_POLL);
    }
    bail!("the server was not ready after {} s", START_DEADLINE.as_secs())
}

fn is_ready(status_file: &Path) -> bool {
    std::fs::read_to_string(status_file)
        .is_ok_and(|text| text.lines().nth(7).is_some_and(|line| line.trim() == "ready"))
}

#[expect(clippy::disallowed_methods, reason = "the server tells its state only through a file")]
fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("no free local port")?;
    Ok(listener.local_addr()?.port())
}

fn log_tail(path: &Path) -> String {
    let Ok(text) = std::fs::read_to_string(path) else {
        return format!("no log in {}", path.display());
    };
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    fn address(cluster: &Cluster) -> String {
        let (_, rest) = cluster.url().split_once('@').unwrap();
        rest.split('/').next().unwrap().to_owned()
    }

    #[test]
    fn a_started_cluster_accepts_connections_and_a_dropped_one_is_gone() {
        let Some(binaries) = PostgresBinaries::find() else {
            crate::skip::report("no Postgres", crate::HOW_TO_GET_POSTGRES);
            return;
        };
        let cluster = Cluster::start(&binaries).unwrap();
        let address = address(&cluster);
        assert!(TcpStream::connect(&address).is_ok());
        drop(cluster);
        assert!(TcpStream::connect(&address).is_err());
    }
}
