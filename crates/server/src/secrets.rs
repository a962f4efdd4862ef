//! Keys of a process: where they come from, and when they may be made.

use crate::serve::ServeArgs;
use anyhow::Context as _;
use std::{
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};
use turnbuckle_runtime::{Keyring, auth::TokenKey};

/// Keys of a process.
pub struct Secrets {
    /// Seals signing keys at rest.
    pub keyring: Keyring,
    /// Signs and verifies our own bearer tokens, where they are taken.
    pub token_key: Option<TokenKey>,
}

impl Secrets {
    /// Loads the key files. A file that was not named is made in the data directory, but only for a
    /// new store, or in development: a new key for an old store would lock its secrets for ever.
    ///
    /// # Errors
    /// When a file is missing that may not be made, is malformed, or may be read by others.
    pub fn load(args: &ServeArgs, store_is_new: bool) -> anyhow::Result<Self> {
        let may_make = args.dev || (args.database_url.is_none() && store_is_new);
        let keyring = Place::of(args.keyring_file.as_ref(), args, "keyring.json", "--keyring-file");
        let token = Place::of(args.token_key_file.as_ref(), args, "token.key", "--token-key-file");
        Ok(Self {
            keyring: keyring.load_or_make(may_make, Keyring::load, Keyring::create)?,
            token_key: args
                .takes_own_tokens()
                .then(|| token.load_or_make(may_make, TokenKey::load, TokenKey::create))
                .transpose()?,
        })
    }
}

struct Place {
    path: PathBuf,
    is_named: bool,
    option: &'static str,
}

impl Place {
    fn of(named: Option<&PathBuf>, args: &ServeArgs, default: &str, option: &'static str) -> Self {
        let path = named.cloned().unwrap_or_else(|| args.data_dir.join(default));
        Self { path, is_named: named.is_some(), option }
    }

    fn load_or_make<T, E>(
        &self,
        may_make: bool,
        load: fn(&Path) -> Result<T, E>,
        make: fn(&Path) -> Result<T, E>,
    ) -> anyhow::Result<T>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        if self.path.exists() {
            return Ok(load(&self.path)?);
        }
        let path = self.path.display();
        anyhow::ensure!(
            !self.is_named && may_make,
            "{path} is missing: name the right file with {option}, make one with \
             `turnbuckle {maker}` for a new database, or use --dev to try things out",
            option = self.option,
            maker = if self.option == "--keyring-file" {
                "keyring create FILE"
            } else {
                "token create-key FILE"
            }
        );
        if let Some(directory) = self.path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)
                .with_context(|| format!("cannot make {}", directory.display()))?;
        }
        Ok(make(&self.path)?)
    }
}
