//! `turnbuckle-bench config`: how fast configuration is read and written, call by call.

use crate::{
    analysis::{Latency, latency},
    args::{ConfigArgs, StoreKind},
    database::Database,
    receiver::ReceiverProcess,
    server::{Server, find_program},
    setup,
    targets::Targets,
};
use anyhow::Context as _;
use serde::Serialize;
use std::{
    io::{self, Write as _},
    process::ExitCode,
    time::{Duration, Instant},
};
use turnbuckle_client::{Client, ClientOptions};
use turnbuckle_proto::v1;

/// One kind of call.
#[derive(Debug, Serialize)]
struct Phase {
    name: &'static str,
    per_s: f64,
    ms: Latency,
}

#[derive(Clone, Copy, Debug)]
enum Verb {
    /// Reads an endpoint.
    Get,
    /// Changes an endpoint.
    Update,
    /// Registers an endpoint as it is already: no revision.
    UpsertUnchanged,
}

impl Verb {
    const ALL: [Self; 3] = [Self::Get, Self::Update, Self::UpsertUnchanged];

    const fn name(self) -> &'static str {
        match self {
            Self::Get => "get_endpoint",
            Self::Update => "update_endpoint",
            Self::UpsertUnchanged => "upsert_unchanged",
        }
    }
}

pub(crate) async fn command(args: ConfigArgs) -> anyhow::Result<ExitCode> {
    let program = find_program(args.server_bin.as_ref())?;
    let database = match args.store {
        StoreKind::Postgres => Some(Database::prepare(None).await?),
        StoreKind::Embedded => None,
    };
    let targets = Targets { endpoints: args.endpoints, hang: 0, fan_out: false };
    let receiver = ReceiverProcess::start(args.endpoints, 0).await?;
    let server = Server::start(&program, database.as_ref().map(Database::url)).await?;
    let parent = setup::register(server.url(), "bench", targets, receiver.ports(), 64).await?;
    let mut phases = Vec::with_capacity(Verb::ALL.len());
    for verb in Verb::ALL {
        phases.push(phase(&args, server.url(), &parent, verb).await?);
    }
    show(&args, &phases)?;
    Ok(ExitCode::SUCCESS)
}

fn show(args: &ConfigArgs, phases: &[Phase]) -> anyhow::Result<()> {
    let mut text = match args.json {
        true => serde_json::to_string(phases)?,
        false => {
            format!("{:<18} {:>9} {:>9} {:>9} {:>9}", "call", "per s", "p50 ms", "p99 ms", "max ms")
        }
    };
    for Phase { name, per_s, ms } in phases.iter().filter(|_| !args.json) {
        let Latency { p50, p99, max } = ms;
        text.push_str(&format!("\n{name:<18} {per_s:>9.0} {p50:>9.2} {p99:>9.2} {max:>9.2}"));
    }
    writeln!(io::stdout(), "{text}")?;
    Ok(())
}

/// A closed loop of this many callers for the length of the window.
async fn phase(args: &ConfigArgs, url: &str, parent: &str, verb: Verb) -> anyhow::Result<Phase> {
    let until = Instant::now() + Duration::from_secs(args.seconds);
    let began = Instant::now();
    let mut callers = tokio::task::JoinSet::new();
    let mut clients = Vec::new();
    for _ in 0..args.connections {
        clients.push(Client::connect(ClientOptions::new(url)).await?);
    }
    for number in 0..args.in_flight {
        let client = clients[usize::from(number) % clients.len()].clone();
        let name = format!("{parent}/endpoints/e{}", number % args.endpoints);
        callers.spawn(caller(client, name, verb, until));
    }
    let mut micros = Vec::new();
    while let Some(done) = callers.join_next().await {
        micros.extend(done??);
    }
    let count = u32::try_from(micros.len()).unwrap_or(u32::MAX);
    let per_s = f64::from(count) / began.elapsed().as_secs_f64();
    Ok(Phase { name: verb.name(), per_s, ms: latency(micros.into_iter())? })
}

async fn caller(
    client: Client,
    name: String,
    verb: Verb,
    until: Instant,
) -> anyhow::Result<Vec<i64>> {
    let mut endpoints = client.endpoints();
    let get = v1::GetEndpointRequest { name, ..Default::default() };
    let known = endpoints.get_endpoint(get.clone()).await?.into_inner();
    let mut micros = Vec::new();
    let mut number: u32 = 0;
    while Instant::now() < until {
        let begin = Instant::now();
        match verb {
            Verb::Get => drop(endpoints.get_endpoint(get.clone()).await?),
            Verb::Update => {
                number += 1;
                let display_name = format!("number {number}");
                let endpoint =
                    v1::Endpoint { name: known.name.clone(), display_name, ..Default::default() };
                let request =
                    v1::UpdateEndpointRequest { endpoint: Some(endpoint), ..Default::default() };
                drop(endpoints.update_endpoint(request).await.context("update")?);
            }
            Verb::UpsertUnchanged => {
                let endpoint = v1::Endpoint { etag: String::new(), ..known.clone() };
                let request = v1::UpdateEndpointRequest {
                    endpoint: Some(endpoint),
                    allow_missing: true,
                    ..Default::default()
                };
                drop(endpoints.update_endpoint(request).await.context("upsert")?);
            }
        }
        micros.push(i64::try_from(begin.elapsed().as_micros()).unwrap_or(i64::MAX));
    }
    Ok(micros)
}
