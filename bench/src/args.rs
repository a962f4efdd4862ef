//! The command line.

use std::{path::PathBuf, str::FromStr, time::Duration};

/// Most endpoints: each is a listener of the receiver and a pool of the server.
const ENDPOINTS_MAX: u16 = 256;
/// What the server takes for one event.
const PAYLOAD_MAX: u32 = 256 * 1024;
/// Below this there is no room for the payload's own fields.
const PAYLOAD_MIN: u32 = 64;
/// Below this there is no room for an envelope around it.
const BODY_MIN: i64 = 256;
/// What the server takes for one batch.
const BATCH_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Longest measured window: a soak test needs another tool.
const SECONDS_MAX: u64 = 600;
/// More than any loopback server of ours takes, and still few enough numbers to keep in memory.
const RATE_MAX: u32 = 1_000_000;

/// Load tool for Turnbuckle.
#[derive(clap::Parser)]
#[command(name = "turnbuckle-bench", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Publish a load, receive it, and print what it took. Exits with 1 when an event was lost.
    Deliver(Box<DeliverArgs>),
    /// Send signed requests to the ingress, and print what accepting them takes. Exits with 1 when an
    /// acknowledged event is unknown afterwards.
    Ingest(IngestArgs),
    /// Read and write configuration call by call, and print how fast that is.
    Config(ConfigArgs),
    /// Run the standard cases one after the other (a few minutes). Exits with 1 on a loss.
    Suite(SuiteArgs),
    /// The receiving process.
    #[command(hide = true)]
    Receiver(ReceiverArgs),
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DeliverArgs {
    /// Where the server keeps its data.
    #[arg(long, value_enum, default_value = "embedded")]
    pub(crate) store: StoreKind,
    /// A Postgres database that may be migrated and filled [default: a throw-away cluster].
    #[arg(long, env = "TURNBUCKLE_BENCH_DATABASE_URL", hide_env_values = true)]
    pub(crate) database_url: Option<DatabaseUrl>,
    /// How many endpoints there are. Events go to one after the other, unless --fan-out.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=i64::from(ENDPOINTS_MAX)))]
    pub(crate) endpoints: u16,
    /// Every event goes to every endpoint.
    #[arg(long)]
    pub(crate) fan_out: bool,
    /// How many of the endpoints accept requests and never answer.
    #[arg(long, default_value_t = 0)]
    pub(crate) hang: u16,
    /// Size of the payload in bytes.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(i64::from(PAYLOAD_MIN)..=i64::from(PAYLOAD_MAX)))]
    pub(crate) payload: u32,
    /// Events per second, on a fixed schedule, or max: as fast as --in-flight calls are answered.
    #[arg(long, default_value = "max")]
    pub(crate) rate: Rate,
    /// Length of the measured window.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=SECONDS_MAX))]
    pub(crate) seconds: u64,
    /// Seconds of the same load before it, which are not measured.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(0..=60))]
    pub(crate) warm_up: u64,
    /// Longest wait, in seconds, for what is still to be delivered after it.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=SECONDS_MAX))]
    pub(crate) drain: u64,
    /// Most calls in flight.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) in_flight: u16,
    /// Events per call; 1 uses PublishEvent, more use BatchPublishEvents.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) batch: u16,
    /// gRPC connections.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub(crate) connections: u16,
    /// Changes of the configuration per second, besides.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000))]
    pub(crate) config_writes: u32,
    /// `max_in_flight` of each endpoint.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) endpoint_in_flight: u16,
    /// The `turnbuckle` binary [default: the one beside this program].
    #[arg(long, env = "TURNBUCKLE_BIN")]
    pub(crate) server_bin: Option<PathBuf>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

impl DeliverArgs {
    /// Checks what clap cannot.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.hang < self.endpoints,
            "--hang must leave one of the {} endpoints healthy",
            self.endpoints
        );
        anyhow::ensure!(
            u64::from(self.batch) * u64::from(self.payload) <= BATCH_BYTES_MAX,
            "a batch carries at most 4 MiB: lower --batch or --payload"
        );
        anyhow::ensure!(
            self.store == StoreKind::Postgres || self.database_url.is_none(),
            "--database-url needs --store postgres"
        );
        Ok(())
    }

    pub(crate) const fn warm_up(&self) -> Duration {
        Duration::from_secs(self.warm_up)
    }

    pub(crate) const fn window(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct IngestArgs {
    /// Where the server keeps its data.
    #[arg(long, value_enum, default_value = "embedded")]
    pub(crate) store: StoreKind,
    /// A Postgres database that may be migrated and filled [default: a throw-away cluster].
    #[arg(long, env = "TURNBUCKLE_BENCH_DATABASE_URL", hide_env_values = true)]
    pub(crate) database_url: Option<DatabaseUrl>,
    /// Size of a body in bytes, about.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(BODY_MIN..=i64::from(PAYLOAD_MAX)))]
    pub(crate) payload: u32,
    /// Requests per second, on a fixed schedule, or max: as fast as --connections are answered.
    #[arg(long, default_value = "max")]
    pub(crate) rate: Rate,
    /// Length of the measured window.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=SECONDS_MAX))]
    pub(crate) seconds: u64,
    /// Seconds of the same load before it, which are not measured.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(0..=60))]
    pub(crate) warm_up: u64,
    /// Connections, each with one request under way.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) connections: u16,
    /// Requests with a wrong signature besides, per second.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=100_000))]
    pub(crate) forged: u32,
    /// Connections besides that never finish a request.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=2_000))]
    pub(crate) slow: u16,
    /// The `turnbuckle` binary [default: the one beside this program].
    #[arg(long, env = "TURNBUCKLE_BIN")]
    pub(crate) server_bin: Option<PathBuf>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

impl IngestArgs {
    /// Checks what clap cannot.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.store == StoreKind::Postgres || self.database_url.is_none(),
            "--database-url needs --store postgres"
        );
        Ok(())
    }

    pub(crate) const fn warm_up(&self) -> Duration {
        Duration::from_secs(self.warm_up)
    }

    pub(crate) const fn window(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ConfigArgs {
    /// Where the server keeps its data.
    #[arg(long, value_enum, default_value = "embedded")]
    pub(crate) store: StoreKind,
    /// How many endpoints there are.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=i64::from(ENDPOINTS_MAX)))]
    pub(crate) endpoints: u16,
    /// Length of each of the three measured windows: read, write, repeated registration.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=SECONDS_MAX))]
    pub(crate) seconds: u64,
    /// Callers, each with one call in flight.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) in_flight: u16,
    /// gRPC connections.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub(crate) connections: u16,
    /// The `turnbuckle` binary [default: the one beside this program].
    #[arg(long, env = "TURNBUCKLE_BIN")]
    pub(crate) server_bin: Option<PathBuf>,
    /// Print one JSON array instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SuiteArgs {
    /// Only this store [default: both, Postgres when it is installed].
    #[arg(long, value_enum)]
    pub(crate) store: Option<StoreKind>,
    /// The `turnbuckle` binary [default: the one beside this program].
    #[arg(long, env = "TURNBUCKLE_BIN")]
    pub(crate) server_bin: Option<PathBuf>,
    /// Print a JSON object for each case, one a line, instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct ReceiverArgs {
    /// Listeners to open.
    #[arg(long)]
    pub(crate) endpoints: u16,
    /// How many of them never answer: the first ones.
    #[arg(long)]
    pub(crate) hang: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StoreKind {
    Postgres,
    Embedded,
}

/// Events per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rate {
    Max,
    PerSecond(u32),
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Self::Max);
        }
        match text.parse() {
            Ok(rate) if (1..=RATE_MAX).contains(&rate) => Ok(Self::PerSecond(rate)),
            _ => Err(format!("is max or a number from 1 to {RATE_MAX}")),
        }
    }
}

/// A URL that may hold a password, so it is never printed.
#[derive(Clone)]
pub(crate) struct DatabaseUrl(String);

impl DatabaseUrl {
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl FromStr for DatabaseUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let is_postgres = text.starts_with("postgres://") || text.starts_with("postgresql://");
        is_postgres.then(|| Self(text.to_owned())).ok_or("starts with postgres://")
    }
}

impl std::fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DatabaseUrl(…)")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use clap::{CommandFactory as _, Parser as _};

    pub(crate) fn parse(options: &[&str]) -> DeliverArgs {
        let words = ["turnbuckle-bench", "deliver"].iter().chain(options);
        match Arguments::parse_from(words).command {
            Command::Deliver(args) => *args,
            _ => unreachable!("deliver was asked for"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn one_endpoint_stays_healthy_and_a_batch_stays_sendable() {
        assert!(parse(&["--endpoints", "10", "--hang", "1"]).check().is_ok());
        assert!(parse(&["--hang", "1"]).check().is_err());
        assert!(parse(&["--batch", "1000", "--payload", "20000"]).check().is_err());
    }

    #[test]
    fn a_rate_is_a_number_or_max() {
        assert_eq!("max".parse(), Ok(Rate::Max));
        assert_eq!("500".parse(), Ok(Rate::PerSecond(500)));
        assert!("0".parse::<Rate>().is_err());
        assert!("fast".parse::<Rate>().is_err());
    }

    #[test]
    fn a_database_url_is_not_shown() {
        let args =
            parse(&["--store", "postgres", "--database-url", "postgres://u:hunter2@localhost/b"]);
        assert!(!format!("{args:?}").contains("hunter2"));
    }
}
