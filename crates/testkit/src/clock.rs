//! A clock that tests move by hand.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};
use turnbuckle_domain::{Clock, Timestamp};

/// Stands still until moved. Share it in an [`Arc`]: one end in the code under test, one in the test.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// Stands at this point.
    #[must_use]
    pub const fn new(now: Timestamp) -> Self {
        Self(AtomicI64::new(now.micros()))
    }

    /// Stands at this point, ready to be shared.
    #[must_use]
    pub fn shared(now: Timestamp) -> Arc<Self> {
        Arc::new(Self::new(now))
    }

    /// Steps to any point, forward or back.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.micros(), Ordering::SeqCst);
    }

    /// Moves forward, and tells where it then stands.
    pub fn advance(&self, step: Duration) -> Timestamp {
        self.move_to(|now| now + step)
    }

    /// Moves back, as a corrected wall clock does, and tells where it then stands.
    pub fn step_back(&self, step: Duration) -> Timestamp {
        self.move_to(|now| now - step)
    }

    fn move_to(&self, to: impl Fn(Timestamp) -> Timestamp) -> Timestamp {
        let moved = |micros| to(Timestamp::from_micros(micros)).micros();
        let before =
            self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |now| Some(moved(now)));
        match before {
            Ok(before) | Err(before) => Timestamp::from_micros(moved(before)),
        }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_stands_until_moved() {
        let clock = ManualClock::shared(Timestamp::from_micros(5));
        let seen: Arc<dyn Clock> = Arc::clone(&clock) as Arc<dyn Clock>;
        assert_eq!(seen.now().micros(), 5);
        assert_eq!(clock.advance(Duration::from_micros(7)).micros(), 12);
        assert_eq!(seen.now().micros(), 12);
        assert_eq!(clock.step_back(Duration::from_micros(20)).micros(), -8);
        clock.set(Timestamp::EPOCH);
        assert_eq!(seen.now(), Timestamp::EPOCH);
    }
}
