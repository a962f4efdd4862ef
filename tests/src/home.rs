//! What survives a server: its directory, its database, its keys.

use anyhow::Context as _;
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{Arc, OnceLock},
    time::UNIX_EPOCH,
};
use tempfile::TempDir;
use turnbuckle_testkit::postgres::TestDatabase;

/// Names the program under test.
const BINARY_VARIABLE: &str = "TURNBUCKLE_BIN";

/// Which store a scenario runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// Files of one process.
    Embedded,
    /// A database for many.
    Postgres,
}

/// A store with everything that belongs to it, kept while servers come and go.
#[derive(Debug)]
pub struct Home {
    directory: TempDir,
    database: Option<TestDatabase>,
    /// Another way to the database, such as through a proxy.
    detour: OnceLock<SocketAddr>,
}

/// The program under test: the one named by the environment, else the one built beside the tests.
///
/// # Errors
/// When there is none.
pub fn binary() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os(BINARY_VARIABLE) {
        return Ok(path.into());
    }
    let tests = std::env::current_exe()?;
    let built = tests.ancestors().nth(2).context("test programs lie in deps/")?;
    let path = built.join("turnbuckle");
    anyhow::ensure!(
        path.exists(),
        "{} is missing: run `cargo build -p turnbuckle-server`, or name the program with \
         {BINARY_VARIABLE}",
        path.display()
    );
    Ok(path)
}

/// The program with nothing of the caller's settings.
///
/// # Errors
/// When there is no program.
pub fn program() -> anyhow::Result<Command> {
    let mut command = Command::new(binary()?);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TURNBUCKLE_") {
            command.env_remove(name);
        }
    }
    Ok(command)
}

/// Runs the program to its end.
///
/// # Errors
/// When it cannot be started.
pub fn run(arguments: &[&str]) -> anyhow::Result<Output> {
    Ok(program()?.args(arguments).output()?)
}

/// Runs the program to its end and gives what it printed.
///
/// # Errors
/// When it fails; with its standard error.
pub fn run_ok(arguments: &[&str]) -> anyhow::Result<String> {
    let output = run(arguments)?;
    let errors = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "turnbuckle {arguments:?} failed:\n{errors}");
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

impl Home {
    /// A fresh store; none, said loudly, where there is no Postgres.
    ///
    /// # Errors
    /// When it cannot be made.
    pub async fn new(kind: StoreKind) -> anyhow::Result<Option<Arc<Self>>> {
        let migrate = async |url: &str| {
            run_ok(&["migrate", "--database-url", url])?;
            Ok(())
        };
        match kind {
            StoreKind::Embedded => Ok(Some(Arc::new(Self::bare()?))),
            StoreKind::Postgres => Self::in_database(&schema_key()?, migrate).await,
        }
    }

    /// A database without a schema.
    ///
    /// # Errors
    /// When it cannot be made.
    pub async fn unmigrated() -> anyhow::Result<Option<Arc<Self>>> {
        Self::in_database("nothing at all", async |_: &str| Ok(())).await
    }

    fn bare() -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        Ok(Self { directory, database: None, detour: OnceLock::new() })
    }

    async fn in_database(
        key: &str,
        migrate: impl AsyncFnOnce(&str) -> anyhow::Result<()>,
    ) -> anyhow::Result<Option<Arc<Self>>> {
        let Some(database) = TestDatabase::create(key, migrate).await? else { return Ok(None) };
        let home = Self { database: Some(database), ..Self::bare()? };
        std::fs::create_dir(home.data_dir())?;
        run_ok(&["keyring", "create", &text(&home.keyring())])?;
        run_ok(&["token", "create-key", &text(&home.token_key())])?;
        Ok(Some(Arc::new(home)))
    }

    /// The server's data directory.
    #[must_use]
    pub fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// The key that signs tokens.
    #[must_use]
    pub fn token_key(&self) -> PathBuf {
        self.data_dir().join("token.key")
    }

    fn keyring(&self) -> PathBuf {
        self.data_dir().join("keyring.json")
    }

    /// A directory of this store for something besides the server's data.
    #[must_use]
    pub fn directory(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Where the database is, when there is one.
    #[must_use]
    pub fn database_url(&self) -> Option<String> {
        let url = self.database.as_ref()?.url();
        let Some(detour) = self.detour.get() else { return Some(url.to_owned()) };
        Some(match authority(url) {
            Some(direct) => url.replacen(direct, &detour.to_string(), 1),
            None => url.to_owned(),
        })
    }

    /// Runs a statement in the database, to play another program.
    ///
    /// # Errors
    /// When there is no database, or it refuses.
    pub async fn execute(&self, statement: &'static str) -> anyhow::Result<()> {
        self.database.as_ref().context("this store is no database")?.execute(statement).await
    }

    /// Columns that hold this text, whatever they are made for.
    ///
    /// # Errors
    /// When there is no database, or it refuses.
    pub async fn columns_with(&self, text: &str) -> anyhow::Result<Vec<String>> {
        self.database.as_ref().context("this store is no database")?.columns_with(text).await
    }

    /// Host and port of the database server.
    ///
    /// # Errors
    /// When there is no database, or its address is no number.
    pub fn database_address(&self) -> anyhow::Result<SocketAddr> {
        let database = self.database.as_ref().context("this store is no database")?;
        let address = authority(database.url()).context("the URL names no host")?;
        std::net::ToSocketAddrs::to_socket_addrs(address)?.next().context("no address")
    }

    /// Reaches the database through another address from now on.
    ///
    /// # Errors
    /// When it does already.
    pub fn reach_database_by(&self, address: SocketAddr) -> anyhow::Result<()> {
        self.detour.set(address).ok().context("there is a detour already")
    }

    /// Options of `serve` that lead to this store.
    #[must_use]
    pub fn options(&self) -> Vec<String> {
        let mut options = vec!["--data-dir".to_owned(), text(&self.data_dir())];
        if let Some(url) = self.database_url() {
            options.extend(["--database-url".to_owned(), url]);
            options.extend(["--keyring-file".to_owned(), text(&self.keyring())]);
            options.extend(["--token-key-file".to_owned(), text(&self.token_key())]);
        }
        options
    }

    /// Issues a token on this store's key.
    ///
    /// # Errors
    /// When the program refuses.
    pub fn token(&self, role: &str, tenant: Option<&str>) -> anyhow::Result<String> {
        self.token_of("tester", role, tenant)
    }

    /// Issues a token for a subject on this store's key.
    ///
    /// # Errors
    /// When the program refuses.
    pub fn token_of(
        &self,
        subject: &str,
        role: &str,
        tenant: Option<&str>,
    ) -> anyhow::Result<String> {
        let key = text(&self.token_key());
        let mut arguments =
            vec!["token", "issue", "--token-key-file", &key, "--subject", subject, "--role", role];
        if let Some(tenant) = tenant {
            arguments.extend(["--for-tenant", tenant]);
        }
        run_ok(&arguments)
    }
}

/// Names the schema by the program that makes it: a server that outlives the run keeps templates.
fn schema_key() -> anyhow::Result<String> {
    let built = std::fs::metadata(binary()?)?.modified()?.duration_since(UNIX_EPOCH)?;
    Ok(format!("scenarios {}", built.as_nanos()))
}

/// `host:port` of a URL.
fn authority(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split('/').next()?;
    Some(authority.rsplit('@').next().unwrap_or(authority))
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
