//! Documents that were fetched, and the keys read from them.

use super::NoKey;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::watch, time::Instant};
use turnbuckle_domain::{FetchFault, FetchedDocument, SourceId};
use turnbuckle_signing::scheme::{Refusal, SchemeKey, WantedKey};

/// Documents kept: one for each key of each provider in use, many times over.
const DOCUMENTS_MAX: usize = 256;
/// Keys read from one document: as many as a key set may have.
const KEYS_MAX: usize = 64;
/// Fetches at once.
const FLIGHTS_MAX: usize = 8;
/// Fetches that one source may cause in [`BUDGET_PERIOD`]: requests name addresses before they are
/// verified.
const BUDGET: u32 = 20;
/// The period of the budget.
const BUDGET_PERIOD: Duration = Duration::from_secs(60);
/// How long what failed is not asked for again, and how long a document that lacks a key stands.
const COOLDOWN: Duration = Duration::from_secs(30);
/// How long a document is fresh when its owner says nothing.
const FRESH_DEFAULT: Duration = Duration::from_secs(3600);
/// Shortest time: a mistaken header must not make a flood.
const FRESH_MIN: Duration = Duration::from_secs(300);
/// Longest time: a key that was withdrawn must go at last.
const FRESH_MAX: Duration = Duration::from_secs(24 * 3600);
/// How long a document is used after it was fetched when no newer one can be had.
const STALE_MAX: Duration = Duration::from_secs(48 * 3600);

#[derive(Default)]
pub(super) struct Cache(Mutex<State>);

#[derive(Default)]
struct State {
    documents: HashMap<String, Document>,
    budgets: HashMap<SourceId, (Instant, u32)>,
    flights: usize,
}

struct Document {
    tried: Instant,
    flight: Option<watch::Receiver<bool>>,
    kept: Option<Kept>,
    fault: Option<FetchFault>,
}

struct Kept {
    body: Arc<Vec<u8>>,
    at: Instant,
    fresh_until: Instant,
    keys: HashMap<(WantedKey, &'static str), Arc<SchemeKey>>,
}

/// Where a wish for a key stands.
pub(super) enum Step {
    Key { key: Arc<SchemeKey>, is_stale: bool },
    Document { body: Arc<Vec<u8>> },
    Flight(watch::Receiver<bool>),
    Fault(NoKey),
    Missing,
}

/// A fetch that is under way; with its other end for whoever started it.
type Flight = (watch::Receiver<bool>, Option<watch::Sender<bool>>);

impl Cache {
    pub(super) fn look(&self, wanted: &WantedKey, algorithm: &'static str) -> Step {
        let state = self.lock();
        let now = Instant::now();
        let Some(document) = state.documents.get(wanted.url()) else { return Step::Missing };
        let kept = document.kept.as_ref().filter(|kept| now < kept.at + STALE_MAX);
        if let Some(kept) = kept {
            // One that failed is not tried again with every request.
            let is_stale = now >= kept.fresh_until && now >= document.tried + COOLDOWN;
            return match kept.keys.get(&(wanted.clone(), algorithm)) {
                Some(key) => Step::Key { key: Arc::clone(key), is_stale },
                None => Step::Document { body: Arc::clone(&kept.body) },
            };
        }
        if let Some(flight) = &document.flight {
            return Step::Flight(flight.clone());
        }
        match &document.fault {
            Some(fault) if now < document.tried + COOLDOWN => Step::Fault(no_key(fault)),
            _ => Step::Missing,
        }
    }

    /// Keeps a key that was read from the document.
    pub(super) fn keep(
        &self,
        wanted: &WantedKey,
        algorithm: &'static str,
        key: SchemeKey,
    ) -> Arc<SchemeKey> {
        let key = Arc::new(key);
        let mut state = self.lock();
        let kept = state.documents.get_mut(wanted.url()).and_then(|found| found.kept.as_mut());
        if let Some(kept) = kept.filter(|kept| kept.keys.len() < KEYS_MAX) {
            kept.keys.insert((wanted.clone(), algorithm), Arc::clone(&key));
        }
        key
    }

    /// Whether the last try is long enough ago.
    pub(super) fn may_ask_again(&self, url: &str) -> bool {
        let state = self.lock();
        let document = state.documents.get(url);
        document.is_none_or(|document| {
            document.flight.is_some() || Instant::now() >= document.tried + COOLDOWN
        })
    }

    /// Whether the source may have something fetched.
    pub(super) fn admit(&self, source: SourceId) -> bool {
        self.lock().admit(source)
    }

    /// Notes that a fetch begins, or gives the one under way; none when there are too many.
    pub(super) fn start(&self, source: SourceId, url: &str) -> Option<Flight> {
        let mut state = self.lock();
        let under_way = state.documents.get(url).and_then(|document| document.flight.clone());
        if let Some(flight) = under_way {
            return Some((flight, None));
        }
        if state.flights >= FLIGHTS_MAX || !state.admit(source) {
            return None;
        }
        state.make_room(url);
        state.flights += 1;
        let (ended, flight) = watch::channel(false);
        let now = Instant::now();
        let fresh = || Document { tried: now, flight: None, kept: None, fault: None };
        let document = state.documents.entry(url.to_owned()).or_insert_with(fresh);
        document.tried = now;
        document.flight = Some(flight.clone());
        Some((flight, Some(ended)))
    }

    /// Notes what a fetch brought. A failed one leaves the document before in use.
    pub(super) fn ended(&self, url: &str, answer: Result<FetchedDocument, FetchFault>) {
        let mut state = self.lock();
        state.flights = state.flights.saturating_sub(1);
        let Some(document) = state.documents.get_mut(url) else { return };
        document.flight = None;
        document.tried = Instant::now();
        match answer {
            Ok(fetched) => {
                let now = Instant::now();
                let fresh = fetched.max_age.unwrap_or(FRESH_DEFAULT).clamp(FRESH_MIN, FRESH_MAX);
                document.fault = None;
                document.kept = Some(Kept {
                    body: Arc::new(fetched.body),
                    at: now,
                    fresh_until: now + fresh,
                    keys: HashMap::new(),
                });
            }
            Err(fault) => document.fault = Some(fault),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn admit(&mut self, source: SourceId) -> bool {
        let now = Instant::now();
        self.budgets.retain(|_, (since, _)| now.duration_since(*since) < BUDGET_PERIOD);
        let (_, used) = self.budgets.entry(source).or_insert((now, 0));
        *used = used.saturating_add(1);
        *used <= BUDGET
    }

    /// The one that was tried longest ago goes; one under way stays.
    fn make_room(&mut self, url: &str) {
        if self.documents.len() < DOCUMENTS_MAX || self.documents.contains_key(url) {
            return;
        }
        let idle = self.documents.iter().filter(|(_, document)| document.flight.is_none());
        // What was never there goes before what is in use.
        let oldest = idle.min_by_key(|(_, document)| (document.kept.is_some(), document.tried));
        if let Some(oldest) = oldest.map(|(url, _)| url.clone()) {
            self.documents.remove(&oldest);
        }
    }
}

/// What a request is told while its key cannot be had.
fn no_key(fault: &FetchFault) -> NoKey {
    match fault {
        FetchFault::Address(_) => NoKey::Refused(Refusal::KeyAddress),
        FetchFault::Answer(_) => NoKey::Refused(Refusal::UnknownKey),
        FetchFault::Unreachable(reason) => {
            NoKey::Unavailable(format!("the key of the sender cannot be fetched: {reason}"))
        }
    }
}
