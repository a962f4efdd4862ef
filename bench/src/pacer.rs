//! The fixed schedule of an open loop.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;

/// Shortest sleep. Above 5,000 events a second several are released at once, which costs a fifth
/// of a millisecond of latency and spares the machine a wake-up for each.
const PAUSE_MIN: Duration = Duration::from_micros(200);

/// When each event is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    pub(crate) per_second: u32,
    pub(crate) total: u64,
}

impl Schedule {
    /// Time from the start until event `number` is due.
    pub(crate) fn offset(self, number: u64) -> Duration {
        let rate = u64::from(self.per_second);
        let whole = Duration::from_secs(number / rate);
        whole + Duration::from_nanos(number % rate * 1_000_000_000 / rate)
    }

    /// Events that are due after `elapsed`.
    fn due(self, elapsed: Duration) -> u64 {
        let events = elapsed.as_nanos() * u128::from(self.per_second) / 1_000_000_000;
        u64::try_from(events).unwrap_or(u64::MAX).saturating_add(1).min(self.total)
    }
}

/// Gives the gate one permit for each event when it is due, and closes it after the last. A thread
/// of its own, because the runtime's timers round up to the next millisecond.
pub(crate) fn start(schedule: Schedule, begin: Instant, gate: Arc<Semaphore>) {
    thread::spawn(move || {
        let mut released = 0;
        while released < schedule.total && !gate.is_closed() {
            let elapsed = begin.elapsed();
            let due = schedule.due(elapsed);
            if due > released {
                gate.add_permits(usize::try_from(due - released).unwrap_or(0));
                released = due;
            }
            pause(schedule.offset(released).saturating_sub(elapsed).max(PAUSE_MIN));
        }
        gate.close();
    });
}

#[expect(clippy::disallowed_methods, reason = "a load is a schedule in real time")]
fn pause(span: Duration) {
    thread::sleep(span);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_due_exactly_at_its_offset() {
        let schedule = Schedule { per_second: 3, total: 100 };
        assert_eq!(schedule.offset(3), Duration::from_secs(1));
        for number in 0..50 {
            let offset = schedule.offset(number) + Duration::from_nanos(1);
            assert_eq!(schedule.due(offset), number + 1);
        }
        assert_eq!(schedule.due(Duration::from_secs(1_000)), 100);
    }
}
