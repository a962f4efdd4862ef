//! `turnbuckle init`: the secret files of an installation, made once.

use anyhow::Context as _;
use std::{
    fs::{DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};
use turnbuckle_domain::{Clock as _, Role};
use turnbuckle_runtime::{Keyring, SystemClock, auth::TokenKey};

/// A year: tokens of nodes are read again when their file changes, so they can be renewed at any time.
const TOKEN_LIFE: Duration = Duration::from_secs(365 * 24 * 3600);

/// Tokens that are made: the file, who it is for, and the role.
const TOKENS: [(&str, &str, Role); 3] = [
    ("admin.token", "first-admin", Role::Admin),
    ("delivery.token", "delivery", Role::Node),
    ("ingress.token", "ingress", Role::Node),
];

/// Options of `turnbuckle init`.
#[derive(Clone, clap::Args)]
pub struct InitArgs {
    /// Directory to write them to: keyring.json, token.key, admin.token, delivery.token, ingress.token.
    #[arg(default_value = "turnbuckle-secrets")]
    pub directory: PathBuf,
}

/// Makes what is missing, and leaves what is there.
///
/// # Errors
/// When a file cannot be written, or a key that is there cannot be read.
pub fn init(args: &InitArgs) -> anyhow::Result<()> {
    let directory = args.directory.as_path();
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let keyring = directory.join("keyring.json");
    if told(&keyring)? {
        Keyring::create(&keyring)?;
    }
    let token_key = directory.join("token.key");
    let key = match told(&token_key)? {
        true => TokenKey::create(&token_key)?,
        false => TokenKey::load(&token_key)?,
    };
    for (file, subject, role) in TOKENS {
        let path = directory.join(file);
        if told(&path)? {
            let token = key.issue(subject, role, None, TOKEN_LIFE, SystemClock.now())?;
            write(&path, &token).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    writeln!(
        io::stderr(),
        "back up keyring.json: without it, stored secrets cannot be read. Whoever has token.key can \
         be anyone"
    )?;
    Ok(())
}

/// Whether the file is to be made, and says so.
fn told(path: &Path) -> io::Result<bool> {
    let is_missing = !path.exists();
    let what = if is_missing { "made" } else { "is there already; kept" };
    writeln!(io::stderr(), "{} {what}", path.display())?;
    Ok(is_missing)
}

/// Never overwrites, and leaves nothing unfinished behind its name.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = path.with_extension("new");
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    std::fs::hard_link(&unfinished, path)?;
    std::fs::remove_file(unfinished)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    const FILES: [&str; 5] =
        ["admin.token", "delivery.token", "ingress.token", "keyring.json", "token.key"];

    #[test]
    fn everything_is_made_once_and_for_its_owner_only() {
        let parent = tempfile::tempdir().unwrap();
        let args = InitArgs { directory: parent.path().join("secrets") };
        init(&args).unwrap();
        let read = || FILES.map(|file| std::fs::read(args.directory.join(file)).unwrap());
        let first = read();
        for file in FILES {
            let metadata = std::fs::metadata(args.directory.join(file)).unwrap();
            assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{file}");
        }
        std::fs::remove_file(args.directory.join("ingress.token")).unwrap();
        init(&args).unwrap();
        let second = read();
        assert_eq!((&first[0], &first[1]), (&second[0], &second[1]));
        assert_eq!(&first[3..], &second[3..], "keys are never made anew");
        let files = std::fs::read_dir(&args.directory).unwrap().count();
        assert_eq!(files, FILES.len(), "nothing unfinished is left");
    }
}
