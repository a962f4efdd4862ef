//! Throw-away Postgres clusters for development and tests.
//!
//! `cargo xtask test` starts one for a whole run; `turnbuckle-testkit` starts one for a single
//! process when nobody else did. Both get it here, so this crate knows no async runtime.
//!
//! ```text
//!  this process ──(pipe)──► sh (warden) ──► postgres        all in one temporary directory
//!        │ dies or drops        │ sees end of file
//!        ╰──────────────────────╰─► stops postgres, removes the directory
//! ```
//!
//! The pipe is the whole life-cycle protocol: the kernel closes it however the owner ends
//! (return, panic, Ctrl-C, SIGKILL), so no signal handler is needed and nothing is left behind.

mod account;
mod binaries;
mod cluster;
pub mod skip;

pub use binaries::PostgresBinaries;
pub use cluster::Cluster;

/// Environment variable with the URL of a running server whose role may create databases.
pub const DATABASE_URL_VARIABLE: &str = "TURNBUCKLE_TEST_DATABASE_URL";

/// Environment variable with the directory that holds `initdb` and `postgres`.
pub const BINARIES_VARIABLE: &str = "TURNBUCKLE_PG_BIN";

/// Environment variable with the file to which tests append a line when they skip themselves.
pub const SKIP_LOG_VARIABLE: &str = "TURNBUCKLE_SKIP_LOG";

/// What to do when no server can be had; printed whenever suites are skipped for that reason.
pub const HOW_TO_GET_POSTGRES: &str = "\
install PostgreSQL 14 or newer (Debian: apt-get install postgresql; macOS: brew install postgresql),
or set TURNBUCKLE_PG_BIN to the directory that holds initdb and postgres,
or set TURNBUCKLE_TEST_DATABASE_URL to a server whose role may create databases";
