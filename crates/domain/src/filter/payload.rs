//! Fields of a payload, found without building a tree of it.
//!
//! Values stay slices of the payload's text. What no path names is skipped by a scanner that does not
//! recurse, so that nesting cannot exhaust the stack.

use super::expr::Segment;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::BTreeMap, fmt};

/// The JSON text at each path; `None` where there is nothing.
pub(super) fn look_up<'a>(data: &'a [u8], paths: &[Box<[Segment]>]) -> Vec<Option<&'a str>> {
    let mut found = vec![None; paths.len()];
    // Checks the whole payload once; later steps only see what is JSON.
    if let Ok(payload) = serde_json::from_slice::<&RawValue>(data) {
        let wanted = paths.iter().map(|path| &**path).enumerate().collect();
        collect(payload.get(), wanted, &mut found);
    }
    found
}

/// Slots to fill, each with the rest of its path.
type Wanted<'p> = Vec<(usize, &'p [Segment])>;

fn collect<'a>(json: &'a str, wanted: Wanted<'_>, found: &mut [Option<&'a str>]) {
    let mut keys: BTreeMap<&str, Wanted<'_>> = BTreeMap::new();
    let mut indexes: BTreeMap<u32, Wanted<'_>> = BTreeMap::new();
    for (slot, path) in wanted {
        match path.split_first() {
            None => found[slot] = Some(json),
            Some((Segment::Key(key), rest)) => keys.entry(key).or_default().push((slot, rest)),
            Some((Segment::Index(index), rest)) => {
                indexes.entry(*index).or_default().push((slot, rest));
            }
        }
    }
    if json.starts_with('{') && !keys.is_empty() {
        for (key, value) in members(json, &keys) {
            if let Some(deeper) = keys.remove(key) {
                collect(value, deeper, found);
            }
        }
    } else if json.starts_with('[') && !indexes.is_empty() {
        let mut position: u32 = 0;
        for_each_element(json, |value| {
            if let Some(deeper) = indexes.remove(&position) {
                collect(value, deeper, found);
            }
            position = position.saturating_add(1);
        });
    }
}

/// The named members of an object. A later one replaces an earlier one of the same name.
fn members<'a, 'k>(
    json: &'a str,
    keys: &BTreeMap<&'k str, Wanted<'_>>,
) -> BTreeMap<&'k str, &'a str> {
    struct Members<'m, 'k, 'p> {
        keys: &'m BTreeMap<&'k str, Wanted<'p>>,
    }
    impl<'a, 'k> Visitor<'a> for Members<'_, 'k, '_> {
        type Value = BTreeMap<&'k str, &'a str>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut values = BTreeMap::new();
            // Raw keys: one with half a surrogate pair must not hide its neighbours.
            while let Some(key) = map.next_key::<&RawValue>()? {
                let name = string(key.get());
                match name.and_then(|name| self.keys.get_key_value(&*name)) {
                    Some((name, _)) => {
                        values.insert(*name, map.next_value::<&RawValue>()?.get());
                    }
                    None => {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
            }
            Ok(values)
        }
    }
    let mut reader = serde_json::Deserializer::from_str(json);
    reader.deserialize_map(Members { keys }).unwrap_or_default()
}

/// Calls `visit` for each element of an array.
pub(super) fn for_each_element<'a>(json: &'a str, visit: impl FnMut(&'a str)) {
    struct Elements<F>(F);
    impl<'a, F: FnMut(&'a str)> Visitor<'a> for Elements<F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'a>>(mut self, mut elements: A) -> Result<(), A::Error> {
            while let Some(element) = elements.next_element::<&RawValue>()? {
                (self.0)(element.get());
            }
            Ok(())
        }
    }
    // The text was checked before, so that reading it cannot fail.
    serde_json::Deserializer::from_str(json).deserialize_seq(Elements(visit)).unwrap_or_default();
}

/// The text of a JSON string; `None` when its escapes spell no text (half a surrogate pair).
pub(super) fn string(json: &str) -> Option<Cow<'_, str>> {
    if !json.contains('\\') {
        return json.strip_prefix('"')?.strip_suffix('"').map(Cow::Borrowed);
    }
    serde_json::from_str(json).ok().map(Cow::Owned)
}
