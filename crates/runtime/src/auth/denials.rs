//! Calls denied to known callers, on their way to the audit record.
//!
//! ```text
//!  layer ─► note: a look-up in memory ─► folds (bounded) ─► every second: entries ─► DenialLog
//! ```
//!
//! # Invariants
//! - Noting never waits for the store and never fails the call, which is denied either way.
//! - The first denial of its kind is recorded within a second. Those that follow within a minute are
//!   one more entry, with their count.
//! - No caller fills a record, and no tenant the memory: what is beyond a bound is only counted, in
//!   `turnbuckle_audit_denials_total`.

use metrics::counter;
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use turnbuckle_domain::{
    AuditId, Caller, Clock, Denial, DenialLog, DenialReason, Error, IdGenerator, ResourceId, Role,
    Timestamp,
};

/// Denials of one kind within this time are one entry.
const FOLD: Duration = Duration::from_secs(60);

/// How often entries are written.
const WRITE: Duration = Duration::from_secs(1);

/// Kinds kept for one record: several callers that try every method.
const KINDS_PER_TRAIL: usize = 256;

/// Kinds kept in all; about half a KiB each.
const KINDS: usize = 4096;

/// Entries of one transaction: writers of configuration wait for it.
const BATCH: usize = 64;

/// Longest wait for the store.
const ANSWER: Duration = Duration::from_secs(5);

/// What makes two denials the same.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    /// First, so that those of one record are neighbours.
    tenant: Option<ResourceId>,
    subject: String,
    role: &'static str,
    method: String,
    reason: DenialReason,
}

/// Denials of one kind.
struct Fold {
    role: Role,
    /// Since when they are counted together.
    since: Timestamp,
    /// Whether the first one is recorded already.
    told: bool,
    /// Not recorded yet.
    count: u64,
    first_at: Timestamp,
    last_at: Timestamp,
}

/// Where denials are noted. Clones share them.
#[derive(Clone)]
pub struct Denials(Arc<Shared>);

struct Shared {
    clock: Arc<dyn Clock>,
    ids: IdGenerator,
    folds: Mutex<Folds>,
}

#[derive(Default)]
struct Folds {
    by_kind: BTreeMap<Kind, Fold>,
    per_trail: HashMap<Option<ResourceId>, usize>,
}

impl Denials {
    /// Nothing denied yet.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, ids: IdGenerator) -> Self {
        Self(Arc::new(Shared { clock, ids, folds: Mutex::default() }))
    }

    /// Notes a denied call; `method` is service and method, such as
    /// `turnbuckle.v1.Endpoints/UpdateEndpoint`.
    pub(super) fn note(&self, caller: &Caller, method: &str, reason: DenialReason) {
        let now = self.0.clock.now();
        let kind = Kind {
            tenant: caller.tenant.clone(),
            subject: caller.subject.clone(),
            role: caller.role.as_str(),
            method: method.to_owned(),
            reason,
        };
        let kept = self.folds().note(kind, caller.role, now);
        let result = if kept { "noted" } else { "dropped" };
        counter!("turnbuckle_audit_denials_total", "result" => result).increment(1);
    }

    /// Writes entries until cancelled, and then those that are left.
    pub async fn run(self, log: Arc<dyn DenialLog>, stop: CancellationToken) {
        let mut ticks = interval(WRITE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            self.write(log.as_ref(), false).await;
        }
        self.write(log.as_ref(), true).await;
    }

    async fn write(&self, log: &dyn DenialLog, last: bool) {
        let due = self.folds().due(self.0.clock.now(), last);
        let mut due = due.into_iter().peekable();
        while due.peek().is_some() {
            let batch: Vec<(Kind, Fold)> = due.by_ref().take(BATCH).collect();
            let entries: Vec<Denial> = batch.iter().map(|one| self.entry(one)).collect();
            let error = match timeout(ANSWER, log.record_denials(&entries)).await {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => Some(error),
                Err(_) => None,
            };
            self.failed(batch.into_iter().chain(due), error);
            return;
        }
    }

    /// A store that does not answer gets them again. One that refuses them would refuse them for ever,
    /// and keep all others waiting.
    fn failed(&self, unwritten: impl Iterator<Item = (Kind, Fold)>, error: Option<Error>) {
        match error {
            None | Some(Error::Unavailable { .. }) => {
                tracing::debug!("denied calls are not in the audit record yet");
                let mut folds = self.folds();
                for (kind, fold) in unwritten {
                    folds.put_back(kind, &fold);
                }
            }
            Some(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "denied calls cannot be recorded");
                let lost = u64::try_from(unwritten.count()).unwrap_or(u64::MAX);
                counter!("turnbuckle_audit_denials_total", "result" => "lost").increment(lost);
            }
        }
    }

    fn entry(&self, (kind, fold): &(Kind, Fold)) -> Denial {
        Denial {
            id: AuditId::from_uuid(self.0.ids.uuid()),
            subject: kind.subject.clone(),
            role: fold.role,
            tenant: kind.tenant.clone(),
            method: kind.method.clone(),
            reason: kind.reason,
            count: fold.count,
            first_at: fold.first_at,
            last_at: fold.last_at,
        }
    }

    /// The guarded values are whole at any time, so a panic elsewhere does not spoil them.
    fn folds(&self) -> MutexGuard<'_, Folds> {
        self.0.folds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Folds {
    /// Counts one; false when there is no room for another kind.
    fn note(&mut self, kind: Kind, role: Role, now: Timestamp) -> bool {
        if let Some(fold) = self.by_kind.get_mut(&kind) {
            if fold.count == 0 {
                fold.first_at = now;
            }
            fold.count += 1;
            fold.last_at = now;
            return true;
        }
        let in_trail = self.per_trail.get(&kind.tenant).copied().unwrap_or_default();
        if self.by_kind.len() >= KINDS || in_trail >= KINDS_PER_TRAIL {
            return false;
        }
        let fold = Fold { role, since: now, told: false, count: 1, first_at: now, last_at: now };
        self.insert(kind, fold);
        true
    }

    fn insert(&mut self, kind: Kind, fold: Fold) {
        *self.per_trail.entry(kind.tenant.clone()).or_default() += 1;
        self.by_kind.insert(kind, fold);
    }

    /// Takes what is to be written now: first ones, and what was counted for long enough; all of it at
    /// the end. Kinds that were quiet that long are forgotten.
    fn due(&mut self, now: Timestamp, last: bool) -> Vec<(Kind, Fold)> {
        let mut due = Vec::new();
        let per_trail = &mut self.per_trail;
        self.by_kind.retain(|kind, fold| {
            let over = now.since(fold.since) >= FOLD;
            if fold.count > 0 && (over || last || !fold.told) {
                due.push((kind.clone(), fold.take()));
                if over {
                    fold.since = now;
                }
                return true;
            }
            if over && let Some(count) = per_trail.get_mut(&kind.tenant) {
                *count -= 1;
                if *count == 0 {
                    per_trail.remove(&kind.tenant);
                }
            }
            !over
        });
        due
    }

    /// Counts what could not be written as not written.
    fn put_back(&mut self, kind: Kind, unwritten: &Fold) {
        let Some(fold) = self.by_kind.get_mut(&kind) else {
            let again = Fold { told: false, ..*unwritten };
            self.insert(kind, again);
            return;
        };
        fold.last_at = if fold.count == 0 { unwritten.last_at } else { fold.last_at };
        fold.count += unwritten.count;
        fold.first_at = unwritten.first_at;
        fold.told = false;
    }
}

impl Fold {
    /// What is to be written, leaving nothing.
    fn take(&mut self) -> Self {
        let taken = Self { ..*self };
        self.told = true;
        self.count = 0;
        taken
    }
}

impl fmt::Debug for Denials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Denials({})", self.folds().by_kind.len())
    }
}

#[cfg(test)]
mod tests;
