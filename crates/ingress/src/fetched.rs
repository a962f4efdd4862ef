//! Keys that are fetched: from certificates that requests name, and from key sets.
//!
//! ```text
//!  request ─► what it wants ─► known? ─► key
//!                                │ no: one fetch for all who wait, in the background; who waits too
//!                                ▼     long is told to come again, and finds it then
//!                            DocumentFetch (egress guard)
//! ```
//! A document is fetched once for everybody, kept while it is fresh, and used on for a day when its
//! owner cannot be reached. Requests that nobody has verified decide what is fetched, so every part is
//! bounded: hosts by the scheme, fetches by source and at once, documents kept, and what failed is not
//! asked for again at once.

mod cache;

use cache::{Cache, Step};
use metrics::counter;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};
use tokio_util::task::TaskTracker;
use turnbuckle_domain::{Clock, DocumentFetch, FetchFault, SourceId};
use turnbuckle_signing::scheme::{
    MAX_CHAIN_BYTES, MAX_SET_BYTES, Refusal, SchemeKey, TrustAnchor, Verifier, WantedKey,
};

/// Longest wait of a request for a key: its sender must be answered within a second. The fetch goes on.
const WAIT: Duration = Duration::from_millis(600);
/// Longest fetch.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for the answer to a confirmation. It is no event, and its sender waits 15 s.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest answer to a confirmation; it is not looked at.
const CONFIRM_BYTES: usize = 64 * 1024;
/// Microseconds of a millisecond.
const MILLISECOND: i64 = 1_000;

/// Where fetched keys come from.
pub(crate) struct FetchedKeys {
    fetch: Arc<dyn DocumentFetch>,
    anchors: Vec<TrustAnchor<'static>>,
    clock: Arc<dyn Clock>,
    cache: Arc<Cache>,
    /// Fetches under way; each ends by itself within its time.
    tasks: TaskTracker,
}

/// Why there is no key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoKey {
    /// The request names one that is not to be trusted.
    Refused(Refusal),
    /// It cannot be had now: the sender should come again.
    Unavailable(String),
}

impl FetchedKeys {
    pub(crate) fn new(
        fetch: Arc<dyn DocumentFetch>,
        anchors: Vec<TrustAnchor<'static>>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { fetch, anchors, clock, cache: Arc::default(), tasks: TaskTracker::new() }
    }

    /// The key that a request wants.
    pub(crate) async fn key(
        &self,
        source: SourceId,
        verifier: &Verifier,
        wanted: &WantedKey,
    ) -> Result<Arc<SchemeKey>, NoKey> {
        let deadline = Instant::now() + WAIT;
        let algorithm = algorithm(verifier);
        let mut waits = false;
        loop {
            let flight = match self.cache.look(wanted, algorithm) {
                Step::Key { key, is_stale } => {
                    if is_stale {
                        self.start(source, wanted);
                    }
                    return Ok(key);
                }
                Step::Document { body } => match self.read(verifier, wanted, &body) {
                    Ok(key) => return Ok(self.cache.keep(wanted, algorithm, key)),
                    Err(refusal) if !self.cache.may_ask_again(wanted.url()) => {
                        return Err(NoKey::Refused(refusal));
                    }
                    // A key that came with a newer document than the one kept.
                    Err(_) => self.start(source, wanted),
                },
                Step::Fault(fault) => return Err(fault),
                Step::Missing => self.start(source, wanted),
                Step::Flight(flight) => Some(flight),
            };
            let Some(mut flight) = flight else {
                let reason = "too many keys of this source were asked for in the last minute";
                return Err(NoKey::Unavailable(reason.to_owned()));
            };
            // Whoever has waited once has the newest there is.
            if std::mem::replace(&mut waits, true) {
                return Err(NoKey::Refused(Refusal::UnknownKey));
            }
            if timeout_at(deadline, flight.wait_for(|ended| *ended)).await.is_err() {
                let reason = "the key of the sender is being fetched and has not come yet";
                return Err(NoKey::Unavailable(reason.to_owned()));
            }
        }
    }

    fn read(
        &self,
        verifier: &Verifier,
        wanted: &WantedKey,
        body: &[u8],
    ) -> Result<SchemeKey, Refusal> {
        match wanted {
            WantedKey::Certificate { .. } => {
                let now = self.clock.now().micros().div_euclid(MILLISECOND);
                verifier.key_from_chain(wanted, body, &self.anchors, now)
            }
            WantedKey::KeySet { .. } => verifier.key_from_set(wanted, body),
        }
    }

    /// Starts the fetch that all wait for, unless one is under way; none when there were too many.
    fn start(&self, source: SourceId, wanted: &WantedKey) -> Option<watch::Receiver<bool>> {
        let (flight, ended) = self.cache.start(source, wanted.url())?;
        let Some(ended) = ended else { return Some(flight) };
        let (fetch, cache) = (Arc::clone(&self.fetch), Arc::clone(&self.cache));
        let url = wanted.url().to_owned();
        let most = match wanted {
            WantedKey::Certificate { .. } => MAX_CHAIN_BYTES,
            WantedKey::KeySet { .. } => MAX_SET_BYTES,
        };
        self.tasks.spawn(async move {
            let answer = fetch.fetch(&url, most, FETCH_TIMEOUT).await;
            let outcome = if answer.is_ok() { "fetched" } else { "failed" };
            counter!("turnbuckle_ingress_key_fetches_total", "outcome" => outcome).increment(1);
            if let Err(fault) = &answer {
                tracing::warn!(source.id = %source, %fault, "the key of a sender cannot be fetched");
            }
            cache.ended(&url, answer);
            ended.send_replace(true);
        });
        Some(flight)
    }

    /// Fetches the address by which a sender wants a subscription confirmed.
    pub(crate) async fn confirm(&self, source: SourceId, url: &str) -> Result<(), String> {
        if !self.cache.admit(source) {
            return Err("too many confirmations and keys of this source in the last minute".into());
        }
        match self.fetch.fetch(url, CONFIRM_BYTES, CONFIRM_TIMEOUT).await {
            Ok(_) => Ok(()),
            Err(
                FetchFault::Address(reason)
                | FetchFault::Answer(reason)
                | FetchFault::Unreachable(reason),
            ) => Err(reason),
        }
    }
}

/// Keys of one document are different ones under different algorithms.
fn algorithm(verifier: &Verifier) -> &'static str {
    use turnbuckle_signing::scheme::Proof;
    match &verifier.scheme().proof {
        Proof::Signature(proof) => {
            proof.algorithms.first().map_or("", |rule| rule.algorithm.as_str())
        }
        Proof::Jwt(proof) => proof.algorithm.as_str(),
    }
}

#[cfg(test)]
mod tests;
