//! Values that are stored as text people can read.

/// Durations as `300s` or `1500ms`: exact to the millisecond, which is what requests carry.
pub(super) mod duration {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::time::Duration;

    pub(in crate::source) fn serialize<S: Serializer>(
        duration: &Duration,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match duration.subsec_millis() {
            0 => to.collect_str(&format_args!("{}s", duration.as_secs())),
            _ => to.collect_str(&format_args!("{}ms", duration.as_millis())),
        }
    }

    pub(in crate::source) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Duration, D::Error> {
        let text = String::deserialize(from)?;
        parse(&text).ok_or_else(|| D::Error::custom("is no duration"))
    }

    fn parse(text: &str) -> Option<Duration> {
        if let Some(millis) = text.strip_suffix("ms") {
            return millis.parse().ok().map(Duration::from_millis);
        }
        text.strip_suffix('s')?.parse().ok().map(Duration::from_secs)
    }
}

/// Type patterns as they are written.
pub(super) mod patterns {
    use crate::TypePattern;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(in crate::source) fn serialize<S: Serializer>(
        patterns: &[TypePattern],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(patterns.iter().map(ToString::to_string))
    }

    pub(in crate::source) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<TypePattern>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        texts.iter().map(|text| TypePattern::parse(text).map_err(D::Error::custom)).collect()
    }
}
