//! Every metric of this plane: name, labels, meaning. No label holds anything of a request.

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, histogram};
use std::time::Duration;

/// Tells the recorder what the metrics mean. Call it once, after the recorder is installed.
pub(crate) fn describe() {
    let counters = [
        ("turnbuckle_ingress_requests_total", "Requests, by outcome"),
        ("turnbuckle_ingress_refusals_total", "Requests not believed, by reason"),
        ("turnbuckle_ingress_key_uses_total", "Verified requests, by the state of their key"),
        ("turnbuckle_ingress_revoked_key_uses_total", "Requests signed with a revoked key: alert"),
        ("turnbuckle_ingress_key_fetches_total", "Fetches of senders' keys, by outcome"),
        ("turnbuckle_ingress_sources_refused_total", "Sources that cannot be used here"),
        ("turnbuckle_ingress_connections_refused_total", "Connections for which there was no room"),
        (
            "turnbuckle_ingress_unordered_total",
            "Events whose order cannot be watched, by what they lack",
        ),
        ("turnbuckle_ingress_receipts_total", "Receipts written"),
        (
            "turnbuckle_ingress_receipts_skipped_total",
            "Unproven requests that were counted instead of recorded",
        ),
        ("turnbuckle_ingress_receipts_lost_total", "Receipts that were not written, by reason"),
    ];
    for (name, text) in counters {
        describe_counter!(name, Unit::Count, text);
    }
    describe_gauge!("turnbuckle_ingress_config_revision", "Revision of the sources in use");
    describe_gauge!("turnbuckle_ingress_connections", "Connections open");
    describe_histogram!(
        "turnbuckle_ingress_request_seconds",
        Unit::Seconds,
        "Time from a request's head to its answer"
    );
}

/// What became of a request, as counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Accepted,
    Duplicate,
    Anomaly,
    Handshake,
    DeadLetter,
    UnknownSource,
    Limited,
    Disabled,
    NotRead,
    Unsupported,
    Unauthorized,
    Unusable,
    UnknownVersion,
    Unavailable,
}

impl Outcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Duplicate => "duplicate",
            Self::Anomaly => "anomaly",
            Self::Handshake => "handshake",
            Self::DeadLetter => "dead_letter",
            Self::UnknownSource => "unknown_source",
            Self::Limited => "limited",
            Self::Disabled => "disabled",
            Self::NotRead => "not_read",
            Self::Unsupported => "unsupported",
            Self::Unauthorized => "unauthorized",
            Self::Unusable => "unusable",
            Self::UnknownVersion => "unknown_version",
            Self::Unavailable => "unavailable",
        }
    }

    pub(crate) fn count(self, took: Duration) {
        counter!("turnbuckle_ingress_requests_total", "outcome" => self.as_str()).increment(1);
        histogram!("turnbuckle_ingress_request_seconds").record(took.as_secs_f64());
    }
}
