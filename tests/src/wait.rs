//! The one place where scenarios wait for a state that only polling shows.

use anyhow::Context as _;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// Longest wait of a scenario: only used up when something is broken. Long, because a loaded machine
/// runs many servers at once.
pub const PATIENCE: Duration = Duration::from_secs(40);

/// How often a state is looked at.
const POLL: Duration = Duration::from_millis(20);

/// Looks until there is something to see.
///
/// # Errors
/// The look's own error, or, after [`PATIENCE`], that `what` did not happen.
pub async fn eventually<T>(
    what: &str,
    mut look: impl AsyncFnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let looking = async {
        let mut ticks = tokio::time::interval(POLL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Some(seen) = look().await? {
                return anyhow::Ok(seen);
            }
        }
    };
    tokio::time::timeout(PATIENCE, looking)
        .await
        .with_context(|| format!("did not happen within {PATIENCE:?}: {what}"))?
}
