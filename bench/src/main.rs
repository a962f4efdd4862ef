//! `turnbuckle-bench`: how fast one server accepts and delivers, what that costs, and whether
//! anything is lost.
//!
//! ```text
//!  this process                       children
//!  publisher ── gRPC ──────────────► turnbuckle serve ──► Postgres (or its own files)
//!      │                                   │ HTTP
//!      ╰──── analysis ◄── pipe ── receiver ◄╯
//! ```
//!
//! Everything is on loopback, bounded in time, and gone when this process ends. Each process reads
//! the same wall clock, so an arrival minus a send time is a latency.

mod analysis;
mod args;
mod clock;
mod config;
mod database;
mod deliver;
mod ingest;
mod pacer;
mod payload;
mod probe;
mod procfs;
mod publisher;
mod receiver;
mod report;
mod rewriter;
mod rig;
mod server;
mod setup;
mod suite;
mod targets;
mod turns;

use args::{Arguments, Command};
use clap::Parser as _;
use std::{
    io::{self, Write as _},
    process::ExitCode,
};
use tokio::signal::unix::{SignalKind, signal};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // One thread: the load must take as little as possible of the machine it shares with the
    // server, and wake-ups between threads are most of what a publish costs.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return complain(&error.into()),
    };
    match runtime.block_on(until_signal(arguments.command)) {
        Ok(code) => code,
        Err(error) => complain(&error),
    }
}

/// A signal drops the work, and with it every child and directory.
async fn until_signal(command: Command) -> anyhow::Result<ExitCode> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        done = Box::pin(run(command)) => done,
        _ = interrupt.recv() => anyhow::bail!("interrupted"),
        _ = terminate.recv() => anyhow::bail!("terminated"),
    }
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Deliver(args) => deliver::command(*args).await,
        Command::Ingest(args) => ingest::command(args).await,
        Command::Config(args) => config::command(args).await,
        Command::Suite(args) => suite::command(args).await,
        Command::Receiver(args) => receiver::run(args).await.map(|()| ExitCode::SUCCESS),
    }
}

fn complain(error: &anyhow::Error) -> ExitCode {
    // Nobody is left to tell when standard error is closed.
    drop(writeln!(io::stderr(), "turnbuckle-bench: {error:#}"));
    ExitCode::from(2)
}
