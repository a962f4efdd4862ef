//! What holds before a request is proven: the same for every path.
//!
//! Limits that a source sets wider than the defaults hold at once. Those that it sets narrower hold once
//! the request is proven: before, they would tell a stranger that the path is somebody's.

use super::{
    Pipeline, Received,
    encoding::{Encoding, takes_gzip},
};
use crate::{
    answer::{Answer, Problem},
    body::{BodyFault, Reading},
    metrics::Outcome,
    strangers::Stranger,
};
use http::{HeaderMap, request::Parts};
use hyper::body::Incoming;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use turnbuckle_domain::IntakeLimits;

/// Bytes hashed in one go in place of a body that was not kept.
const FILLER: [u8; 4096] = [0; 4096];
/// Times that a body of a source with one key is hashed: for its signature and for its receipt.
const HASHES: usize = 2;

/// Why a request is not read.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeadFault {
    pub(super) problem: Problem,
    pub(super) reason: &'static str,
}

/// How a request came in, as any path sees it.
pub(super) struct Door {
    pub(super) stranger: Stranger,
    /// What its head breaks of the defaults.
    pub(super) fault: Option<HeadFault>,
    pub(super) encoding: Encoding,
    pub(super) began: Instant,
}

impl Door {
    /// The answer of a path that nobody has.
    pub(super) fn answer(&self, body_bytes: usize) -> Answer {
        let limits = IntakeLimits::default();
        if self.stranger.admission.is_none() {
            return Problem::Unavailable.last_answer();
        }
        if let Some(fault) = self.fault {
            return fault.problem.last_answer();
        }
        if body_bytes > bytes(limits.body_bytes) {
            return Problem::TooLarge.last_answer();
        }
        if self.began.elapsed() > limits.read_timeout {
            return Problem::TooSlow.last_answer();
        }
        if self.encoding == Encoding::Gzip {
            return Problem::Unsupported.last_answer();
        }
        Problem::Unauthorized.answer()
    }
}

impl Pipeline {
    /// Does with a request to a path that nobody has what is done with one that is not its sender's.
    /// `is_unready`: somebody has it, and this process cannot use it: its sender is to come again.
    pub(super) async fn unknown(
        &self,
        door: Door,
        body: Incoming,
        is_unready: bool,
    ) -> (Answer, Outcome) {
        if door.stranger.admission.is_none() || door.fault.is_some() {
            return (door.answer(0), Outcome::UnknownSource);
        }
        let limits = IntakeLimits::default();
        let reading = Reading {
            owner: door.stranger.owner,
            most: bytes(limits.body_bytes),
            deadline: door.began + limits.read_timeout,
        };
        let answer = match self.memory.discard(body, reading).await {
            Ok(_) if is_unready => {
                return (Problem::Unavailable.answer(), Outcome::Unavailable);
            }
            Ok(length) => {
                self.heavy.run(length, || hash_filler(length)).await;
                match door.encoding {
                    Encoding::Plain => Problem::Unauthorized.answer(),
                    _ => Problem::Unsupported.last_answer(),
                }
            }
            Err(fault) => HeadFault::from(fault).problem.last_answer(),
        };
        (answer, Outcome::UnknownSource)
    }
}

impl Received {
    /// Why a body that was read cannot be verified: it came compressed, and its scheme does not say which
    /// bytes are signed then.
    pub(super) fn unverifiable(&self) -> Option<HeadFault> {
        let takes = takes_gzip(self.entry.compiled.verifier.scheme());
        let reason = "its body is compressed, and its scheme does not say which bytes are signed then: \
                      set body_form, where its sender documents it";
        let fault = HeadFault { problem: Problem::Unsupported, reason };
        (self.door.encoding == Encoding::Gzip && !takes).then_some(fault)
    }

    /// What a proven request breaks of the limits of its source, where those are narrower.
    pub(super) fn beyond(&self) -> Option<HeadFault> {
        let limits = &self.entry.source().settings.limits;
        let head = check_head(&self.parts.headers, limits).err();
        head.or_else(|| {
            let fault = match () {
                () if self.content().len() > bytes(limits.body_bytes) => BodyFault::TooLarge,
                () if self.read_in > limits.read_timeout => BodyFault::TooSlow,
                () => return None,
            };
            Some(fault.into())
        })
    }
}

/// What is read of a request before it is proven.
pub(super) fn before_proof(own: &IntakeLimits) -> IntakeLimits {
    let every = IntakeLimits::default();
    IntakeLimits {
        body_bytes: own.body_bytes.max(every.body_bytes),
        header_bytes: own.header_bytes.max(every.header_bytes),
        headers: own.headers.max(every.headers),
        read_timeout: own.read_timeout.max(every.read_timeout),
        content_types: Vec::new(),
        ..*own
    }
}

/// What the head alone decides.
pub(super) fn check_head(headers: &HeaderMap, limits: &IntakeLimits) -> Result<(), HeadFault> {
    // As they are sent: name, colon, blank, value, line end.
    let line = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        name.as_str().len() + value.len() + 4
    };
    let length: usize = headers.iter().map(line).sum();
    if headers.len() > bytes(limits.headers) || length > bytes(limits.header_bytes) {
        let reason = "it has more or longer headers than the source takes";
        return Err(HeadFault { problem: Problem::HeadersTooLarge, reason });
    }
    if Encoding::of(headers) == Encoding::Other {
        let reason =
            "its body has a content encoding that is not taken: send it plain, or with gzip";
        return Err(HeadFault { problem: Problem::Unsupported, reason });
    }
    Ok(())
}

/// Whether its media type is among those that the source takes.
pub(super) fn takes_type(limits: &IntakeLimits, content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    limits.content_types.is_empty()
        || limits.content_types.iter().any(|taken| taken.eq_ignore_ascii_case(essence))
}

impl Pipeline {
    /// Looks at a head as any path does.
    pub(super) fn door(&self, parts: &Parts, peer: std::net::IpAddr, began: Instant) -> Door {
        Door {
            stranger: self.strangers.meet(parts.uri.path(), peer, began),
            fault: check_head(&parts.headers, &IntakeLimits::default()).err(),
            encoding: Encoding::of(&parts.headers),
            began,
        }
    }
}

impl From<BodyFault> for HeadFault {
    fn from(fault: BodyFault) -> Self {
        let (problem, reason) = match fault {
            BodyFault::TooLarge => (Problem::TooLarge, "its body is larger than the source takes"),
            BodyFault::TooSlow => (Problem::TooSlow, "its body did not come in time"),
            BodyFault::Broken => (Problem::Malformed, "its body broke off"),
            BodyFault::NoMemory => {
                (Problem::Unavailable, "bodies of other requests took all memory set aside")
            }
        };
        Self { problem, reason }
    }
}

/// As much work as a known path has with a body of this length.
fn hash_filler(length: usize) {
    for _ in 0..HASHES {
        let mut hash = Sha256::new();
        let mut left = length;
        while left > 0 {
            let part = left.min(FILLER.len());
            hash.update(&FILLER[..part]);
            left -= part;
        }
        std::hint::black_box(hash.finalize());
    }
}

fn bytes(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
