//! From a request to its answer, step by step.

mod asked;
mod door;
mod encoding;
mod ordering;
mod outcome;
mod reading;
mod taking;
mod trial;
mod trial_words;
mod verdict;

pub(crate) use trial::{Captured, Trial, TrialOrder, TrialOutcome, TrialStep};

use crate::{
    answer::{Answer, Problem, handshake},
    body::{BodyFault, HeldBody, Reading},
    config::{SourceEntry, SourceHandle},
    event::{Mapped, Message, NoEvent},
    fetched::FetchedKeys,
    heavy::Heavy,
    key_meter::KeyMeter,
    memory::{BodyMemory, Owner},
    metrics::Outcome,
    proxies::TrustedProxies,
    receipts::ReceiptQueue,
    spikes::Spikes,
    strangers::Strangers,
    verify::{Judged, Signer, judge},
};
use door::{Door, HeadFault, before_proof, check_head, takes_type};
use encoding::{DecodeFault, Decoded};
use http::{StatusCode, header, request::Parts};
use hyper::{Request as HttpRequest, body::Incoming};
use metrics::counter;
use outcome::Ending;
use reading::Headers;
use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::time::Instant;
use turnbuckle_domain::{
    Clock, EventIntake, IdGenerator, IngestPath, IngestToken, KeyState, ReceiptDecision,
    SecretLearning, SecretSealer, Timestamp,
};
use turnbuckle_signing::scheme::{BodyForm, HandshakeReply, Request, SchemeKey};

/// How long senders are asked to wait before they come again to a disabled source: somebody has to
/// enable it first.
const DISABLED_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Everything a request needs.
pub(crate) struct Pipeline {
    pub(crate) sources: SourceHandle,
    pub(crate) intake: Arc<dyn EventIntake>,
    pub(crate) sealer: Arc<dyn SecretSealer>,
    pub(crate) receipts: ReceiptQueue,
    pub(crate) receipt_retention: Duration,
    pub(crate) spikes: Spikes,
    pub(crate) meter: Arc<KeyMeter>,
    pub(crate) memory: BodyMemory,
    pub(crate) heavy: Heavy,
    pub(crate) strangers: Strangers,
    pub(crate) proxies: TrustedProxies,
    pub(crate) fetched: FetchedKeys,
    pub(crate) learning: Arc<dyn SecretLearning>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: IdGenerator,
}

/// A request that was read, of a known source.
struct Received {
    entry: Arc<SourceEntry>,
    parts: Parts,
    body: HeldBody,
    at: Timestamp,
    /// The id that the scheme read, once it is believed.
    message_id: OnceLock<String>,
    /// Its body after content decoding, where it came compressed and was looked into.
    decoded: OnceLock<Decoded>,
    door: Door,
    /// From its head to its last byte.
    read_in: Duration,
}

impl Received {
    fn new(
        entry: Arc<SourceEntry>,
        parts: Parts,
        body: HeldBody,
        at: Timestamp,
        door: Door,
        read_in: Duration,
    ) -> Self {
        let (message_id, decoded) = (OnceLock::new(), OnceLock::new());
        Self { entry, parts, body, at, message_id, decoded, door, read_in }
    }
}

impl Pipeline {
    /// Answers a request.
    pub(crate) async fn answer(&self, request: HttpRequest<Incoming>, peer: IpAddr) -> Answer {
        let began = Instant::now();
        let (parts, body) = request.into_parts();
        let peer = self.proxies.client(peer, &parts.headers);
        let door = self.door(&parts, peer, began);
        let token = parts.uri.path().strip_prefix(IngestPath::PREFIX).and_then(IngestToken::parse);
        let index = self.sources.load();
        let now = self.clock.now();
        let entry = token.as_ref().and_then(|token| index.by_token(token, now).cloned());
        let (answer, outcome) = match entry {
            Some(entry) => self.known(entry, parts, body, peer, door).await,
            None => {
                let is_unready = token.is_some_and(|token| index.is_unready(&token, now));
                self.unknown(door, body, is_unready).await
            }
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
        door: Door,
    ) -> (Answer, Outcome) {
        let source = entry.source();
        let limits = before_proof(&source.settings.limits);
        let Some(admission) = entry.load.admit(&limits, peer, door.began) else {
            // No receipt: what is limited must not cost the store anything.
            return (Problem::Unavailable.last_answer(), Outcome::Limited);
        };
        if entry.source().disabled.is_some() {
            return self.disabled(entry, parts, door);
        }
        let held = match check_head(&parts.headers, &limits) {
            Ok(()) => {
                let reading = Reading {
                    owner: Owner::Source(source.tenant, source.id),
                    most: usize::try_from(limits.body_bytes).unwrap_or(usize::MAX),
                    deadline: door.began + limits.read_timeout,
                };
                self.memory.read(body, reading).await.map_err(HeadFault::from)
            }
            Err(fault) => Err(fault),
        };
        let (body, fault) = match held {
            Ok(body) => (body, None),
            Err(fault) => (HeldBody { bytes: bytes::Bytes::new(), share: None }, Some(fault)),
        };
        let (at, read_in) = (self.clock.now(), door.began.elapsed());
        let received = Received::new(entry, parts, body, at, door, read_in);
        let ended = match (fault, received.unverifiable()) {
            (None, None) => self.decide(received).await,
            (None, Some(fault)) => {
                let answer = received.door.answer(received.body.bytes.len());
                self.leave_unread(received, fault, answer)
            }
            (Some(fault), _) => self.not_read(received, fault),
        };
        drop(admission);
        ended
    }

    /// A request to a source that takes nothing for now: whoever sent it is to come again, and nothing of
    /// it is read.
    fn disabled(&self, entry: Arc<SourceEntry>, parts: Parts, door: Door) -> (Answer, Outcome) {
        let mut answer = Problem::Unavailable.last_answer();
        let wait = DISABLED_RETRY_AFTER.as_secs().into();
        answer.headers_mut().insert(header::RETRY_AFTER, wait);
        let body = HeldBody { bytes: bytes::Bytes::new(), share: None };
        let received = Received::new(entry, parts, body, self.clock.now(), door, Duration::ZERO);
        let ending = Ending::of(ReceiptDecision::Refused, "disabled", &answer);
        self.leave_unproven(received, ending);
        (answer, Outcome::Disabled)
    }

    /// A request whose body was not read, or not to its end.
    fn not_read(&self, received: Received, fault: HeadFault) -> (Answer, Outcome) {
        let problem = received.door.fault.map_or(fault.problem, |fault| fault.problem);
        self.leave_unread(received, fault, problem.last_answer())
    }

    fn leave_unread(
        &self,
        received: Received,
        fault: HeadFault,
        answer: Answer,
    ) -> (Answer, Outcome) {
        let outcome = match answer.status() {
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Outcome::Unsupported,
            StatusCode::SERVICE_UNAVAILABLE => Outcome::Unavailable,
            _ => Outcome::NotRead,
        };
        let decision = match outcome {
            Outcome::Unavailable => ReceiptDecision::Unavailable,
            _ => ReceiptDecision::Refused,
        };
        let ending = Ending::of(decision, fault.reason, &answer);
        self.leave_unproven(received, ending);
        (answer, outcome)
    }

    /// Does what the request is about.
    async fn decide(&self, received: Received) -> (Answer, Outcome) {
        let length = received.body.bytes.len();
        let fetched = match self.fetched_key(&received).await {
            Ok(fetched) => fetched,
            Err(no_key) => return self.without_key(received, no_key),
        };
        match self.heavy.run(received.work(), || self.examine(&received, fetched.as_deref())).await
        {
            Examined::Refused { reason, signer, .. } => {
                let answer = received.door.answer(length);
                let mut ending = Ending::of(ReceiptDecision::Refused, reason, &answer);
                ending.signer = signer;
                self.leave_unproven(received, ending);
                (answer, Outcome::Unauthorized)
            }
            Examined::Unready { reason } => {
                let answer = Problem::Unavailable.answer();
                let ending = Ending::of(ReceiptDecision::Unavailable, reason, &answer);
                self.leave_unproven(received, ending);
                (answer, Outcome::Unavailable)
            }
            Examined::Handshake { name, answer, signer } => {
                let mut ending = Ending::of(ReceiptDecision::Handshake, name, &answer);
                ending.signer = signer;
                match signer {
                    Some(signer) => {
                        self.verified(&received, signer);
                        self.receipts.leave(self.receipt(received, ending));
                    }
                    None => self.leave_unproven(received, ending),
                }
                (answer, Outcome::Handshake)
            }
            Examined::Offer { name, reply } => self.learn(received, name, reply).await,
            Examined::Confirmation { url, signer } => self.confirm(received, &url, signer).await,
            Examined::Beyond { signer, fault } => {
                self.verified(&received, signer);
                self.beyond(received, signer, fault)
            }
            Examined::Theirs { signer, mapped } => {
                self.verified(&received, signer);
                self.take(received, signer, mapped).await
            }
        }
    }

    /// Verifies over the exact bytes, and only then reads what they say (I9). Waits for nothing.
    fn examine(&self, received: &Received, fetched: Option<&SchemeKey>) -> Examined {
        let url = received.url();
        let headers = Headers(&received.parts.headers);
        let form = received.body_form();
        let signed = match form {
            Some(BodyForm::Decoded) => match received.decode(&self.memory, true) {
                Ok(decoded) => decoded,
                Err(fault) => return Examined::undecoded(fault),
            },
            _ => received.body.bytes.clone(),
        };
        let request = Request {
            method: received.parts.method.as_str(),
            url: &url,
            headers: &headers,
            body: &signed,
        };
        match judge(&received.entry, &request, fetched, self.sealer.as_ref(), received.at) {
            Judged::Refused { kind, reason, signer } => {
                counter!("turnbuckle_ingress_refusals_total", "reason" => kind).increment(1);
                let spike = self.spikes.note(received.entry.source(), kind, received.at);
                spike.into_iter().for_each(|event| self.intake.tell(event));
                if let Some(signer) = signer.filter(|signer| signer.state == KeyState::Revoked) {
                    alarm(received, signer);
                }
                Examined::Refused { kind, reason, signer }
            }
            Judged::Unready { reason } => Examined::Unready { reason },
            Judged::Handshake { name, reply, signer } => {
                Examined::Handshake { name, answer: handshake(reply), signer }
            }
            Judged::Offer { name, reply } => Examined::Offer { name, reply },
            Judged::Confirmation { url, signer } => Examined::Confirmation { url, signer },
            Judged::Theirs { signer, message_id } => {
                if let Some(id) = &message_id {
                    received.message_id.get_or_init(|| id.text.clone());
                }
                if form == Some(BodyForm::Wire)
                    && let Err(fault) = received.decode(&self.memory, false)
                {
                    return Examined::unread(signer, fault);
                }
                if let Some(fault) = received.beyond() {
                    return Examined::Beyond { signer, fault };
                }
                let content_type = received.content_type();
                let source = received.entry.source();
                if !takes_type(&source.settings.limits, &content_type) {
                    return Examined::Theirs { signer, mapped: Err(NoEvent::MediaType) };
                }
                let content = received.content();
                let message = Message {
                    request: &Request { body: content, ..request },
                    body: content,
                    content_type: &content_type,
                    message_id: message_id.as_ref(),
                };
                let mapped = received.entry.compiled.mapping.events(source, &message);
                Examined::Theirs { signer, mapped }
            }
        }
    }

    /// Counts what a key verified, of requests that came.
    fn verified(&self, received: &Received, signer: Signer) {
        let state = signer.state.as_str();
        counter!("turnbuckle_ingress_key_uses_total", "state" => state).increment(1);
        // A key that was fetched is nobody's to rotate.
        if let Some(key) = signer.key {
            self.meter.count(received.entry.source(), key, received.at);
        }
    }

    /// Theirs, and past the limits of their source.
    fn beyond(&self, received: Received, signer: Signer, fault: HeadFault) -> (Answer, Outcome) {
        let answer = fault.problem.answer();
        let mut ending = Ending::of(ReceiptDecision::Refused, fault.reason, &answer);
        ending.signer = Some(signer);
        self.receipts.leave(self.receipt(received, ending));
        (answer, Outcome::NotRead)
    }
}

/// What a request is, and what it says.
enum Examined {
    Refused {
        kind: &'static str,
        reason: String,
        signer: Option<Signer>,
    },
    Handshake {
        name: String,
        answer: Answer,
        signer: Option<Signer>,
    },
    Offer {
        name: String,
        reply: HandshakeReply,
    },
    Confirmation {
        url: String,
        signer: Signer,
    },
    /// It cannot be judged here for now, and its sender has no part in that.
    Unready {
        reason: &'static str,
    },
    Beyond {
        signer: Signer,
        fault: HeadFault,
    },
    Theirs {
        signer: Signer,
        mapped: Result<Vec<Result<Mapped, NoEvent>>, NoEvent>,
    },
}

impl Examined {
    /// Its signed bytes cannot be had.
    fn undecoded(fault: DecodeFault) -> Self {
        match fault {
            DecodeFault::NoMemory => Self::Unready { reason: fault.reason() },
            DecodeFault::Broken | DecodeFault::TooLarge => Self::Refused {
                kind: "content-encoding",
                reason: fault.reason().to_owned(),
                signer: None,
            },
        }
    }

    /// It is proven, and cannot be decoded.
    fn unread(signer: Signer, fault: DecodeFault) -> Self {
        match fault {
            DecodeFault::NoMemory => Self::Unready { reason: fault.reason() },
            DecodeFault::TooLarge => Self::Beyond { signer, fault: BodyFault::from(fault).into() },
            DecodeFault::Broken => {
                Self::Theirs { signer, mapped: Err(NoEvent::Unusable(fault.reason())) }
            }
        }
    }
}

/// Somebody signs with a key that was revoked: a stolen one, or a sender that was not told.
fn alarm(received: &Received, signer: Signer) {
    counter!("turnbuckle_ingress_revoked_key_uses_total").increment(1);
    let source = received.entry.source().id;
    tracing::error!(source.id = %source, key.id = ?signer.key, "a revoked key is in use");
}
