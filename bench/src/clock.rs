//! The clock that publisher and receiver share.

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since 1970. Only differences inside one run are used, across processes.
#[expect(
    clippy::disallowed_methods,
    reason = "two processes compare times, so a monotonic clock of each would not do"
)]
pub(crate) fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// A span as microseconds.
pub(crate) fn us(span: std::time::Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}
