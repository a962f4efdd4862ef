//! The parent's side of the receiving process.

use super::Arrival;
use anyhow::Context as _;
use std::{process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

/// A dump of millions of arrivals takes a fraction of this.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// A running receiver; dropping it ends the process.
pub(crate) struct ReceiverProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    ports: Vec<u16>,
}

impl ReceiverProcess {
    /// Starts this same program as a receiver.
    pub(crate) async fn start(endpoints: u16, hang: u16) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["receiver", "--endpoints", &endpoints.to_string()])
            .args(["--hang", &hang.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the receiver")?;
        let input = child.stdin.take().context("the receiver has no input")?;
        let output = BufReader::new(child.stdout.take().context("the receiver has no output")?);
        let mut receiver = Self { child, input, output, ports: Vec::new() };
        let line = receiver.line().await?;
        let ports = line.strip_prefix("ports").context("the receiver did not tell its ports")?;
        receiver.ports =
            ports.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        Ok(receiver)
    }

    /// The port of each endpoint.
    pub(crate) fn ports(&self) -> &[u16] {
        &self.ports
    }

    pub(crate) fn pid(&self) -> anyhow::Result<u32> {
        self.child.id().context("the receiver has ended")
    }

    /// Requests at healthy endpoints so far.
    ///
    /// # Errors
    /// When requests came that could not be read: the figures would be worth nothing.
    pub(crate) async fn healthy_count(&mut self) -> anyhow::Result<u64> {
        self.input.write_all(b"count\n").await?;
        let line = self.line().await?;
        let numbers: Vec<u64> =
            line.split_ascii_whitespace().skip(1).flat_map(str::parse).collect();
        let [healthy, broken] = numbers[..] else {
            anyhow::bail!("the receiver answered {line:?}");
        };
        anyhow::ensure!(broken == 0, "{broken} requests could not be read");
        Ok(healthy)
    }

    /// Everything that arrived so far.
    pub(crate) async fn dump(&mut self) -> anyhow::Result<Vec<Arrival>> {
        self.input.write_all(b"dump\n").await?;
        let bytes = timeout(ANSWER_TIMEOUT, async {
            let count = usize::try_from(self.output.read_u64_le().await?)?;
            let mut bytes = vec![0; count * Arrival::BYTES];
            self.output.read_exact(&mut bytes).await?;
            anyhow::Ok(bytes)
        });
        let bytes = bytes.await.context("the receiver does not answer")??;
        Ok(bytes.chunks_exact(Arrival::BYTES).filter_map(Arrival::decode).collect())
    }

    async fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        let read = timeout(ANSWER_TIMEOUT, self.output.read_line(&mut line)).await;
        let read = read.context("the receiver does not answer")??;
        anyhow::ensure!(read > 0, "the receiver has ended");
        Ok(line)
    }
}
