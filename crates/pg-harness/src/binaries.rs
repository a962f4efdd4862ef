//! Finding the server programs.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory that holds both `initdb` and `postgres`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresBinaries {
    directory: PathBuf,
}

impl PostgresBinaries {
    /// Looks in `TURNBUCKLE_PG_BIN`, `PATH`, what `pg_config` names, and Debian's directories.
    #[must_use]
    pub fn find() -> Option<Self> {
        if let Some(chosen) = std::env::var_os(crate::BINARIES_VARIABLE) {
            // An explicit choice that is wrong must not be replaced in silence by another server.
            return Self::in_directory(Path::new(&chosen));
        }
        on_path()
            .into_iter()
            .chain(named_by_pg_config())
            .chain(debian_newest_first(Path::new("/usr/lib/postgresql")))
            .find_map(|directory| Self::in_directory(&directory))
    }

    fn in_directory(directory: &Path) -> Option<Self> {
        let complete = ["initdb", "postgres"].iter().all(|name| directory.join(name).is_file());
        complete.then(|| Self { directory: directory.to_path_buf() })
    }

    pub(crate) fn initdb(&self) -> PathBuf {
        self.directory.join("initdb")
    }

    pub(crate) fn postgres(&self) -> PathBuf {
        self.directory.join("postgres")
    }

    /// The directory, for messages.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

fn on_path() -> Vec<PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

fn named_by_pg_config() -> Option<PathBuf> {
    let output = Command::new("pg_config").arg("--bindir").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| PathBuf::from(text.trim()))
}

/// Debian keeps every major version in its own directory and puts none of them on `PATH`.
fn debian_newest_first(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root) else {
        return Vec::new();
    };
    let mut versions: Vec<(u32, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let major = entry.file_name().to_str()?.parse().ok()?;
            Some((major, entry.path().join("bin")))
        })
        .collect();
    versions.sort_by_key(|(major, _)| std::cmp::Reverse(*major));
    versions.into_iter().map(|(_, directory)| directory).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_debian_version_is_tried_first_by_number_not_by_text() {
        let root = tempfile::tempdir().unwrap();
        for version in ["9", "15", "17", "notes"] {
            std::fs::create_dir_all(root.path().join(version).join("bin")).unwrap();
        }
        let found = debian_newest_first(root.path());
        let expected: Vec<_> =
            ["17", "15", "9"].iter().map(|v| root.path().join(v).join("bin")).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_directory_without_the_server_itself_does_not_count() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("initdb"), "").unwrap();
        assert_eq!(PostgresBinaries::in_directory(root.path()), None);
        std::fs::write(root.path().join("postgres"), "").unwrap();
        assert!(PostgresBinaries::in_directory(root.path()).is_some());
    }
}
