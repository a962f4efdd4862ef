//! The Retry-After header: seconds or an HTTP date, and a lot of nonsense in the wild.

use http::HeaderValue;
use std::time::{Duration, UNIX_EPOCH};
use turnbuckle_domain::Timestamp;

/// How long the receiver asks to wait from `now`. None for anything unreadable, and for dates
/// already past. The retry policy caps the answer.
pub(super) fn parse(value: &HeaderValue, now: Timestamp) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    if text.is_empty() {
        return None;
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Too many digits is still a wish to wait, never a wish to hurry.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    let seconds = date.duration_since(UNIX_EPOCH).ok()?.as_secs();
    let at = Timestamp::EPOCH + Duration::from_secs(seconds);
    Some(at.since(now)).filter(|wait| !wait.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT.
    const NOW: u64 = 784_111_777;

    fn parsed(text: &str) -> Option<Duration> {
        let now = Timestamp::EPOCH + Duration::from_secs(NOW);
        parse(&HeaderValue::from_bytes(text.as_bytes()).unwrap(), now)
    }

    #[test]
    fn seconds_are_digits_only_and_saturate() {
        for (text, seconds) in [
            ("0", 0),
            ("1", 1),
            (" 120\t", 120),
            ("0000000000000000000000120", 120),
            ("9223372037", 9_223_372_037),
            ("18446744073709551615", u64::MAX),
            ("18446744073709551616", u64::MAX),
            ("999999999999999999999999999999", u64::MAX),
        ] {
            assert_eq!(parsed(text), Some(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn dates_of_all_three_http_forms_are_relative_to_our_clock() {
        for text in [
            "Sun, 06 Nov 1994 08:51:37 GMT",
            "Sunday, 06-Nov-94 08:51:37 GMT",
            "Sun Nov  6 08:51:37 1994",
        ] {
            assert_eq!(parsed(text), Some(Duration::from_secs(120)), "{text}");
        }
        for past in ["Sun, 06 Nov 1994 08:49:37 GMT", "Thu, 01 Jan 1970 00:00:00 GMT"] {
            assert_eq!(parsed(past), None, "{past}");
        }
    }

    #[test]
    fn everything_else_is_ignored() {
        for text in [
            "",
            " ",
            "-1",
            "-3",
            "+5",
            "1.5",
            "1e3",
            "0x10",
            "5s",
            "soon",
            "1 2",
            "٣",
            "NaN",
            "1994-11-06T08:51:37Z",
            "Sun, 06 Nov 1994 08:51:37",
            "Mon, 06 Nov 1994 08:51:37 GMT",
            "Sun, 31 Feb 1994 08:51:37 GMT",
            "120, 240",
            "\u{ff11}\u{ff12}",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }
}
