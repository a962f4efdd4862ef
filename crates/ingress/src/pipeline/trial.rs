//! What the pipeline makes of a request, told step by step instead of done.
//!
//! The same code judges and reads it as for a request that came; only what would be stored is looked up
//! instead, unless the operator wants it stored.

use super::{
    Examined, Pipeline, Received,
    door::check_head,
    taking::{Refused, Tally},
    trial_words as words,
};
use crate::{
    answer::{Answer, Problem, accepted, duplicate},
    body::HeldBody,
    config::SourceEntry,
    event::{Mapped, NoEvent},
    fetched::NoKey,
    keys::{OpenKey, Opener},
};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, request::Parts};
use http_body_util::BodyExt as _;
use std::{net::Ipv4Addr, sync::Arc, time::Duration};
use tokio::time::Instant;
use turnbuckle_domain::{Error, EventUid, IngestPath, KeyId, KeyState, Timestamp};
use turnbuckle_signing::scheme::{Context, SampleError, SampleOrder};

/// The type of a sample's event, where its source reads one.
const EVENT_TYPE: &str = "source.test";
/// Microseconds of a millisecond.
const MILLISECOND: i64 = 1_000;

/// A request to be tried.
pub(crate) struct TrialOrder {
    /// The key that signs a sample; none: the active one, else the staged one.
    pub(crate) key: Option<KeyId>,
    /// A request instead of a sample.
    pub(crate) captured: Option<Captured>,
    /// Whether it is taken in earnest.
    pub(crate) deliver: bool,
}

/// A request as an operator has it.
pub(crate) struct Captured {
    pub(crate) method: String,
    pub(crate) query: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
}

/// How a step went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrialOutcome {
    Passed,
    Failed,
    Skipped,
}

/// One step of the pipeline.
#[derive(Debug)]
pub(crate) struct TrialStep {
    pub(crate) step: &'static str,
    pub(crate) outcome: TrialOutcome,
    pub(crate) detail: String,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Trial {
    pub(crate) steps: Vec<TrialStep>,
    pub(crate) accepted: bool,
    pub(crate) status: u16,
    pub(crate) body: String,
    pub(crate) key: Option<KeyId>,
    pub(crate) event: Option<EventUid>,
    pub(crate) summary: String,
}

impl Trial {
    pub(super) fn passed(&mut self, step: &'static str, detail: impl Into<String>) {
        self.add(step, TrialOutcome::Passed, detail);
    }

    pub(super) fn failed(&mut self, step: &'static str, detail: impl Into<String>) {
        self.add(step, TrialOutcome::Failed, detail);
    }

    pub(super) fn skipped(&mut self, step: &'static str, detail: impl Into<String>) {
        self.add(step, TrialOutcome::Skipped, detail);
    }

    fn add(&mut self, step: &'static str, outcome: TrialOutcome, detail: impl Into<String>) {
        self.steps.push(TrialStep { step, outcome, detail: detail.into() });
    }

    /// The first step that stopped the request.
    fn stopped_by(&self) -> Option<&TrialStep> {
        self.steps.iter().find(|step| step.outcome == TrialOutcome::Failed)
    }
}

impl Pipeline {
    /// Tries a request. What is wrong with it is told in its steps; an error means that nothing could
    /// be tried.
    pub(crate) async fn try_out(
        &self,
        entry: Arc<SourceEntry>,
        order: TrialOrder,
    ) -> Result<Trial, Error> {
        let mut trial = Trial::default();
        let at = self.clock.now();
        let request = match order.captured {
            Some(captured) => Some(captured),
            None => self.sample(&entry, order.key, at, &mut trial),
        };
        let Some(captured) = request else {
            trial.summary = words::no_sample(&trial);
            return Ok(trial);
        };
        let parts = parts(&entry, &captured)?;
        let body = HeldBody { bytes: captured.body, share: None };
        let received = self.tried(entry, parts, body, at);
        let answer = self.walk(&received, &mut trial).await?;
        let stopped = trial.stopped_by().is_some();
        let answer = match (order.deliver, stopped) {
            (true, false) => Some(self.deliver(received, &mut trial).await?),
            (false, false) => {
                trial.skipped("commit", "nothing was stored: this is a test; deliver stores it");
                answer
            }
            (_, true) => answer,
        };
        self.close(&mut trial, answer).await;
        Ok(trial)
    }

    /// A request that did not come through the listener: nobody counts it.
    fn tried(
        &self,
        entry: Arc<SourceEntry>,
        parts: Parts,
        body: HeldBody,
        at: Timestamp,
    ) -> Received {
        let door = self.door(&parts, Ipv4Addr::LOCALHOST.into(), Instant::now());
        Received::new(entry, parts, body, at, door, Duration::ZERO)
    }

    /// A request as the source's sender would sign it.
    fn sample(
        &self,
        entry: &Arc<SourceEntry>,
        wanted: Option<KeyId>,
        at: Timestamp,
        trial: &mut Trial,
    ) -> Option<Captured> {
        let (source, verifier) = (entry.source(), &entry.compiled.verifier);
        let opener = Opener {
            tenant: source.tenant,
            source: source.id,
            verifier,
            sealer: self.sealer.as_ref(),
        };
        if verifier.scheme().fetches_keys() {
            trial.failed("sample", words::cannot_sign(SampleError::FetchedKey));
            return None;
        }
        if verifier.scheme().needs_private_key() {
            trial.failed("sample", words::cannot_sign(SampleError::PublicKey));
            return None;
        }
        let keys = entry.keys.signing(&opener, at);
        let Some(key) = chosen(&keys, wanted, at) else {
            trial.failed("sample", words::no_key(wanted));
            return None;
        };
        let id = format!("test_{}", self.ids.uuid().simple());
        let wishes = entry.compiled.mapping.wishes(source, EVENT_TYPE, &id);
        let texts = source.scheme_settings.iter();
        let settings: Vec<_> = texts.map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let now_unix_ms = at.micros().div_euclid(MILLISECOND);
        let context = Context { now_unix_ms, settings: &settings };
        let url = base_url(entry);
        let order = SampleOrder { url: &url, message_id: &id, wishes: &wishes, context };
        match verifier.sample(key.material, &order) {
            Ok(sample) => {
                trial.passed("sample", words::sample(&sample, key.key, at));
                let query = sample.url.split_once('?').map_or("", |(_, query)| query);
                Some(Captured {
                    method: sample.method.to_owned(),
                    query: query.to_owned(),
                    headers: sample.headers,
                    body: sample.body.into(),
                })
            }
            Err(error) => {
                trial.failed("sample", words::cannot_sign(error));
                None
            }
        }
    }

    /// Every step up to the commit; the answer that it comes to.
    async fn walk(&self, received: &Received, trial: &mut Trial) -> Result<Option<Answer>, Error> {
        if received.entry.source().disabled.is_some() {
            trial.failed("source", words::DISABLED);
            return Ok(Some(Problem::Unavailable.answer()));
        }
        if let Some(problem) = limits(received, trial) {
            return Ok(Some(problem.answer()));
        }
        trial.passed("source", words::source(&received.entry, received.at));
        let fetched = match self.fetched_key(received).await {
            Ok(None) => None,
            Ok(Some(key)) => {
                let detail = format!("the sender's key {} was fetched", key.fingerprint());
                trial.passed("fetched-key", detail);
                Some(key)
            }
            Err(NoKey::Refused(refusal)) => {
                trial.failed("fetched-key", refusal.to_string());
                return Ok(Some(Problem::Unauthorized.answer()));
            }
            Err(NoKey::Unavailable(reason)) => {
                trial.failed("fetched-key", reason);
                return Ok(Some(Problem::Unavailable.answer()));
            }
        };
        match self.examine(received, fetched.as_deref()) {
            Examined::Refused { kind, reason, signer } => {
                trial.key = signer.and_then(|signer| signer.key);
                words::refused(trial, received, kind, &reason, signer);
                Ok(Some(match received.body_form() {
                    // As a path that takes no such body.
                    Some(_) => Problem::Unsupported.answer(),
                    None => Problem::Unauthorized.answer(),
                }))
            }
            Examined::Handshake { name, answer, signer } => {
                words::handshake(trial, received, &name, signer);
                Ok(Some(answer))
            }
            Examined::Offer { name, .. } => {
                trial.passed("handshake", words::offer(&name));
                Ok(None)
            }
            Examined::Confirmation { signer, .. } => {
                words::confirmation(trial, received, signer);
                Ok(None)
            }
            Examined::Unready { reason } => {
                trial.failed("signature", reason);
                Ok(Some(Problem::Unavailable.answer()))
            }
            Examined::Beyond { signer, fault } => {
                words::verified(trial, received, signer);
                trial.failed("limits", fault.reason);
                Ok(Some(fault.problem.answer()))
            }
            Examined::Theirs { signer, mapped: Err(NoEvent::MediaType) } => {
                words::verified(trial, received, signer);
                trial.failed("media-type", words::media_type(received));
                Ok(Some(unusable(received, &[NoEvent::MediaType])))
            }
            Examined::Theirs { signer, mapped } => {
                words::verified(trial, received, signer);
                trial.passed("media-type", words::media_type(received));
                self.events(received, trial, mapped).await
            }
        }
    }

    /// What the request says, and whether it was said before.
    async fn events(
        &self,
        received: &Received,
        trial: &mut Trial,
        mapped: Result<Vec<Result<Mapped, NoEvent>>, NoEvent>,
    ) -> Result<Option<Answer>, Error> {
        let settings = &received.entry.source().settings;
        let items = mapped.unwrap_or_else(|fault| vec![Err(fault)]);
        let good: Vec<&Mapped> = items.iter().filter_map(|item| item.as_ref().ok()).collect();
        let faults: Vec<NoEvent> =
            items.iter().filter_map(|item| item.as_ref().err().copied()).collect();
        if let (true, Some(fault)) = (good.is_empty(), faults.first()) {
            trial.failed("event", words::fault(received, *fault));
            return Ok(Some(unusable(received, &faults)));
        }
        trial.passed("event", words::events(&good, &faults));
        let (tenant, slug) =
            (received.entry.source().tenant, received.entry.source().slug.as_str());
        let mut seen = Vec::new();
        for mapped in &good {
            let id = &mapped.event.draft.event_id;
            if !id.is_empty() {
                seen.extend(self.intake.first_accepted(tenant, slug, id).await?.map(|(_, at)| at));
            }
        }
        trial.passed("dedup", words::dedup(good.len(), &seen));
        let is_repeat = !good.is_empty() && seen.len() == good.len();
        Ok(Some(match is_repeat {
            true => duplicate(&settings.answers, seen.first().copied()),
            false => accepted(&settings.answers),
        }))
    }

    /// Takes it as if it had come.
    async fn deliver(&self, received: Received, trial: &mut Trial) -> Result<Answer, Error> {
        let body = HeldBody { bytes: received.body.bytes.clone(), share: None };
        let (entry, parts) = (Arc::clone(&received.entry), received.parts.clone());
        let again = self.tried(entry, parts, body, received.at);
        let source = Arc::clone(&received.entry);
        let (answer, _) = self.decide(received).await;
        let id = self.first_id(&again);
        if let Some(id) = id {
            let (tenant, slug) = (source.source().tenant, source.source().slug.as_str());
            trial.event = self.intake.first_accepted(tenant, slug, &id).await?.map(|(uid, _)| uid);
        }
        match answer.status().is_success() {
            true => trial.passed("commit", words::DELIVERED),
            false => trial.failed("commit", "it was not taken: see the answer and the receipt"),
        }
        Ok(answer)
    }

    /// The id of the first event of a request that was taken.
    fn first_id(&self, received: &Received) -> Option<String> {
        let Examined::Theirs { mapped, .. } = self.examine(received, None) else { return None };
        let first = mapped.ok()?.into_iter().find_map(Result::ok)?;
        Some(first.event.draft.event_id).filter(|id| !id.is_empty())
    }

    async fn close(&self, trial: &mut Trial, answer: Option<Answer>) {
        let is_handshake = trial
            .steps
            .iter()
            .any(|step| step.step == "handshake" && step.outcome == TrialOutcome::Passed);
        if let Some(answer) = answer {
            trial.status = answer.status().as_u16();
            let body = answer.into_body().collect().await;
            // An infallible body; that of a handshake holds a challenge or a MAC.
            let bytes = body.map_or_else(|never| match never {}, |body| body.to_bytes());
            if !is_handshake {
                trial.body = String::from_utf8_lossy(&bytes).into_owned();
            }
            let detail = words::answer(trial.status, is_handshake);
            trial.passed("answer", detail);
        }
        trial.accepted = trial.stopped_by().is_none();
        trial.summary = words::summary(trial);
    }
}

/// Whether it keeps the limits of its source; else what its sender is told.
fn limits(received: &Received, trial: &mut Trial) -> Option<Problem> {
    let limits = &received.entry.source().settings.limits;
    let most = usize::try_from(limits.body_bytes).unwrap_or(usize::MAX);
    if received.body.bytes.len() > most {
        trial.failed("limits", words::too_large(received.body.bytes.len(), most));
        return Some(Problem::TooLarge);
    }
    let head = check_head(&received.parts.headers, limits).err();
    if let Some(fault) = head.or_else(|| received.unverifiable()) {
        trial.failed("limits", fault.reason);
        return Some(fault.problem);
    }
    trial.passed("limits", words::limits(received, limits));
    None
}

/// What the sender of a request is told that has no event.
fn unusable(received: &Received, faults: &[NoEvent]) -> Answer {
    let refused: Vec<Refused> = faults.iter().map(|fault| Refused::of(*fault)).collect();
    let tally = Tally { events: refused.len(), refused, ..Tally::default() };
    tally.verdict(&received.entry.source().settings).answer
}

/// The key named, else the active one, else the staged one.
fn chosen<'k>(
    keys: &'k [OpenKey<'k>],
    wanted: Option<KeyId>,
    at: Timestamp,
) -> Option<&'k OpenKey<'k>> {
    match wanted {
        Some(id) => keys.iter().find(|open| open.key.id == id),
        None => [KeyState::Active, KeyState::Staged]
            .into_iter()
            .find_map(|state| keys.iter().find(|open| open.key.state_at(at) == state)),
    }
}

/// The URL that a sender has been given.
fn base_url(entry: &SourceEntry) -> String {
    let source = entry.source();
    let own = || {
        let token = source.path.token.as_str();
        format!("{}{}{token}", super::reading::NO_HOST, IngestPath::PREFIX)
    };
    source.public_url.clone().unwrap_or_else(own)
}

/// The head of a request as it would have come.
fn parts(entry: &SourceEntry, captured: &Captured) -> Result<Parts, Error> {
    let path = format!("{}{}", IngestPath::PREFIX, entry.source().path.token.as_str());
    let uri = match captured.query.is_empty() {
        true => path,
        false => format!("{path}?{}", captured.query),
    };
    let invalid = |field: &str, message: &str| Error::invalid(field.to_owned(), message.to_owned());
    let request = http::Request::builder().method(captured.method.as_str()).uri(uri).body(());
    let request = request.map_err(|_| {
        invalid("request", "its method or its query cannot be those of an HTTP request")
    })?;
    let (mut parts, ()) = request.into_parts();
    for (index, (name, value)) in captured.headers.iter().enumerate() {
        let pair = (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value.as_str()));
        let (Ok(name), Ok(value)) = pair else {
            let field = format!("request.headers[{index}]");
            return Err(invalid(&field, "is no HTTP header: check its name and its value"));
        };
        parts.headers.append(name, value);
    }
    Ok(parts)
}
