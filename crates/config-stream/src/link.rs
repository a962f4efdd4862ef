//! The connection to the control plane: opened again for ever, after random waits.

use crate::{metrics, source::Shared, state::Fault, wire::wire_role};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use tonic::{Request, Status, Streaming};
use turnbuckle_proto::v1::{WatchRequest, WatchResponse};

/// Longest wait after a failure; random below it, so that nodes do not come back all at once.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Wait after the first failure, at most.
const WAIT_FIRST: Duration = Duration::from_millis(200);
/// Longest wait for the stream to open.
const OPEN_WAIT: Duration = Duration::from_secs(10);
/// A stream without a message for six checkpoints is opened anew: either the control plane does not
/// reach its store, and another one may, or the way to it is dead.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// A stream that lasted this long was a good one: the next failure is a first one.
const GOOD_AFTER: Duration = Duration::from_secs(10);
/// The server ends streams after half an hour; the call itself may take longer.
const CALL_MAX: Duration = Duration::from_secs(3600);

/// Why a stream ended.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("the control plane does not answer: {}", .0.message())]
    Refused(Status),
    #[error("the stream did not open in time")]
    NotOpened,
    #[error("nothing was heard for {} s", SILENCE_MAX.as_secs())]
    Silent,
    #[error("the control plane sent what cannot be used: {0}")]
    Fault(#[from] Fault),
    /// As it does every half hour, and when it stops.
    #[error("the control plane ended the stream")]
    Planned,
}

impl From<Status> for Ended {
    fn from(status: Status) -> Self {
        Self::Refused(status)
    }
}

/// Follows until dropped.
pub(crate) async fn run(shared: &Shared) {
    let mut failures = 0_u32;
    loop {
        let begun = Instant::now();
        let ended = follow(shared).await;
        shared.connected(false);
        if begun.elapsed() >= GOOD_AFTER {
            failures = 0;
        }
        match &ended {
            Ended::Planned => tracing::debug!("the control plane ended the stream"),
            Ended::Fault(_) => {
                metrics::fault();
                tracing::error!(error = %ended, "the stream of configuration is opened anew");
            }
            // Once, and not with every try.
            _ if failures == 0 => {
                tracing::warn!(error = %ended, "configuration is not followed; the last one stays in use");
            }
            _ => tracing::debug!(error = %ended, "configuration is not followed"),
        }
        sleep(wait(failures, shared.random.unit())).await;
        failures = failures.saturating_add(1);
    }
}

/// The wait after this many failures before: full jitter, so that restarts spread.
fn wait(failures: u32, random: f64) -> Duration {
    let longest = WAIT_FIRST.saturating_mul(2_u32.saturating_pow(failures.min(16))).min(WAIT_MAX);
    longest.mul_f64(random)
}

async fn follow(shared: &Shared) -> Ended {
    match stream(shared).await {
        Ok(mut stream) => loop {
            match next(shared, &mut stream).await {
                Ok(()) => shared.connected(true),
                Err(ended) => return ended,
            }
        },
        Err(ended) => ended,
    }
}

async fn stream(shared: &Shared) -> Result<Streaming<WatchResponse>, Ended> {
    let known = shared.begin();
    let mut request = Request::new(WatchRequest {
        node: shared.node.name.to_string(),
        role: wire_role(shared.node.role).into(),
        epoch: known.map(|at| at.epoch.to_string()).unwrap_or_default(),
        known_revision: known.map_or(0, |at| at.revision.0),
    });
    request.set_timeout(CALL_MAX);
    let mut configuration = shared.client.configuration();
    let opened = timeout(OPEN_WAIT, configuration.watch(request)).await;
    Ok(opened.map_err(|_| Ended::NotOpened)??.into_inner())
}

async fn next(shared: &Shared, stream: &mut Streaming<WatchResponse>) -> Result<(), Ended> {
    let received = timeout(SILENCE_MAX, stream.message()).await.map_err(|_| Ended::Silent)?;
    let message = received?.ok_or(Ended::Planned)?;
    match message.message {
        Some(message) => Ok(shared.apply(message)?),
        // Newer than this program.
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_bound_and_are_spread() {
        assert_eq!(wait(0, 0.0), Duration::ZERO);
        assert_eq!(wait(0, 0.5), Duration::from_millis(100));
        assert_eq!(wait(3, 0.5), Duration::from_millis(800));
        assert_eq!(wait(u32::MAX, 0.999), WAIT_MAX.mul_f64(0.999));
    }
}
