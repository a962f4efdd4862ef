//! How fast a replay goes on.

use std::time::Duration;
use tokio::time::Instant;
use turnbuckle_domain::replay_limits;

/// Steps of a second: short enough that the receiver sees a stream, and no bursts.
const STEPS_A_SECOND: u32 = 4;
const NANOS: u128 = 1_000_000_000;

/// Deliveries a second, over steps. Time that a replay could not use is not caught up on.
pub(super) struct Pace {
    rate: u32,
    since: Instant,
    spent: u64,
}

impl Pace {
    pub(super) fn new(rate: u32, now: Instant) -> Self {
        Self { rate: rate.max(1), since: now, spent: 0 }
    }

    /// Deliveries of one step.
    pub(super) fn quantum(&self) -> usize {
        let step = (self.rate / STEPS_A_SECOND).clamp(1, replay_limits::STEP);
        usize::try_from(step).unwrap_or(1)
    }

    /// Notes what a step opened.
    pub(super) fn spend(&mut self, deliveries: usize, now: Instant) {
        if self.owed(now).is_zero() {
            (self.since, self.spent) = (now, 0);
        }
        self.spent = self.spent.saturating_add(deliveries as u64);
    }

    /// How long the next step must wait.
    pub(super) fn owed(&self, now: Instant) -> Duration {
        let nanos = u128::from(self.spent) * NANOS / u128::from(self.rate);
        let takes = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        takes.saturating_sub(now.saturating_duration_since(self.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_carries_no_more_than_the_rate() {
        for rate in [1, 3, 4, 100, 999, 5_000] {
            let start = Instant::now();
            let mut pace = Pace::new(rate, start);
            let (mut now, mut sent) = (start, 0_u64);
            while now.saturating_duration_since(start) < Duration::from_secs(10) {
                let quantum = pace.quantum();
                sent += quantum as u64;
                pace.spend(quantum, now);
                now += pace.owed(now);
            }
            let most = u64::from(rate) * 10 + pace.quantum() as u64;
            assert!(sent <= most && sent >= u64::from(rate) * 10, "{rate}: {sent}");
        }
    }

    #[test]
    fn lost_time_is_not_caught_up_on() {
        let start = Instant::now();
        let mut pace = Pace::new(100, start);
        pace.spend(25, start);
        let later = start + Duration::from_secs(60);
        assert!(pace.owed(later).is_zero());
        pace.spend(25, later);
        assert_eq!(pace.owed(later), Duration::from_millis(250));
    }
}
