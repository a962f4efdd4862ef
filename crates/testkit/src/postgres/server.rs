//! Which server the tests of this process use.

use std::sync::OnceLock;

use anyhow::anyhow;
use turnbuckle_pg_harness::{Cluster, DATABASE_URL_VARIABLE, PostgresBinaries};

/// Started at most once per process. Statics are never dropped; the cluster ends with the process
/// all the same, because its warden sees the pipe close.
static OWN: OnceLock<Result<Option<Cluster>, String>> = OnceLock::new();

/// URL of the maintenance database: the run's server, else one of our own; `None` when there are
/// no programs to start one with.
pub(crate) fn maintenance_url() -> anyhow::Result<Option<String>> {
    if let Ok(url) = std::env::var(DATABASE_URL_VARIABLE) {
        return Ok(Some(url));
    }
    match OWN.get_or_init(start) {
        Ok(cluster) => Ok(cluster.as_ref().map(|cluster| cluster.url().to_owned())),
        Err(reason) => Err(anyhow!("cannot start a test server: {reason}")),
    }
}

fn start() -> Result<Option<Cluster>, String> {
    PostgresBinaries::find()
        .map(|binaries| Cluster::start(&binaries).map_err(|error| format!("{error:#}")))
        .transpose()
}
