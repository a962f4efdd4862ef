//! The system's wall clock.

use std::time::UNIX_EPOCH;
use turnbuckle_domain::{Clock, Timestamp};

/// The wall clock of the machine, and the only reader of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
        let now = std::time::SystemTime::now();
        match now.duration_since(UNIX_EPOCH) {
            Ok(since) => Timestamp::EPOCH + since,
            // A machine without a battery may start before 1970 until its clock is set.
            Err(before) => Timestamp::EPOCH - before.duration(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_in_this_century() {
        let now = SystemClock.now().unix_seconds();
        assert!((1_700_000_000..4_102_444_800).contains(&now), "{now}");
    }
}
