//! Endpoint health: what attempts say of their receivers, counted in memory and written now and then;
//! and what follows from it.
//!
//! ```text
//!  attempt ─► HealthMeter ── every few seconds, at once on a 410 ─► HealthStore ─► disabled? ─► notice
//!                                                  notices in the store ─► operational events
//! ```
//! A notice is written with the change that it tells of, and forgotten once its event is stored under
//! the notice's id. So a crash in between loses nothing and doubles nothing.

mod keeper;

pub(crate) use keeper::HealthKeeper;

use std::{
    collections::HashMap,
    mem,
    sync::{Mutex, PoisonError},
};
use tokio::sync::Notify;
use turnbuckle_domain::{
    AttemptEvidence, AttemptOutcome, EndpointId, Failing, HealthChange, TenantId, Timestamp,
};

/// An answer that says that the receiver is no more.
const GONE: u16 = 410;

/// What was seen of one endpoint.
struct Seen {
    change: HealthChange,
    /// Failures to reach it, which count only when something else was reached.
    unreached: HealthChange,
}

/// What was seen since it was taken last. Bounded by the endpoints that are configured.
#[derive(Default)]
struct Window {
    endpoints: HashMap<EndpointId, Seen>,
    gone: HashMap<EndpointId, (TenantId, Timestamp)>,
    /// Whether any receiver took anything: then our own network works.
    succeeded: bool,
}

/// Collects what attempts say.
#[derive(Default)]
pub(crate) struct HealthMeter {
    window: Mutex<Window>,
    urgent: Notify,
}

/// What is to be written, and who answered 410.
#[derive(Default)]
struct Taken {
    changes: Vec<HealthChange>,
    gone: HashMap<EndpointId, (TenantId, Timestamp)>,
}

impl HealthMeter {
    /// Counts an attempt that ended.
    pub(crate) fn observe(
        &self,
        (tenant, endpoint): (TenantId, EndpointId),
        outcome: &AttemptOutcome,
        at: Timestamp,
    ) {
        let evidence = AttemptEvidence::of(outcome);
        if evidence == AttemptEvidence::Nothing {
            return;
        }
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = HealthChange::new(tenant, endpoint);
        let seen = window
            .endpoints
            .entry(endpoint)
            .or_insert_with(|| Seen { change: fresh.clone(), unreached: fresh });
        match evidence {
            AttemptEvidence::Success => {
                seen.change.succeeded(at);
                seen.unreached.failing = None;
                window.succeeded = true;
            }
            AttemptEvidence::Failure => seen.change.failed(at, outcome.class()),
            AttemptEvidence::Unreached => seen.unreached.failed(at, outcome.class()),
            AttemptEvidence::Nothing => {}
        }
        if outcome.status() == Some(GONE) {
            window.gone.insert(endpoint, (tenant, at));
            self.urgent.notify_one();
        }
    }

    fn take(&self) -> Taken {
        let window = mem::take(&mut *self.window.lock().unwrap_or_else(PoisonError::into_inner));
        let mut taken = Taken { changes: Vec::new(), gone: window.gone };
        for Seen { mut change, unreached } in window.endpoints.into_values() {
            if let Some(more) = unreached.failing.filter(|_| window.succeeded) {
                change.failing = Some(joined(change.failing.take(), more));
            }
            if !change.is_empty() {
                taken.changes.push(change);
            }
        }
        taken
    }

    /// Remembers an answer 410 that could not be acted on yet.
    fn still_gone(&self, endpoint: EndpointId, tenant: TenantId, at: Timestamp) {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        window.gone.entry(endpoint).or_insert((tenant, at));
    }
}

fn joined(known: Option<Failing>, more: Failing) -> Failing {
    let Some(known) = known else { return more };
    let later = if more.until > known.until { &more } else { &known };
    Failing {
        since: known.since.min(more.since),
        until: later.until,
        count: known.count.saturating_add(more.count),
        class: later.class.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnbuckle_domain::Unreachable;
    use uuid::Uuid;

    fn ids(endpoint: u128) -> (TenantId, EndpointId) {
        (TenantId::from_uuid(Uuid::from_u128(1)), EndpointId::from_uuid(Uuid::from_u128(endpoint)))
    }

    const fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    const NO_NAME: AttemptOutcome = AttemptOutcome::Unreachable { cause: Unreachable::Dns };
    const DELIVERED: AttemptOutcome = AttemptOutcome::Delivered { status: 200 };
    const REFUSED: AttemptOutcome = AttemptOutcome::Refused { status: 500, retry_after: None };

    #[test]
    fn our_own_network_being_down_says_nothing_of_anybody() {
        let meter = HealthMeter::default();
        (0..50).for_each(|endpoint| meter.observe(ids(endpoint), &NO_NAME, at(1)));
        assert!(meter.take().changes.is_empty());
    }

    #[test]
    fn an_endpoint_that_cannot_be_reached_while_others_are_fails() {
        let meter = HealthMeter::default();
        meter.observe(ids(1), &REFUSED, at(1));
        meter.observe(ids(1), &NO_NAME, at(2));
        meter.observe(ids(2), &DELIVERED, at(3));
        let changes = meter.take().changes;
        let one = changes.iter().find(|change| change.endpoint == ids(1).1).unwrap();
        let failing = one.failing.clone().unwrap();
        assert_eq!((failing.since, failing.until, failing.count), (at(1), at(2), 2));
        assert_eq!(failing.class, "unreachable");
        assert!(meter.take().changes.is_empty(), "taken once");
    }

    #[test]
    fn a_success_ends_failures_of_every_kind() {
        let meter = HealthMeter::default();
        meter.observe(ids(1), &REFUSED, at(1));
        meter.observe(ids(1), &NO_NAME, at(2));
        meter.observe(ids(1), &DELIVERED, at(3));
        let changes = meter.take().changes;
        assert_eq!((changes[0].success_at, &changes[0].failing), (Some(at(3)), &None));
    }
}
