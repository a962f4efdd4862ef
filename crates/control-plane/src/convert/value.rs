//! Single values: texts, labels, durations, times.

use std::{collections::HashMap, ops::RangeInclusive, time::Duration};
use turnbuckle_domain::{KEPT_DELETED, Labels, Meta, Revision, Timestamp, Violations, limits};
use turnbuckle_runtime::grpc::{from_duration, timestamp};

const SECOND: u64 = 1;
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// A display name: one line.
pub(super) fn display_name(text: String) -> Result<String, String> {
    if text.contains(char::is_control) {
        return Err("has control characters; use one line of text".to_owned());
    }
    within(text, limits::DISPLAY_NAME_CHARS)
}

/// A description: some lines.
pub(super) fn description(text: String) -> Result<String, String> {
    lines(text, limits::DESCRIPTION_CHARS)
}

/// A reason somebody gives.
pub(super) fn reason(text: String) -> Result<String, String> {
    lines(text, limits::REASON_CHARS)
}

fn lines(text: String, chars: usize) -> Result<String, String> {
    if text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        return Err("has control characters; use plain text".to_owned());
    }
    within(text, chars)
}

fn within(text: String, chars: usize) -> Result<String, String> {
    let count = text.chars().count();
    if count > chars {
        return Err(format!("has {count} characters; use at most {chars}"));
    }
    Ok(text)
}

/// Labels of a resource.
pub(super) fn labels(
    violations: &mut Violations,
    field: &str,
    pairs: HashMap<String, String>,
) -> Option<Labels> {
    violations.take(field, Labels::new(pairs))
}

/// Labels as they go out.
pub(super) fn label_map(labels: &Labels) -> HashMap<String, String> {
    labels.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// A duration within bounds. Whole milliseconds: what is stored is what was sent, so that sending
/// it again changes nothing.
pub(super) fn duration(
    given: &prost_types::Duration,
    bounds: RangeInclusive<Duration>,
) -> Result<Duration, String> {
    let remedy = || format!("use {} to {}", show(*bounds.start()), show(*bounds.end()));
    let duration =
        from_duration(given).ok_or_else(|| format!("is negative or malformed; {}", remedy()))?;
    if !bounds.contains(&duration) {
        return Err(format!("is out of bounds; {}", remedy()));
    }
    if !duration.subsec_nanos().is_multiple_of(1_000_000) {
        return Err("has a fraction of a millisecond; use whole milliseconds".to_owned());
    }
    Ok(duration)
}

/// A duration, or the default when there is none.
pub(super) fn duration_or(
    given: Option<&prost_types::Duration>,
    default: Duration,
    bounds: RangeInclusive<Duration>,
) -> Result<Duration, String> {
    given.map_or(Ok(default), |given| duration(given, bounds))
}

/// A bound as people write it.
fn show(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if duration.subsec_millis() > 0 {
        return format!("{} ms", duration.as_millis());
    }
    let units = [(DAY, "d"), (HOUR, "h"), (MINUTE, "min")];
    let (unit, name) = units
        .into_iter()
        .find(|(unit, _)| seconds > *unit && seconds.is_multiple_of(*unit))
        .unwrap_or((SECOND, "s"));
    format!("{} {name}", seconds / unit)
}

/// Times, etag and revision as they go out.
pub(super) struct WireMeta {
    pub(super) create_time: Option<prost_types::Timestamp>,
    pub(super) update_time: Option<prost_types::Timestamp>,
    pub(super) etag: String,
    pub(super) revision: i64,
}

impl From<&Meta> for WireMeta {
    fn from(meta: &Meta) -> Self {
        let Revision(revision) = meta.revision;
        // What was only validated has no etag: there is nothing to compare with.
        let etag = match meta.revision {
            Revision::ZERO => String::new(),
            made => made.etag(),
        };
        Self {
            create_time: Some(timestamp(meta.created_at)),
            update_time: Some(timestamp(meta.updated_at)),
            etag,
            revision,
        }
    }
}

/// What a resource has once it has been made.
pub(super) fn made(meta: &Meta, text: impl FnOnce() -> String) -> String {
    match meta.revision {
        Revision::ZERO => String::new(),
        _ => text(),
    }
}

/// When a deleted resource is purged.
pub(super) fn purge_time(deleted_at: Option<Timestamp>) -> Option<prost_types::Timestamp> {
    deleted_at.map(|at| timestamp(at + KEPT_DELETED))
}

/// The id of a resource, once it has been made.
pub(super) fn uid(meta: &Meta, id: impl std::fmt::Display) -> String {
    match meta.revision {
        Revision::ZERO => String::new(),
        _ => id.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_bounded_in_characters_not_bytes() {
        assert!(display_name("ä".repeat(limits::DISPLAY_NAME_CHARS)).is_ok());
        let error = display_name("ä".repeat(limits::DISPLAY_NAME_CHARS + 1)).unwrap_err();
        assert_eq!(error, "has 201 characters; use at most 200");
    }

    #[test]
    fn control_characters_are_refused_and_lines_kept_where_they_belong() {
        assert!(display_name("a\nb".to_owned()).is_err());
        assert!(description("a\r\n\tb".to_owned()).is_ok());
        assert!(description("a\0b".to_owned()).is_err());
        assert!(reason("a\u{1b}[2Jb".to_owned()).is_err());
    }

    #[test]
    fn durations_keep_to_their_bounds() {
        let bounds = Duration::from_millis(10)..=Duration::from_secs(24 * 3600);
        let given = |seconds, nanos| prost_types::Duration { seconds, nanos };
        for (good, expected) in [
            (given(0, 10_000_000), Duration::from_millis(10)),
            (given(1, 500_000_000), Duration::from_millis(1500)),
            (given(86_400, 0), Duration::from_secs(86_400)),
        ] {
            assert_eq!(duration(&good, bounds.clone()), Ok(expected));
        }
        for bad in [
            given(0, 9_000_000),
            given(86_400, 1_000_000),
            given(-1, 0),
            given(i64::MAX, 0),
            given(i64::MIN, i32::MIN),
            given(0, 2_000_000_000),
            given(0, 10_000_001),
        ] {
            assert!(duration(&bad, bounds.clone()).is_err(), "{bad:?}");
        }
        let error = duration(&given(0, 0), bounds).unwrap_err();
        assert_eq!(error, "is out of bounds; use 10 ms to 24 h");
    }

    #[test]
    fn bounds_are_written_in_the_largest_whole_unit() {
        for (seconds, text) in
            [(0, "0 s"), (1, "1 s"), (30, "30 s"), (300, "5 min"), (86_400, "24 h")]
        {
            assert_eq!(show(Duration::from_secs(seconds)), text);
        }
        assert_eq!(show(Duration::from_secs(30 * 86_400)), "30 d");
    }
}
