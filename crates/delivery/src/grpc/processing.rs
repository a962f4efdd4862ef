//! How far events are, on the wire.

use turnbuckle_domain::{Processing, ProcessingState, Timestamp};
use turnbuckle_proto::v1;
use turnbuckle_runtime::grpc::{duration, timestamp_opt};

/// The processing of an event that was accepted at this time.
pub(super) fn processing(found: &Processing, accepted_at: Timestamp) -> v1::EventProcessing {
    let state = match found.state {
        ProcessingState::Received => v1::ProcessingState::Received,
        ProcessingState::Processing => v1::ProcessingState::Processing,
        ProcessingState::Processed => v1::ProcessingState::Processed,
        ProcessingState::Failed => v1::ProcessingState::Failed,
    };
    let number = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
    v1::EventProcessing {
        state: state.into(),
        deliveries: number(found.deliveries),
        attempts: number(found.attempts),
        finish_time: timestamp_opt(found.finished_at),
        duration: found.finished_at.map(|at| duration(at.since(accepted_at))),
    }
}
