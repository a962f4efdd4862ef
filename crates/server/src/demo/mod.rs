//! `turnbuckle demo`: the whole product in one process, shown and checked in a few seconds.
//!
//! ```text
//!  run ──► start(temporary directory) ──► server
//!   ├── receivers: healthy, flaky ──► Seen ─┐
//!   ├── setup:  tenant … subscriptions       │        over gRPC, as everybody does
//!   ├── story:  publish │ repeat │ rotate ──►├── Ledger ──► checks ──► ok / FAILED
//!   └── history: deliveries, attempts ───────┘                └──► summary, exit code
//! ```
//!
//! # Invariants
//! - Everything goes through the public API; nothing is read from the store.
//! - Exit code 0 only when every check holds; it ends by itself within [`TIME_LIMIT`].
//! - The temporary directory is removed at the end, whatever happened.

mod checks;
mod history;
mod ledger;
mod payloads;
mod printer;
mod receiver;
mod setup;
mod story;
mod summary;
mod workdir;

use anyhow::{Context as _, bail};
use printer::{Line, Printer};
use std::{path::PathBuf, pin::Pin, process::ExitCode, time::Duration};
use tokio_util::sync::CancellationToken;
use workdir::WorkDir;

/// The demo promises to end in 20 s; what is left is for starting and stopping.
const TIME_LIMIT: Duration = Duration::from_secs(16);
/// A server that does not stop within this is broken, and the demo says so.
const STOP_LIMIT: Duration = Duration::from_secs(3);

/// Options of `turnbuckle demo`.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct DemoArgs {
    /// Keep serving afterwards, and print what to try next.
    #[arg(long)]
    pub keep: bool,
    /// Print one JSON object per line.
    #[arg(long)]
    pub json: bool,
}

/// A server with all roles that the demo can talk to and stop.
pub struct RunningServer {
    /// `http://host:port` of the gRPC API.
    pub api_url: String,
    /// An admin's bearer token.
    pub token: String,
    /// Cancel it to stop the server.
    pub stop: CancellationToken,
    /// Ends when the server has stopped.
    pub finished: Pin<Box<dyn Future<Output = ()> + Send + 'static>>,
}

impl std::fmt::Debug for RunningServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningServer").field("api_url", &self.api_url).finish_non_exhaustive()
    }
}

/// Runs the demo. `start` starts a server with all roles and an embedded store in the given
/// directory; it must let deliveries go to 127.0.0.0/8.
///
/// # Errors
/// When the server does not start or stop, or the demo cannot go on. Broken promises are no
/// errors but a non-zero exit code.
pub async fn run<F, S>(args: DemoArgs, start: F) -> anyhow::Result<ExitCode>
where
    F: FnOnce(PathBuf) -> S,
    S: Future<Output = anyhow::Result<RunningServer>>,
{
    let mut printer = Printer::standard(args.json);
    let folder = WorkDir::create()?;
    let server = start(folder.path().to_owned()).await.context("the server did not start")?;
    let RunningServer { api_url, token, stop, mut finished } = server;
    let outcome = tokio::select! {
        outcome = perform(args, &api_url, &token, &folder, &mut printer) => outcome,
        // It is gone already, so there is nothing to wait for.
        () = &mut finished => bail!("the server stopped by itself"),
    };
    // Also after a failure, so that nothing writes into the directory while it is removed.
    stop.cancel();
    tokio::time::timeout(STOP_LIMIT, finished)
        .await
        .map_err(|_| anyhow::anyhow!("the server did not stop within {STOP_LIMIT:?}"))?;
    Ok(if outcome? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Shows the demo within its time, and keeps the server up afterwards when asked to.
async fn perform(
    args: DemoArgs,
    api_url: &str,
    token: &str,
    folder: &WorkDir,
    printer: &mut Printer,
) -> anyhow::Result<bool> {
    let shown = tokio::time::timeout(TIME_LIMIT, Box::pin(show(api_url, token, printer)));
    let (passed, _receivers) = tokio::select! {
        shown = shown => {
            shown.map_err(|_| anyhow::anyhow!("it was not over within {TIME_LIMIT:?}"))??
        }
        interrupted = tokio::signal::ctrl_c() => {
            interrupted?;
            bail!("interrupted");
        }
    };
    if args.keep {
        let token_file = folder.write_secret("cli.token", token)?;
        printer.line(&Line::next(api_url, &token_file, folder.path()));
        tokio::signal::ctrl_c().await?;
    }
    Ok(passed)
}

/// Everything between start and stop. True when all promises were kept. The receivers live on
/// until they are dropped.
async fn show(
    api_url: &str,
    token: &str,
    printer: &mut Printer,
) -> anyhow::Result<(bool, setup::Stage)> {
    let mut stage = Box::pin(setup::prepare(api_url, token)).await?;
    printer.line(&Line::Started {
        server: api_url,
        healthy: &stage.healthy.receiver.url(),
        flaky: &stage.flaky.receiver.url(),
    });
    let ledger = Box::pin(story::play(&mut stage, printer)).await?;
    // With --keep the receivers go on; nobody reads their reports any more.
    stage.reports.close();
    let history = Box::pin(history::read(&stage.client, &ledger)).await?;
    let checks = checks::all(&ledger, &history);
    for check in &checks {
        printer.line(&Line::of_check(check));
    }
    summary::print(printer, &ledger);
    let failed = checks.iter().filter(|check| !check.passed()).count();
    printer.line(&Line::Verdict { checks: checks.len(), failed });
    Ok((failed == 0, stage))
}
