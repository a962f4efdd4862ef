//! The last-known-good file: what a node starts with when no control plane answers.
//!
//! ```text
//!  outside  magic 8 │ form 1 │ SHA-256 of the rest 32 │ sealed inside
//!  inside   role │ epoch 16 │ revision 8 │ proven at 8 │ count 8 │ (length 4 │ resource)…
//! ```
//! The seal keeps what resources hold besides keys, such as headers, and tells a file of another
//! installation. The hash tells a damaged file from a foreign one.

use crate::replica::Replica;
use sha2::{Digest as _, Sha256};
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};
use turnbuckle_domain::{
    ConfigPosition, EndpointId, Epoch, KeyId, NodeRole, Revision, SealContext, SealError,
    SealedSecret, SecretSealer, TenantId, Timestamp,
};
use uuid::Uuid;

const MAGIC: &[u8; 8] = b"TBCONFIG";
/// The form of this file. Another one is refused: the control plane has everything anew.
const FORM: u8 = 1;
const HASH_BYTES: usize = 32;

/// What the seal is bound to: no tenant, no endpoint, and an id that no key has.
const CONTEXT: SealContext = SealContext {
    tenant: TenantId::from_uuid(Uuid::nil()),
    endpoint: EndpointId::from_uuid(Uuid::nil()),
    key: KeyId::from_uuid(Uuid::from_u128(u128::from_be_bytes(*b"last-known-good."))),
};

/// The file cannot be used or written. Says nothing of what is in it.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system refused.
    #[error("cannot {action} {path}: {cause}", path = .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// It is no such file, or of another version.
    #[error("{} is of another form than this version writes", .0.display())]
    Form(PathBuf),
    /// Its bytes have changed.
    #[error("{} is damaged", .0.display())]
    Damaged(PathBuf),
    /// Another keyring sealed it, or it is of another role.
    #[error("{} belongs to another installation, keyring or role", .0.display())]
    Foreign(PathBuf),
    /// It could not be sealed.
    #[error("the configuration could not be sealed: {0}")]
    Seal(SealError),
}

/// Keeps the file of one role.
#[derive(Clone)]
pub struct LastKnownGood {
    path: PathBuf,
    role: NodeRole,
    sealer: Arc<dyn SecretSealer>,
}

impl LastKnownGood {
    /// The file of a role in the data directory.
    #[must_use]
    pub fn new(directory: &Path, role: NodeRole, sealer: Arc<dyn SecretSealer>) -> Self {
        let name = format!("configuration.{}", role.as_str());
        Self { path: directory.join(name), role, sealer }
    }

    /// Reads the file. One that cannot be used is set aside, for people to look at, and is then
    /// none; that is logged.
    pub(crate) fn load(&self) -> Option<(Replica, Option<Timestamp>)> {
        match self.read() {
            Ok(found) => found,
            Err(error) => {
                let aside = self.path.with_extension(format!("{}.refused", self.role.as_str()));
                let moved = fs::rename(&self.path, &aside).is_ok();
                tracing::error!(
                    %error, moved, aside = %aside.display(),
                    "the last-known-good configuration is refused; only the control plane has one now"
                );
                None
            }
        }
    }

    fn read(&self) -> Result<Option<(Replica, Option<Timestamp>)>, FileError> {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(self.io("read", cause)),
        };
        let form = || FileError::Form(self.path.clone());
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(form)?;
        let rest = rest.strip_prefix(&[FORM]).ok_or_else(form)?;
        let (hash, sealed) = rest.split_at_checked(HASH_BYTES).ok_or_else(form)?;
        if Sha256::digest(sealed).as_slice() != hash {
            return Err(FileError::Damaged(self.path.clone()));
        }
        let foreign = || FileError::Foreign(self.path.clone());
        let sealed = SealedSecret::from_bytes(sealed.to_vec());
        let inside = self.sealer.open(CONTEXT, &sealed).map_err(|_| foreign())?;
        parse(&inside, self.role).map(Some).ok_or_else(foreign)
    }

    /// Writes the file as a whole or not at all. Durable when it returns.
    pub(crate) fn write(&self, inside: &[u8]) -> Result<(), FileError> {
        let sealed = self.sealer.seal(CONTEXT, inside).map_err(FileError::Seal)?;
        let sealed = sealed.as_bytes();
        let directory = self.path.parent().unwrap_or(Path::new("."));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(|cause| self.io("make the directory of", cause))?;
        let unfinished = self.path.with_extension(format!("{}.new", self.role.as_str()));
        let write = || {
            let mut options = OpenOptions::new();
            let options = options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = options.open(&unfinished)?;
            file.write_all(MAGIC)?;
            file.write_all(&[FORM])?;
            file.write_all(&Sha256::digest(sealed))?;
            file.write_all(sealed)?;
            file.sync_all()?;
            fs::rename(&unfinished, &self.path)?;
            File::open(directory)?.sync_all()
        };
        write().map_err(|cause| self.io("write", cause))
    }

    /// The inside of the file for a state.
    pub(crate) fn render(&self, replica: &Replica, proven_at: Option<Timestamp>) -> Vec<u8> {
        let at = replica.at();
        let mut inside = vec![role_code(self.role)];
        inside.extend_from_slice(at.epoch.uuid().as_bytes());
        inside.extend_from_slice(&at.revision.0.to_be_bytes());
        inside.extend_from_slice(&proven_at.map_or(0, Timestamp::micros).to_be_bytes());
        inside.extend_from_slice(&(replica.len() as u64).to_be_bytes());
        for resource in replica.resources() {
            let length = u32::try_from(resource.len()).unwrap_or(u32::MAX);
            inside.extend_from_slice(&length.to_be_bytes());
            inside.extend_from_slice(resource);
        }
        inside
    }

    fn io(&self, action: &'static str, cause: io::Error) -> FileError {
        FileError::Io { action, path: self.path.clone(), cause }
    }
}

const fn role_code(role: NodeRole) -> u8 {
    match role {
        NodeRole::Delivery => 1,
        NodeRole::Ingress => 2,
    }
}

fn parse(inside: &[u8], role: NodeRole) -> Option<(Replica, Option<Timestamp>)> {
    let rest = inside.strip_prefix(&[role_code(role)])?;
    let (epoch, rest) = rest.split_first_chunk::<16>()?;
    let (revision, rest) = rest.split_first_chunk::<8>()?;
    let (proven_at, rest) = rest.split_first_chunk::<8>()?;
    let (count, mut rest) = rest.split_first_chunk::<8>()?;
    let mut replica = Replica::new(ConfigPosition {
        epoch: Epoch::from_uuid(Uuid::from_bytes(*epoch)),
        revision: Revision(i64::from_be_bytes(*revision)),
    });
    for _ in 0..u64::from_be_bytes(*count) {
        let (length, more) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (resource, more) = more.split_at_checked(length)?;
        replica.upsert(resource.to_vec()).ok()?;
        rest = more;
    }
    let proven_at = i64::from_be_bytes(*proven_at);
    let proven_at = (proven_at > 0).then(|| Timestamp::from_micros(proven_at));
    rest.is_empty().then_some((replica, proven_at))
}

#[cfg(test)]
mod tests;
