//! The Postgres of a run: a throw-away cluster or a given one, and its counters.
//!
//! Counters are read through `psql`: a few calls a run do not justify a database driver here.

use crate::{args::DatabaseUrl, procfs};
use anyhow::{Context as _, bail};
use std::{path::PathBuf, process::Stdio, time::Duration};
use tokio::{process::Command, time::timeout};
use turnbuckle_pg_harness::{Cluster, HOW_TO_GET_POSTGRES, PostgresBinaries};
use url::Url;

/// What a production server would be set to; above all the harness's `fsync=off` must not stand.
const DURABLE: [&str; 8] = [
    "fsync=on",
    "full_page_writes=on",
    "synchronous_commit=on",
    "shared_buffers=512MB",
    "max_wal_size=4GB",
    "checkpoint_timeout=15min",
    "log_min_messages=error",
    "max_connections=100",
];
/// Counts statements. Debian has it in the server's package; elsewhere it may be missing.
const COUNTING: &str = "shared_preload_libraries=pg_stat_statements";
/// A counter takes milliseconds to read.
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);

/// Counters that only grow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counters {
    /// Bytes of WAL ever written by the whole server.
    pub(crate) wal_bytes: f64,
    /// Statements run in this database, where they are counted.
    pub(crate) statements: Option<f64>,
}

/// A database to measure with.
pub(crate) struct Database {
    url: DatabaseUrl,
    psql: PathBuf,
    counts_statements: bool,
    /// Known when the server runs on this machine.
    postmaster: Option<u32>,
    _cluster: Option<Cluster>,
}

impl Database {
    /// Connects to the given database, or starts a cluster.
    pub(crate) async fn prepare(given: Option<&DatabaseUrl>) -> anyhow::Result<Self> {
        let (url, cluster) = match given {
            Some(url) => (url.clone(), None),
            None => {
                let cluster = start_cluster()?;
                (cluster.url().parse().map_err(anyhow::Error::msg)?, Some(cluster))
            }
        };
        let mut database = Self {
            url,
            psql: find_psql(),
            counts_statements: false,
            postmaster: None,
            _cluster: cluster,
        };
        database.learn().await?;
        Ok(database)
    }

    pub(crate) const fn url(&self) -> &DatabaseUrl {
        &self.url
    }

    /// Finds out what this server can tell.
    async fn learn(&mut self) -> anyhow::Result<()> {
        if self._cluster.is_some() {
            // Refused when the library is not loaded; then the next statement says so.
            drop(self.query("CREATE EXTENSION IF NOT EXISTS pg_stat_statements").await);
        }
        let count = "SELECT count(*) FROM pg_stat_statements WHERE false";
        self.counts_statements = self.query(count).await.is_ok();
        let checkpointer = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'";
        let pid = self.query(checkpointer).await?.trim().parse().ok();
        if is_local(&self.url) {
            self.postmaster = pid.and_then(procfs::parent_of_same_program);
        }
        Ok(())
    }

    /// CPU seconds of the server with all its processes, when they are on this machine.
    pub(crate) fn cpu_seconds(&self) -> anyhow::Result<Option<f64>> {
        self.postmaster.map(procfs::family_cpu_seconds).transpose()
    }

    /// Reads the counters.
    pub(crate) async fn counters(&self) -> anyhow::Result<Counters> {
        let statements = if self.counts_statements {
            "(SELECT sum(calls) FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid \
             WHERE d.datname = current_database())"
        } else {
            "NULL"
        };
        let sql = format!("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn, {statements}");
        let answer = self.query(&sql).await?;
        let (wal, statements) = answer.trim().split_once('|').context("two columns were asked")?;
        Ok(Counters { wal_bytes: wal.parse()?, statements: statements.parse().ok() })
    }

    async fn query(&self, sql: &str) -> anyhow::Result<String> {
        let mut command = Command::new(&self.psql);
        command
            .args(["--no-psqlrc", "--no-password", "--quiet", "--tuples-only", "--no-align"])
            .args(["--command", sql])
            .envs(libpq_variables(&self.url)?)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = timeout(QUERY_TIMEOUT, command.output())
            .await
            .context("the database does not answer")?
            .context("cannot run psql: install the PostgreSQL client")?;
        if !output.status.success() {
            bail!("psql: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8(output.stdout)?)
    }
}

fn start_cluster() -> anyhow::Result<Cluster> {
    let binaries = PostgresBinaries::find().context(HOW_TO_GET_POSTGRES)?;
    let counting: Vec<&str> = DURABLE.into_iter().chain([COUNTING]).collect();
    Cluster::start_with(&binaries, &counting)
        .or_else(|_| Cluster::start_with(&binaries, &DURABLE))
        .context("cannot start Postgres")
}

fn find_psql() -> PathBuf {
    PostgresBinaries::find()
        .map(|binaries| binaries.directory().join("psql"))
        .filter(|psql| psql.is_file())
        .unwrap_or_else(|| "psql".into())
}

fn is_local(url: &DatabaseUrl) -> bool {
    Url::parse(url.expose())
        .is_ok_and(|url| matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]")))
}

/// The URL as environment variables, because arguments are shown to everybody.
fn libpq_variables(url: &DatabaseUrl) -> anyhow::Result<Vec<(&'static str, String)>> {
    let url = Url::parse(url.expose()).context("the database URL cannot be read")?;
    let mut variables = vec![
        ("PGHOST", url.host_str().unwrap_or("localhost").trim_matches(['[', ']']).to_owned()),
        ("PGPORT", url.port().unwrap_or(5432).to_string()),
        ("PGDATABASE", unescape(url.path().trim_start_matches('/'))),
    ];
    if !url.username().is_empty() {
        variables.push(("PGUSER", unescape(url.username())));
    }
    if let Some(password) = url.password() {
        variables.push(("PGPASSWORD", unescape(password)));
    }
    if let Some((_, mode)) = url.query_pairs().find(|(name, _)| name == "sslmode") {
        variables.push(("PGSSLMODE", mode.into_owned()));
    }
    Ok(variables)
}

/// Resolves `%41`; anything else stays as it is.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%')
            .then(|| std::str::from_utf8(after.get(..2)?).ok())
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_becomes_what_psql_reads() {
        let url: DatabaseUrl =
            "postgres://me:p%40ss@localhost/bench?sslmode=disable".parse().unwrap();
        let variables = libpq_variables(&url).unwrap();
        for expected in [
            ("PGHOST", "localhost"),
            ("PGPORT", "5432"),
            ("PGDATABASE", "bench"),
            ("PGUSER", "me"),
            ("PGPASSWORD", "p@ss"),
            ("PGSSLMODE", "disable"),
        ] {
            assert!(variables.contains(&(expected.0, expected.1.to_owned())), "{expected:?}");
        }
        assert!(is_local(&url));
    }

    #[test]
    fn a_lone_percent_sign_is_kept() {
        assert_eq!(unescape("50%"), "50%");
        assert_eq!(unescape("%zz"), "%zz");
    }

    #[tokio::test]
    async fn a_cluster_of_ours_is_durable_and_tells_its_counters() {
        if PostgresBinaries::find().is_none() {
            turnbuckle_pg_harness::skip::report("no Postgres", HOW_TO_GET_POSTGRES);
            return;
        }
        let database = Database::prepare(None).await.unwrap();
        assert_eq!(database.query("SHOW fsync").await.unwrap().trim(), "on");
        assert!(database.cpu_seconds().unwrap().is_some());
        let before = database.counters().await.unwrap();
        database.query("CREATE TABLE t (a int)").await.unwrap();
        let after = database.counters().await.unwrap();
        assert!(after.wal_bytes > before.wal_bytes);
    }
}
