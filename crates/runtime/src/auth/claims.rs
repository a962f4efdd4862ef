//! What a token says. Types are exact: a number where text belongs, or text where a number belongs,
//! refuses the token, as does a claim that is there twice.

use super::refusal::Refusal;
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor},
};
use serde_json::Value;
use std::{collections::BTreeMap, fmt, time::Duration};
use turnbuckle_domain::Timestamp;

/// 9999-12-31T23:59:59Z: later times are a fault, and would overflow microseconds in the end.
const SECONDS_MAX: i64 = 253_402_300_799;

/// The claims of a token whose signature holds.
pub(super) struct Claims(BTreeMap<String, Value>);

impl<'de> Deserialize<'de> for Claims {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Unrepeated)
    }
}

/// Reads an object in which no name comes twice: readers would disagree on which one counts.
struct Unrepeated;

impl<'de> Visitor<'de> for Unrepeated {
    type Value = Claims;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("claims")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Claims, A::Error> {
        let mut claims = BTreeMap::new();
        while let Some((name, value)) = entries.next_entry()? {
            if claims.insert(name, value).is_some() {
                return Err(A::Error::custom("a claim is there twice"));
            }
        }
        Ok(Claims(claims))
    }
}

impl Claims {
    /// A text that must be there.
    pub(super) fn text(&self, name: &str) -> Result<&str, Refusal> {
        self.optional_text(name)?.ok_or(Refusal::Claims)
    }

    /// A text that may be left out but not null: an issuer that failed to find a value must not
    /// make a token that counts as one without.
    pub(super) fn optional_text(&self, name: &str) -> Result<Option<&str>, Refusal> {
        let value = self.0.get(name);
        value.map(|value| value.as_str().ok_or(Refusal::Claims)).transpose()
    }

    /// A time that may be left out: whole seconds since 1970, as an integer.
    fn time(&self, name: &str) -> Result<Option<Timestamp>, Refusal> {
        let value = self.0.get(name);
        value.map(|value| value.as_i64().and_then(point).ok_or(Refusal::Claims)).transpose()
    }

    /// Checks that the token is valid at this time.
    pub(super) fn check_times(&self, now: Timestamp, rules: &TimeRules) -> Result<(), Refusal> {
        let expiry = self.time("exp")?.ok_or(Refusal::Claims)?;
        if now >= expiry + rules.leeway {
            return Err(Refusal::Expired);
        }
        let later = now + rules.leeway;
        if self.time("nbf")?.is_some_and(|start| later < start) {
            return Err(Refusal::NotYetValid);
        }
        let Some(age_max) = rules.age_max else {
            return Ok(());
        };
        let issued = self.time("iat")?.ok_or(Refusal::Claims)?;
        if later < issued {
            return Err(Refusal::NotYetValid);
        }
        if now >= issued + age_max + rules.leeway { Err(Refusal::Expired) } else { Ok(()) }
    }
}

/// How times are judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TimeRules {
    /// How far the issuer's clock and ours may differ.
    pub(super) leeway: Duration,
    /// Oldest token taken, whatever its expiry; with one, tokens must say when they were made.
    pub(super) age_max: Option<Duration>,
}

fn point(seconds: i64) -> Option<Timestamp> {
    (0..=SECONDS_MAX)
        .contains(&seconds)
        .then(|| Timestamp::from_micros(seconds.saturating_mul(1_000_000)))
}
