//! What arrived, and how it crosses the pipe.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Room made at the start, so that no arrival waits while the log moves. Untouched, it costs nothing.
const ARRIVALS_EXPECTED: usize = 4_000_000;
/// At 16 bytes each the log stays below half a gigabyte.
const ARRIVALS_MAX: usize = 30_000_000;

/// One request that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) at_us: i64,
    pub(crate) event: u32,
    pub(crate) endpoint: u16,
}

impl Arrival {
    /// Bytes of one in a dump.
    pub(super) const BYTES: usize = 14;

    fn encode(self, output: &mut Vec<u8>) {
        output.extend_from_slice(&self.at_us.to_le_bytes());
        output.extend_from_slice(&self.event.to_le_bytes());
        output.extend_from_slice(&self.endpoint.to_le_bytes());
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (at, rest) = bytes.split_first_chunk()?;
        let (event, rest) = rest.split_first_chunk()?;
        let (endpoint, _) = rest.split_first_chunk()?;
        Some(Self {
            at_us: i64::from_le_bytes(*at),
            event: u32::from_le_bytes(*event),
            endpoint: u16::from_le_bytes(*endpoint),
        })
    }
}

/// How many came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Requests at endpoints that answer.
    pub(super) healthy: u64,
    /// Requests that could not be read.
    pub(super) broken: u64,
}

/// Everything that arrived in this process.
pub(super) struct Log {
    hang: u16,
    state: Mutex<State>,
}

struct State {
    arrivals: Vec<Arrival>,
    counts: Counts,
}

impl Log {
    pub(super) fn new(hang: u16) -> Self {
        let arrivals = Vec::with_capacity(ARRIVALS_EXPECTED);
        Self { hang, state: Mutex::new(State { arrivals, counts: Counts::default() }) }
    }

    /// Notes an arrival; tells whether it is to be answered.
    pub(super) fn note(&self, arrival: Arrival) -> bool {
        let is_healthy = arrival.endpoint >= self.hang;
        let mut state = self.lock();
        state.counts.healthy += u64::from(is_healthy);
        if state.arrivals.len() < ARRIVALS_MAX {
            state.arrivals.push(arrival);
        }
        is_healthy
    }

    pub(super) fn note_broken(&self) {
        self.lock().counts.broken += 1;
    }

    pub(super) fn counts(&self) -> Counts {
        self.lock().counts
    }

    /// The number of arrivals, then all of them.
    pub(super) fn dump(&self) -> anyhow::Result<Vec<u8>> {
        let state = self.lock();
        anyhow::ensure!(
            state.arrivals.len() < ARRIVALS_MAX,
            "more than {ARRIVALS_MAX} requests came: measure for a shorter time"
        );
        let mut output = Vec::with_capacity(8 + state.arrivals.len() * Arrival::BYTES);
        output.extend_from_slice(&u64::try_from(state.arrivals.len())?.to_le_bytes());
        state.arrivals.iter().for_each(|arrival| arrival.encode(&mut output));
        Ok(output)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing under the lock can leave the log half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrival_survives_the_pipe_and_only_healthy_ones_are_answered() {
        let log = Log::new(1);
        let sent = Arrival { at_us: 1_700_000_000_000_001, event: 7, endpoint: 1 };
        assert!(log.note(sent));
        assert!(!log.note(Arrival { endpoint: 0, ..sent }));
        let dump = log.dump().unwrap();
        assert_eq!(dump[..8], 2_u64.to_le_bytes());
        assert_eq!(Arrival::decode(&dump[8..8 + Arrival::BYTES]), Some(sent));
        assert_eq!(log.counts().healthy, 1);
    }
}
