//! The dates of a certificate that comes without its issuers, so that no chain is built.

use crate::scheme::model::TimeUnit;
use crate::scheme::time;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Something only when the certificate is valid at that second.
pub(super) fn check(der: &[u8], unix_seconds: u64) -> Option<()> {
    let (from, until) = dates(der)?;
    (from <= unix_seconds && unix_seconds <= until).then_some(())
}

/// First and last second. The structure is: certificate { to be signed { [version], serial,
/// algorithm, issuer, validity { from, until }, … } … }.
fn dates(der: &[u8]) -> Option<(u64, u64)> {
    let (certificate, _) = value(der, SEQUENCE)?;
    let (signed, _) = value(certificate, SEQUENCE)?;
    let (tag, _, mut rest) = element(signed)?;
    if tag == VERSION {
        // The serial number stands behind it.
        rest = element(rest)?.2;
    }
    let (_, rest) = value(rest, SEQUENCE)?;
    let (_, rest) = value(rest, SEQUENCE)?;
    let (validity, _) = value(rest, SEQUENCE)?;
    let (tag, from, rest) = element(validity)?;
    let from = seconds(tag, from)?;
    let (tag, until, rest) = element(rest)?;
    rest.is_empty().then_some((from, seconds(tag, until)?))
}

/// The value of an element that must have this tag, and what follows it.
fn value(der: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    let (tag, value, rest) = element(der)?;
    (tag == wanted).then_some((value, rest))
}

/// Tag, value and rest. Lengths of up to two bytes: no certificate is longer.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match (first, rest) {
        (short @ 0..=0x7f, rest) => (usize::from(*short), rest),
        (0x81, [length, rest @ ..]) => (usize::from(*length), rest),
        (0x82, [high, low, rest @ ..]) => (usize::from(u16::from_be_bytes([*high, *low])), rest),
        _ => return None,
    };
    let (value, rest) = rest.split_at_checked(length)?;
    Some((*tag, value, rest))
}

/// `YYMMDDhhmmssZ` up to 2049, `YYYYMMDDhhmmssZ` otherwise.
fn seconds(tag: u8, text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.is_ascii())?;
    let text = match tag {
        UTC_TIME if text.len() == 13 => {
            let century = if text < "50" { "20" } else { "19" };
            format!("{century}{text}")
        }
        GENERALIZED_TIME if text.len() == 15 => text.to_owned(),
        _ => return None,
    };
    let part = |from: usize, to: usize| text.get(from..to);
    let (date, clock) = (part(0, 8)?, part(8, 15)?);
    let written = format!(
        "{}-{}-{}T{}:{}:{}",
        date.get(..4)?,
        date.get(4..6)?,
        date.get(6..)?,
        clock.get(..2)?,
        clock.get(2..4)?,
        clock.get(4..)?
    );
    u64::try_from(time::parse(written.as_bytes(), TimeUnit::Rfc3339)? / 1000).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    fn certificate(from: (i32, u8, u8), until: (i32, u8, u8)) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["sns.amazonaws.com".to_owned()]).unwrap();
        params.not_before = date_time_ymd(from.0, from.1, from.2);
        params.not_after = date_time_ymd(until.0, until.1, until.2);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn the_first_and_the_last_second_are_valid() {
        let second = |text: &str| {
            u64::try_from(time::parse(text.as_bytes(), TimeUnit::Rfc3339).unwrap() / 1000).unwrap()
        };
        // 2060 is written in the other form.
        for (from, until) in [((2020, 1, 2), (2021, 3, 4)), ((2049, 12, 31), (2060, 6, 1))] {
            let der = certificate(from, until);
            let at = |(year, month, day)| second(&format!("{year}-{month:02}-{day:02}T00:00:00Z"));
            assert_eq!(check(&der, at(from)), Some(()));
            assert_eq!(check(&der, at(until)), Some(()));
            assert_eq!(check(&der, at(from) - 1), None);
            assert_eq!(check(&der, at(until) + 1), None);
        }
    }

    #[test]
    fn what_is_cut_short_or_changed_has_no_dates_and_no_panic() {
        let der = certificate((2020, 1, 2), (2021, 3, 4));
        for length in 0..der.len() {
            let _ = check(&der[..length], 1_600_000_000);
        }
        for index in 0..der.len().min(200) {
            let mut changed = der.clone();
            changed[index] ^= 0xff;
            let _ = check(&changed, 1_600_000_000);
        }
        assert_eq!(check(b"", 0), None);
        assert_eq!(check(&[0x30, 0x82, 0xff], 0), None);
    }
}
