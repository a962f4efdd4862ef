//! Numbers of any length, compared exactly.

use std::cmp::Ordering;

/// A decimal number: ±0.`digits` × 10^`exponent`.
///
/// No leading and no trailing zeros in `digits`, so that equal numbers are equal structs; zero has no
/// digits, no sign and exponent 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

/// Exponents further out are taken as this one: nobody tells 10^(10^17) from anything larger.
const EXPONENT_MAX: i64 = 100_000_000_000_000_000;

impl Decimal {
    /// Reads a number that follows the JSON grammar; of other text something harmless comes out.
    pub(super) fn from_json(text: &str) -> Self {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        let leading = digits.iter().take_while(|digit| **digit == b'0').count();
        digits.drain(..leading);
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        if digits.is_empty() {
            return Self { negative: false, digits, exponent: 0 };
        }
        let point = whole.len() as i64 - leading as i64;
        Self { negative, digits, exponent: read_exponent(power).saturating_add(point) }
    }

    fn cmp_magnitude(&self, other: &Self) -> Ordering {
        // Zero is below every other magnitude whatever its exponent.
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => {
                self.exponent.cmp(&other.exponent).then_with(|| self.digits.cmp(&other.digits))
            }
        }
    }
}

impl From<i64> for Decimal {
    fn from(number: i64) -> Self {
        Self::from_json(&number.to_string())
    }
}

fn read_exponent(text: &str) -> i64 {
    let (sign, digits) = match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => (1, text),
    };
    // Only digits can follow, so what does not fit is too large.
    sign * digits.parse::<i64>().unwrap_or(EXPONENT_MAX).min(EXPONENT_MAX)
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.cmp_magnitude(other),
            (true, true) => other.cmp_magnitude(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_ordered_by_value_and_not_by_spelling() {
        for (left, expected, right) in [
            ("1", Ordering::Equal, "1.0"),
            ("100", Ordering::Equal, "1e2"),
            ("100", Ordering::Equal, "1E+2"),
            ("0.01", Ordering::Equal, "1e-2"),
            ("0", Ordering::Equal, "-0.0e7"),
            ("0", Ordering::Less, "1e-400"),
            ("-1e-400", Ordering::Less, "0"),
            ("18446744073709551616", Ordering::Less, "18446744073709551617"),
            ("9007199254740993", Ordering::Greater, "9007199254740992"),
            ("0.1", Ordering::Less, "0.10000000000000000000001"),
            ("-2", Ordering::Less, "-1"),
            ("-10", Ordering::Less, "-9.99"),
            ("9", Ordering::Less, "10"),
            ("1e400", Ordering::Greater, "9e399"),
            ("1e99999999999999999999", Ordering::Greater, "1e400"),
            ("1e-99999999999999999999", Ordering::Less, "1e-400"),
        ] {
            let ordered = Decimal::from_json(left).cmp(&Decimal::from_json(right));
            assert_eq!(ordered, expected, "{left} {right}");
        }
    }

    proptest! {
        #[test]
        fn integers_are_ordered_as_the_machine_does(a: i64, b: i64) {
            prop_assert_eq!(Decimal::from(a).cmp(&Decimal::from(b)), a.cmp(&b));
        }

        #[test]
        fn floats_are_ordered_as_the_machine_does(a in -1e300..1e300f64, b in -1e-3..1e3f64) {
            let decimal = |float: f64| Decimal::from_json(&format!("{float:e}"));
            prop_assert_eq!(decimal(a).cmp(&decimal(b)), a.partial_cmp(&b).unwrap());
        }
    }
}
