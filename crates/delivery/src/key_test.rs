//! A ping signed with one key alone, to see whether the receiver knows it.
//!
//! It goes the way of deliveries: the endpoint's own headers, the egress guard, the same sender. It is
//! none: nothing is stored of it but its outcome, nothing is tried again, and no lane is involved.

use crate::{
    config::{ConfigHandle, EndpointEntry},
    http::{HttpSender, OutgoingRequest},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use metrics::counter;
use serde_json::json;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep, timeout},
};
use turnbuckle_domain::{
    AttemptOutcome, Clock, EndpointId, Error, IdGenerator, Key, KeyId, KeyPlace, KeyState, KeyTest,
    KeyUsageStore, Precondition, RequestFault, ResourceId, TenantId, Timestamp,
};
use turnbuckle_signing::Message;

/// Between two tests of one endpoint: a person needs longer to read an answer, and a loop must not
/// become load for the receiver.
const TEST_INTERVAL: Duration = Duration::from_secs(5);
/// Tests under way in one process: each may take as long as its endpoint's timeout.
const TESTS_MAX: usize = 16;
/// How long a test waits until this process uses what was configured before it.
const CATCH_UP: Duration = Duration::from_secs(2);
/// How often it looks.
const CATCH_UP_POLL: Duration = Duration::from_millis(10);
/// Longest wait for an answer, however long deliveries wait: below the deadline that callers of the
/// API commonly set, so that they hear of a receiver that hangs.
const TEST_TIMEOUT: Duration = Duration::from_secs(7);
/// What the ping is called, in its body and its header.
const PING: &str = "turnbuckle.ping";
static EVENT_TYPE: HeaderName = HeaderName::from_static("turnbuckle-event-type");
static JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What came of a test.
#[derive(Debug, Clone)]
pub(crate) struct Tested {
    pub(crate) key: KeyId,
    pub(crate) outcome: AttemptOutcome,
    pub(crate) duration: Duration,
    pub(crate) at: Timestamp,
}

/// Tests keys.
pub(crate) struct KeyTester {
    config: ConfigHandle,
    sender: Arc<HttpSender>,
    usage: Arc<dyn KeyUsageStore>,
    clock: Arc<dyn Clock>,
    ids: IdGenerator,
    recent: Mutex<HashMap<EndpointId, Instant>>,
    slots: Semaphore,
}

impl KeyTester {
    pub(crate) fn new(
        config: ConfigHandle,
        sender: Arc<HttpSender>,
        usage: Arc<dyn KeyUsageStore>,
        clock: Arc<dyn Clock>,
        ids: IdGenerator,
    ) -> Self {
        let (recent, slots) = (Mutex::default(), Semaphore::new(TESTS_MAX));
        Self { config, sender, usage, clock, ids, recent, slots }
    }

    /// Tests the key named, or the staged one, as they are known here: see [`Self::catch_up`]. `name`
    /// is the endpoint's, for errors.
    pub(crate) async fn test(
        &self,
        tenant: TenantId,
        slug: &ResourceId,
        key: Option<KeyId>,
        name: &str,
    ) -> Result<Tested, Error> {
        let index = self.config.load();
        let missing = || Error::NotFound { resource: name.to_owned() };
        let entry = index.endpoint_by_slug(tenant, slug).ok_or_else(missing)?;
        let at = self.clock.now();
        let key = chosen(entry, key, at, name)?;
        if !entry.endpoint.is_active() {
            return Err(refused(
                Precondition::EndpointInactive,
                name,
                "the endpoint is disabled: enable it, then test",
            ));
        }
        let busy = |_| exhausted("too many tests are under way: try again".to_owned());
        let _slot = self.slots.try_acquire().map_err(busy)?;
        self.admit(entry.endpoint.id)?;
        let tested = self.send(entry, key.id, at).await;
        self.note(entry, &tested).await;
        Ok(tested)
    }

    /// Waits until this process uses what was configured before the call, or gives up waiting: the
    /// key is tested as it is known here.
    pub(crate) async fn catch_up(&self) {
        let begun = self.config.reads().begun;
        self.config.refresh();
        let caught_up = async {
            while self.config.reads().completed <= begun {
                sleep(CATCH_UP_POLL).await;
            }
        };
        if timeout(CATCH_UP, caught_up).await.is_err() {
            tracing::warn!(
                "a key is tested with the configuration at hand; it cannot be read anew"
            );
        }
    }

    fn admit(&self, endpoint: EndpointId) -> Result<(), Error> {
        let now = Instant::now();
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|_, last| now.duration_since(*last) < TEST_INTERVAL);
        if recent.contains_key(&endpoint) {
            return Err(exhausted(format!(
                "the endpoint was tested less than {} s ago: wait",
                TEST_INTERVAL.as_secs()
            )));
        }
        recent.insert(endpoint, now);
        Ok(())
    }

    async fn send(&self, entry: &Arc<EndpointEntry>, key: KeyId, at: Timestamp) -> Tested {
        let (outcome, duration) = self.exchange(entry, key, at).await;
        counter!("turnbuckle_key_tests_total", "outcome" => outcome.class()).increment(1);
        Tested { key, outcome, duration, at }
    }

    async fn exchange(
        &self,
        entry: &Arc<EndpointEntry>,
        key: KeyId,
        at: Timestamp,
    ) -> (AttemptOutcome, Duration) {
        let Some(target) = entry.target() else { return (AttemptOutcome::Blocked, Duration::ZERO) };
        let failed = |fault| (AttemptOutcome::Failed { fault }, Duration::ZERO);
        let time = turnbuckle_runtime::grpc::timestamp(at).to_string();
        let body = json!({ "type": PING, "timestamp": time, "data": {} }).to_string();
        let headers = match self.headers(entry, key, at, body.as_bytes()) {
            Ok(headers) => headers,
            Err(fault) => return failed(fault),
        };
        // Nothing leaves for an endpoint that was changed since (I5).
        let id = entry.endpoint.id;
        let is_current =
            || self.config.load().endpoint(id).is_some_and(|now| Arc::ptr_eq(now, entry));
        let timeout = entry.timeout.min(TEST_TIMEOUT);
        let body = Bytes::from(body);
        let request = OutgoingRequest { target, headers, body, timeout, is_current: &is_current };
        match self.sender.send(request).await {
            Some(sent) => (sent.outcome, sent.duration),
            None => failed(RequestFault::Request),
        }
    }

    fn headers(
        &self,
        entry: &EndpointEntry,
        key: KeyId,
        at: Timestamp,
        body: &[u8],
    ) -> Result<HeaderMap, RequestFault> {
        let mut headers = entry.headers.clone();
        headers.insert(header::CONTENT_TYPE, JSON.clone());
        headers.insert(EVENT_TYPE.clone(), HeaderValue::from_static(PING));
        let id = format!("ping_{}", self.ids.uuid().simple());
        let message = Message { id: &id, timestamp: at.unix_seconds(), body };
        let keys = [entry.signer.key(key).ok_or(RequestFault::Signing)?];
        let signed =
            turnbuckle_signing::sign(entry.profile, &keys, &message, &entry.signer_options)
                .map_err(|_| RequestFault::Signing)?;
        for (name, text) in signed {
            let name =
                HeaderName::from_bytes(name.as_bytes()).map_err(|_| RequestFault::Request)?;
            let value = HeaderValue::from_str(&text).map_err(|_| RequestFault::Request)?;
            headers.insert(name, value);
        }
        Ok(headers)
    }

    /// The answer is given whether or not it could be kept.
    async fn note(&self, entry: &EndpointEntry, tested: &Tested) {
        let Tested { key, outcome, at, .. } = *tested;
        let place = KeyPlace { tenant: entry.endpoint.tenant, endpoint: entry.endpoint.id, key };
        let test = KeyTest { at, outcome: outcome.class().into(), status: outcome.status() };
        if let Err(error) = self.usage.note_key_test(place, &test).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(key.id = %key, error, "the result of a key test was not kept");
        }
    }
}

/// The key named, or the staged one.
fn chosen<'a>(
    entry: &'a EndpointEntry,
    key: Option<KeyId>,
    now: Timestamp,
    name: &str,
) -> Result<&'a Key, Error> {
    let keys = &entry.signer.ring().keys;
    let Some(id) = key else {
        let staged = keys.iter().find(|key| key.state_at(now) == KeyState::Staged);
        let none = "no staged key is in use here: stage one first, or name a key";
        return staged.ok_or_else(|| refused(Precondition::NoStagedKey, name, none));
    };
    let subject = format!("{name}/keys/{id}");
    match keys.iter().find(|key| key.id == id) {
        None => Err(Error::NotFound { resource: subject }),
        Some(key) if key.secret.is_none() => {
            let revoked = "the key is revoked: its material is destroyed";
            Err(refused(Precondition::KeyRevoked, &subject, revoked))
        }
        Some(key) => Ok(key),
    }
}

fn refused(kind: Precondition, subject: &str, message: &str) -> Error {
    Error::Precondition { kind, subject: subject.to_owned(), message: message.to_owned() }
}

const fn exhausted(message: String) -> Error {
    Error::Exhausted { message, retry_after: TEST_INTERVAL }
}

impl Tested {
    /// What it means, in plain words.
    pub(crate) fn words(&self) -> String {
        let (key, millis) = (self.key, self.duration.as_millis());
        match self.outcome {
            AttemptOutcome::Delivered { status } => format!(
                "The receiver answered {status} after {millis} ms to a ping signed with {key} alone: \
                 it knows the key, or checks none."
            ),
            AttemptOutcome::Refused { status: status @ (401 | 403), .. } => format!(
                "The receiver answered {status} to a ping signed with {key} alone: it does not know \
                 the key yet. Give it the key, then test again."
            ),
            AttemptOutcome::Refused { status, .. } => format!(
                "The receiver answered {status}, which says nothing about the key. Look why it \
                 refuses pings, then test again."
            ),
            AttemptOutcome::TimedOut { .. } => {
                format!("No answer came within {millis} ms. Nothing is known about the key.")
            }
            AttemptOutcome::Unreachable { .. } => {
                "The receiver cannot be reached. Nothing is known about the key.".to_owned()
            }
            AttemptOutcome::Blocked => {
                "The egress guard refuses the endpoint's URL. Nothing was sent.".to_owned()
            }
            AttemptOutcome::Failed { fault: RequestFault::Signing } => {
                "The key cannot sign in the endpoint's signature profile, or does not open here. \
                 Nothing was sent."
                    .to_owned()
            }
            // The last four are of pull endpoints, which no key signs for.
            AttemptOutcome::Failed { .. }
            | AttemptOutcome::Acknowledged
            | AttemptOutcome::Returned { .. }
            | AttemptOutcome::LeaseLapsed
            | AttemptOutcome::StreamBroken => {
                "The request could not be made, or the endpoint changed meanwhile. Nothing was sent."
                    .to_owned()
            }
        }
    }
}
