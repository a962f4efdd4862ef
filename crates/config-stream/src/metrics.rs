//! Every metric of a node's end of the stream.

use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};
use std::time::Duration;

/// Tells the recorder what the metrics mean.
pub(crate) fn describe() {
    describe_gauge!(
        "turnbuckle_config_staleness_seconds",
        Unit::Seconds,
        "Time since it was last proved that no newer configuration is committed"
    );
    describe_gauge!("turnbuckle_config_connected", "Whether the control plane is heard");
    describe_gauge!("turnbuckle_config_refused", "Resources that cannot be used here");
    describe_gauge!("turnbuckle_config_held", "Whether a snapshot waits to be accepted");
    describe_counter!(
        "turnbuckle_config_stream_faults_total",
        Unit::Count,
        "Streams given up because a message could not be used"
    );
    describe_counter!(
        "turnbuckle_config_file_writes_total",
        Unit::Count,
        "Writes of the last-known-good file, by result"
    );
}

pub(crate) fn staleness(age: Duration) {
    gauge!("turnbuckle_config_staleness_seconds").set(age.as_secs_f64());
}

pub(crate) fn connected(is_connected: bool) {
    gauge!("turnbuckle_config_connected").set(f64::from(u8::from(is_connected)));
}

pub(crate) fn refused(count: usize) {
    gauge!("turnbuckle_config_refused").set(count as f64);
}

pub(crate) fn held(is_held: bool) {
    gauge!("turnbuckle_config_held").set(f64::from(u8::from(is_held)));
}

pub(crate) fn fault() {
    counter!("turnbuckle_config_stream_faults_total").increment(1);
}

pub(crate) fn file_written(result: &'static str) {
    counter!("turnbuckle_config_file_writes_total", "result" => result).increment(1);
}
