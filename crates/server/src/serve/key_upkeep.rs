//! The control plane's periodic work on keys.

use super::spawn_periodic;
use std::{sync::Arc, time::Duration};
use turnbuckle_control_plane::KeyUpkeep;
use turnbuckle_domain::Error;
use turnbuckle_runtime::Supervisor;

/// Judges open rotations and goes on with a re-wrap that was cut short, now and then.
pub(super) fn spawn(supervisor: &Supervisor, upkeep: KeyUpkeep, every: Duration) {
    let upkeep = Arc::new(upkeep);
    spawn_periodic(supervisor, "key-upkeep", every, move || {
        let upkeep = Arc::clone(&upkeep);
        async move {
            report(upkeep.judge_rotations().await);
            report(upkeep.continue_rewrap().await);
        }
    });
}

fn report<T>(outcome: Result<T, Error>) {
    if let Err(error) = outcome {
        let error = &error as &dyn std::error::Error;
        tracing::warn!(error, "keys were not looked after; the next round makes up for it");
    }
}
