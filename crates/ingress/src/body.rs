//! Reading a body: bounded in bytes, in time, and together with all other bodies.

use crate::memory::{BodyMemory, Owner, Share};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Incoming};
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};
use turnbuckle_domain::source_limits;

/// What is set aside for a body before its first byte: more only as it comes, whatever it announces.
const FIRST_BYTES: usize = 4 * 1024;
/// Longest body that is read, whoever takes it: one that is too large for its path is read away up to
/// here, so that the answer reaches a sender that is still writing, and so that no path is told from
/// another by when it gives up.
const READ_BYTES: usize = source_limits::BODY_BYTES_MAX as usize;

/// A body with its share of the memory.
pub(crate) struct HeldBody {
    pub(crate) bytes: Bytes,
    pub(crate) share: Option<Arc<Share>>,
}

/// How a body is read.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) owner: Owner,
    /// Largest body.
    pub(crate) most: usize,
    pub(crate) deadline: Instant,
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

impl BodyMemory {
    /// Reads a body.
    pub(crate) async fn read(
        &self,
        body: Incoming,
        reading: Reading,
    ) -> Result<HeldBody, BodyFault> {
        let mut bytes = Vec::new();
        let (_, mut share) = self.follow(body, reading, Some(&mut bytes)).await?;
        bytes.shrink_to_fit();
        share.shrink(bytes.capacity());
        Ok(HeldBody { bytes: Bytes::from(bytes), share: Some(Arc::new(share)) })
    }

    /// Reads a body of a path that nobody has, as if it were one that somebody has, and keeps nothing of
    /// it but its length.
    pub(crate) async fn discard(
        &self,
        body: Incoming,
        reading: Reading,
    ) -> Result<usize, BodyFault> {
        Ok(self.follow(body, reading, None).await?.0)
    }

    async fn follow(
        &self,
        mut body: Incoming,
        reading: Reading,
        mut kept: Option<&mut Vec<u8>>,
    ) -> Result<(usize, Share), BodyFault> {
        let announced = announced(&body);
        if announced.is_some_and(|length| length > READ_BYTES) {
            return Err(BodyFault::TooLarge);
        }
        let mut share = self.share(reading.owner, FIRST_BYTES).ok_or(BodyFault::NoMemory)?;
        let mut length = 0;
        let mut capacity = announced.map_or(FIRST_BYTES, |length| length.min(FIRST_BYTES));
        while let Some(chunk) = next(&mut body, reading.deadline).await? {
            length += chunk.len();
            if length > READ_BYTES {
                return Err(BodyFault::TooLarge);
            }
            if length > reading.most {
                if let Some(bytes) = kept.take() {
                    *bytes = Vec::new();
                }
                share.shrink(0);
                continue;
            }
            if length > capacity {
                capacity = grown(capacity, length, announced);
                if !share.grow(capacity) {
                    return Err(BodyFault::NoMemory);
                }
            }
            if let Some(bytes) = &mut kept {
                bytes.reserve_exact(capacity - bytes.len());
                bytes.extend_from_slice(&chunk);
            }
        }
        if length > reading.most { Err(BodyFault::TooLarge) } else { Ok((length, share)) }
    }
}

/// The next size of a buffer that must hold so much: twice the last, and no more than will come.
fn grown(capacity: usize, needed: usize, announced: Option<usize>) -> usize {
    let doubled = needed.max(capacity.saturating_mul(2));
    match announced {
        Some(announced) if announced >= needed => doubled.min(announced),
        _ => doubled,
    }
}

fn announced(body: &Incoming) -> Option<usize> {
    body.size_hint().exact().map(|length| usize::try_from(length).unwrap_or(usize::MAX))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_never_grows_beyond_twice_its_need() {
        assert_eq!(grown(4_096, 5_000, None), 8_192);
        assert_eq!(grown(4_096, 20_000, None), 20_000);
        assert_eq!(grown(4_096, 5_000, Some(6_000)), 6_000);
        // More than was announced cannot come; if it did, it would count.
        assert_eq!(grown(4_096, 5_000, Some(4_500)), 8_192);
    }
}
