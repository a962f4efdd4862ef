//! Reading a body: bounded in bytes, in time, and together with all other bodies.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Incoming};
use std::sync::Arc;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

/// Bytes of all bodies in memory together: sixty of the largest, a quarter of a million of the usual.
const BODIES_KIB: usize = 256 * 1024;
/// What is set aside for a body before its first byte: more only as it comes, whatever it announces.
const FIRST_BYTES: usize = 4 * 1024;
const KIB: usize = 1024;

/// Memory for bodies.
#[derive(Clone)]
pub(crate) struct BodyMemory(Arc<Semaphore>);

/// A body with its share of the memory.
pub(crate) struct HeldBody {
    pub(crate) bytes: Bytes,
    pub(crate) share: Option<OwnedSemaphorePermit>,
}

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyFault {
    TooLarge,
    TooSlow,
    /// The sender went away, or broke the protocol.
    Broken,
    /// Bodies of other requests take all memory.
    NoMemory,
}

impl Default for BodyMemory {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(BODIES_KIB)))
    }
}

impl BodyMemory {
    /// Reads a body of at most so many bytes until the deadline.
    pub(crate) async fn read(
        &self,
        mut body: Incoming,
        most: usize,
        deadline: Instant,
    ) -> Result<HeldBody, BodyFault> {
        if announced(&body).is_some_and(|length| length > most as u64) {
            return Err(BodyFault::TooLarge);
        }
        let mut bytes = BytesMut::new();
        let mut share = self.share(FIRST_BYTES)?;
        let mut held = FIRST_BYTES;
        while let Some(chunk) = next(&mut body, deadline).await? {
            let length = bytes.len() + chunk.len();
            if length > most {
                return Err(BodyFault::TooLarge);
            }
            if length > held {
                share.merge(self.share(length - held)?);
                held = length.next_multiple_of(KIB);
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(HeldBody { bytes: bytes.freeze(), share: Some(share) })
    }

    fn share(&self, bytes: usize) -> Result<OwnedSemaphorePermit, BodyFault> {
        let kib = u32::try_from(bytes.div_ceil(KIB)).map_err(|_| BodyFault::NoMemory)?;
        Arc::clone(&self.0).try_acquire_many_owned(kib).map_err(|_| BodyFault::NoMemory)
    }
}

/// Reads a body of an unknown sender and keeps nothing of it: its answer is to take as long, and to
/// leave the connection as usable, as that of a known one.
pub(crate) async fn discard(
    mut body: Incoming,
    most: usize,
    deadline: Instant,
) -> Result<(), BodyFault> {
    if announced(&body).is_some_and(|length| length > most as u64) {
        return Err(BodyFault::TooLarge);
    }
    let mut length = 0;
    while let Some(chunk) = next(&mut body, deadline).await? {
        length += chunk.len();
        if length > most {
            return Err(BodyFault::TooLarge);
        }
    }
    Ok(())
}

fn announced(body: &Incoming) -> Option<u64> {
    body.size_hint().exact()
}

/// The next bytes; none at the end. Trailers are not looked at.
async fn next(body: &mut Incoming, deadline: Instant) -> Result<Option<Bytes>, BodyFault> {
    loop {
        let frame = timeout_at(deadline, body.frame()).await.map_err(|_| BodyFault::TooSlow)?;
        match frame {
            None => return Ok(None),
            Some(Err(_)) => return Err(BodyFault::Broken),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}
