//! Idle connections, the most recently used first.

use super::connection::Connection;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// A connection idle for longer is not used again: Node closes at 5 s, and a request that meets
/// the close has to be sent twice.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// A connection older than this is not kept, so that a name that moved is looked up again.
pub(super) const MAX_AGE: Duration = Duration::from_secs(300);

/// Expired connections of origins without traffic are looked for this often.
const SWEEP_EVERY: Duration = Duration::from_secs(2);

struct Idle {
    connection: Connection,
    since: Instant,
}

impl Idle {
    fn is_expired(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= IDLE_TIMEOUT
    }
}

struct State {
    /// Empty stacks stay until the next sweep: the next request fills them again.
    stacks: HashMap<Arc<str>, Vec<Idle>>,
    total: usize,
    next_sweep: Instant,
}

/// Idle connections by origin, bounded per origin and in total.
pub(super) struct Pool {
    state: Mutex<State>,
    max_idle_per_origin: usize,
    max_idle: usize,
}

impl Pool {
    pub(super) fn new(max_idle_per_origin: usize, max_idle: usize) -> Self {
        let state = State { stacks: HashMap::new(), total: 0, next_sweep: Instant::now() };
        Self { state: Mutex::new(state), max_idle_per_origin, max_idle }
    }

    /// The connection used last, unless it has been idle too long.
    pub(super) fn take(&self, origin: &str, now: Instant) -> Option<Connection> {
        let mut expired = Vec::new();
        let mut state = self.lock();
        let stack = state.stacks.get_mut(origin)?;
        let found = stack.pop_if(|idle| !idle.is_expired(now));
        if found.is_none() {
            // The last one used has expired, so all below it have.
            expired.append(stack);
        }
        state.total -= expired.len() + usize::from(found.is_some());
        drop(state);
        // Closing wakes tasks, so it happens outside the lock.
        drop(expired);
        found.map(|idle| idle.connection)
    }

    /// Keeps a connection for the next request, or closes it when it is old or there is no room.
    pub(super) fn put(&self, origin: &Arc<str>, connection: Connection, now: Instant) {
        if connection.is_closed() || connection.age(now) >= MAX_AGE {
            return;
        }
        let idle = Idle { connection, since: now };
        let mut state = self.lock();
        let swept = if now >= state.next_sweep { state.sweep(now) } else { Vec::new() };
        let refused = state.push(origin, idle, self.max_idle_per_origin, self.max_idle);
        drop(state);
        drop((swept, refused));
    }

    /// Closes what has expired.
    pub(super) fn sweep(&self, now: Instant) {
        let swept = self.lock().sweep(now);
        drop(swept);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lock().total
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code under the lock can leave it half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Gives the connection back when there is no room.
    fn push(
        &mut self,
        origin: &Arc<str>,
        idle: Idle,
        per_origin: usize,
        max: usize,
    ) -> Option<Idle> {
        if self.total >= max {
            return Some(idle);
        }
        match self.stacks.get_mut(origin) {
            Some(stack) if stack.len() >= per_origin => return Some(idle),
            Some(stack) => stack.push(idle),
            None => drop(self.stacks.insert(Arc::clone(origin), vec![idle])),
        }
        self.total += 1;
        None
    }

    fn sweep(&mut self, now: Instant) -> Vec<Idle> {
        self.next_sweep = now + SWEEP_EVERY;
        let mut swept = Vec::new();
        self.stacks.retain(|_, stack| {
            // The oldest lie at the bottom.
            let expired = stack.partition_point(|idle| idle.is_expired(now));
            swept.extend(stack.drain(..expired));
            !stack.is_empty()
        });
        self.total -= swept.len();
        swept
    }
}
