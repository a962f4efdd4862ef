//! The server under load, as a child process.

use crate::args::DatabaseUrl;
use anyhow::{Context as _, bail};
use std::{
    fs::{self, File},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::{sleep, timeout},
};
use turnbuckle_client::{Client, ClientOptions};

/// A start takes well under a second; a busy machine gets a generous multiple.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Between two looks at a server that starts.
const START_POLL: Duration = Duration::from_millis(50);
/// Migrations of an empty database take a second.
const MIGRATE_TIMEOUT: Duration = Duration::from_secs(60);
/// Lines of the server's log that explain why it ended.
const LOG_TAIL_LINES: usize = 15;

const LOG_FILE: &str = "server.log";
const PROGRAM: &str = "turnbuckle";

/// A running server; dropping it kills the process and removes its data.
pub(crate) struct Server {
    child: Child,
    url: String,
    ingress: SocketAddr,
    // Last, so that the process is gone before its files are.
    directory: TempDir,
}

impl Server {
    /// Starts a server and waits until it answers.
    pub(crate) async fn start(
        program: &Path,
        database: Option<&DatabaseUrl>,
    ) -> anyhow::Result<Self> {
        if let Some(url) = database {
            migrate(program, url).await?;
        }
        let directory = tempfile::Builder::new().prefix("turnbuckle-bench-").tempdir()?;
        let (api, ingress) = (free_address()?, free_address()?);
        let mut command = clean_command(program);
        command
            .args(["serve", "--dev", "--allow-egress", "127.0.0.0/8", "--log", "warn"])
            .arg("--data-dir")
            .arg(directory.path().join("data"))
            .args(["--api-listen", &api])
            .args(["--ingress-listen", &ingress, "--admin-listen", &free_address()?])
            .stderr(File::create(directory.path().join(LOG_FILE))?);
        if let Some(url) = database {
            command.env("TURNBUCKLE_DATABASE_URL", url.expose());
        }
        let child = command.spawn();
        let child = child.with_context(|| format!("cannot run {}", program.display()))?;
        let mut server =
            Self { child, url: format!("http://{api}"), ingress: ingress.parse()?, directory };
        match timeout(START_TIMEOUT, server.wait_until_up()).await {
            Ok(Ok(())) => Ok(server),
            Ok(Err(error)) => Err(error.context(server.log_tail())),
            Err(_) => bail!("the server is not up after {START_TIMEOUT:?}\n{}", server.log_tail()),
        }
    }

    /// Where its gRPC listens.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Where third parties send to.
    pub(crate) const fn ingress(&self) -> SocketAddr {
        self.ingress
    }

    pub(crate) fn pid(&self) -> anyhow::Result<u32> {
        self.child.id().with_context(|| format!("the server has ended\n{}", self.log_tail()))
    }

    async fn wait_until_up(&mut self) -> anyhow::Result<()> {
        while Client::connect(ClientOptions::new(&self.url)).await.is_err() {
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended with {status}");
            }
            sleep(START_POLL).await;
        }
        Ok(())
    }

    /// The end of what the server said.
    pub(crate) fn log_tail(&self) -> String {
        let text = fs::read_to_string(self.directory.path().join(LOG_FILE)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
    }
}

/// Finds the program to measure.
pub(crate) fn find_program(named: Option<&PathBuf>) -> anyhow::Result<PathBuf> {
    let program = match named {
        Some(path) => path.clone(),
        None => std::env::current_exe()?.with_file_name(PROGRAM),
    };
    anyhow::ensure!(
        program.is_file(),
        "{} is missing: build it (cargo build --release), or name it with --server-bin",
        program.display()
    );
    Ok(program)
}

async fn migrate(program: &Path, url: &DatabaseUrl) -> anyhow::Result<()> {
    let mut command = clean_command(program);
    command.arg("migrate").env("TURNBUCKLE_DATABASE_URL", url.expose()).stderr(Stdio::piped());
    let output = timeout(MIGRATE_TIMEOUT, command.output()).await;
    let output = output.context("the migration does not end")??;
    anyhow::ensure!(
        output.status.success(),
        "cannot migrate: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}

/// A child that ends with us and is not configured by what happens to be in our environment.
fn clean_command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TURNBUCKLE_") {
            command.env_remove(name);
        }
    }
    command
}

fn free_address() -> anyhow::Result<String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("no free local port")?;
    Ok(listener.local_addr()?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_the_remedy() {
        let error = find_program(Some(&"/nowhere/turnbuckle".into())).unwrap_err().to_string();
        assert!(error.contains("/nowhere/turnbuckle") && error.contains("--server-bin"), "{error}");
    }

    #[tokio::test]
    async fn a_server_that_ends_at_once_is_an_error() {
        let error = Server::start(Path::new("/bin/false"), None).await.err().unwrap();
        assert!(format!("{error:#}").contains("ended"), "{error:#}");
    }
}
