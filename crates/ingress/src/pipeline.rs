//! From a request to its answer, step by step.

mod outcome;
mod reading;
mod taking;

use crate::{
    answer::{Answer, Problem, handshake},
    body::{BodyMemory, HeldBody, discard},
    config::{SourceEntry, SourceHandle},
    event::{Mapped, Message, NoEvent},
    key_meter::KeyMeter,
    metrics::Outcome,
    receipts::ReceiptQueue,
    verify::{Judged, Signer, judge},
};
use http::{HeaderMap, header, request::Parts};
use hyper::{Request as HttpRequest, body::Incoming};
use metrics::counter;
use outcome::Ending;
use reading::Headers;
use std::{net::IpAddr, sync::Arc, time::Duration};
use tokio::time::Instant;
use turnbuckle_domain::{
    Clock, EventIntake, IdGenerator, IngestPath, IngestToken, KeyState, ReceiptDecision,
    SecretSealer, Timestamp, source_limits,
};
use turnbuckle_signing::scheme::Request;

/// How long senders are asked to wait before they come again to a disabled source: somebody has to
/// enable it first.
const DISABLED_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Everything a request needs.
pub(crate) struct Pipeline {
    pub(crate) sources: SourceHandle,
    pub(crate) intake: Arc<dyn EventIntake>,
    pub(crate) sealer: Arc<dyn SecretSealer>,
    pub(crate) receipts: ReceiptQueue,
    pub(crate) meter: Arc<KeyMeter>,
    pub(crate) memory: BodyMemory,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: IdGenerator,
}

/// A request that was read, of a known source.
struct Received {
    entry: Arc<SourceEntry>,
    parts: Parts,
    body: HeldBody,
    at: Timestamp,
}

impl Pipeline {
    /// Answers a request.
    pub(crate) async fn answer(&self, request: HttpRequest<Incoming>, peer: IpAddr) -> Answer {
        let began = Instant::now();
        let (parts, body) = request.into_parts();
        let token = parts.uri.path().strip_prefix(IngestPath::PREFIX).and_then(IngestToken::parse);
        let index = self.sources.load();
        let entry = token.and_then(|token| index.by_token(&token, self.clock.now()).cloned());
        let (answer, outcome) = match entry {
            Some(entry) => self.known(entry, parts, body, peer, began).await,
            None => (unknown(body, began).await, Outcome::UnknownSource),
        };
        outcome.count(began.elapsed());
        answer
    }

    async fn known(
        &self,
        entry: Arc<SourceEntry>,
        parts: Parts,
        body: Incoming,
        peer: IpAddr,
        began: Instant,
    ) -> (Answer, Outcome) {
        let limits = &entry.source().settings.limits;
        let Some(admission) = entry.load.admit(limits, peer, began) else {
            // No receipt: what is limited must not cost the store anything.
            return (Problem::TooMany.last_answer(), Outcome::Limited);
        };
        if entry.source().disabled.is_some() {
            return self.disabled(entry, parts);
        }
        if let Err(fault) = check_head(&parts.headers, limits) {
            return self.not_read(entry, parts, fault);
        }
        let most = usize::try_from(limits.body_bytes).unwrap_or(usize::MAX);
        let deadline = began + limits.read_timeout;
        let body = match self.memory.read(body, most, deadline).await {
            Ok(body) => body,
            Err(fault) => return self.not_read(entry, parts, fault.into()),
        };
        let at = self.clock.now();
        let ended = self.decide(Received { entry, parts, body, at }).await;
        drop(admission);
        ended
    }

    /// A request to a source that takes nothing for now: whoever sent it is to come again, and nothing of
    /// it is read.
    fn disabled(&self, entry: Arc<SourceEntry>, parts: Parts) -> (Answer, Outcome) {
        let mut answer = Problem::Unavailable.last_answer();
        let wait = DISABLED_RETRY_AFTER.as_secs().into();
        answer.headers_mut().insert(header::RETRY_AFTER, wait);
        let body = HeldBody { bytes: bytes::Bytes::new(), share: None };
        let received = Received { entry, parts, body, at: self.clock.now() };
        let ending = Ending::of(ReceiptDecision::Refused, "disabled", &answer);
        self.receipts.leave(self.receipt(received, ending));
        (answer, Outcome::Disabled)
    }

    /// A request whose body was not read, or not to its end.
    fn not_read(
        &self,
        entry: Arc<SourceEntry>,
        parts: Parts,
        fault: HeadFault,
    ) -> (Answer, Outcome) {
        let body = HeldBody { bytes: bytes::Bytes::new(), share: None };
        let received = Received { entry, parts, body, at: self.clock.now() };
        let outcome = match fault.problem {
            Problem::Unsupported => Outcome::Unsupported,
            Problem::Unavailable => Outcome::Unavailable,
            _ => Outcome::NotRead,
        };
        let decision = match outcome {
            Outcome::Unavailable => ReceiptDecision::Unavailable,
            _ => ReceiptDecision::Refused,
        };
        let answer = fault.problem.last_answer();
        let ending = Ending::of(decision, fault.reason, &answer);
        self.receipts.leave(self.receipt(received, ending));
        (answer, outcome)
    }

    /// Does what the request is about.
    async fn decide(&self, received: Received) -> (Answer, Outcome) {
        match self.examine(&received) {
            Examined::Refused { reason, signer } => {
                let answer = Problem::Unauthorized.answer();
                let mut ending = Ending::of(ReceiptDecision::Refused, reason, &answer);
                ending.signer = signer;
                self.receipts.leave(self.receipt(received, ending));
                (answer, Outcome::Unauthorized)
            }
            Examined::Handshake { name, answer, signer } => {
                let mut ending = Ending::of(ReceiptDecision::Handshake, name, &answer);
                ending.signer = signer;
                self.receipts.leave(self.receipt(received, ending));
                (answer, Outcome::Handshake)
            }
            Examined::Unsupported { signer } => self.unsupported(received, signer),
            Examined::Theirs { signer, mapped } => self.take(received, signer, mapped).await,
        }
    }

    /// Verifies over the exact bytes, and only then reads what they say (I9). Waits for nothing.
    fn examine(&self, received: &Received) -> Examined {
        let url = received.url();
        let headers = Headers(&received.parts.headers);
        let request = Request {
            method: received.parts.method.as_str(),
            url: &url,
            headers: &headers,
            body: &received.body.bytes,
        };
        match judge(&received.entry, &request, self.sealer.as_ref(), received.at) {
            Judged::Refused { kind, reason, signer } => {
                counter!("turnbuckle_ingress_refusals_total", "reason" => kind).increment(1);
                if let Some(signer) = signer.filter(|signer| signer.state == KeyState::Revoked) {
                    alarm(received, signer);
                }
                Examined::Refused { reason, signer }
            }
            Judged::Handshake { name, reply, signer } => {
                self.verified(received, signer);
                Examined::Handshake { name, answer: handshake(reply), signer }
            }
            Judged::Theirs { signer, message_id } => {
                let state = signer.state.as_str();
                counter!("turnbuckle_ingress_key_uses_total", "state" => state).increment(1);
                self.verified(received, Some(signer));
                let content_type = received.content_type();
                let source = received.entry.source();
                if !takes_type(&source.settings.limits, &content_type) {
                    return Examined::Unsupported { signer };
                }
                let message = Message {
                    request: &request,
                    body: &received.body.bytes,
                    content_type: &content_type,
                    message_id: message_id.as_deref(),
                    received_at: received.at,
                };
                let mapped = received.entry.compiled.mapping.events(source, &message);
                Examined::Theirs { signer, mapped }
            }
        }
    }

    fn verified(&self, received: &Received, signer: Option<Signer>) {
        if let Some(signer) = signer {
            self.meter.count(received.entry.source(), signer.key, received.at);
        }
    }

    fn unsupported(&self, received: Received, signer: Signer) -> (Answer, Outcome) {
        let answer = Problem::Unsupported.answer();
        let reason = "its media type is not among those that the source takes";
        let mut ending = Ending::of(ReceiptDecision::Refused, reason, &answer);
        ending.signer = Some(signer);
        self.receipts.leave(self.receipt(received, ending));
        (answer, Outcome::Unsupported)
    }
}

/// What a request is, and what it says.
enum Examined {
    Refused { reason: String, signer: Option<Signer> },
    Handshake { name: String, answer: Answer, signer: Option<Signer> },
    Unsupported { signer: Signer },
    Theirs { signer: Signer, mapped: Result<Vec<Result<Mapped, NoEvent>>, NoEvent> },
}

/// The same answer as that of a bad signature, after as much reading.
async fn unknown(body: Incoming, began: Instant) -> Answer {
    let most = usize::try_from(source_limits::BODY_BYTES_DEFAULT).unwrap_or(usize::MAX);
    match discard(body, most, began + source_limits::READ_TIMEOUT_DEFAULT).await {
        Ok(()) => Problem::Unauthorized.answer(),
        Err(fault) => HeadFault::from(fault).problem.last_answer(),
    }
}

/// Why a request is not read.
struct HeadFault {
    problem: Problem,
    reason: &'static str,
}

impl From<crate::body::BodyFault> for HeadFault {
    fn from(fault: crate::body::BodyFault) -> Self {
        use crate::body::BodyFault;
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

/// What the head alone decides.
fn check_head(
    headers: &HeaderMap,
    limits: &turnbuckle_domain::IntakeLimits,
) -> Result<(), HeadFault> {
    // As they are sent: name, colon, blank, value, line end.
    let line = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        name.as_str().len() + value.len() + 4
    };
    let bytes: usize = headers.iter().map(line).sum();
    let too_many = headers.len() > usize::try_from(limits.headers).unwrap_or(usize::MAX)
        || bytes > usize::try_from(limits.header_bytes).unwrap_or(usize::MAX);
    if too_many {
        let reason = "it has more or longer headers than the source takes";
        return Err(HeadFault { problem: Problem::HeadersTooLarge, reason });
    }
    let plain = |value: &http::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    if !headers.get_all(header::CONTENT_ENCODING).iter().all(plain) {
        let reason = "its body has a content encoding, and signatures are over the plain bytes";
        return Err(HeadFault { problem: Problem::Unsupported, reason });
    }
    Ok(())
}

fn takes_type(limits: &turnbuckle_domain::IntakeLimits, content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    limits.content_types.is_empty()
        || limits.content_types.iter().any(|taken| taken.eq_ignore_ascii_case(essence))
}

/// Somebody signs with a key that was revoked: a stolen one, or a sender that was not told.
fn alarm(received: &Received, signer: Signer) {
    counter!("turnbuckle_ingress_revoked_key_uses_total").increment(1);
    let source = received.entry.source().id;
    tracing::error!(source.id = %source, key.id = %signer.key, "a revoked key is in use");
}

/// What the mapping said, in the words of a receipt.
fn words(fault: NoEvent) -> &'static str {
    match fault {
        NoEvent::Unusable(reason) => reason,
        NoEvent::UnknownVersion => "its version is not among the known ones",
    }
}
