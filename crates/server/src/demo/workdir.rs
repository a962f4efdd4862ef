//! A directory that does not outlive the demo.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
};
use uuid::Uuid;

/// A fresh directory under the system's temporary one, removed on drop.
#[derive(Debug)]
pub(super) struct WorkDir(PathBuf);

impl WorkDir {
    pub(super) fn create() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("turnbuckle-demo-{}", Uuid::now_v7()));
        // Only for this user: the store and the token are in it.
        #[cfg(unix)]
        {
            use std::os::unix::fs::DirBuilderExt as _;
            fs::DirBuilder::new().mode(0o700).create(&path)?;
        }
        #[cfg(not(unix))]
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file that only this user can read.
    pub(super) fn write_secret(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.0.join(name);
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&path)?.write_all(text.as_bytes())?;
        Ok(path)
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        // Nothing useful can be done about a directory that cannot be removed.
        drop(fs::remove_dir_all(&self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_and_its_files_are_gone_afterwards() {
        let folder = WorkDir::create().unwrap();
        let file = folder.write_secret("token", "t").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "t");
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
    }
}
