//! Publishing with repeats that cannot make a second event.

use crate::{
    Client,
    proto::{Event, PublishEventRequest, PublishEventResponse},
};
use std::time::Duration;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;
use uuid::Uuid;

/// How `publish` repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryLimits {
    /// Tries in all, the first one counted.
    pub tries: u32,
    /// Wait after the first try; doubles each time, half of it is random.
    pub first_delay: Duration,
    /// Longest wait, also of one the server asks for: beyond it the caller should decide.
    pub max_delay: Duration,
}

impl Default for RetryLimits {
    /// Five tries over about 3 s: bridges a restart or a failover of a connection pool.
    fn default() -> Self {
        Self {
            tries: 5,
            first_delay: Duration::from_millis(200),
            max_delay: Duration::from_secs(5),
        }
    }
}

impl Client {
    /// Publishes one event and repeats it while the failure is a passing one.
    ///
    /// An empty `event_id` is filled before the first try. So a repeat after a lost answer names
    /// the same event; the answer is then flagged `duplicate`, and nothing happened twice.
    ///
    /// # Errors
    /// The last status, when it is final, no tries are left, or the server asks for a longer wait
    /// than allowed.
    pub async fn publish(
        &self,
        parent: impl Into<String>,
        event: Event,
    ) -> Result<PublishEventResponse, Status> {
        let mut event = event;
        if event.event_id.is_empty() {
            event.event_id = new_event_id();
        }
        // Cloning it for a repeat is cheap: the payload is shared.
        let request = PublishEventRequest { parent: parent.into(), event: Some(event) };
        let mut events = self.events();
        let mut tries: u32 = 1;
        loop {
            let status = match events.publish_event(request.clone()).await {
                Ok(response) => return Ok(response.into_inner()),
                Err(status) => status,
            };
            match self.retry.wait_after(tries, &status, random()) {
                Some(delay) => tokio::time::sleep(delay).await,
                None => return Err(status),
            }
            tries += 1;
        }
    }
}

/// Whether a later try of the same request may succeed, provided the request is safe to repeat.
#[must_use]
pub fn is_retryable(status: &Status) -> bool {
    match status.code() {
        Code::Unavailable | Code::Aborted | Code::DeadlineExceeded => true,
        // The server says when, or a quota is used up for good.
        Code::ResourceExhausted => asked_delay(status).is_some(),
        // A connection that broke under the call; the server itself never answers so.
        Code::Unknown | Code::Cancelled => std::error::Error::source(status).is_some(),
        _ => false,
    }
}

impl RetryLimits {
    /// The wait before the next try, or none when there should be no other. `random` spreads
    /// clients that failed together.
    pub(crate) fn wait_after(&self, tries: u32, status: &Status, random: u32) -> Option<Duration> {
        if tries >= self.tries || !is_retryable(status) {
            return None;
        }
        let asked = asked_delay(status).unwrap_or_default();
        if asked > self.max_delay {
            return None;
        }
        let doubled = self.first_delay.saturating_mul(1 << (tries - 1).min(16));
        let half = doubled.min(self.max_delay) / 2;
        let spread = half.mul_f64(f64::from(random) / f64::from(u32::MAX));
        Some(asked.max(half) + spread)
    }
}

fn asked_delay(status: &Status) -> Option<Duration> {
    status.get_details_retry_info().and_then(|info| info.retry_delay)
}

/// Sorts by time, so that a server's index grows at its end.
fn new_event_id() -> String {
    Uuid::now_v7().to_string()
}

/// The last 32 bits of a version 7 UUID are random.
pub(crate) fn random() -> u32 {
    let bytes = Uuid::now_v7().into_bytes();
    u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]])
}

#[cfg(test)]
mod tests;
