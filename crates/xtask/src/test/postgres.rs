//! One Postgres for the whole run.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use turnbuckle_pg_harness::{
    BINARIES_VARIABLE, Cluster, DATABASE_URL_VARIABLE, HOW_TO_GET_POSTGRES, PostgresBinaries,
};

use crate::tools;

/// Debian's switch for the cluster it makes on installation, which nobody here needs.
const DEBIAN_CLUSTER_SETTINGS: &str = "/etc/postgresql-common/createcluster.conf";

/// Where the tests find their server.
pub(crate) enum Server {
    /// The caller brought one.
    Given,
    /// Ours; it ends with this value.
    Started(Cluster),
    /// None is to be had.
    Missing,
}

impl Server {
    /// Finds or gets one, and says which.
    pub(crate) fn obtain() -> anyhow::Result<Self> {
        if std::env::var_os(DATABASE_URL_VARIABLE).is_some() {
            println!("Postgres: the one in {DATABASE_URL_VARIABLE}");
            return Ok(Self::Given);
        }
        let Some(binaries) = find_or_install()? else {
            println!("Postgres: NONE, its suites will be skipped. To run them,");
            println!("{HOW_TO_GET_POSTGRES}");
            return Ok(Self::Missing);
        };
        let cluster = Cluster::start(&binaries)?;
        println!("Postgres: {} at {}", binaries.directory().display(), cluster.url());
        Ok(Self::Started(cluster))
    }

    /// The variable for the tests; they start no server of their own.
    pub(crate) fn url(&self) -> Option<&str> {
        match self {
            Self::Started(cluster) => Some(cluster.url()),
            Self::Given | Self::Missing => None,
        }
    }
}

fn find_or_install() -> anyhow::Result<Option<PostgresBinaries>> {
    let found = PostgresBinaries::find();
    if found.is_some() || std::env::var_os(BINARIES_VARIABLE).is_some() {
        return Ok(found);
    }
    println!("Postgres: not installed; trying apt-get");
    if tools::apt_install(&["postgresql-common"])? {
        refuse_default_cluster(Path::new(DEBIAN_CLUSTER_SETTINGS))?;
        tools::apt_install(&["postgresql"])?;
    }
    Ok(PostgresBinaries::find())
}

fn refuse_default_cluster(settings: &Path) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(settings)?;
    writeln!(file, "create_main_cluster = false")
}
