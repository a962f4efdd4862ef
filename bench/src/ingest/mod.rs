//! `turnbuckle-bench ingest`: how fast signed requests of a third party are accepted, what that
//! costs, and whether anything that was acknowledged is unknown afterwards.

mod load;
mod report;
mod request;

use crate::{
    args::{IngestArgs, Rate, StoreKind},
    clock,
    database::Database,
    probe::Probe,
    procfs,
    server::{Server, find_program},
    turns::Turns,
};
use anyhow::Context as _;
use load::{Answered, Load};
use report::{Measured, Report};
use request::Requests;
use std::{
    io::{self, Write as _},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};
use tokio::time::sleep;
use turnbuckle_client::{Client, ClientOptions};
use turnbuckle_proto::v1;
use turnbuckle_signing::SigningKey;

/// Acknowledged events that are sent again at the end: each must be known.
const CHECKED: usize = 1_000;
/// Connections of the forger: enough for ten thousand refusals a second.
const FORGER_CONNECTIONS: u16 = 32;
/// Key of the source; a bench has no secrets.
const KEY: [u8; 32] = [7; 32];
/// Key of the forger.
const FORGED_KEY: [u8; 32] = [8; 32];
/// So that the load meets the ingress itself and not a limit of its source.
const RATE_LIMIT: i32 = 100_000;
/// As above, for connections from one address.
const CONNECTION_LIMIT: i32 = 4_096;

/// Runs `ingest`.
pub(crate) async fn command(args: IngestArgs) -> anyhow::Result<ExitCode> {
    let report = measure(&args).await?;
    let mut output = io::stdout().lock();
    if args.json {
        writeln!(output, "{}", serde_json::to_string(&report)?)?;
    } else {
        writeln!(output, "{report}")?;
    }
    Ok(ExitCode::from(u8::from(report.lost > 0)))
}

async fn measure(args: &IngestArgs) -> anyhow::Result<Report> {
    args.check()?;
    let program = find_program(args.server_bin.as_ref())?;
    let database = match args.store {
        StoreKind::Postgres => Some(Database::prepare(args.database_url.as_ref()).await?),
        StoreKind::Embedded => None,
    };
    let server = Server::start(&program, database.as_ref().map(Database::url)).await?;
    let path = create_source(server.url()).await?;
    let authority = server.ingress().to_string();
    let size = usize::try_from(args.payload)?;
    let honest = Arc::new(Requests::new(SigningKey::hmac(&KEY)?, &authority, &path, size));
    let forger = Arc::new(honest.with_key(SigningKey::hmac(&FORGED_KEY)?));

    let slow = load::drip(server.ingress(), args.slow, &path);
    let span = args.warm_up() + args.window();
    let turns = |rate| Turns::start(rate, span, 1);
    let forged = (args.forged > 0).then(|| {
        let turns = turns(Rate::PerSecond(args.forged));
        Load::start(server.ingress(), FORGER_CONNECTIONS, &forger, turns)
    });
    let load = Load::start(server.ingress(), args.connections, &honest, turns(args.rate));
    let turns = Arc::clone(&load.turns);
    let warm_us = turns.begin_us() + clock::us(args.warm_up());
    sleep_until(warm_us).await;
    let before = Probe::of(&server, database.as_ref(), None).await?;
    sleep_until(warm_us + clock::us(args.window())).await;
    let after = Probe::of(&server, database.as_ref(), None).await?;
    let answers = load.finish().await?;
    let forged = match forged {
        Some(forged) => forged.finish().await?,
        None => Vec::new(),
    };
    drop(slow);
    let again = sample(&answers);
    anyhow::ensure!(!again.is_empty(), "nothing was accepted: {}", first_status(&answers));
    let lost = load::unknown(server.ingress(), &honest, &again).await?;
    let rss_mb = procfs::peak_rss_mb(server.pid()?)?;
    let not_sent = turns.missing(u64::try_from(answers.len())?);
    let measured = Measured {
        answers: &answers,
        forged: &forged,
        before,
        after,
        not_sent,
        checked: again.len(),
        lost,
        rss_mb,
    };
    Report::new(args, &measured)
}

/// A source that keeps our own contract; gives its path.
async fn create_source(url: &str) -> anyhow::Result<String> {
    let client = Client::connect(ClientOptions::new(url)).await?;
    let tenant = format!("bench-{}", uuid::Uuid::now_v7().simple());
    let request = v1::CreateTenantRequest { tenant_id: tenant, ..Default::default() };
    let created = client.tenants().create_tenant(request).await.context("create a tenant")?;
    let limits = v1::IntakeLimits {
        requests_per_second: RATE_LIMIT,
        requests_per_second_per_address: RATE_LIMIT,
        connections_per_address: CONNECTION_LIMIT,
        ..Default::default()
    };
    let source = v1::Source {
        verification: Some(v1::source::Verification::Preset("turnbuckle".to_owned())),
        limits: Some(limits),
        ..Default::default()
    };
    let request = v1::CreateSourceRequest {
        parent: created.into_inner().name,
        source_id: "sender".to_owned(),
        source: Some(source),
        secret: SigningKey::hmac(&KEY)?.secret_text().expose().to_owned(),
        ..Default::default()
    };
    let created = client.sources().create_source(request).await.context("create a source")?;
    Ok(created.into_inner().ingest_path)
}

/// Accepted numbers, evenly from the whole run.
fn sample(answers: &[Answered]) -> Vec<u32> {
    let accepted = answers.iter().filter(|answered| report::is_accepted(answered.status));
    let accepted: Vec<u32> = accepted.map(|answered| answered.number).collect();
    let step = (accepted.len() / CHECKED).max(1);
    accepted.into_iter().step_by(step).take(CHECKED).collect()
}

fn first_status(answers: &[Answered]) -> String {
    match answers.first() {
        Some(answered) if answered.status > 0 => format!("status {}", answered.status),
        Some(_) => "no answer".to_owned(),
        None => "nothing was sent".to_owned(),
    }
}

async fn sleep_until(at_us: i64) {
    let wait = u64::try_from(at_us - clock::now_us()).unwrap_or(0);
    sleep(Duration::from_micros(wait)).await;
}
