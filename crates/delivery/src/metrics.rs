//! Every metric of this plane: name, labels, meaning. Handles are made once; the engine is too hot to
//! look a name up per delivery.

use crate::publish::OrderMetrics;
use metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram,
    gauge, histogram,
};
use std::time::Duration;
use turnbuckle_domain::{AttemptOutcome, DeliveryState};

/// Tells the recorder what the metrics mean. Call it once, after the recorder is installed.
pub(crate) fn describe() {
    describe_gauge!("turnbuckle_config_revision", "Revision of the configuration in use");
    describe_gauge!("turnbuckle_shards_held", "Shards that this worker leases");
    describe_gauge!("turnbuckle_attempts_in_flight", "Attempts under way");
    describe_gauge!("turnbuckle_deliveries_held", "Deliveries in memory, until they are settled");
    describe_gauge!("turnbuckle_lanes", "Lanes in memory");
    describe_gauge!("turnbuckle_replays_running", "Replays under way in this process");
    describe_gauge!("turnbuckle_pull_streams", "Open streams of consumers");
    let counters = [
        ("turnbuckle_events_accepted_total", "Events accepted and durable"),
        ("turnbuckle_events_duplicate_total", "Events accepted before, published again"),
        ("turnbuckle_events_anomaly_total", "Event ids published again with other content"),
        (
            "turnbuckle_events_schema_refused_total",
            "Events refused for their version, or for the schema of it",
        ),
        (
            "turnbuckle_handoff_overflow_total",
            "Deliveries left to the store for want of room in memory",
        ),
        (
            "turnbuckle_ordered_events_total",
            "Events whose order is watched, by how they stood to it",
        ),
        ("turnbuckle_order_gaps_total", "Gaps in the order of a subject that ended, by how"),
        ("turnbuckle_attempts_total", "Attempts, by outcome"),
        ("turnbuckle_deliveries_total", "Deliveries finished, by state"),
        ("turnbuckle_signatures_total", "Signatures made, by place in the request"),
        ("turnbuckle_key_tests_total", "Tests of keys, by outcome"),
        ("turnbuckle_connections_reused_total", "Attempts carried by an idle connection"),
        ("turnbuckle_operational_events_total", "Operational events, by type and outcome"),
        ("turnbuckle_replay_rows_total", "Rows that replays dealt with, by result"),
        ("turnbuckle_replays_total", "Replays that ended by themselves, by state"),
        ("turnbuckle_endpoints_disabled_total", "Endpoints the service disabled, by cause"),
        ("turnbuckle_settle_total", "Results written"),
        ("turnbuckle_pull_settled_total", "Results of consumers written"),
        ("turnbuckle_pull_stale_total", "Results of consumers that came after their lease"),
        ("turnbuckle_settle_refused_total", "Results that the store refused; offered again"),
        ("turnbuckle_settle_stale_total", "Results that came too late to change anything"),
    ];
    for (name, text) in counters {
        describe_counter!(name, Unit::Count, text);
    }
    describe_histogram!(
        "turnbuckle_attempt_duration_seconds",
        Unit::Seconds,
        "Time of an attempt, to the end of the answer's head"
    );
    describe_histogram!(
        "turnbuckle_processing_seconds",
        Unit::Seconds,
        "Time from the acceptance of an event to the end of a delivery of it, by state"
    );
    describe_histogram!("turnbuckle_commit_group_events", "Events that shared a commit");
}

/// Metrics of the dispatcher.
pub(crate) struct EngineMetrics {
    pub(crate) attempts_in_flight: Gauge,
    pub(crate) deliveries_held: Gauge,
    pub(crate) lanes: Gauge,
    pub(crate) handoff_overflow: Counter,
    attempts: [Counter; 6],
    finished: [Counter; 3],
    processed: [Histogram; 2],
}

impl EngineMetrics {
    pub(crate) fn new() -> Self {
        let attempts =
            |outcome: &'static str| counter!("turnbuckle_attempts_total", "outcome" => outcome);
        let finished = |state: DeliveryState| counter!("turnbuckle_deliveries_total", "state" => state.as_str());
        Self {
            attempts_in_flight: gauge!("turnbuckle_attempts_in_flight"),
            deliveries_held: gauge!("turnbuckle_deliveries_held"),
            lanes: gauge!("turnbuckle_lanes"),
            handoff_overflow: counter!("turnbuckle_handoff_overflow_total"),
            attempts: ["delivered", "refused", "timed_out", "unreachable", "blocked", "failed"]
                .map(attempts),
            finished: [DeliveryState::Delivered, DeliveryState::Dead, DeliveryState::Cancelled]
                .map(finished),
            processed: [DeliveryState::Delivered, DeliveryState::Dead].map(
                |state| histogram!("turnbuckle_processing_seconds", "state" => state.as_str()),
            ),
        }
    }

    /// A delivery ended by an attempt, so long after its event was accepted.
    pub(crate) fn processed(&self, state: DeliveryState, took: Duration) {
        let index = usize::from(state != DeliveryState::Delivered);
        self.processed[index].record(took.as_secs_f64());
    }

    pub(crate) fn attempt(&self, outcome: &AttemptOutcome) {
        let index = match outcome {
            AttemptOutcome::Delivered { .. } | AttemptOutcome::Acknowledged => 0,
            AttemptOutcome::Refused { .. } => 1,
            AttemptOutcome::TimedOut { .. } | AttemptOutcome::LeaseLapsed => 2,
            AttemptOutcome::Unreachable { .. } | AttemptOutcome::StreamBroken => 3,
            AttemptOutcome::Blocked => 4,
            AttemptOutcome::Failed { .. } | AttemptOutcome::Returned { .. } => 5,
        };
        self.attempts[index].increment(1);
    }

    pub(crate) fn finished(&self, state: DeliveryState) {
        let index = match state {
            DeliveryState::Pending => return,
            DeliveryState::Delivered => 0,
            DeliveryState::Dead => 1,
            DeliveryState::Cancelled => 2,
        };
        self.finished[index].increment(1);
    }
}

/// Metrics of attempts.
pub(crate) struct AttemptMetrics {
    pub(crate) duration: Histogram,
    pub(crate) reused: Counter,
}

impl AttemptMetrics {
    pub(crate) fn new() -> Self {
        Self {
            duration: histogram!("turnbuckle_attempt_duration_seconds"),
            reused: counter!("turnbuckle_connections_reused_total"),
        }
    }
}

/// Metrics of publishing.
pub(crate) struct PublishMetrics {
    pub(crate) accepted: Counter,
    pub(crate) duplicate: Counter,
    pub(crate) anomaly: Counter,
    pub(crate) schema_refused: Counter,
    pub(crate) order: OrderMetrics,
}

impl PublishMetrics {
    pub(crate) fn new() -> Self {
        Self {
            accepted: counter!("turnbuckle_events_accepted_total"),
            duplicate: counter!("turnbuckle_events_duplicate_total"),
            anomaly: counter!("turnbuckle_events_anomaly_total"),
            schema_refused: counter!("turnbuckle_events_schema_refused_total"),
            order: OrderMetrics::new(),
        }
    }
}
