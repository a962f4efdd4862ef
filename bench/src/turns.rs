//! Who sends when: a closed loop, or a fixed schedule.

use crate::{args::Rate, clock, pacer};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;

/// Hands out numbers to the workers of a load, each once.
pub(crate) struct Turns {
    /// Numbers of one turn.
    batch: u16,
    next: AtomicU32,
    pace: Pace,
    begin_us: i64,
}

/// Who says when the next turn may start.
enum Pace {
    /// The answer to the one before, until the time is over.
    Answered { end_us: i64 },
    /// A schedule.
    Due { gate: Arc<Semaphore>, schedule: pacer::Schedule },
}

impl Turns {
    /// Starts the clock of a load that lasts `span`, in whole batches.
    pub(crate) fn start(rate: Rate, span: Duration, batch: u16) -> Self {
        let begin_us = clock::now_us();
        let pace = match rate {
            Rate::Max => Pace::Answered { end_us: begin_us + clock::us(span) },
            Rate::PerSecond(per_second) => {
                let whole = u64::from(batch);
                let total = u64::from(per_second) * span.as_secs() / whole * whole;
                let schedule = pacer::Schedule { per_second, total };
                let gate = Arc::new(Semaphore::new(0));
                pacer::start(schedule, Instant::now(), Arc::clone(&gate));
                Pace::Due { gate, schedule }
            }
        };
        Self { batch, next: AtomicU32::new(0), pace, begin_us }
    }

    pub(crate) const fn begin_us(&self) -> i64 {
        self.begin_us
    }

    /// Waits for a turn; gives its first number, or `None` at the end.
    pub(crate) async fn next(&self) -> Option<u32> {
        match &self.pace {
            Pace::Answered { end_us } if clock::now_us() >= *end_us => return None,
            Pace::Answered { .. } => {}
            Pace::Due { gate, .. } => {
                gate.acquire_many(u32::from(self.batch)).await.ok()?.forget();
            }
        }
        // Only the number matters; nothing else is published with it.
        Some(self.next.fetch_add(u32::from(self.batch), Ordering::Relaxed))
    }

    /// When a number was due; without a schedule it is due when it is sent.
    pub(crate) fn start_us(&self, number: u32, now_us: i64) -> i64 {
        match &self.pace {
            Pace::Answered { .. } => now_us,
            Pace::Due { schedule, .. } => {
                self.begin_us + clock::us(schedule.offset(u64::from(number)))
            }
        }
    }

    /// Whether the next turn waits only for an answer.
    pub(crate) const fn is_closed_loop(&self) -> bool {
        matches!(self.pace, Pace::Answered { .. })
    }

    /// Numbers of the schedule that are not among these many.
    pub(crate) const fn missing(&self, taken: u64) -> u64 {
        match &self.pace {
            Pace::Answered { .. } => 0,
            Pace::Due { schedule, .. } => schedule.total.saturating_sub(taken),
        }
    }

    /// Ends a schedule early.
    pub(crate) fn close(&self) {
        if let Pace::Due { gate, .. } = &self.pace {
            gate.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_covers_its_span_in_whole_batches() {
        let turns = Turns::start(Rate::PerSecond(100), Duration::from_secs(4), 30);
        assert_eq!(turns.missing(0), 390);
        assert_eq!(turns.missing(391), 0);
        turns.close();
    }
}
