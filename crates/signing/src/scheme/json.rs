//! Values out of a JSON body, without building the document in memory.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::json_path::{JsonPath, JsonStep};

/// Why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonFault {
    /// The document is not JSON.
    Malformed,
    /// A member on the way is there twice, and two readers might take different ones.
    Repeated,
    /// The value is an object or an array, or a string that is no Unicode text.
    NotScalar,
    /// More values than the bound.
    TooMany,
}

/// The scalar at the path as bytes: a string unescaped, anything else as written. Nothing for a
/// null and for a path that leads nowhere.
pub(crate) fn scalar<'de>(
    document: &'de [u8],
    path: &JsonPath,
) -> Result<Option<Cow<'de, [u8]>>, JsonFault> {
    match walk(document, path, 1)?.as_slice() {
        [] => Ok(None),
        [raw, ..] => scalar_bytes(raw.get()),
    }
}

/// The values at the path as written, at most `limit`.
pub(crate) fn values<'de>(
    document: &'de [u8],
    path: &JsonPath,
    limit: usize,
) -> Result<Vec<&'de [u8]>, JsonFault> {
    Ok(walk(document, path, limit)?.iter().map(|raw| raw.get().as_bytes()).collect())
}

/// The values at the path as written, and nothing for each place where the path ends before its
/// last step: at most `limit` of both together. An empty array where the path takes every element
/// is no such place: it has none.
pub(crate) fn elements<'de>(
    document: &'de [u8],
    path: &JsonPath,
    limit: usize,
) -> Result<Vec<Option<&'de [u8]>>, JsonFault> {
    let mut hits = Hits { misses: Some(Vec::new()), ..Hits::new(limit) };
    hits.walk(document, path)?;
    let mut found: Vec<_> = hits.values.iter().map(|raw| Some(raw.get().as_bytes())).collect();
    // Each was before so many hits: from the last one back, so that the earlier places stay right.
    for before in hits.misses.iter().flatten().rev() {
        found.insert((*before).min(found.len()), None);
    }
    Ok(found)
}

/// Whether the path leads to an array without elements.
pub(crate) fn is_empty_array(document: &[u8], path: &JsonPath) -> bool {
    let inside = |raw: &RawValue| -> Option<bool> {
        let inner = raw.get().strip_prefix('[')?.strip_suffix(']')?;
        Some(inner.trim_ascii().is_empty())
    };
    let found = walk(document, path, 1).unwrap_or_default();
    found.first().and_then(|raw| inside(raw)).unwrap_or(false)
}

fn scalar_bytes(text: &str) -> Result<Option<Cow<'_, [u8]>>, JsonFault> {
    match text.as_bytes().first() {
        Some(b'n') => Ok(None),
        Some(b'{' | b'[') | None => Err(JsonFault::NotScalar),
        Some(b'"') if text.contains('\\') => serde_json::from_str::<String>(text)
            .map(|text| Some(Cow::Owned(text.into_bytes())))
            .map_err(|_| JsonFault::NotScalar),
        Some(b'"') => {
            let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
            Ok(inner.map(|text| Cow::Borrowed(text.as_bytes())))
        }
        Some(_) => Ok(Some(Cow::Borrowed(text.as_bytes()))),
    }
}

fn walk<'de>(
    document: &'de [u8],
    path: &JsonPath,
    limit: usize,
) -> Result<Vec<&'de RawValue>, JsonFault> {
    let mut hits = Hits::new(limit);
    hits.walk(document, path)?;
    Ok(hits.values)
}

struct Hits<'de> {
    values: Vec<&'de RawValue>,
    /// Where the path led nowhere, as the number of values before it; none: nobody asks.
    misses: Option<Vec<usize>>,
    limit: usize,
    repeated: bool,
    overflow: bool,
}

impl<'de> Hits<'de> {
    const fn new(limit: usize) -> Self {
        Self { values: Vec::new(), misses: None, limit, repeated: false, overflow: false }
    }

    fn walk(&mut self, document: &'de [u8], path: &JsonPath) -> Result<(), JsonFault> {
        let mut deserializer = serde_json::Deserializer::from_slice(document);
        Walk { steps: path.steps(), hits: &mut *self }
            .deserialize(&mut deserializer)
            .and_then(|()| deserializer.end())
            .map_err(|_| JsonFault::Malformed)?;
        if self.repeated {
            return Err(JsonFault::Repeated);
        }
        if self.overflow { Err(JsonFault::TooMany) } else { Ok(()) }
    }

    fn hit(&mut self, raw: &'de RawValue) {
        if self.has_room() {
            self.values.push(raw);
        } else {
            self.overflow = true;
        }
    }

    fn miss(&mut self) {
        let (has_room, before) = (self.has_room(), self.values.len());
        match &mut self.misses {
            Some(misses) if has_room => misses.push(before),
            Some(_) => self.overflow = true,
            None => {}
        }
    }

    fn has_room(&self) -> bool {
        self.values.len() + self.misses.as_ref().map_or(0, Vec::len) < self.limit
    }
}

/// The rest of a path, walked while the document is read.
struct Walk<'p, 'h, 'de> {
    steps: &'p [JsonStep],
    hits: &'h mut Hits<'de>,
}

impl<'de> DeserializeSeed<'de> for Walk<'_, '_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if !self.steps.is_empty() {
            return deserializer.deserialize_any(self);
        }
        let raw = <&'de RawValue>::deserialize(deserializer)?;
        self.hits.hit(raw);
        Ok(())
    }
}

impl<'de> Visitor<'de> for Walk<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (wanted, rest) = match self.steps.split_first() {
            Some((JsonStep::Name(name), rest)) => (Some(name.as_str()), rest),
            _ => (None, self.steps),
        };
        let mut seen = false;
        while let Some(matches) = map.next_key_seed(KeyIs(wanted))? {
            if !matches {
                map.next_value::<IgnoredAny>()?;
            } else if seen {
                self.hits.repeated = true;
                map.next_value::<IgnoredAny>()?;
            } else {
                seen = true;
                map.next_value_seed(Walk { steps: rest, hits: self.hits })?;
            }
        }
        if !seen {
            self.hits.miss();
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        let (step, rest) = match self.steps.split_first() {
            Some((step, rest)) => (Some(step), rest),
            None => (None, self.steps),
        };
        let mut index = 0_u32;
        loop {
            let wanted = match step {
                Some(JsonStep::Every) => true,
                Some(JsonStep::Index(wanted)) => *wanted == index,
                _ => false,
            };
            let more = if wanted {
                sequence.next_element_seed(Walk { steps: rest, hits: self.hits })?.is_some()
            } else {
                sequence.next_element::<IgnoredAny>()?.is_some()
            };
            if !more {
                let is_led = match step {
                    Some(JsonStep::Every) => true,
                    Some(JsonStep::Index(wanted)) => *wanted < index,
                    _ => false,
                };
                if !is_led {
                    self.hits.miss();
                }
                return Ok(());
            }
            index = index.saturating_add(1);
        }
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        self.hits.miss();
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        self.hits.miss();
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        self.hits.miss();
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        self.hits.miss();
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        self.hits.miss();
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.hits.miss();
        Ok(())
    }
}

/// Compares a member's name without keeping it.
struct KeyIs<'n>(Option<&'n str>);

impl<'de> DeserializeSeed<'de> for KeyIs<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyIs<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(self.0 == Some(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(document: &str, path: &str) -> Result<Option<String>, JsonFault> {
        let found = scalar(document.as_bytes(), &JsonPath::parse(path).unwrap())?;
        Ok(found.map(|bytes| String::from_utf8(bytes.into_owned()).unwrap()))
    }

    #[test]
    fn scalars_come_as_written_and_strings_unescaped() {
        let document = r#" {"a": {"b": [10.00, "x\u00e9\n", true, null, {}]}, "c": 1e3} "#;
        assert_eq!(get(document, "a.b[0]"), Ok(Some("10.00".into())));
        assert_eq!(get(document, "a.b[1]"), Ok(Some("x\u{e9}\n".into())));
        assert_eq!(get(document, "a.b[2]"), Ok(Some("true".into())));
        assert_eq!(get(document, "a.b[3]"), Ok(None));
        assert_eq!(get(document, "a.b[4]"), Err(JsonFault::NotScalar));
        assert_eq!(get(document, "a.b[9]"), Ok(None));
        assert_eq!(get(document, "a.c"), Ok(None));
        assert_eq!(get(document, "c"), Ok(Some("1e3".into())));
        assert_eq!(get(document, "c.d[1]"), Ok(None));
    }

    #[test]
    fn a_repeated_member_on_the_way_is_refused_and_elsewhere_it_is_not() {
        assert_eq!(get(r#"{"a":1,"a":2}"#, "a"), Err(JsonFault::Repeated));
        assert_eq!(get(r#"{"a":1,"\u0061":2}"#, "a"), Err(JsonFault::Repeated));
        assert_eq!(get(r#"{"b":1,"b":2,"a":3}"#, "a"), Ok(Some("3".into())));
    }

    #[test]
    fn what_is_no_json_is_refused_wherever_the_fault_is() {
        for document in
            ["", "{", r#"{"a":1}x"#, r#"{"a":1,}"#, "\u{feff}{}", r#"{"b":[1,,],"a":1}"#]
        {
            assert_eq!(get(document, "a"), Err(JsonFault::Malformed), "{document}");
        }
        assert_eq!(get(r#"{"a":"\ud800"}"#, "a"), Err(JsonFault::NotScalar));
        assert!(scalar(b"{\"a\":\"\xff\"}", &JsonPath::parse("a").unwrap()).is_err());
    }

    #[test]
    fn deep_documents_neither_overflow_nor_panic() {
        let deep = format!("{{\"b\":{}1{},\"a\":2}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(get(&deep, "a"), Ok(Some("2".into())));
        assert_eq!(get(&deep, "b[0][0][0][0][0][0][0][0][0]"), Err(JsonFault::NotScalar));
    }

    #[test]
    fn items_are_listed_as_written() {
        let path = JsonPath::parse("items[*].x").unwrap();
        let document = br#"{"items":[{"x":{"k": 1}},{"y":2},{"x":[3]}]}"#;
        let found = values(document, &path, 10).unwrap();
        assert_eq!(found, [br#"{"k": 1}"#.as_slice(), b"[3]"]);
        assert_eq!(values(document, &path, 1), Err(JsonFault::TooMany));
    }

    #[test]
    fn every_element_is_listed_or_told_as_missing() {
        let listed = |document: &str, path: &str| {
            let found = elements(document.as_bytes(), &JsonPath::parse(path).unwrap(), 5)?;
            let text = |raw: Option<&[u8]>| raw.map_or_else(|| "-".to_owned(), lossy);
            Ok::<_, JsonFault>(found.into_iter().map(text).collect::<Vec<_>>().join(" "))
        };
        for (document, path, expected) in [
            (r#"{"e":[1,2]}"#, "e[*]", "1 2"),
            (r#"{"e":[]}"#, "e[*]", ""),
            (r#"{"data":{}}"#, "e[*]", "-"),
            (r#"{"e":{"x":1}}"#, "e[*]", "-"),
            (r#"{"e":null}"#, "e[*]", "-"),
            (r#"{"one":1}"#, "[*]", "-"),
            ("7", "e[*]", "-"),
            (r#"[{"x":1},{"y":2},3,{"x":4},null]"#, "[*].x", "1 - - 4 -"),
            (r#"{"e":[{"c":[1]},{"c":[]},{},{"c":[2,3]}]}"#, "e[*].c[*]", "1 - 2 3"),
            ("[1]", "[2]", "-"),
            ("[1,2,3]", "[2]", "3"),
        ] {
            assert_eq!(listed(document, path).as_deref(), Ok(expected), "{document} {path}");
        }
        assert_eq!(listed("[1,2,3,4,5,6]", "[*].x"), Err(JsonFault::TooMany));
        assert_eq!(listed("[{},{},{},{},{\"x\":1},{\"x\":1}]", "[*].x"), Err(JsonFault::TooMany));
        assert_eq!(listed("[", "[*]"), Err(JsonFault::Malformed));
    }

    fn lossy(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    #[test]
    fn an_empty_array_is_told_from_others() {
        let path = JsonPath::parse("events").unwrap();
        assert!(is_empty_array(br#"{"events": [ ]}"#, &path));
        for other in [r#"{"events":[[]]}"#, r#"{"events":[1]}"#, r#"{"events":{}}"#, "{}", "["] {
            assert!(!is_empty_array(other.as_bytes(), &path), "{other}");
        }
    }
}
