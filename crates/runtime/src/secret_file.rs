//! Files that hold key material: private to their owner, whole or absent, never overwritten.

use crate::random::os_bytes;
use data_encoding::HEXLOWER;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};
use zeroize::Zeroizing;

/// Largest file read: a keyring of hundreds of keys; anything above is the wrong file.
const SIZE_MAX: u64 = 64 * 1024;

/// Owner may read and write, nobody else anything.
const PRIVATE: u32 = 0o600;

/// Permission bits of group and others.
const SHARED_BITS: u32 = 0o077;

/// How orchestrators mount a secret for a process that is not root: it is root's, the process' group may
/// read it, and nobody may write it.
const MOUNTED: u32 = 0o440;

/// User id of root.
const ROOT: u32 = 0;

/// Whether nobody but its owner may touch the file, or it is mounted for this process' group.
const fn is_private(mode: u32, owner: u32) -> bool {
    mode & SHARED_BITS == 0 || (mode == MOUNTED && owner == ROOT)
}

/// A secret file could not be read or made. Says nothing about its content.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    /// The operating system refused.
    #[error("cannot {action} {path}: {cause}", path = .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not. Part of the text, so it is no `source`: a chain would say it twice.
        cause: io::Error,
    },
    /// Others may read it.
    #[error(
        "{path} may be read by others (mode {mode:03o}): run chmod 600 on it, and replace its keys \
         if anyone else had access",
        path = .path.display()
    )]
    Shared {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It is a directory, a pipe or a device.
    #[error("{} is no regular file", .0.display())]
    NotAFile(PathBuf),
    /// It is larger than any key file.
    #[error("{} is larger than {SIZE_MAX} bytes: it is no key file", .0.display())]
    TooLarge(PathBuf),
    /// It exists, and key files are never overwritten.
    #[error("{} exists already; key files are never overwritten", .0.display())]
    Exists(PathBuf),
    /// No randomness for a temporary name or a key.
    #[error(transparent)]
    Randomness(#[from] crate::RandomnessError),
}

fn io_error<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl Fn(io::Error) -> SecretFileError + 'a {
    move |cause| SecretFileError::Io { action, path: path.to_owned(), cause }
}

/// Reads a file that only its owner may read, or that is mounted for this process' group.
pub(crate) fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, SecretFileError> {
    let file = File::open(path).map_err(io_error("open", path))?;
    // Asked of the open file, so that it cannot be exchanged between check and use.
    let metadata = file.metadata().map_err(io_error("inspect", path))?;
    if !metadata.is_file() {
        return Err(SecretFileError::NotAFile(path.to_owned()));
    }
    let mode = metadata.permissions().mode() & 0o777;
    if !is_private(mode, metadata.uid()) {
        return Err(SecretFileError::Shared { path: path.to_owned(), mode });
    }
    if metadata.len() > SIZE_MAX {
        return Err(SecretFileError::TooLarge(path.to_owned()));
    }
    // Full capacity first: a buffer that grows would leave copies of the secret behind.
    let capacity = usize::try_from(SIZE_MAX).unwrap_or(usize::MAX);
    let mut content = Zeroizing::new(Vec::with_capacity(capacity));
    file.take(SIZE_MAX).read_to_end(&mut content).map_err(io_error("read", path))?;
    Ok(content)
}

/// Makes a file of mode 0600 with this content, or nothing at all. Durable when it returns.
pub(crate) fn create(path: &Path, content: &[u8]) -> Result<(), SecretFileError> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    };
    let temporary = Temporary::new(directory)?;
    temporary.write(content)?;
    // A hard link fails when the name is taken; a rename would replace the file.
    fs::hard_link(&temporary.0, path).map_err(|cause| match cause.kind() {
        io::ErrorKind::AlreadyExists => SecretFileError::Exists(path.to_owned()),
        _ => io_error("create", path)(cause),
    })?;
    drop(temporary);
    File::open(directory).and_then(|opened| opened.sync_all()).map_err(io_error("sync", directory))
}

/// A file under a random name that is gone when dropped.
struct Temporary(PathBuf);

impl Temporary {
    fn new(directory: &Path) -> Result<Self, SecretFileError> {
        let name = format!(".turnbuckle-{}.tmp", HEXLOWER.encode(&os_bytes::<8>()?));
        Ok(Self(directory.join(name)))
    }

    fn write(&self, content: &[u8]) -> Result<(), SecretFileError> {
        let failed = io_error("write", &self.0);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(PRIVATE)
            .open(&self.0)
            .map_err(&failed)?;
        file.write_all(content).map_err(&failed)?;
        file.sync_all().map_err(&failed)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.0.display(), %error, "a temporary key file stays behind: delete it");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_created_file_is_private_whole_and_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        create(&path, b"content").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read(&path).unwrap().as_slice(), b"content");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_existing_file_is_never_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        create(&path, b"first").unwrap();
        assert!(matches!(create(&path, b"second"), Err(SecretFileError::Exists(_))));
        assert_eq!(read(&path).unwrap().as_slice(), b"first");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_others_may_touch_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        create(&path, b"content").unwrap();
        for mode in [0o640, 0o604, 0o660, 0o620, 0o601, 0o644] {
            set_mode(&path, mode);
            let error = read(&path).unwrap_err();
            assert!(error.to_string().contains("chmod 600"), "{mode:o}: {error}");
        }
        set_mode(&path, 0o400);
        assert!(read(&path).is_ok());
    }

    #[test]
    fn a_mounted_secret_is_private_and_nothing_like_it() {
        assert!(is_private(0o440, ROOT));
        for (mode, owner) in [(0o440, 1000), (0o640, ROOT), (0o444, ROOT), (0o460, ROOT)] {
            assert!(!is_private(mode, owner), "{mode:o} of {owner}");
        }
    }

    #[test]
    fn directories_and_large_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        assert!(matches!(read(directory.path()), Err(SecretFileError::NotAFile(_))));
        let path = directory.path().join("large");
        create(&path, &vec![b'x'; 64 * 1024 + 1]).unwrap();
        assert!(matches!(read(&path), Err(SecretFileError::TooLarge(_))));
        assert!(matches!(read(&directory.path().join("none")), Err(SecretFileError::Io { .. })));
    }
}
