//! What makes two payloads the same: everything but the fields that the sender changes.

use serde_json::Value;
use turnbuckle_domain::{JsonPath, JsonStep};

/// The payload without these fields, in one spelling; none when all of it counts, byte for byte.
pub(super) fn without(data: &[u8], excluded: &[JsonPath]) -> Option<Vec<u8>> {
    if excluded.is_empty() {
        return None;
    }
    let mut value: Value = serde_json::from_slice(data).ok()?;
    for path in excluded {
        remove(&mut value, path.steps());
    }
    serde_json::to_vec(&value).ok()
}

fn remove(value: &mut Value, steps: &[JsonStep]) {
    let Some((step, rest)) = steps.split_first() else { return };
    match (step, value) {
        (JsonStep::Name(name), Value::Object(members)) if rest.is_empty() => {
            members.remove(name);
        }
        (JsonStep::Name(name), Value::Object(members)) => {
            if let Some(member) = members.get_mut(name) {
                remove(member, rest);
            }
        }
        // An element leaves its place, so that those behind it keep theirs.
        (JsonStep::Index(index), Value::Array(elements)) => {
            let index = usize::try_from(*index).unwrap_or(usize::MAX);
            if let Some(element) = elements.get_mut(index) {
                clear(element, rest);
            }
        }
        (JsonStep::Every, Value::Array(elements)) => {
            elements.iter_mut().for_each(|element| clear(element, rest));
        }
        _ => {}
    }
}

fn clear(element: &mut Value, rest: &[JsonStep]) {
    if rest.is_empty() {
        *element = Value::Null;
    } else {
        remove(element, rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(data: &str, excluded: &[&str]) -> Option<String> {
        let paths: Vec<_> = excluded.iter().map(|path| JsonPath::parse(path).unwrap()).collect();
        without(data.as_bytes(), &paths).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn excluded_fields_do_not_count() {
        let first = r#"{"id": 1, "try": 1, "a": [{"at": 5, "x": 1}, {"at": 6}]}"#;
        let again = r#"{"try":2,"id":1,"a":[{"at":7,"x":1},{"at":8}]}"#;
        let excluded = ["try", "a[*].at"];
        assert_eq!(content(first, &excluded), content(again, &excluded));
        assert_ne!(content(first, &["try"]), content(again, &["try"]));
        let other = r#"{"id": 2, "a": [{"x": 1}, {}]}"#;
        assert_ne!(content(first, &excluded), content(other, &excluded));
    }

    #[test]
    fn without_exclusions_or_json_every_byte_counts() {
        assert_eq!(content("{}", &[]), None);
        assert_eq!(content("no json", &["a"]), None);
        assert_eq!(content(r#"{"a":1}"#, &["b.c[0]", "a.x"]), Some(r#"{"a":1}"#.to_owned()));
    }
}
