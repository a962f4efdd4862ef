//! Retry policies: a pure decision about every attempt.

use crate::{
    AttemptOutcome, FinishReason, Labels, Meta, ResourceId, RetryPolicyId, TenantId, Timestamp,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Bounds of retry policies, each with its reason.
pub mod retry_limits {
    use std::time::Duration;

    /// Shortest delay: below it a retry is a busy loop against a receiver in trouble.
    pub const DELAY_MIN: Duration = Duration::from_millis(10);
    /// Longest delay: nobody waits longer for a sign of life.
    pub const DELAY_MAX: Duration = Duration::from_secs(24 * 3600);
    /// Most attempts of one round.
    pub const ATTEMPTS_MAX: u32 = 100;
    /// Former versions kept of one policy: enough to see what was changed of late and to go back. One
    /// has some kilobytes at most, so a tenant's policies together stay below 200 MB on the disk. The
    /// record of changes names older ones.
    pub const VERSIONS_KEPT: i64 = 20;
    /// Steepest growth.
    pub const FACTOR_MAX: f64 = 10.0;
    /// Shortest horizon.
    pub const HORIZON_MIN: Duration = Duration::from_secs(1);
    /// Longest horizon: inside every retention.
    pub const HORIZON_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
    /// Longest wait a receiver can ask for.
    pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);
    /// Extra answers that are retried.
    pub const STATUSES_MAX: usize = 32;
    /// Delays of a list.
    pub const DELAYS_MAX: usize = 100;
}

/// How delays grow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Backoff {
    /// A first delay, multiplied each time.
    Exponential {
        /// After the first attempt.
        first_delay: Duration,
        /// Growth per attempt.
        factor: f64,
        /// Never longer than this.
        max_delay: Duration,
    },
    /// Delays one by one; the last one repeats.
    Delays(Vec<Duration>),
}

/// How delays are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    /// The delay as it is.
    None,
    /// Half of the delay plus a random part of the other half.
    Equal,
    /// A random part of the delay.
    Full,
}

/// The rules of a policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryRule {
    /// How delays grow.
    pub backoff: Backoff,
    /// How they are spread.
    pub jitter: Jitter,
    /// Attempts of one round, the first one counted.
    pub max_attempts: u32,
    /// No attempt starts later than this after the round began.
    pub horizon: Duration,
    /// Longest wait a receiver can ask for; zero ignores it.
    pub max_retry_after: Duration,
    /// Answers retried besides those every policy retries.
    pub retry_statuses: Vec<u16>,
}

impl Default for RetryRule {
    /// 5 s doubling to 5 min with equal jitter, twelve attempts within three days.
    fn default() -> Self {
        Self {
            backoff: Backoff::Exponential {
                first_delay: Duration::from_secs(5),
                factor: 2.0,
                max_delay: Duration::from_secs(300),
            },
            jitter: Jitter::Equal,
            max_attempts: 12,
            horizon: Duration::from_secs(3 * 24 * 3600),
            max_retry_after: Duration::from_secs(3600),
            retry_statuses: Vec::new(),
        }
    }
}

/// A versioned row that endpoints refer to.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPolicy {
    /// Unique for ever.
    pub id: RetryPolicyId,
    /// Whose it is.
    pub tenant: TenantId,
    /// Last part of its name.
    pub slug: ResourceId,
    /// Grows by one with every change.
    pub version: i64,
    /// The rules.
    pub rule: RetryRule,
    /// Free pairs.
    pub labels: Labels,
    /// Times and revision.
    pub meta: Meta,
}

impl Eq for RetryPolicy {}

/// How far a delivery has come in its present round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Attempts of this round, the one just made counted.
    pub attempts: u32,
    /// When the round began.
    pub round_at: Timestamp,
}

/// What follows an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The receiver took it.
    Delivered,
    /// Try again.
    Retry {
        /// Wait, from the end of the attempt.
        delay: Duration,
        /// Whether the wait follows the receiver's Retry-After.
        retry_after_honoured: bool,
    },
    /// No more automatic attempts.
    Dead(FinishReason),
}

impl Decision {
    /// The wait before the next attempt, when there is one.
    #[must_use]
    pub const fn delay(&self) -> Option<Duration> {
        match self {
            Self::Retry { delay, .. } => Some(*delay),
            Self::Delivered | Self::Dead(_) => None,
        }
    }
}

impl RetryRule {
    /// Decides what follows an attempt that ended at `ended_at`. `random` is in `0.0 .. 1.0`.
    #[must_use]
    pub fn decide(
        &self,
        progress: Progress,
        outcome: &AttemptOutcome,
        ended_at: Timestamp,
        random: f64,
    ) -> Decision {
        let retry_after = match outcome {
            AttemptOutcome::Delivered { .. } | AttemptOutcome::Acknowledged => {
                return Decision::Delivered;
            }
            AttemptOutcome::Blocked => return Decision::Dead(FinishReason::EgressBlocked),
            AttemptOutcome::Refused { status: 410, .. } => {
                return Decision::Dead(FinishReason::Gone);
            }
            AttemptOutcome::Refused { status, retry_after } => {
                if !self.retries(*status) {
                    return Decision::Dead(FinishReason::FinalAnswer);
                }
                retry_after.filter(|_| matches!(status, 429 | 503))
            }
            AttemptOutcome::TimedOut { .. }
            | AttemptOutcome::Unreachable { .. }
            | AttemptOutcome::Failed { .. }
            | AttemptOutcome::Returned { .. }
            | AttemptOutcome::LeaseLapsed
            | AttemptOutcome::StreamBroken => None,
        };
        if progress.attempts >= self.max_attempts {
            return Decision::Dead(FinishReason::AttemptsExhausted);
        }
        let own = self.jittered(self.delay_after(progress.attempts), random);
        let asked = retry_after.map_or(Duration::ZERO, |wait| wait.min(self.max_retry_after));
        let delay = match outcome {
            // Our own consumer says when it can try again, earlier than the schedule too.
            AttemptOutcome::Returned { delay: Some(wanted) } => *wanted,
            // Never earlier than the schedule: a receiver can slow us down, not speed us up.
            _ => own.max(asked),
        };
        if ended_at + delay > progress.round_at + self.horizon {
            return Decision::Dead(FinishReason::HorizonPassed);
        }
        Decision::Retry { delay, retry_after_honoured: asked > own }
    }

    /// Gives up as late as any policy can: for a moment in which the policy that holds is not known.
    #[must_use]
    pub fn patient() -> Self {
        Self {
            max_attempts: retry_limits::ATTEMPTS_MAX,
            horizon: retry_limits::HORIZON_MAX,
            // 410 is final under every policy.
            retry_statuses: (400..=499).filter(|status| *status != 410).collect(),
            ..Self::default()
        }
    }

    /// Whether this answer is tried again.
    #[must_use]
    pub fn retries(&self, status: u16) -> bool {
        // 3xx is never followed but may be a deploy in progress, so it is retried.
        matches!(status, 300..=399 | 408 | 425 | 429 | 500..=599)
            || self.retry_statuses.contains(&status)
    }

    /// The scheduled delay after attempt `attempts` of a round, before jitter.
    #[must_use]
    pub fn delay_after(&self, attempts: u32) -> Duration {
        let index = attempts.saturating_sub(1);
        match &self.backoff {
            Backoff::Exponential { first_delay, factor, max_delay } => {
                let growth = factor.powi(i32::try_from(index).unwrap_or(i32::MAX));
                let seconds = first_delay.as_secs_f64() * growth;
                if seconds < max_delay.as_secs_f64() {
                    Duration::from_secs_f64(seconds)
                } else {
                    *max_delay
                }
            }
            Backoff::Delays(delays) => {
                let index = usize::try_from(index).unwrap_or(usize::MAX);
                delays
                    .get(index)
                    .or_else(|| delays.last())
                    .copied()
                    .unwrap_or(retry_limits::DELAY_MIN)
            }
        }
    }

    fn jittered(&self, delay: Duration, random: f64) -> Duration {
        match self.jitter {
            Jitter::None => delay,
            Jitter::Equal => delay / 2 + (delay / 2).mul_f64(random),
            Jitter::Full => delay.mul_f64(random),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Phase, RequestFault, Unreachable};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn progress(attempts: u32) -> Progress {
        Progress { attempts, round_at: at(0) }
    }

    fn refused(status: u16, retry_after: Option<u64>) -> AttemptOutcome {
        AttemptOutcome::Refused { status, retry_after: retry_after.map(Duration::from_secs) }
    }

    #[test]
    fn every_outcome_has_its_documented_end() {
        let rule = RetryRule::default();
        let decide = |outcome| rule.decide(progress(1), &outcome, at(1), 0.5);
        let retried = |outcome| matches!(decide(outcome), Decision::Retry { .. });
        assert_eq!(decide(AttemptOutcome::Delivered { status: 204 }), Decision::Delivered);
        for status in [301, 302, 307, 408, 425, 429, 500, 502, 503, 504, 529] {
            assert!(retried(refused(status, None)), "{status}");
        }
        for status in [400, 401, 403, 404, 405, 413, 415, 422, 101] {
            assert_eq!(decide(refused(status, None)), Decision::Dead(FinishReason::FinalAnswer));
        }
        assert_eq!(decide(refused(410, None)), Decision::Dead(FinishReason::Gone));
        assert_eq!(decide(AttemptOutcome::Blocked), Decision::Dead(FinishReason::EgressBlocked));
        assert!(retried(AttemptOutcome::TimedOut { phase: Phase::Dns }));
        assert!(retried(AttemptOutcome::Unreachable { cause: Unreachable::Dns }));
        assert!(retried(AttemptOutcome::Failed { fault: RequestFault::Worker }));
    }

    #[test]
    fn a_policy_can_retry_more_answers() {
        let rule = RetryRule { retry_statuses: vec![404], ..RetryRule::default() };
        assert!(matches!(
            rule.decide(progress(1), &refused(404, None), at(1), 0.0),
            Decision::Retry { .. }
        ));
    }

    #[test]
    fn equal_jitter_stays_inside_its_window() {
        let rule = RetryRule::default();
        for (attempts, scheduled) in [(1, 5), (2, 10), (3, 20), (7, 300), (11, 300)] {
            for random in [0.0, 0.25, 0.999_999] {
                let outcome = refused(500, None);
                let decision = rule.decide(progress(attempts), &outcome, at(1), random);
                let Decision::Retry { delay, .. } = decision else { panic!("{decision:?}") };
                let seconds = delay.as_secs_f64();
                let scheduled = f64::from(scheduled);
                assert!(seconds >= scheduled / 2.0 && seconds < scheduled, "{attempts} {seconds}");
            }
        }
    }

    #[test]
    fn attempts_and_horizon_end_a_round() {
        let rule = RetryRule::default();
        let outcome = refused(500, None);
        assert_eq!(
            rule.decide(progress(12), &outcome, at(1), 0.5),
            Decision::Dead(FinishReason::AttemptsExhausted)
        );
        assert_eq!(
            rule.decide(progress(2), &outcome, at(3 * 24 * 3600), 0.5),
            Decision::Dead(FinishReason::HorizonPassed)
        );
    }

    #[test]
    fn retry_after_can_only_slow_down_and_is_capped() {
        let rule = RetryRule { jitter: Jitter::None, ..RetryRule::default() };
        for (status, asked, expected, honoured) in [
            (429, 120, 120, true),
            (503, 120, 120, true),
            (500, 120, 5, false),
            (429, 1, 5, false),
            (429, 0, 5, false),
            (429, 999_999_999, 3600, true),
            (429, u64::MAX, 3600, true),
        ] {
            let decision = rule.decide(progress(1), &refused(status, Some(asked)), at(1), 0.5);
            let delay = Duration::from_secs(expected);
            assert_eq!(
                decision,
                Decision::Retry { delay, retry_after_honoured: honoured },
                "{status} {asked}"
            );
        }
    }

    #[test]
    fn a_list_repeats_its_last_delay_and_nothing_overflows() {
        let delays = vec![Duration::from_secs(1), Duration::from_secs(7)];
        let rule = RetryRule {
            backoff: Backoff::Delays(delays),
            jitter: Jitter::None,
            max_attempts: 100,
            ..RetryRule::default()
        };
        assert_eq!(rule.delay_after(1), Duration::from_secs(1));
        assert_eq!(rule.delay_after(2), Duration::from_secs(7));
        assert_eq!(rule.delay_after(99), Duration::from_secs(7));
        assert_eq!(RetryRule::default().delay_after(u32::MAX), Duration::from_secs(300));
    }
}
