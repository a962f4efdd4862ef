//! Closed sets whose names on the wire are those of the signing crate in another spelling.

use turnbuckle_proto::v1;
use turnbuckle_signing::scheme;

/// A value of a closed set.
pub(super) trait WireName: Copy + Sized + 'static {
    /// What it is, for messages.
    const WHAT: &'static str;

    /// The value of this number; none for the unset number and unknown ones.
    fn from_number(number: i32) -> Option<Self>;
    /// The number of the value.
    fn number(self) -> i32;
}

/// `VERIFICATION_ALGORITHM_HMAC_SHA256` without its prefix, as `hmac-sha256` is written.
fn is_spelling(wire: &str, prefix: &str, name: &str) -> bool {
    wire.strip_prefix(prefix).is_some_and(|rest| {
        rest.len() == name.len()
            && rest.bytes().zip(name.bytes()).all(|(one, other)| {
                one == other.to_ascii_uppercase() || (one == b'_' && other == b'-')
            })
    })
}

macro_rules! wire_names {
    ($($ours:ty, $wire:ty, $prefix:literal, $what:literal;)*) => {$(
        impl WireName for $ours {
            const WHAT: &'static str = $what;

            fn from_number(number: i32) -> Option<Self> {
                let wire = <$wire>::try_from(number).ok()?.as_str_name();
                let all = Self::ALL.iter().copied();
                all.into_iter().find(|value| is_spelling(wire, $prefix, value.as_str()))
            }

            fn number(self) -> i32 {
                let name = self.as_str().to_ascii_uppercase().replace('-', "_");
                <$wire>::from_str_name(&format!("{}{name}", $prefix)).map_or(0, |wire| wire as i32)
            }
        }
    )*};
}

wire_names! {
    scheme::Algorithm, v1::VerificationAlgorithm, "VERIFICATION_ALGORITHM_", "algorithm";
    scheme::Encoding, v1::SignatureEncoding, "SIGNATURE_ENCODING_", "encoding";
    scheme::KeyEncoding, v1::KeyEncoding, "KEY_ENCODING_", "key encoding";
    scheme::KeyDigest, v1::KeyDigest, "KEY_DIGEST_", "key digest";
    scheme::JwtAlgorithm, v1::JwtAlgorithm, "JWT_ALGORITHM_", "token algorithm";
    scheme::TimeUnit, v1::TimeUnit, "TIME_UNIT_", "time unit";
    scheme::UrlVariant, v1::UrlVariant, "URL_VARIANT_", "URL variant";
    scheme::BodyForm, v1::BodyForm, "BODY_FORM_", "body form";
    scheme::Escape, v1::ReplyEscape, "REPLY_ESCAPE_", "escape";
    scheme::Weakness, v1::SchemeWeakness, "SCHEME_WEAKNESS_", "weakness";
    scheme::Evidence, v1::PresetEvidence, "PRESET_EVIDENCE_", "evidence";
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both_ways<T: WireName + PartialEq + std::fmt::Debug>(all: &[T]) {
        for value in all {
            assert_ne!(value.number(), 0, "{value:?}");
            assert_eq!(T::from_number(value.number()), Some(*value));
        }
        let known = i32::try_from(all.len()).unwrap();
        assert_eq!(T::from_number(0), None);
        assert!((1..=known).all(|number| T::from_number(number).is_some()), "{}", T::WHAT);
        assert_eq!(T::from_number(known + 1), None, "{}", T::WHAT);
    }

    #[test]
    fn every_value_has_a_number_and_every_number_a_value() {
        both_ways(scheme::Algorithm::ALL);
        both_ways(scheme::Encoding::ALL);
        both_ways(scheme::KeyEncoding::ALL);
        both_ways(scheme::KeyDigest::ALL);
        both_ways(scheme::JwtAlgorithm::ALL);
        both_ways(scheme::TimeUnit::ALL);
        both_ways(scheme::UrlVariant::ALL);
        both_ways(scheme::BodyForm::ALL);
        both_ways(scheme::Escape::ALL);
        both_ways(scheme::Weakness::ALL);
        both_ways(scheme::Evidence::ALL);
    }
}
