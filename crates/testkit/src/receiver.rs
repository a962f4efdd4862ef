//! A scripted HTTP receiver: answers as told, and remembers every request byte for byte.
//!
//! ```text
//!  Script ──► answer n of (path [, header value])     request ──► Received ──► received()
//!             status │ delay │ hang │ drip │ huge │ reset              └──► wait_for(count, deadline)
//! ```
//!
//! Waiting is on the level of a counter, never on an edge or a sleep.

mod body;
mod script;
mod serve;

pub use script::{Answer, Script};

use bytes::Bytes;
use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{net::TcpListener, sync::watch, time::Instant};
use tokio_util::sync::{CancellationToken, DropGuard};

/// One request as it came.
#[derive(Clone, Debug)]
pub struct Received {
    /// 0 for the first request of the receiver.
    pub sequence: u64,
    /// Which connection it came on, 0 for the first.
    pub connection: u64,
    /// When its head was read.
    pub at: Instant,
    /// The same on the wall clock, in microseconds since the epoch.
    pub unix_micros: i64,
    /// Such as `POST`.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Lower-case names and values as bytes, in the order received.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body, every byte.
    pub body: Bytes,
    /// Status it will be answered with, 0 when there will be no answer.
    pub answer: u16,
}

impl Received {
    /// The first value of a header as text; none when it is missing or no text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(candidate, _)| candidate == name)?;
        std::str::from_utf8(value).ok()
    }
}

/// Numbers that cost nothing to read under load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Connections accepted.
    pub connections: u64,
    /// Requests whose body was read to its end.
    pub requests: u64,
    /// Body bytes of them.
    pub body_bytes: u64,
    /// Requests in work now: delayed, hanging or dripping.
    pub in_flight: u64,
    /// Most requests in work at once.
    pub most_in_flight: u64,
}

/// A running receiver; dropping it closes its port and all connections.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    state: Arc<State>,
    _stop: DropGuard,
}

#[derive(Debug)]
struct State {
    script: Mutex<script::Position>,
    received: Mutex<Vec<Received>>,
    count: watch::Sender<u64>,
    connections: AtomicU64,
    body_bytes: AtomicU64,
    in_flight: AtomicU64,
    most_in_flight: AtomicU64,
}

impl Receiver {
    /// Listens on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(script: Script) -> io::Result<Self> {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), script).await
    }

    /// Listens on a given address, as a receiver that comes back after a while.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub async fn start_at(address: SocketAddr, script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            script: Mutex::new(script::Position::new(script)),
            received: Mutex::default(),
            count: watch::Sender::new(0),
            connections: AtomicU64::new(0),
            body_bytes: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
            most_in_flight: AtomicU64::new(0),
        });
        let stop = CancellationToken::new();
        tokio::spawn(serve::accept(listener, state.clone(), stop.clone()));
        Ok(Self { address, state, _stop: stop.drop_guard() })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of a path such as `/hooks`.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Answers by another script from the next request on; counting starts again.
    pub fn change_script(&self, script: Script) {
        *lock(&self.state.script) = script::Position::new(script);
    }

    /// Every request so far, in the order their bodies ended. Empty under [`Script::counting_only`].
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        lock(&self.state.received).clone()
    }

    /// Requests so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        *self.state.count.borrow()
    }

    /// The counters.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Totals {
            connections: self.state.connections.load(Ordering::Relaxed),
            requests: self.count(),
            body_bytes: self.state.body_bytes.load(Ordering::Relaxed),
            in_flight: self.state.in_flight.load(Ordering::Relaxed),
            most_in_flight: self.state.most_in_flight.load(Ordering::Relaxed),
        }
    }

    /// Waits until at least `count` requests have come.
    ///
    /// # Errors
    /// After the deadline, saying how many came.
    pub async fn wait_for(&self, count: u64, deadline: Duration) -> anyhow::Result<Vec<Received>> {
        let mut level = self.state.count.subscribe();
        // The state holds the sender, so the wait can only end by reaching the level.
        match tokio::time::timeout(deadline, level.wait_for(|now| *now >= count)).await {
            Ok(reached) => {
                reached?;
            }
            Err(_) => {
                anyhow::bail!("{} of {count} requests came within {deadline:?}", self.count())
            }
        }
        Ok(self.received())
    }

    /// Waits until the requests so far fulfil a condition.
    ///
    /// # Errors
    /// After the deadline.
    pub async fn wait_until(
        &self,
        deadline: Duration,
        mut condition: impl FnMut(&[Received]) -> bool,
    ) -> anyhow::Result<Vec<Received>> {
        let mut level = self.state.count.subscribe();
        let state = &self.state;
        let reached = level.wait_for(|_| condition(&lock(&state.received)));
        if tokio::time::timeout(deadline, reached).await.is_err() {
            anyhow::bail!(
                "the condition did not hold within {deadline:?}; {} requests came",
                self.count()
            );
        }
        Ok(self.received())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
