//! The account the server runs under: Postgres refuses to be root.

use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

/// Where the system lists its accounts.
const ACCOUNTS_FILE: &str = "/etc/passwd";

/// Tried in this order: the first has a name that explains itself in a process list, the second
/// exists everywhere.
const UNPRIVILEGED_NAMES: [&str; 2] = ["postgres", "nobody"];

/// An unprivileged account to switch to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    uid: u32,
    gid: u32,
}

impl Account {
    /// The account to switch to when the owner of `ours` (a file this process has just made) is
    /// root; `None` when there is no need to switch.
    pub(crate) fn needed_for(ours: &Path) -> anyhow::Result<Option<Self>> {
        if std::fs::metadata(ours)?.uid() != 0 {
            return Ok(None);
        }
        let accounts = std::fs::read_to_string(ACCOUNTS_FILE)
            .with_context(|| format!("cannot read {ACCOUNTS_FILE}"))?;
        UNPRIVILEGED_NAMES
            .iter()
            .find_map(|name| find(&accounts, name))
            .map(Some)
            .with_context(|| format!("none of {UNPRIVILEGED_NAMES:?} is in {ACCOUNTS_FILE}"))
    }

    pub(crate) fn give(self, path: &Path) -> anyhow::Result<()> {
        chown(path, Some(self.uid), Some(self.gid))
            .with_context(|| format!("cannot give {} away", path.display()))
    }

    /// Makes `command` run under this account; the standard library drops root's other groups.
    pub(crate) fn assume(self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }
}

fn find(accounts: &str, name: &str) -> Option<Account> {
    let line = accounts.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    let uid = fields.next()?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    (uid != 0).then_some(Account { uid, gid })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNTS: &str = "root:x:0:0:root:/root:/bin/sh\n\
        postgresql-proxy:x:7:7::/:/bin/false\n\
        postgres:x:101:104:PostgreSQL administrator,,,:/var/lib/postgresql:/bin/bash\n";

    #[test]
    fn an_account_is_found_by_its_whole_name() {
        assert_eq!(find(ACCOUNTS, "postgres"), Some(Account { uid: 101, gid: 104 }));
        assert_eq!(find(ACCOUNTS, "nobody"), None);
    }

    #[test]
    fn root_under_another_name_is_refused() {
        assert_eq!(find("postgres:x:0:0::/:/bin/sh", "postgres"), None);
    }
}
