//! One server process.

use crate::{Home, StoreKind, home, http, wait::PATIENCE};
use anyhow::Context as _;
use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    process::{Command, ExitStatus},
    sync::Arc,
    time::Duration,
};
use turnbuckle_client::{Client, ClientOptions, TokenSource};
use turnbuckle_testkit::process::{Process, Signal};

/// Deadline of one call: longer than the server's own, so that its answer is seen.
const CALL_DEADLINE: Duration = Duration::from_secs(30);
/// Nobody listens on port 0.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Lines of a server's log shown when a scenario fails.
const LOG_LINES_SHOWN: usize = 120;

/// Lets deliveries go to this machine, where every receiver of the scenarios is.
pub const ALLOW_LOOPBACK: [&str; 2] = ["--allow-egress", "127.0.0.0/8"];

/// A running server. Dropping it kills the process and shows the end of its log, which the test
/// runner passes on when the scenario has failed.
#[derive(Debug)]
pub struct Server {
    home: Arc<Home>,
    process: Process,
    /// Where gRPC listens; nowhere (port 0) in a role without it.
    pub api: SocketAddr,
    /// Where the ingress listens; nowhere (port 0) in a role without it.
    pub ingress: SocketAddr,
    /// Where health and metrics listen.
    pub admin: SocketAddr,
}

impl Server {
    /// Starts one on a fresh store, with loopback let through; none where there is no such store.
    ///
    /// # Errors
    /// When it does not come up.
    pub async fn start(kind: StoreKind, extra: &[&str]) -> anyhow::Result<Option<Self>> {
        match Home::new(kind).await? {
            Some(home) => Ok(Some(Self::start_in(&home, extra).await?)),
            None => Ok(None),
        }
    }

    /// Starts one on a store that exists, with loopback let through.
    ///
    /// # Errors
    /// When it does not come up.
    pub async fn start_in(home: &Arc<Home>, extra: &[&str]) -> anyhow::Result<Self> {
        Self::start_strict(home, &[&ALLOW_LOOPBACK, extra].concat()).await
    }

    /// Starts one that lets deliveries go only where the options say.
    ///
    /// # Errors
    /// When it does not come up.
    pub async fn start_strict(home: &Arc<Home>, extra: &[&str]) -> anyhow::Result<Self> {
        let process = Self::spawn(home, extra)?;
        let mut found = [NOWHERE; 2];
        let addresses = process.wait_for_line(PATIENCE, |line| {
            for (place, label) in found.iter_mut().zip(["API (gRPC)", "Ingress"]) {
                *place = announced(line, label).unwrap_or(*place);
            }
            // The last one to be announced, and in every role.
            Some((found[0], found[1], announced(line, "Admin")?))
        });
        let (api, ingress, admin) = addresses.await?;
        Ok(Self { home: Arc::clone(home), process, api, ingress, admin })
    }

    /// Starts the process and waits for nothing: for those that are to refuse.
    ///
    /// # Errors
    /// When there is no program.
    pub fn spawn(home: &Home, extra: &[&str]) -> anyhow::Result<Process> {
        Process::start(&mut Self::command(home, extra)?)
    }

    /// The command that starts it, for those that hold its pipes themselves.
    ///
    /// # Errors
    /// When there is no program.
    pub fn command(home: &Home, extra: &[&str]) -> anyhow::Result<Command> {
        let mut command = home::program()?;
        command.arg("serve");
        // An option that is given says it better.
        let options = home.options();
        for pair in options.chunks(2).filter(|pair| !extra.contains(&pair[0].as_str())) {
            command.args(pair);
        }
        for listen in ["--api-listen", "--ingress-listen", "--admin-listen"] {
            command.args([listen, "127.0.0.1:0"]);
        }
        command.args(extra);
        Ok(command)
    }

    /// Its store.
    #[must_use]
    pub const fn home(&self) -> &Arc<Home> {
        &self.home
    }

    /// A client with an administrator's token.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub async fn client(&self) -> anyhow::Result<Client> {
        self.client_with(Some(self.home.token("admin", None)?)).await
    }

    /// A client with this token, or with none.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub async fn client_with(&self, token: Option<String>) -> anyhow::Result<Client> {
        let options = ClientOptions {
            token: token.map(TokenSource::Text),
            deadline: CALL_DEADLINE,
            ..ClientOptions::new(format!("http://{}", self.api))
        };
        Ok(Client::connect(options).await?)
    }

    /// The metrics page.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn metrics(&self) -> anyhow::Result<String> {
        Ok(http::get(self.admin, "/metrics").await?.body)
    }

    /// A sample of the metrics page, zero before the first.
    ///
    /// # Errors
    /// When the page does not answer.
    pub async fn metric(&self, name: &str) -> anyhow::Result<f64> {
        Ok(http::sample(&self.metrics().await?, name).unwrap_or(0.0))
    }

    /// Everything it logged.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// The most memory it ever had resident, in bytes; none where the system does not tell.
    #[must_use]
    pub fn peak_memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kibibytes: u64 = peak.trim().trim_end_matches("kB").trim().parse().ok()?;
        Some(kibibytes * 1024)
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// When it has ended.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        self.process.signal(signal)
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// When it does not.
    pub async fn exit(&self) -> anyhow::Result<ExitStatus> {
        self.process.exit(PATIENCE).await
    }

    /// Ends it as a power failure would.
    ///
    /// # Errors
    /// When it has ended already.
    pub async fn kill(&self) -> anyhow::Result<()> {
        self.signal(Signal::Kill)?;
        self.exit().await?;
        Ok(())
    }

    /// Asks it to stop and waits for its end.
    ///
    /// # Errors
    /// When it does not stop, or not with success.
    pub async fn stop(&self) -> anyhow::Result<()> {
        self.signal(Signal::Terminate)?;
        let status = self.exit().await?;
        anyhow::ensure!(status.success(), "the server stopped with {status}");
        Ok(())
    }

    /// Waits for a line of its log.
    ///
    /// # Errors
    /// When it does not come.
    pub async fn logged(&self, text: &str) -> anyhow::Result<()> {
        let found = self.process.wait_for_line(PATIENCE, |line| line.contains(text).then_some(()));
        found.await.with_context(|| format!("{text:?} was not logged"))
    }
}

impl Drop for Server {
    #[expect(clippy::print_stderr, reason = "the test runner shows it when the scenario failed")]
    fn drop(&mut self) {
        let log = self.process.log();
        let lines: Vec<&str> = log.lines().collect();
        let shown = lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join("\n");
        eprintln!("--- log of server {} ---\n{shown}", self.process.id());
    }
}

/// The address in a line such as `  API (gRPC)   http://127.0.0.1:7420`.
#[must_use]
pub fn announced(line: &str, label: &str) -> Option<SocketAddr> {
    let url = line.trim_start().strip_prefix(label)?.trim_start();
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
    rest.split(['/', ',', ' ']).next()?.parse().ok()
}
