//! A request under way: values by their places.

use serde_json::{Map, Value};

use super::{FORM_TYPE, Sample, SampleError};
use crate::scheme::proof::SignatureProof;
use crate::scheme::{JsonPath, JsonStep, Locator};

/// The most elements put in front of one that a path names by number: real paths name the first.
const MAX_INDEX: u32 = 16;

/// Values by their places, in the order in which they came.
pub(super) struct Draft {
    is_form: bool,
    headers: Vec<(String, String)>,
    query: Vec<(String, String)>,
    fields: Vec<(String, String)>,
    /// Entries of the signature header besides signatures.
    entries: Vec<(String, String)>,
    document: Value,
}

impl Draft {
    pub(super) fn new(is_form: bool) -> Self {
        Self {
            is_form,
            headers: Vec::new(),
            query: Vec::new(),
            fields: Vec::new(),
            entries: Vec::new(),
            // The first place that is written says whether it is an object or a list.
            document: Value::Null,
        }
    }

    /// Puts a value where there is none yet. Says whether the place has this value now.
    pub(super) fn put(&mut self, at: &Locator, items: Option<&JsonPath>, text: &str) -> bool {
        self.write(at, items, text, false)
    }

    /// Puts a value that the scheme cannot do without.
    pub(super) fn need(
        &mut self,
        at: &Locator,
        items: Option<&JsonPath>,
        text: &str,
    ) -> Result<(), SampleError> {
        if self.put(at, items, text) { Ok(()) } else { Err(SampleError::Places) }
    }

    /// Puts a value in place of whatever is there.
    pub(super) fn set(
        &mut self,
        at: &Locator,
        items: Option<&JsonPath>,
        text: &str,
    ) -> Result<(), SampleError> {
        if self.write(at, items, text, true) { Ok(()) } else { Err(SampleError::Places) }
    }

    fn write(
        &mut self,
        at: &Locator,
        items: Option<&JsonPath>,
        text: &str,
        replaces: bool,
    ) -> bool {
        match at {
            Locator::Header(name) => pair(&mut self.headers, name, text, replaces),
            Locator::NumberedHeader { prefix, .. } => {
                pair(&mut self.headers, &format!("{prefix}1"), text, replaces)
            }
            Locator::Authorization(scheme) => {
                pair(&mut self.headers, "authorization", &format!("{scheme} {text}"), replaces)
            }
            Locator::Query(name) => pair(&mut self.query, name, text, replaces),
            Locator::Form(name) => self.is_form && pair(&mut self.fields, name, text, replaces),
            Locator::SignatureField(tag) => pair(&mut self.entries, tag, text, replaces),
            Locator::Json(path) => {
                let steps = items.into_iter().flat_map(JsonPath::steps).chain(path.steps());
                let steps: Vec<&JsonStep> = steps.collect();
                !self.is_form && scalar(&mut self.document, &steps, text, replaces)
            }
        }
    }

    /// There is an item, even when nothing stands in it yet.
    pub(super) fn reserve_items(&mut self, items: Option<&JsonPath>) {
        if let Some(path) = items {
            let steps: Vec<&JsonStep> = path.steps().iter().collect();
            reach(&mut self.document, &steps);
        }
    }

    /// The entries beside signatures, as they stand in the header.
    pub(super) fn signature_fields(&self, proof: &SignatureProof) -> String {
        let item = proof.syntax.item_separator.map_or(String::new(), String::from);
        let key = proof.syntax.key_separator.map_or(String::new(), String::from);
        let entries = self.entries.iter().map(|(tag, value)| format!("{tag}{key}{value}"));
        entries.collect::<Vec<_>>().join(&item)
    }

    pub(super) fn body(&self) -> Vec<u8> {
        match &self.document {
            _ if self.is_form => form(&self.fields),
            Value::Null => "{}".to_owned(),
            document => document.to_string(),
        }
        .into_bytes()
    }

    pub(super) fn sample(&self, url: &str, body: Vec<u8>) -> Sample {
        let media_type = if self.is_form { FORM_TYPE } else { "application/json" };
        let mut headers = vec![("content-type".to_owned(), media_type.to_owned())];
        headers.extend(self.headers.iter().cloned());
        let query = form(&self.query);
        let url = match (query.is_empty(), url.contains('?')) {
            (true, _) => url.to_owned(),
            (false, true) => format!("{url}&{query}"),
            (false, false) => format!("{url}?{query}"),
        };
        Sample { method: "POST", url, headers, body }
    }
}

/// Names are compared as they are written: those of headers are lower case in schemes.
fn pair(pairs: &mut Vec<(String, String)>, name: &str, text: &str, replaces: bool) -> bool {
    match pairs.iter_mut().find(|(known, _)| known == name) {
        None => pairs.push((name.to_owned(), text.to_owned())),
        Some((_, value)) if replaces => text.clone_into(value),
        Some((_, value)) => return value == text,
    }
    true
}

/// Puts a text at a path; what is there already stays unless it is to be replaced.
fn scalar(document: &mut Value, steps: &[&JsonStep], text: &str, replaces: bool) -> bool {
    match reach(document, steps) {
        Some(place) if place.is_null() || (replaces && place.is_string()) => {
            *place = Value::String(text.to_owned());
            true
        }
        Some(place) => place.as_str() == Some(text),
        None => false,
    }
}

/// The place of a path, made where it is missing; none where something else is in the way.
fn reach<'v>(mut place: &'v mut Value, steps: &[&JsonStep]) -> Option<&'v mut Value> {
    for step in steps {
        match step {
            JsonStep::Name(name) => {
                if place.is_null() {
                    *place = Value::Object(Map::new());
                }
                place = place.as_object_mut()?.entry(name.clone()).or_insert(Value::Null);
            }
            JsonStep::Index(_) | JsonStep::Every => {
                let index = match step {
                    JsonStep::Index(index) if *index <= MAX_INDEX => {
                        usize::try_from(*index).ok()?
                    }
                    JsonStep::Index(_) => return None,
                    _ => 0,
                };
                if place.is_null() {
                    *place = Value::Array(Vec::new());
                }
                let list = place.as_array_mut()?;
                while list.len() <= index {
                    list.push(Value::Null);
                }
                place = list.get_mut(index)?;
            }
        }
    }
    Some(place)
}

fn form(pairs: &[(String, String)]) -> String {
    let field = |(name, value): &(String, String)| format!("{}={}", escaped(name), escaped(value));
    pairs.iter().map(field).collect::<Vec<_>>().join("&")
}

/// Percent-encoded, but for what no reader takes apart.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}
