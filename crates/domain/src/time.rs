//! Points in time and the clock port.

use std::{
    ops::{Add, Sub},
    time::Duration,
};

/// A point in time: microseconds since the Unix epoch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);
    /// Later than everything.
    pub const MAX: Self = Self(i64::MAX);

    /// From microseconds since the epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the epoch.
    #[must_use]
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Whole seconds since the epoch, rounded down.
    #[must_use]
    pub const fn unix_seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// The day it is on, counted from the epoch.
    #[must_use]
    pub const fn unix_day(self) -> i64 {
        self.unix_seconds().div_euclid(SECONDS_PER_DAY)
    }

    /// As people and RFC 3339 write it, to the second, such as `2026-11-30T12:34:56Z`.
    #[must_use]
    pub fn rfc3339(self) -> String {
        let second = self.unix_seconds().rem_euclid(SECONDS_PER_DAY);
        let (year, month, day) = date(self.unix_day());
        let (hour, minute) = (second / 3600, second / 60 % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z", second % 60)
    }

    /// Time passed since `earlier`, zero when it is in the future.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

const SECONDS_PER_DAY: i64 = 86_400;
/// Days of 400 years, after which the Gregorian calendar repeats itself.
const ERA_DAYS: i64 = 146_097;
/// Days from 1 March of the year 0 to the epoch.
const EPOCH_DAY: i64 = 719_468;

/// Year, month and day of a day since the epoch. Years begin in March here, so that the leap day is
/// their last one.
const fn date(unix_day: i64) -> (i64, i64, i64) {
    let days = unix_day + EPOCH_DAY;
    let (era, of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, delay: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(delay.as_micros()).unwrap_or(i64::MAX)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, delay: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(delay.as_micros()).unwrap_or(i64::MAX)))
    }
}

/// Where "now" comes from. Tests move it by hand.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock.
    fn now(&self) -> Timestamp;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_calendars_have_them() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_796_042_096, "2026-11-30T12:34:56Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (-1, "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(Timestamp::from_micros(seconds * 1_000_000).rfc3339(), text);
        }
        assert_eq!(Timestamp::from_micros(-1).unix_day(), -1);
    }
}
