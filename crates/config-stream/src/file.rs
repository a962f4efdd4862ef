//! The last-known-good file: what a node starts with when no control plane answers.
//!
//! ```text
//!  outside      magic 8 │ form 1 │ (length 4 │ SHA-256 of the sealed block 32 │ sealed block)…
//!  in a block   role 1 │ epoch 16 │ revision 8 │ proven at 8 │ number 4 │ last 1 │ (length 4 │ resource)…
//! ```
//! The seal keeps what resources hold besides keys, such as headers, and tells a file of another
//! installation. The hash tells a damaged file from a foreign one. Blocks keep memory small; each names
//! its file and its place, so that none can be left out, repeated or taken from another file.

use crate::replica::Replica;
use sha2::{Digest as _, Sha256};
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, BufReader, Read, Write},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};
use turnbuckle_domain::{
    ConfigPosition, EndpointId, Epoch, KeyId, KeyOwner, NodeRole, Revision, SealContext, SealError,
    SealedSecret, SecretSealer, TenantId, Timestamp,
};
use uuid::Uuid;
use zeroize::Zeroizing;

const MAGIC: &[u8; 8] = b"TBCONFIG";
/// The form of this file. Another one is refused: the control plane has everything anew.
const FORM: u8 = 1;
const HASH_BYTES: usize = 32;
/// Resources of one block, about; a block is in memory three times while it is sealed.
const BLOCK_BYTES: usize = 512 * 1024;
/// Longest sealed block that is read: a block and the largest resource, with room.
const SEALED_MAX: u32 = 8 * 1024 * 1024;

/// What the seal is bound to: no tenant, no endpoint, and an id that no key has.
const CONTEXT: SealContext = SealContext {
    tenant: TenantId::from_uuid(Uuid::nil()),
    owner: KeyOwner::Endpoint(EndpointId::from_uuid(Uuid::nil())),
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
    /// One write at a time: the last one of a process may begin before the one before has ended.
    writing: Arc<Mutex<()>>,
}

impl LastKnownGood {
    /// The file of a role in the data directory.
    #[must_use]
    pub fn new(directory: &Path, role: NodeRole, sealer: Arc<dyn SecretSealer>) -> Self {
        let name = format!("configuration.{}", role.as_str());
        Self { path: directory.join(name), role, sealer, writing: Arc::default() }
    }

    /// Reads the file. One that cannot be used is set aside, for people to look at, and is then
    /// none; that is logged.
    pub(crate) fn load(&self) -> Option<Loaded> {
        match self.read() {
            Ok(found) => found,
            // It is there and may be good: what cannot be read now is not set aside.
            Err(error @ FileError::Io { .. }) => {
                tracing::error!(
                    %error,
                    "the last-known-good configuration cannot be read; only the control plane has one now"
                );
                None
            }
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

    fn read(&self) -> Result<Option<Loaded>, FileError> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(self.io("read", cause)),
        };
        let mut file = BufReader::new(file);
        let mut start = [0; MAGIC.len() + 1];
        let form = |_| FileError::Form(self.path.clone());
        file.read_exact(&mut start).map_err(form)?;
        if start.strip_prefix(MAGIC) != Some(&[FORM]) {
            return Err(FileError::Form(self.path.clone()));
        }
        let mut reading = Reading::default();
        while !reading.is_complete {
            let inside = self.read_block(&mut file)?;
            let foreign = || FileError::Foreign(self.path.clone());
            reading.add(&inside, self.role).ok_or_else(foreign)?;
        }
        let rest = file.read(&mut [0]).map_err(|cause| self.io("read", cause))?;
        match reading.loaded {
            Some(loaded) if rest == 0 => Ok(Some(loaded)),
            _ => Err(FileError::Damaged(self.path.clone())),
        }
    }

    fn read_block(&self, file: &mut impl Read) -> Result<Zeroizing<Vec<u8>>, FileError> {
        let damaged = || FileError::Damaged(self.path.clone());
        let mut length = [0; 4];
        let mut hash = [0; HASH_BYTES];
        file.read_exact(&mut length).map_err(|_| damaged())?;
        file.read_exact(&mut hash).map_err(|_| damaged())?;
        let length = u32::from_be_bytes(length);
        if length > SEALED_MAX {
            return Err(damaged());
        }
        let mut sealed = vec![0; usize::try_from(length).unwrap_or_default()];
        file.read_exact(&mut sealed).map_err(|_| damaged())?;
        if Sha256::digest(&sealed).as_slice() != hash {
            return Err(damaged());
        }
        let sealed = SealedSecret::from_bytes(sealed);
        self.sealer.open(CONTEXT, &sealed).map_err(|_| FileError::Foreign(self.path.clone()))
    }

    /// Writes the file as a whole or not at all. Durable when it returns.
    pub(crate) fn write(&self, content: &Content) -> Result<(), FileError> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = self.path.parent().unwrap_or_else(|| Path::new("."));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(|cause| self.io("make the directory of", cause))?;
        let unfinished = self.path.with_extension(format!("{}.new", self.role.as_str()));
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&unfinished).map_err(|cause| self.io("write", cause))?;
        self.write_blocks(&mut file, content)?;
        let finish = || {
            file.sync_all()?;
            fs::rename(&unfinished, &self.path)?;
            File::open(directory)?.sync_all()
        };
        finish().map_err(|cause| self.io("write", cause))
    }

    fn write_blocks(&self, file: &mut impl Write, content: &Content) -> Result<(), FileError> {
        let failed = |cause| self.io("write", cause);
        file.write_all(MAGIC).and_then(|()| file.write_all(&[FORM])).map_err(failed)?;
        let mut left = content.resources.as_slice();
        for number in 0_u32.. {
            let mut block = Zeroizing::new(Vec::with_capacity(BLOCK_BYTES * 2));
            content.head(&mut block, self.role, number);
            let last_at = block.len();
            block.push(0);
            while let Some((resource, more)) =
                left.split_first().filter(|_| block.len() < BLOCK_BYTES)
            {
                let length = u32::try_from(resource.len()).unwrap_or(u32::MAX);
                block.extend_from_slice(&length.to_be_bytes());
                block.extend_from_slice(resource);
                left = more;
            }
            block[last_at] = u8::from(left.is_empty());
            let sealed = self.sealer.seal(CONTEXT, &block).map_err(FileError::Seal)?;
            let sealed = sealed.as_bytes();
            let length = u32::try_from(sealed.len()).unwrap_or(u32::MAX);
            file.write_all(&length.to_be_bytes()).map_err(failed)?;
            file.write_all(&Sha256::digest(sealed)).map_err(failed)?;
            file.write_all(sealed).map_err(failed)?;
            if left.is_empty() {
                break;
            }
        }
        Ok(())
    }

    fn io(&self, action: &'static str, cause: io::Error) -> FileError {
        FileError::Io { action, path: self.path.clone(), cause }
    }
}

/// What is to be written: cheap to take, so that nobody waits while it is written.
pub(crate) struct Content {
    at: ConfigPosition,
    proven_at: Option<Timestamp>,
    resources: Vec<Arc<[u8]>>,
}

impl Content {
    pub(crate) fn new(replica: &Replica, proven_at: Option<Timestamp>) -> Self {
        let mut at = replica.at();
        if replica.has_refused() {
            // What was refused is not in the file. A program that starts with it must ask for everything:
            // it may be one that can use it.
            at.epoch = Epoch::default();
        }
        Self { at, proven_at, resources: replica.resources() }
    }

    fn head(&self, block: &mut Vec<u8>, role: NodeRole, number: u32) {
        block.push(role_code(role));
        block.extend_from_slice(self.at.epoch.uuid().as_bytes());
        block.extend_from_slice(&self.at.revision.0.to_be_bytes());
        block.extend_from_slice(&self.proven_at.map_or(0, Timestamp::micros).to_be_bytes());
        block.extend_from_slice(&number.to_be_bytes());
    }
}

/// What the file holds, and when it was last proved that nothing newer was committed.
pub(crate) type Loaded = (Replica, Option<Timestamp>);

/// A file that is being read.
#[derive(Default)]
struct Reading {
    loaded: Option<Loaded>,
    /// Number of the next block.
    number: u32,
    is_complete: bool,
}

impl Reading {
    /// Takes in a block; none when it is not the next one of this file and role.
    fn add(&mut self, block: &[u8], role: NodeRole) -> Option<()> {
        let rest = block.strip_prefix(&[role_code(role)])?;
        let (epoch, rest) = rest.split_first_chunk::<16>()?;
        let (revision, rest) = rest.split_first_chunk::<8>()?;
        let (proven_at, rest) = rest.split_first_chunk::<8>()?;
        let (number, rest) = rest.split_first_chunk::<4>()?;
        let (is_last, mut rest) = rest.split_first()?;
        let at = ConfigPosition {
            epoch: Epoch::from_uuid(Uuid::from_bytes(*epoch)),
            revision: Revision(i64::from_be_bytes(*revision)),
        };
        let proven_at = i64::from_be_bytes(*proven_at);
        let proven_at = (proven_at > 0).then(|| Timestamp::from_micros(proven_at));
        let (replica, first_proven_at) =
            self.loaded.get_or_insert_with(|| (Replica::new(at), proven_at));
        let is_next = u32::from_be_bytes(*number) == self.number
            && replica.at() == at
            && *first_proven_at == proven_at;
        if !is_next {
            return None;
        }
        while !rest.is_empty() {
            let (length, more) = rest.split_first_chunk::<4>()?;
            let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
            let (resource, more) = more.split_at_checked(length)?;
            replica.upsert(resource.to_vec()).ok()?;
            rest = more;
        }
        self.number += 1;
        self.is_complete = *is_last == 1;
        Some(())
    }
}

const fn role_code(role: NodeRole) -> u8 {
    match role {
        NodeRole::Delivery => 1,
        NodeRole::Ingress => 2,
    }
}

#[cfg(test)]
mod tests;
