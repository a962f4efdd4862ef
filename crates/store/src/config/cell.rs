//! Values of cells: JSON as text, and text that no log may show.

use sea_orm::DeriveValueType;
use serde_json::Value;
use std::{collections::BTreeMap, fmt};
use turnbuckle_domain::{
    Filter, Labels, Meta, ResourceId, Revision, StoreError, Timestamp, TypePattern,
};

/// A cell holds what no code of ours writes. Names the place and never the content, which may be a
/// credential.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("column {column} holds something malformed")]
pub(super) struct Malformed {
    pub(super) column: &'static str,
}

impl From<Malformed> for StoreError {
    fn from(malformed: Malformed) -> Self {
        Self::Internal(malformed.into())
    }
}

impl From<Malformed> for turnbuckle_domain::Error {
    fn from(malformed: Malformed) -> Self {
        StoreError::from(malformed).into()
    }
}

/// Shortens "or the column is malformed".
pub(super) fn expect<T>(column: &'static str, value: Option<T>) -> Result<T, Malformed> {
    value.ok_or(Malformed { column })
}

/// Text that may hold a credential: a URL, header values.
#[derive(Clone, PartialEq, Eq, DeriveValueType)]
pub struct HiddenText(pub(super) String);

impl fmt::Debug for HiddenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({} bytes)", self.0.len())
    }
}

/// Bytes of a sealed secret.
#[derive(Clone, PartialEq, Eq, DeriveValueType)]
pub struct HiddenBytes(pub(super) Vec<u8>);

impl fmt::Debug for HiddenBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({} bytes)", self.0.len())
    }
}

pub(super) fn meta(created_at_us: i64, updated_at_us: i64, revision: i64) -> Meta {
    Meta {
        created_at: Timestamp::from_micros(created_at_us),
        updated_at: Timestamp::from_micros(updated_at_us),
        revision: Revision(revision),
    }
}

pub(super) fn micros(time: Option<i64>) -> Option<Timestamp> {
    time.map(Timestamp::from_micros)
}

pub(super) fn resource_id(text: String) -> Result<ResourceId, Malformed> {
    expect("slug", ResourceId::new(text).ok())
}

pub(super) fn labels_text(labels: &Labels) -> String {
    map_text(labels.iter())
}

pub(super) fn labels(text: &str) -> Result<Labels, Malformed> {
    expect("labels", parse_map(text).and_then(|pairs| Labels::new(pairs).ok()))
}

pub(super) fn headers_text(headers: &BTreeMap<String, String>) -> HiddenText {
    HiddenText(map_text(headers.iter().map(|(name, value)| (name.as_str(), value.as_str()))))
}

pub(super) fn headers(text: &HiddenText) -> Result<BTreeMap<String, String>, Malformed> {
    expect("headers", parse_map(&text.0))
}

pub(super) fn patterns_text(patterns: &[TypePattern]) -> String {
    Value::from_iter(patterns.iter().map(ToString::to_string)).to_string()
}

pub(super) fn patterns(text: &str) -> Result<Vec<TypePattern>, Malformed> {
    let texts: Option<Vec<String>> = serde_json::from_str(text).ok();
    let parse = |texts: Vec<String>| {
        texts.iter().map(|text| TypePattern::parse(text).ok()).collect::<Option<_>>()
    };
    expect("patterns", texts.and_then(parse))
}

pub(super) fn filter(text: Option<&str>) -> Result<Option<Filter>, Malformed> {
    text.map(|text| expect("filter", Filter::parse(text).ok())).transpose()
}

/// A SHA-256 hash.
pub(super) fn hash(bytes: Vec<u8>) -> Result<[u8; 32], Malformed> {
    expect("hash", bytes.try_into().ok())
}

fn map_text<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    Value::from_iter(pairs.map(|(key, value)| (key, Value::from(value)))).to_string()
}

fn parse_map(text: &str) -> Option<BTreeMap<String, String>> {
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_and_lists_round_trip() {
        let pairs = [("team", "a/b"), ("empty", "")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        let some = Labels::new(pairs.clone()).unwrap();
        assert_eq!(labels(&labels_text(&some)), Ok(some));
        let some = BTreeMap::from(pairs);
        assert_eq!(headers(&headers_text(&some)), Ok(some));
        let some = ["*", "order.*", "order.paid"].map(|text| TypePattern::parse(text).unwrap());
        assert_eq!(patterns(&patterns_text(&some)), Ok(some.to_vec()));
    }

    #[test]
    fn malformed_cells_are_errors_that_quote_nothing() {
        for text in ["", "{", "[]", r#"{"a":1}"#, r#"{"a b":"c"}"#] {
            assert_eq!(labels(text), Err(Malformed { column: "labels" }), "{text}");
        }
        for text in ["{}", "[1]", r#"["a..b"]"#] {
            assert_eq!(patterns(text), Err(Malformed { column: "patterns" }), "{text}");
        }
        assert_eq!(filter(Some("data.total >")), Err(Malformed { column: "filter" }));
        let error = headers(&HiddenText("hunter2".into())).unwrap_err();
        assert!(!error.to_string().contains("hunter2"));
    }

    #[test]
    fn debug_text_hides_what_may_be_a_credential() {
        let text = format!("{:?}", HiddenText("https://a:hunter2@b".into()));
        assert_eq!(text, "(19 bytes)");
        assert_eq!(format!("{:?}", HiddenBytes(vec![7; 3])), "(3 bytes)");
    }
}
