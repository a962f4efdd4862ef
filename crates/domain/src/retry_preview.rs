//! What a retry policy will do: the times of all attempts, as windows, since jitter spreads them.

use crate::{Jitter, RetryRule};
use std::time::Duration;

/// One attempt of a round that never succeeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedAttempt {
    /// 1 for the first.
    pub number: u32,
    /// Shortest time after the attempt before it; zero for the first.
    pub delay_min: Duration,
    /// Longest time after the attempt before it.
    pub delay_max: Duration,
    /// Earliest time after the round began.
    pub earliest: Duration,
    /// Latest time after the round began, inside the horizon.
    pub latest: Duration,
    /// Whether it is made at all only when jitter keeps the delays before it short: the horizon lies
    /// inside its window.
    pub uncertain: bool,
}

impl RetryRule {
    /// The attempts of a round in which every attempt takes this long and fails in a way that is
    /// retried, without a Retry-After. A rule bounds their number, so there are at most 100.
    #[must_use]
    pub fn preview(&self, attempt_duration: Duration) -> Vec<PlannedAttempt> {
        let zero = Duration::ZERO;
        let mut last = PlannedAttempt {
            number: 1,
            delay_min: zero,
            delay_max: zero,
            earliest: zero,
            latest: zero,
            uncertain: false,
        };
        let mut planned = vec![last];
        // What jitter can make of an attempt's time, whether or not the horizon cuts it.
        let mut latest = zero;
        while last.number < self.max_attempts {
            let (delay_min, delay_max) = self.window_after(last.number);
            let earliest = last.earliest + attempt_duration + delay_min;
            latest += attempt_duration + delay_max;
            if earliest > self.horizon {
                break;
            }
            last = PlannedAttempt {
                number: last.number + 1,
                delay_min,
                delay_max,
                earliest,
                latest: latest.min(self.horizon),
                uncertain: latest > self.horizon,
            };
            planned.push(last);
        }
        planned
    }

    /// Shortest and longest wait after this attempt of a round.
    fn window_after(&self, attempts: u32) -> (Duration, Duration) {
        let delay = self.delay_after(attempts);
        let shortest = match self.jitter {
            Jitter::None => delay,
            Jitter::Equal => delay / 2,
            Jitter::Full => Duration::ZERO,
        };
        (shortest, delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AttemptOutcome, Backoff, Decision, Progress, Timestamp};

    fn seconds(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    fn list(delays: &[u64], jitter: Jitter) -> RetryRule {
        let delays = delays.iter().copied().map(seconds).collect();
        RetryRule { backoff: Backoff::Delays(delays), jitter, ..RetryRule::default() }
    }

    #[test]
    fn without_jitter_every_window_is_a_point() {
        let rule = RetryRule { max_attempts: 4, ..list(&[5, 60], Jitter::None) };
        let times: Vec<_> =
            rule.preview(seconds(1)).iter().map(|at| (at.earliest, at.latest)).collect();
        let expected = [0, 6, 67, 128].map(|at| (seconds(at), seconds(at)));
        assert_eq!(times, expected);
    }

    #[test]
    fn windows_grow_with_jitter() {
        let rule = RetryRule { max_attempts: 3, ..list(&[10], Jitter::Equal) };
        let planned = rule.preview(Duration::ZERO);
        assert_eq!((planned[2].earliest, planned[2].latest), (seconds(10), seconds(20)));
        assert_eq!((planned[1].delay_min, planned[1].delay_max), (seconds(5), seconds(10)));
        let rule = RetryRule { jitter: Jitter::Full, ..rule };
        assert_eq!(rule.preview(Duration::ZERO)[2].earliest, Duration::ZERO);
    }

    #[test]
    fn the_horizon_ends_a_round_and_makes_its_last_attempts_uncertain() {
        let rule = RetryRule { horizon: seconds(12), ..list(&[10], Jitter::Equal) };
        let planned = rule.preview(Duration::ZERO);
        let windows: Vec<_> =
            planned.iter().map(|at| (at.number, at.latest, at.uncertain)).collect();
        assert_eq!(
            windows,
            [(1, seconds(0), false), (2, seconds(10), false), (3, seconds(12), true)]
        );
    }

    #[test]
    fn no_rule_makes_it_endless_or_overflow() {
        let rule = RetryRule {
            max_attempts: 100,
            horizon: seconds(30 * 24 * 3600),
            ..list(&[24 * 3600], Jitter::Full)
        };
        assert_eq!(rule.preview(seconds(30)).len(), 100);
    }

    /// The preview and the decision must not drift apart.
    #[test]
    fn what_is_decided_lies_inside_the_windows() {
        for jitter in [Jitter::None, Jitter::Equal, Jitter::Full] {
            for random in [0.0, 0.5, 0.999_999] {
                let rule = RetryRule { jitter, horizon: seconds(900), ..RetryRule::default() };
                let planned = rule.preview(seconds(2));
                let (mut now, mut attempts) = (Timestamp::EPOCH, 0);
                loop {
                    let window = planned[attempts as usize];
                    let at = now.since(Timestamp::EPOCH);
                    assert!(window.earliest <= at && at <= window.latest, "{window:?} {at:?}");
                    attempts += 1;
                    now = now + seconds(2);
                    let progress = Progress { attempts, round_at: Timestamp::EPOCH };
                    let failed = AttemptOutcome::Refused { status: 500, retry_after: None };
                    match rule.decide(progress, &failed, now, random) {
                        Decision::Retry { delay, .. } => now = now + delay,
                        _ => break,
                    }
                }
                let certain = planned.iter().filter(|window| !window.uncertain).count();
                assert!(attempts as usize >= certain, "{jitter:?} {random}");
            }
        }
    }
}
