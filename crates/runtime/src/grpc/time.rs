//! Points in time and durations on the wire.

use std::time::Duration;
use turnbuckle_domain::Timestamp;

/// 0001-01-01T00:00:00Z, the first second protobuf allows.
const SECONDS_MIN: i64 = -62_135_596_800;
/// 9999-12-31T23:59:59Z, the last.
const SECONDS_MAX: i64 = 253_402_300_799;
/// Longest duration protobuf allows: about 10 000 years.
const DURATION_SECONDS_MAX: i64 = 315_576_000_000;
const NANOS_PER_SECOND: i32 = 1_000_000_000;

/// A point in time for the wire.
#[must_use]
pub fn timestamp(at: Timestamp) -> prost_types::Timestamp {
    let micros = at.micros().rem_euclid(1_000_000);
    prost_types::Timestamp {
        seconds: at.unix_seconds(),
        // Below one second, so it fits.
        nanos: i32::try_from(micros * 1000).unwrap_or(0),
    }
}

/// A point in time that may be missing.
#[must_use]
pub fn timestamp_opt(at: Option<Timestamp>) -> Option<prost_types::Timestamp> {
    at.map(timestamp)
}

/// A point in time from the wire, rounded down to microseconds; none when it is outside what
/// protobuf allows.
#[must_use]
pub fn from_timestamp(at: &prost_types::Timestamp) -> Option<Timestamp> {
    let valid = (SECONDS_MIN..=SECONDS_MAX).contains(&at.seconds)
        && (0..NANOS_PER_SECOND).contains(&at.nanos);
    valid.then(|| Timestamp::from_micros(at.seconds * 1_000_000 + i64::from(at.nanos / 1000)))
}

/// A duration for the wire, cut to the longest one that protobuf allows.
#[must_use]
pub fn duration(length: Duration) -> prost_types::Duration {
    match i64::try_from(length.as_secs()) {
        Ok(seconds) if seconds < DURATION_SECONDS_MAX => prost_types::Duration {
            seconds,
            // Below one second, so it fits.
            nanos: i32::try_from(length.subsec_nanos()).unwrap_or(0),
        },
        Ok(_) | Err(_) => prost_types::Duration { seconds: DURATION_SECONDS_MAX, nanos: 0 },
    }
}

/// A duration from the wire; none when it is negative or outside what protobuf allows.
#[must_use]
pub fn from_duration(length: &prost_types::Duration) -> Option<Duration> {
    if length.seconds > DURATION_SECONDS_MAX || length.nanos >= NANOS_PER_SECOND {
        return None;
    }
    let seconds = u64::try_from(length.seconds).ok()?;
    let nanos = u32::try_from(length.nanos).ok()?;
    Some(Duration::new(seconds, nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(seconds: i64, nanos: i32) -> prost_types::Timestamp {
        prost_types::Timestamp { seconds, nanos }
    }

    #[test]
    fn times_round_trip_before_and_after_the_epoch() {
        for micros in [0, 1, -1, 999_999, -999_999, 1_800_000_000_123_456, -62_135_596_800_000_000]
        {
            let at = Timestamp::from_micros(micros);
            assert_eq!(from_timestamp(&timestamp(at)), Some(at), "{micros}");
        }
        assert_eq!(timestamp(Timestamp::from_micros(-1)), wire(-1, 999_999_000));
        assert_eq!(timestamp_opt(None), None);
        assert_eq!(timestamp_opt(Some(Timestamp::EPOCH)), Some(wire(0, 0)));
    }

    #[test]
    fn times_outside_the_range_are_refused() {
        assert!(from_timestamp(&wire(SECONDS_MAX, 999_999_999)).is_some());
        for (seconds, nanos) in [
            (SECONDS_MAX + 1, 0),
            (SECONDS_MIN - 1, 0),
            (i64::MAX, 0),
            (i64::MIN, 0),
            (0, -1),
            (0, 1_000_000_000),
            (0, i32::MIN),
        ] {
            assert_eq!(from_timestamp(&wire(seconds, nanos)), None, "{seconds} {nanos}");
        }
    }

    #[test]
    fn durations_round_trip_and_are_cut_to_the_longest() {
        for length in [Duration::ZERO, Duration::from_nanos(1), Duration::new(86_400, 999_999_999)]
        {
            assert_eq!(from_duration(&duration(length)), Some(length));
        }
        assert_eq!(duration(Duration::MAX).seconds, DURATION_SECONDS_MAX);
        assert!(from_duration(&duration(Duration::MAX)).is_some());
    }

    #[test]
    fn negative_and_overlong_durations_are_refused() {
        for (seconds, nanos) in [
            (-1, 0),
            (0, -1),
            (1, -1),
            (-1, 1),
            (0, 1_000_000_000),
            (DURATION_SECONDS_MAX + 1, 0),
            (i64::MAX, 0),
            (i64::MIN, i32::MIN),
        ] {
            assert_eq!(from_duration(&prost_types::Duration { seconds, nanos }), None);
        }
    }
}
