//! Values as people type and read them: durations, times, pairs.

use prost_types::Timestamp;
use std::{convert::Infallible, str::FromStr, time::Duration};

/// Unit names with their length, longest first.
const UNITS: [(&str, u64); 6] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

/// Digits kept of a number with a fraction: microseconds of a day need no more.
const FRACTION_DIGITS_MAX: usize = 6;

/// A duration as typed: `500ms`, `5s`, `1.5s`, `1h30m`, `3d`, `0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        span.0
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || {
            format!(
                "{text:?} is no duration; use numbers with d, h, m, s, ms or us, such as 500ms, 5s, 1h30m, 3d"
            )
        };
        if text == "0" {
            return Ok(Self(Duration::ZERO));
        }
        let mut micros: u64 = 0;
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(invalid)?;
            let (number, tail) = rest.split_at(end);
            let end = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
            let (unit, tail) = tail.split_at(end);
            let (_, length) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(invalid)?;
            let part = scaled(number, *length).ok_or_else(invalid)?;
            micros = micros.checked_add(part).ok_or_else(invalid)?;
            rest = tail;
        }
        if text.is_empty() { Err(invalid()) } else { Ok(Self(Duration::from_micros(micros))) }
    }
}

impl Span {
    /// The wire form. The largest span that parses fits it many times.
    pub(crate) fn to_proto(self) -> prost_types::Duration {
        prost_types::Duration {
            seconds: i64::try_from(self.0.as_secs()).unwrap_or(i64::MAX),
            nanos: i32::try_from(self.0.subsec_nanos()).unwrap_or(0),
        }
    }
}

fn scaled(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().ok()?;
    let mut micros = whole.checked_mul(unit)?;
    if number.contains('.') {
        if fraction.is_empty() || fraction.len() > FRACTION_DIGITS_MAX {
            return None;
        }
        let digits: u64 = fraction.parse().ok()?;
        let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        micros = micros.checked_add(digits.checked_mul(unit)? / scale)?;
    }
    Some(micros)
}

/// A duration for people: the two largest units that matter.
pub(crate) fn humane(duration: Duration) -> String {
    let mut micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    if micros < 1_000_000 {
        return if micros.is_multiple_of(1_000) {
            format!("{}ms", micros / 1_000)
        } else {
            format!("{:.1}ms", duration.as_secs_f64() * 1e3)
        };
    }
    if micros < 60_000_000 && !micros.is_multiple_of(1_000_000) {
        return format!("{:.1}s", duration.as_secs_f64());
    }
    let mut text = String::new();
    let mut parts = 0;
    for (name, length) in UNITS {
        let count = micros / length;
        if count > 0 {
            text.push_str(&format!("{count}{name}"));
            micros %= length;
        }
        if count > 0 || parts > 0 {
            parts += 1;
        }
        if parts == 2 || length == 1_000_000 {
            break;
        }
    }
    text
}

/// A point in time as typed, RFC 3339.
pub(crate) fn parse_time(text: &str) -> Result<Timestamp, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is no time; use RFC 3339, such as 2026-03-01T12:00:00Z"))
}

/// An etag as typed. Its quotes belong to it, but shells eat them.
pub(crate) fn parse_etag(text: &str) -> Result<String, Infallible> {
    let inner = text.trim_matches('"');
    Ok(if inner.is_empty() { String::new() } else { format!("\"{inner}\"") })
}

/// `KEY=VALUE` as typed.
pub(crate) fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("{text:?} is no pair; use KEY=VALUE")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<Duration> {
        text.parse().ok().map(|Span(duration)| duration)
    }

    #[test]
    fn durations_are_numbers_with_units() {
        for (text, expected) in [
            ("0", Duration::ZERO),
            ("0s", Duration::ZERO),
            ("500ms", Duration::from_millis(500)),
            ("250us", Duration::from_micros(250)),
            ("5s", Duration::from_secs(5)),
            ("1.5s", Duration::from_millis(1500)),
            ("1h30m", Duration::from_secs(5400)),
            ("3d", Duration::from_secs(259_200)),
            ("1m0.25s", Duration::from_millis(60_250)),
        ] {
            assert_eq!(parsed(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn durations_without_unit_sign_or_end_are_refused() {
        for text in
            ["", "5", "s", "5 s", "-5s", "1.s", "5x", "1..5s", "1.1234567s", "99999999999999d"]
        {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    #[test]
    fn durations_are_shown_by_their_two_largest_units() {
        for (millis, expected) in [
            (0, "0ms"),
            (7, "7ms"),
            (1_500, "1.5s"),
            (5_000, "5s"),
            (60_000, "1m"),
            (61_000, "1m1s"),
            (5_400_000, "1h30m"),
            (3_605_000, "1h"),
            (259_200_000, "3d"),
            (263_000_000, "3d1h"),
        ] {
            assert_eq!(humane(Duration::from_millis(millis)), expected);
        }
        assert_eq!(humane(Duration::from_micros(1_250)), "1.2ms");
    }

    #[test]
    fn pairs_split_at_the_first_equals_sign() {
        assert_eq!(parse_pair("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert_eq!(parse_pair("a="), Ok(("a".into(), String::new())));
        assert!(parse_pair("=b").is_err());
        assert!(parse_pair("ab").is_err());
    }

    #[test]
    fn etags_may_be_typed_without_their_quotes() {
        assert_eq!(parse_etag("7"), Ok("\"7\"".into()));
        assert_eq!(parse_etag("\"7\""), Ok("\"7\"".into()));
        assert_eq!(parse_etag(""), Ok(String::new()));
    }

    #[test]
    fn times_are_rfc_3339() {
        assert_eq!(parse_time("1970-01-01T00:00:01Z").map(|time| time.seconds), Ok(1));
        assert!(parse_time("yesterday").is_err());
    }
}
