//! Values of others in the forms that events have.

use super::rfc3339;
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use turnbuckle_domain::{Timestamp, TypeName, event_limits};

/// Whole numbers from here on are milliseconds: as seconds they would be in the year 5138.
const MILLISECONDS_FROM: i64 = 100_000_000_000;
/// And from here on microseconds.
const MICROSECONDS_FROM: i64 = 100_000_000_000_000;

/// An event type made of what a sender calls it: `/` and `:` separate segments as dots do, any other
/// character that a type cannot have becomes `_`. None when nothing is left.
pub(super) fn type_name(text: &str) -> Option<String> {
    let tamed: String = text
        .trim()
        .chars()
        .map(|c| match c {
            '/' | ':' | '.' => '.',
            c if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') => c,
            _ => '_',
        })
        .collect();
    let segments: Vec<&str> = tamed.split('.').filter(|segment| !segment.is_empty()).collect();
    let name = segments.join(".");
    TypeName::new(name.as_str()).is_ok().then_some(name)
}

/// The sender's id where it can be one of ours, else its hash: two ids never become one.
pub(super) fn event_id(text: &str) -> String {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b':' | b'/');
    if text.len() <= event_limits::EVENT_ID_CHARS && text.bytes().all(plain) {
        return text.to_owned();
    }
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(text.as_bytes())))
}

/// The id of a body without one.
pub(super) fn body_id(content: &[u8]) -> String {
    format!("body:{}", HEXLOWER.encode(&Sha256::digest(content)))
}

/// A time as senders write it: RFC 3339, or a number of seconds, milliseconds or microseconds since the
/// epoch. None for anything else: the event then happened when it arrived.
pub(super) fn time(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(number) = text.parse::<i64>() {
        let micros = match number {
            ..0 => None,
            0..MILLISECONDS_FROM => number.checked_mul(1_000_000),
            MILLISECONDS_FROM..MICROSECONDS_FROM => number.checked_mul(1_000),
            MICROSECONDS_FROM.. => Some(number),
        };
        return micros.map(Timestamp::from_micros);
    }
    rfc3339(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_senders_become_types() {
        for (text, expected) in [
            ("push", Some("push")),
            ("orders/create", Some("orders.create")),
            ("invoice:paid", Some("invoice.paid")),
            ("customer.subscription.created", Some("customer.subscription.created")),
            (" Order Paid ", Some("Order_Paid")),
            ("..a..b..", Some("a.b")),
            ("größe", Some("gr__e")),
            ("", None),
            ("...", None),
        ] {
            assert_eq!(type_name(text).as_deref(), expected, "{text}");
        }
        assert_eq!(type_name(&"a".repeat(129)), None);
    }

    #[test]
    fn odd_ids_are_hashed_and_stay_apart() {
        assert_eq!(
            event_id("72d3162e-cc78-11e3-81ab-4c9367dc0958"),
            "72d3162e-cc78-11e3-81ab-4c9367dc0958"
        );
        let (one, two) = (event_id("a.b"), event_id("a b"));
        assert!(one.starts_with("sha256:") && one != two && one.len() <= 128);
        assert!(event_id(&"x".repeat(129)).starts_with("sha256:"));
    }

    #[test]
    fn times_are_read_in_every_unit() {
        let expected = Timestamp::from_micros(1_700_000_000_000_000);
        for text in ["1700000000", "1700000000000", "1700000000000000", "2023-11-14T22:13:20Z"] {
            assert_eq!(time(text), Some(expected), "{text}");
        }
        for text in ["", "yesterday", "-5", "99999999999999999999"] {
            assert_eq!(time(text), None, "{text}");
        }
    }
}
