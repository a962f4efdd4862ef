//! Endpoint health: since when an endpoint fails, and when that is long enough to disable it.
//!
//! ```text
//!  attempts ─► HealthChange (in memory, one per endpoint) ─► EndpointHealth (stored) ─► DisableRule
//! ```
//!
//! # Invariants
//! - One success ends the failing: the clock and the count begin anew.
//! - Nothing from before `clean_since`, when the endpoint was last enabled, counts.
//! - Only attempts count that say something about the receiver: see [`AttemptEvidence`].

use crate::{
    AttemptOutcome, ChangeContext, EndpointId, Error, OperationalEvent, Phase, Revision,
    StoreError, TenantId, Timestamp, Unreachable,
};
use async_trait::async_trait;
use std::time::Duration;
use uuid::Uuid;

/// Bounds of endpoint health, each with its reason.
pub mod health_limits {
    use std::time::Duration;

    /// How long an endpoint fails before it is disabled, when nothing else is chosen: long enough for
    /// a weekend and a holiday.
    pub const DISABLE_AFTER_DEFAULT: Duration = Duration::from_secs(5 * 24 * 3600);
    /// Shortest such time: below it an ordinary incident at the receiver would disable it.
    pub const DISABLE_AFTER_MIN: Duration = Duration::from_secs(3600);
    /// Longest such time: as long as the longest horizon of a retry policy.
    pub const DISABLE_AFTER_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
    /// Failed attempts without which no endpoint is disabled: one event that fails now and another one
    /// that fails five days later say little.
    pub const FAILURES_MIN: u64 = 20;
    /// Changes written in one transaction: their rows stay locked for some milliseconds.
    pub const BATCH: usize = 500;
}

/// What an attempt says about its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptEvidence {
    /// The receiver took the delivery.
    Success,
    /// The receiver was reached and did not take it.
    Failure,
    /// The receiver was not reached. Its own failure only while others are reached: it may be our
    /// network that is down.
    Unreached,
    /// Nothing: the attempt ended on our side.
    Nothing,
}

impl AttemptEvidence {
    /// What an outcome says.
    #[must_use]
    pub const fn of(outcome: &AttemptOutcome) -> Self {
        match outcome {
            AttemptOutcome::Delivered { .. } | AttemptOutcome::Acknowledged => Self::Success,
            AttemptOutcome::Refused { .. } => Self::Failure,
            AttemptOutcome::TimedOut { phase } => match phase {
                Phase::Dns | Phase::Connect => Self::Unreached,
                Phase::Tls | Phase::FirstByte => Self::Failure,
            },
            AttemptOutcome::Unreachable { cause } => match cause {
                Unreachable::Dns | Unreachable::Connect => Self::Unreached,
                Unreachable::Tls | Unreachable::Reset | Unreachable::Protocol => Self::Failure,
            },
            AttemptOutcome::Blocked
            | AttemptOutcome::Failed { .. }
            | AttemptOutcome::Returned { .. }
            | AttemptOutcome::LeaseLapsed
            | AttemptOutcome::StreamBroken => Self::Nothing,
        }
    }
}

/// Failures in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failing {
    /// When the first one was.
    pub since: Timestamp,
    /// When the last one was.
    pub until: Timestamp,
    /// How many.
    pub count: u64,
    /// As [`AttemptOutcome::class`], of the last one.
    pub class: String,
}

/// What was seen of an endpoint since it was last written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthChange {
    /// Whose it is.
    pub tenant: TenantId,
    /// Which endpoint.
    pub endpoint: EndpointId,
    /// The last success.
    pub success_at: Option<Timestamp>,
    /// The failures after that success.
    pub failing: Option<Failing>,
}

impl HealthChange {
    /// Nothing seen yet.
    #[must_use]
    pub const fn new(tenant: TenantId, endpoint: EndpointId) -> Self {
        Self { tenant, endpoint, success_at: None, failing: None }
    }

    /// Whether nothing was seen.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.success_at.is_none() && self.failing.is_none()
    }

    /// Adds a success.
    pub fn succeeded(&mut self, at: Timestamp) {
        self.success_at = Some(self.success_at.map_or(at, |known| known.max(at)));
        self.failing = None;
    }

    /// Adds a failure.
    pub fn failed(&mut self, at: Timestamp, class: &str) {
        let failing = self.failing.get_or_insert_with(|| Failing {
            since: at,
            until: at,
            count: 0,
            class: String::new(),
        });
        failing.count = failing.count.saturating_add(1);
        failing.until = failing.until.max(at);
        class.clone_into(&mut failing.class);
    }
}

/// The stored health of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointHealth {
    /// Whose it is.
    pub tenant: TenantId,
    /// Which endpoint.
    pub endpoint: EndpointId,
    /// When it was enabled last; nothing earlier counts. None for one that never was disabled.
    pub clean_since: Option<Timestamp>,
    /// Its last success.
    pub last_success_at: Option<Timestamp>,
    /// Its last failure, also one before the last success.
    pub last_failure_at: Option<Timestamp>,
    /// The failures since the last success.
    pub failing: Option<Failing>,
}

impl EndpointHealth {
    /// Of an endpoint of which nothing is known.
    #[must_use]
    pub const fn new(tenant: TenantId, endpoint: EndpointId) -> Self {
        Self {
            tenant,
            endpoint,
            clean_since: None,
            last_success_at: None,
            last_failure_at: None,
            failing: None,
        }
    }

    /// Adds what was seen. Failures from before the endpoint was enabled leave no trace; of a run of
    /// failures that began before and went on after it, the later part counts, from the enabling on.
    pub fn add(&mut self, change: &HealthChange) {
        let is_counted = |at: Timestamp| self.clean_since.is_none_or(|clean| at >= clean);
        if let Some(at) = change.success_at.filter(|at| is_counted(*at)) {
            self.last_success_at = self.last_success_at.max(Some(at));
            self.failing = None;
        }
        let Some(new) = change.failing.as_ref().filter(|failing| is_counted(failing.until)) else {
            return;
        };
        self.last_failure_at = self.last_failure_at.max(Some(new.until));
        let since = self.clean_since.map_or(new.since, |clean| clean.max(new.since));
        match &mut self.failing {
            Some(known) => {
                known.since = known.since.min(since);
                if new.until >= known.until {
                    known.until = new.until;
                    known.class.clone_from(&new.class);
                }
                known.count = known.count.saturating_add(new.count);
            }
            None => self.failing = Some(Failing { since, ..new.clone() }),
        }
    }

    /// Begins with a clean clock: the endpoint was enabled.
    pub fn clean(&mut self, at: Timestamp) {
        self.clean_since = Some(at);
        self.failing = None;
    }
}

/// When an endpoint that fails all the time is disabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DisableRule {
    /// After how long; none means never.
    pub after: Option<Duration>,
    /// Failed attempts without which it is not.
    pub failures_min: u64,
}

impl Default for DisableRule {
    fn default() -> Self {
        Self {
            after: Some(health_limits::DISABLE_AFTER_DEFAULT),
            failures_min: health_limits::FAILURES_MIN,
        }
    }
}

impl DisableRule {
    /// Whether it is time. Measured between attempts and not to the present: an endpoint that nobody
    /// sent anything for a week did not fail for that week.
    #[must_use]
    pub fn is_due(&self, health: &EndpointHealth) -> bool {
        let (Some(after), Some(failing)) = (self.after, &health.failing) else { return false };
        failing.count >= self.failures_min && failing.until.since(failing.since) >= after
    }
}

/// Why the service disables an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisableCause {
    /// The receiver answered 410.
    Gone {
        /// When.
        at: Timestamp,
    },
    /// Every attempt failed for as long as the rule says.
    Failing(DisableRule),
}

impl DisableCause {
    /// The name shown in operational events.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Gone { .. } => "gone",
            Self::Failing(_) => "failing",
        }
    }

    /// The reason to disable an endpoint of this health, in words; none when it is not to be disabled.
    /// An answer from before the endpoint was enabled is no reason.
    #[must_use]
    pub fn reason(&self, health: &EndpointHealth) -> Option<String> {
        match self {
            Self::Gone { at } => health
                .clean_since
                .is_none_or(|clean| *at >= clean)
                .then(|| "the receiver answered 410 Gone".to_owned()),
            Self::Failing(rule) => {
                let failing = health.failing.as_ref().filter(|_| rule.is_due(health))?;
                let hours = failing.until.since(failing.since).as_secs() / 3600;
                let Failing { count, class, .. } = failing;
                Some(format!("all of {count} attempts in {hours} hours failed, the last: {class}"))
            }
        }
    }
}

/// An operational event that waits in the store to be published. Its id becomes the event id, so that
/// publishing it twice makes one event.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// Names it for ever.
    pub id: Uuid,
    /// When what it tells of happened.
    pub at: Timestamp,
    /// What it tells.
    pub event: OperationalEvent,
}

/// The stored health of endpoints, and what is disabled because of it.
#[async_trait]
pub trait HealthStore: Send + Sync + 'static {
    /// Adds what was seen, and answers the health of these endpoints. At most [`health_limits::BATCH`]
    /// at once, each of another endpoint.
    async fn add_health(&self, changes: &[HealthChange])
    -> Result<Vec<EndpointHealth>, StoreError>;

    /// The health of these endpoints, as far as something is known of them.
    async fn health(
        &self,
        tenant: TenantId,
        endpoints: &[EndpointId],
    ) -> Result<Vec<EndpointHealth>, StoreError>;

    /// Disables an endpoint, with an entry in the audit record and a notice, all in one transaction.
    /// None when it is disabled or deleted already, or when the cause no longer holds.
    async fn disable_unhealthy(
        &self,
        tenant: TenantId,
        endpoint: EndpointId,
        cause: DisableCause,
        by: &ChangeContext,
    ) -> Result<Option<Revision>, Error>;

    /// Notices that wait to be published, the oldest first.
    async fn notices(&self, limit: u16) -> Result<Vec<Notice>, StoreError>;

    /// Forgets notices that were published.
    async fn notices_told(&self, ids: &[Uuid]) -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn at(hours: u32) -> Timestamp {
        Timestamp::from_micros(1_800_000_000_000_000) + HOUR * hours
    }

    fn ids() -> (TenantId, EndpointId) {
        (TenantId::from_uuid(Uuid::from_u128(1)), EndpointId::from_uuid(Uuid::from_u128(2)))
    }

    /// One failure in each of these hours.
    fn failures(hours: std::ops::RangeInclusive<u32>) -> HealthChange {
        let (tenant, endpoint) = ids();
        let mut change = HealthChange::new(tenant, endpoint);
        hours.for_each(|hour| change.failed(at(hour), "refused"));
        change
    }

    fn fresh() -> EndpointHealth {
        let (tenant, endpoint) = ids();
        EndpointHealth::new(tenant, endpoint)
    }

    #[test]
    fn an_endpoint_that_fails_for_five_days_is_due_and_not_an_hour_earlier() {
        let mut health = fresh();
        health.add(&failures(0..=60));
        health.add(&failures(61..=119));
        assert!(!DisableRule::default().is_due(&health));
        health.add(&failures(120..=120));
        assert!(DisableRule::default().is_due(&health));
        assert!(!DisableRule { after: None, ..DisableRule::default() }.is_due(&health));
    }

    #[test]
    fn two_failures_far_apart_are_not_enough() {
        let mut health = fresh();
        health.add(&failures(0..=0));
        health.add(&failures(500..=500));
        assert!(!DisableRule::default().is_due(&health));
    }

    #[test]
    fn one_success_begins_the_clock_anew() {
        let mut health = fresh();
        health.add(&failures(0..=119));
        let mut change = failures(120..=120);
        change.succeeded(at(121));
        change.failed(at(122), "timed_out");
        health.add(&change);
        let failing = health.failing.clone().unwrap();
        assert_eq!((failing.since, failing.count), (at(122), 1));
        assert_eq!(failing.class, "timed_out");
        assert_eq!(health.last_success_at, Some(at(121)));
    }

    #[test]
    fn an_enabled_endpoint_is_not_disabled_by_what_was_before() {
        let mut health = fresh();
        health.add(&failures(0..=130));
        assert!(DisableRule::default().is_due(&health));
        health.clean(at(131));
        assert!(!DisableRule::default().is_due(&health));
        // What a worker had counted before and writes only now.
        health.add(&failures(0..=130));
        assert_eq!(health.failing, None);
        // A run that goes on afterwards counts from the enabling on.
        health.add(&failures(100..=132));
        assert_eq!(health.failing.as_ref().map(|failing| failing.since), Some(at(131)));
        assert!(!DisableRule::default().is_due(&health));
        health.add(&failures(133..=251));
        assert!(DisableRule::default().is_due(&health));
    }

    #[test]
    fn only_what_the_receiver_did_is_evidence_against_it() {
        let unreachable = |cause| AttemptOutcome::Unreachable { cause };
        let refused = AttemptOutcome::Refused { status: 500, retry_after: None };
        let rows = [
            (AttemptOutcome::Delivered { status: 204 }, AttemptEvidence::Success),
            (refused, AttemptEvidence::Failure),
            (AttemptOutcome::TimedOut { phase: Phase::FirstByte }, AttemptEvidence::Failure),
            (AttemptOutcome::TimedOut { phase: Phase::Connect }, AttemptEvidence::Unreached),
            (unreachable(Unreachable::Reset), AttemptEvidence::Failure),
            (unreachable(Unreachable::Dns), AttemptEvidence::Unreached),
            (AttemptOutcome::Blocked, AttemptEvidence::Nothing),
            (AttemptOutcome::StreamBroken, AttemptEvidence::Nothing),
        ];
        for (outcome, evidence) in rows {
            assert_eq!(AttemptEvidence::of(&outcome), evidence, "{outcome:?}");
        }
    }
}
