//! Signals that ask the process to stop.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Exit code after a second signal: the shell's code for an interrupted command.
const INTERRUPTED: i32 = 130;

/// SIGTERM and SIGINT of this process.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Takes the signals over from their default, which is to end the process. None that comes
    /// after this call is lost.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The first signal cancels the token, the second ends the process at once.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let name = self.next().await;
        // First: nothing that goes wrong with the log may keep the process from stopping.
        shutdown.cancel();
        tracing::info!(signal = name, "stopping; a second signal ends the process at once");
        let name = self.next().await;
        tracing::warn!(signal = name, "second signal: ending at once");
        #[expect(
            clippy::disallowed_methods,
            reason = "whoever signals twice wants no destructors to run"
        )]
        std::process::exit(INTERRUPTED)
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
