//! Times as senders write them.

use super::model::TimeUnit;

/// Milliseconds of a second.
const SECOND: i64 = 1000;

/// Unix milliseconds of a time, `None` for anything not written exactly so.
pub(crate) fn parse(text: &[u8], unit: TimeUnit) -> Option<i64> {
    match unit {
        TimeUnit::Seconds => digits(text)?.checked_mul(SECOND),
        TimeUnit::Milliseconds => digits(text),
        TimeUnit::Rfc3339 => rfc3339(text),
    }
}

/// A time as a sender writes it, at or after 1970. What a sample does not need is left out: a
/// fraction of a second in RFC 3339.
pub(crate) fn format(unix_ms: i64, unit: TimeUnit) -> String {
    match unit {
        TimeUnit::Seconds => unix_ms.div_euclid(SECOND).to_string(),
        TimeUnit::Milliseconds => unix_ms.to_string(),
        TimeUnit::Rfc3339 => {
            let seconds = unix_ms.div_euclid(SECOND);
            let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
            let (year, month, day) = civil_from_days(days);
            let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
            format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
        }
    }
}

/// The inverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year_of_era + carry, month, day)
}

/// Digits only, as many as fit: signs, blanks, dots and exponents are how two parsers disagree.
fn digits(text: &[u8]) -> Option<i64> {
    /// Digits of the greatest 64-bit number.
    const MAX_DIGITS: usize = 19;
    if !(1..=MAX_DIGITS).contains(&text.len()) || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// `2020-01-01T00:00:00[.123…](Z|±07:00)`
fn rfc3339(text: &[u8]) -> Option<i64> {
    /// More than nanoseconds says nothing more.
    const MAX_BYTES: usize = 40;
    if text.len() > MAX_BYTES {
        return None;
    }
    let (date_time, rest) = text.split_at_checked(19)?;
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if separators.iter().any(|(at, separator)| date_time[*at] != *separator) {
        return None;
    }
    let number = |from: usize, to: usize| digits(&date_time[from..to]);
    let days = days_from_civil(number(0, 4)?, number(5, 7)?, number(8, 10)?)?;
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    // 60 is a leap second.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (millis, zone) = fraction(rest)?;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second - offset(zone)?;
    Some(seconds * SECOND + millis)
}

/// Milliseconds of an optional fraction, and what follows it.
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let Some(rest) = text.strip_prefix(b".") else {
        return Some((0, text));
    };
    let length = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
    let (fraction, zone) = rest.split_at(length);
    let mut millis = 0;
    for position in 0..3 {
        let digit = fraction.get(position).map_or(0, |digit| i64::from(digit - b'0'));
        millis = millis * 10 + digit;
    }
    (length > 0).then_some((millis, zone))
}

/// Seconds east of Greenwich.
fn offset(zone: &[u8]) -> Option<i64> {
    let (sign, rest) = match zone {
        b"Z" => return Some(0),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let [h1, h2, b':', m1, m2] = rest else { return None };
    let (hours, minutes) = (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?);
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 60 + minutes) * 60)
}

/// Days since 1970-01-01 in the Gregorian calendar, `None` for a day that is not in it.
fn days_from_civil(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let last = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return None,
    };
    if !(1..=last).contains(&day) {
        return None;
    }
    // Years from March on, so that the leap day is a year's last.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Option<i64> {
        parse(text.as_bytes(), TimeUnit::Rfc3339)
    }

    #[test]
    fn dates_become_milliseconds() {
        assert_eq!(at("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(at("2020-01-01T00:00:00-07:00"), Some(1_577_862_000_000));
        assert_eq!(at("2000-02-29T12:34:56.789012345Z"), Some(951_827_696_789));
        assert_eq!(at("2026-11-30T15:32:21.5+05:30"), Some(1_796_032_941_500));
        assert_eq!(at("0000-03-01T00:00:00Z"), Some(-62_162_035_200_000));
        assert_eq!(at("9999-12-31T23:59:60Z"), Some(253_402_300_800_000));
    }

    #[test]
    fn every_day_is_written_as_it_is_read() {
        for day in (0..80_000).step_by(7) {
            let unix_ms = (day * 86_400 + day % 86_400) * SECOND;
            let text = format(unix_ms, TimeUnit::Rfc3339);
            assert_eq!(at(&text), Some(unix_ms), "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "",
            "2020-01-01",
            "2020-01-01T00:00:00",
            "2020-01-01 00:00:00Z",
            "2020-13-01T00:00:00Z",
            "2021-02-29T00:00:00Z",
            "2020-01-00T00:00:00Z",
            "2020-01-01T24:00:00Z",
            "2020-01-01T00:00:00.Z",
            "2020-01-01T00:00:00+0700",
            "2020-01-01T00:00:00+7:00",
            "2020-01-01T00:00:00ZZ",
            "+020-01-01T00:00:00Z",
            "2020-01-01T00:00:00.00000000000000000000000000Z",
        ] {
            assert_eq!(at(text), None, "{text}");
        }
        assert_eq!(parse("2020-01-01T00:00:0\u{e9}Z".as_bytes(), TimeUnit::Rfc3339), None);
    }

    #[test]
    fn numbers_are_digits_alone() {
        let seconds = |text: &str| parse(text.as_bytes(), TimeUnit::Seconds);
        assert_eq!(seconds("1614265330"), Some(1_614_265_330_000));
        assert_eq!(seconds("01"), Some(1000));
        for text in ["", "+1", " 1", "1 ", "1.5", "-1", "1e3", "0x1", "12345678901234567890"] {
            assert_eq!(seconds(text), None, "{text}");
        }
        assert_eq!(seconds("9223372036854775807"), None);
        assert_eq!(parse(b"1693657560000", TimeUnit::Milliseconds), Some(1_693_657_560_000));
    }
}
