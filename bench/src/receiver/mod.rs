//! The receiving process: one listener for each endpoint, and a log of every arrival.
//!
//! It is told what to do over its standard input, and ends when that does: then its parent is gone.

mod arrival;
mod connection;
mod handle;
mod head;

pub(crate) use arrival::Arrival;
pub(crate) use handle::ReceiverProcess;

use crate::args::ReceiverArgs;
use anyhow::Context as _;
use arrival::Log;
use std::{net::Ipv4Addr, sync::Arc};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, stdin, stdout},
    net::TcpListener,
};

/// Runs until standard input ends.
pub(crate) async fn run(args: ReceiverArgs) -> anyhow::Result<()> {
    let log = Arc::new(Log::new(args.hang));
    let mut ports = String::from("ports");
    for endpoint in 0..args.endpoints {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no free port")?;
        ports.push_str(&format!(" {}", listener.local_addr()?.port()));
        tokio::spawn(accept(listener, endpoint, Arc::clone(&log)));
    }
    let mut output = stdout();
    output.write_all(format!("{ports}\n").as_bytes()).await?;
    output.flush().await?;
    let mut commands = BufReader::new(stdin()).lines();
    while let Some(command) = commands.next_line().await? {
        match command.as_str() {
            "count" => {
                let counts = log.counts();
                let answer = format!("count {} {}\n", counts.healthy, counts.broken);
                output.write_all(answer.as_bytes()).await?;
            }
            "dump" => output.write_all(&log.dump()?).await?,
            other => anyhow::bail!("the receiver does not know {other:?}"),
        }
        output.flush().await?;
    }
    Ok(())
}

async fn accept(listener: TcpListener, endpoint: u16, log: Arc<Log>) {
    // Out of descriptors is the one way this ends; the publisher then sees losses.
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(connection::serve(stream, endpoint, Arc::clone(&log)));
    }
}
