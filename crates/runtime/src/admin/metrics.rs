//! The process-wide metrics recorder.

use metrics::{Unit, describe_counter, describe_gauge, gauge};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::sync::{Mutex, PoisonError};

/// Bounds of histograms named `*_seconds`: from a commit on a quick disk to a receiver that takes
/// all of its time, about three a decade.
const SECONDS: [f64; 17] = [
    0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0, 300.0,
];

/// Bounds of all other histograms: batch sizes, attempts, bytes.
const COUNTS: [f64; 12] =
    [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 10_000.0, 100_000.0];

/// The metrics recorder cannot be installed.
#[derive(Debug, thiserror::Error)]
#[error("metrics cannot be recorded: {0}")]
pub struct MetricsError(String);

static HANDLE: Mutex<Option<PrometheusHandle>> = Mutex::new(None);

/// Installs the recorder for the whole process, once; later calls give the same handle. Whoever
/// runs the process calls [`PrometheusHandle::run_upkeep`] every few seconds, which moves samples
/// of histograms into their buckets even when nobody reads `/metrics`.
///
/// # Errors
/// When something else has installed a recorder.
pub fn metrics_recorder() -> Result<PrometheusHandle, MetricsError> {
    let mut slot = HANDLE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = slot.as_ref() {
        return Ok(handle.clone());
    }
    let handle = build().map_err(|error| MetricsError(error.to_string()))?;
    describe();
    *slot = Some(handle.clone());
    Ok(handle)
}

fn build() -> Result<PrometheusHandle, metrics_exporter_prometheus::BuildError> {
    PrometheusBuilder::new()
        .set_buckets(&COUNTS)?
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
        .install_recorder()
}

/// The metrics of this crate; every plane describes its own.
fn describe() {
    describe_gauge!("turnbuckle_build_info", "Always 1; the version is in the label");
    describe_counter!(
        "turnbuckle_task_exits_total",
        Unit::Count,
        "Supervised tasks that ended, by task and kind of exit"
    );
    describe_counter!(
        "turnbuckle_auth_refusals_total",
        Unit::Count,
        "API calls refused before their method ran, by reason"
    );
    describe_counter!(
        "turnbuckle_tls_reloads_total",
        Unit::Count,
        "Certificates of the listeners that were replaced while running"
    );
    describe_counter!(
        "turnbuckle_tls_reload_failures_total",
        Unit::Count,
        "Looks at the certificate of the listeners that found it unusable; the old one stays in use"
    );
    describe_counter!(
        "turnbuckle_tls_handshake_failures_total",
        Unit::Count,
        "Connections to the listeners that failed in the TLS handshake"
    );
    describe_gauge!("turnbuckle_api_tokens", "API tokens in memory that are not revoked");
    describe_counter!(
        "turnbuckle_audit_denials_total",
        Unit::Count,
        "Calls denied to known callers: noted for the audit record, dropped above a bound, or lost"
    );
    describe_counter!(
        "turnbuckle_errors_total",
        Unit::Count,
        "Errors answered over gRPC, by reason"
    );
    gauge!("turnbuckle_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
}
