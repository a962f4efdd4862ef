//! Events: an immutable envelope around payload bytes.

use crate::{Channels, EventOrder, EventUid, TenantId, Timestamp, TypeName, Violations};
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use std::fmt;

/// Bounds of events, each with its reason.
pub mod event_limits {
    /// Payload: ten times what Standard Webhooks calls large, and small enough to hold thousands in memory.
    pub const DATA_BYTES: usize = 256 * 1024;
    /// Payload of an event that came through an ingress: what a source can take. Stores hold it.
    pub const RECEIVED_BYTES: usize = super::super::source_limits::BODY_BYTES_MAX as usize;
    /// Ids are names, not documents.
    pub const EVENT_ID_CHARS: usize = 128;
    /// As for ids.
    pub const SOURCE_CHARS: usize = 128;
    /// Longest version text.
    pub const VERSION_CHARS: usize = 64;
    /// Longest subject.
    pub const SUBJECT_BYTES: usize = 256;
    /// Channels of one event: each is compared with those of every subscription.
    pub const CHANNELS: usize = 16;
    /// Longest media type.
    pub const CONTENT_TYPE_CHARS: usize = 128;
    /// Deepest JSON payload: well below what overflows any parser's stack.
    pub const JSON_DEPTH: usize = 64;
    /// Events of one batch.
    pub const BATCH: usize = 1_000;
    /// Bytes of one batch: the usual bound of a gRPC message.
    pub const BATCH_BYTES: usize = 4 * 1024 * 1024;
}

/// An accepted event. `Debug` hides the payload.
#[derive(Clone, PartialEq, Eq)]
pub struct Event {
    /// Made by us; names the row.
    pub uid: EventUid,
    /// Whose it is.
    pub tenant: TenantId,
    /// The sender's id, unique within tenant and source.
    pub event_id: String,
    /// What kind of event.
    pub event_type: TypeName,
    /// Version of the payload's schema.
    pub event_version: String,
    /// When it happened.
    pub occurred_at: Timestamp,
    /// Who it comes from.
    pub source: String,
    /// The object it is about.
    pub subject: Option<String>,
    /// That object's version.
    pub sequence: Option<i64>,
    /// Media type of the payload.
    pub content_type: String,
    /// The payload, byte for byte as it came.
    pub data: Bytes,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// Which subscriptions with channels want it.
    pub channels: Channels,
    /// How it stood to the order of its subject, where that is watched and it was not the next one.
    pub order: Option<EventOrder>,
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("uid", &self.uid)
            .field("event_id", &self.event_id)
            .field("event_type", &self.event_type)
            .field("data_bytes", &self.data.len())
            .finish_non_exhaustive()
    }
}

impl Event {
    /// What makes two publishes of one id the same event: everything the receiver would see but the
    /// times, and the channels, which decide who that is. `occurred_at` is left out because senders that repeat often fill it anew.
    #[must_use]
    pub fn content_hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for part in [
            self.event_type.as_str().as_bytes(),
            self.event_version.as_bytes(),
            self.subject.as_deref().unwrap_or_default().as_bytes(),
            self.content_type.as_bytes(),
            &self.data,
        ] {
            // The length in front keeps `ab` + `c` and `a` + `bc` apart.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.update([u8::from(self.sequence.is_some())]);
        hash.update(self.sequence.unwrap_or_default().to_be_bytes());
        // Nothing is added for none: events of before channels existed keep their hash.
        for channel in self.channels.iter() {
            hash.update((channel.as_str().len() as u64).to_be_bytes());
            hash.update(channel.as_str());
        }
        hash.finalize().into()
    }

    /// Whether the payload is JSON by its media type.
    #[must_use]
    pub fn is_json(&self) -> bool {
        is_json_type(&self.content_type)
    }
}

/// An event as a caller sends it, not yet checked.
#[derive(Clone, Default)]
pub struct EventDraft {
    /// Empty: the server makes one.
    pub event_id: String,
    /// Required.
    pub event_type: String,
    /// Empty: `1`.
    pub event_version: String,
    /// Missing: when it is accepted.
    pub occurred_at: Option<Timestamp>,
    /// Empty: `default`.
    pub source: String,
    /// Empty: none.
    pub subject: String,
    /// Missing: none.
    pub sequence: Option<i64>,
    /// The payload.
    pub data: Bytes,
    /// Empty: `application/json`.
    pub content_type: String,
    /// Empty: none.
    pub channels: Vec<String>,
}

impl EventDraft {
    /// Source when none is given.
    pub const DEFAULT_SOURCE: &'static str = "default";
    /// Version when none is given.
    pub const DEFAULT_VERSION: &'static str = "1";
    /// Media type when none is given.
    pub const DEFAULT_CONTENT_TYPE: &'static str = "application/json";

    /// Checks the draft and makes it an event. Violations are noted under `field`.
    pub fn accept(
        self,
        tenant: TenantId,
        uid: EventUid,
        now: Timestamp,
        field: &str,
        violations: &mut Violations,
    ) -> Option<Event> {
        self.accept_up_to(event_limits::DATA_BYTES, tenant, uid, now, field, violations)
    }

    /// The same for a payload of at most so many bytes.
    pub fn accept_up_to(
        mut self,
        bytes: usize,
        tenant: TenantId,
        uid: EventUid,
        now: Timestamp,
        field: &str,
        violations: &mut Violations,
    ) -> Option<Event> {
        let event_type = violations
            .take(&format!("{field}.event_type"), TypeName::new(self.event_type.as_str()));
        let noted = self.note_violations(bytes, field, violations);
        let channels = self.take_channels(field, violations);
        let event_type = event_type.filter(|_| !noted)?;
        Some(Event {
            uid,
            tenant,
            event_id: if self.event_id.is_empty() { uid.to_string() } else { self.event_id },
            event_type,
            event_version: or_default(self.event_version, Self::DEFAULT_VERSION),
            occurred_at: self.occurred_at.unwrap_or(now),
            source: or_default(self.source, Self::DEFAULT_SOURCE),
            subject: (!self.subject.is_empty()).then_some(self.subject),
            sequence: self.sequence,
            content_type: or_default(self.content_type, Self::DEFAULT_CONTENT_TYPE),
            data: self.data,
            accepted_at: now,
            channels: channels?,
            order: None,
        })
    }

    /// Most events have none, and cost nothing here.
    fn take_channels(&mut self, field: &str, violations: &mut Violations) -> Option<Channels> {
        if self.channels.is_empty() {
            return Some(Channels::default());
        }
        let (texts, field) = (std::mem::take(&mut self.channels), format!("{field}.channels"));
        Channels::read(texts, event_limits::CHANNELS, &field, violations)
    }

    /// Notes everything wrong but the type; true when something was.
    fn note_violations(&self, bytes: usize, field: &str, violations: &mut Violations) -> bool {
        use event_limits as limits;
        let mut noted = false;
        let mut note = |name: &str, message: String| {
            violations.add(format!("{field}.{name}"), message);
            noted = true;
        };
        if !is_token(&self.event_id, limits::EVENT_ID_CHARS, b"_-:/") {
            note("event_id", "use at most 128 characters of A-Z a-z 0-9 _ - : /".into());
        }
        if !is_token(&self.source, limits::SOURCE_CHARS, b"_-.:/") {
            note("source", "use at most 128 characters of A-Z a-z 0-9 _ - . : /".into());
        }
        if !is_token(&self.event_version, limits::VERSION_CHARS, b"_-.") {
            note("event_version", "use at most 64 characters of A-Z a-z 0-9 _ - .".into());
        }
        if self.subject.len() > limits::SUBJECT_BYTES || self.subject.contains(char::is_control) {
            note("subject", "use at most 256 bytes without control characters".into());
        }
        if !is_media_type(&self.content_type) {
            note(
                "content_type",
                "use a media type of at most 128 characters, such as application/json".into(),
            );
        }
        if self.data.len() > bytes {
            note(
                "data",
                format!(
                    "has {} bytes; at most {bytes} are taken: store the document elsewhere and send a link",
                    self.data.len(),
                ),
            );
        } else if let Some(fault) = self.json_fault() {
            note("data", fault);
        }
        noted
    }

    fn json_fault(&self) -> Option<String> {
        let json = self.content_type.is_empty() || is_json_type(&self.content_type);
        if !json {
            return None;
        }
        if depth(&self.data) > event_limits::JSON_DEPTH {
            return Some(format!("is nested deeper than {} levels", event_limits::JSON_DEPTH));
        }
        match serde_json::from_slice::<&serde_json::value::RawValue>(&self.data) {
            Ok(_) => None,
            Err(error) => Some(format!(
                "is not valid JSON (line {}, column {}): correct it, or set content_type to what it is",
                error.line(),
                error.column()
            )),
        }
    }
}

fn or_default(text: String, default: &str) -> String {
    if text.is_empty() { default.to_owned() } else { text }
}

fn is_token(text: &str, length_max: usize, extra: &[u8]) -> bool {
    text.len() <= length_max
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || extra.contains(&byte))
}

/// Empty, or `type/subtype` with parameters, in visible ASCII: it becomes a header value.
fn is_media_type(text: &str) -> bool {
    text.is_empty()
        || (text.len() <= event_limits::CONTENT_TYPE_CHARS
            && text.contains('/')
            && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()))
}

fn is_json_type(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
        || essence.to_ascii_lowercase().ends_with("+json")
}

/// Deepest nesting of brackets outside strings: checked before parsing, so that no parser recurses
/// on hostile input.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for &byte in json {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn accept(draft: EventDraft) -> Result<Event, crate::Error> {
        let mut violations = Violations::new();
        let (tenant, uid) =
            (TenantId::from_uuid(Uuid::from_u128(1)), EventUid::from_uuid(Uuid::from_u128(2)));
        let event = draft.accept(tenant, uid, Timestamp::from_micros(5), "event", &mut violations);
        event.ok_or_else(|| violations.into_error())
    }

    fn json(data: &'static [u8]) -> EventDraft {
        EventDraft {
            event_type: "order.paid".into(),
            data: Bytes::from_static(data),
            ..EventDraft::default()
        }
    }

    #[test]
    fn odd_but_valid_json_is_taken_byte_for_byte() {
        for data in [
            &br#"{"a":"\u0000"}"#[..],
            br#"{"a":"\ud83d"}"#,
            br#"{"e":1e131071}"#,
            b"18446744073709551616",
            b" { \"b\" : 1.10 , \"a\" : [ ] } \n",
            b"null",
            "{\"t\":\"😀 ñ \u{2028}\"}".as_bytes(),
        ] {
            let event = accept(json(data)).unwrap();
            assert_eq!(&event.data[..], data);
            assert_eq!(event.content_type, "application/json");
        }
    }

    #[test]
    fn bad_json_is_refused_with_a_place() {
        for data in [&b""[..], b"{", b"{}x", b"NaN", b"\xff", b"{\"a\":\"\x00\"}"] {
            let error = accept(json(data)).unwrap_err().to_string();
            assert!(error.contains("event.data") && error.contains("line"), "{error}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_before_parsing() {
        let deep = vec![b'['; 100_000];
        let draft = EventDraft { data: deep.into(), ..json(b"") };
        assert!(accept(draft).unwrap_err().to_string().contains("nested deeper than 64"));
        let brackets_in_a_string = format!("\"{}\"", "[".repeat(1000));
        let draft = EventDraft { data: brackets_in_a_string.into(), ..json(b"") };
        assert!(accept(draft).is_ok());
    }

    #[test]
    fn bytes_of_another_media_type_are_opaque() {
        let draft =
            EventDraft { content_type: "application/octet-stream".into(), ..json(b"\x00\xff{") };
        assert!(accept(draft).is_ok());
    }

    #[test]
    fn every_violation_is_listed_at_once() {
        let draft = EventDraft {
            event_id: "has space".into(),
            event_type: "a..b".into(),
            source: "ä".into(),
            subject: "line\nbreak".into(),
            content_type: "nonsense".into(),
            data: vec![b'1'; event_limits::DATA_BYTES + 1].into(),
            channels: vec!["a".into(), "a b".into()],
            ..EventDraft::default()
        };
        let crate::Error::Invalid(list) = accept(draft).unwrap_err() else { panic!() };
        let fields: Vec<_> = list.iter().map(|violation| violation.field.as_str()).collect();
        let expected =
            ["event_type", "event_id", "source", "subject", "content_type", "data", "channels[1]"]
                .map(|f| format!("event.{f}"));
        assert_eq!(fields, expected);
    }

    #[test]
    fn the_content_hash_knows_the_channels_and_not_their_order() {
        let hash = |channels: &[&str]| {
            let channels = channels.iter().map(|name| (*name).to_owned()).collect();
            accept(EventDraft { channels, ..json(b"{}") }).unwrap().content_hash()
        };
        assert_eq!(hash(&["a", "b"]), hash(&["b", "a", "b"]));
        let different = [hash(&[]), hash(&["a"]), hash(&["b"]), hash(&["a", "b"]), hash(&["ab"])];
        assert_eq!(different.iter().collect::<std::collections::BTreeSet<_>>().len(), 5);
    }

    #[test]
    fn the_content_hash_of_an_event_without_channels_is_what_it_always_was() {
        let hash = accept(json(b"{}")).unwrap().content_hash();
        let mut expected = Sha256::new();
        for part in [&b"order.paid"[..], b"1", b"", b"application/json", b"{}"] {
            expected.update((part.len() as u64).to_be_bytes());
            expected.update(part);
        }
        expected.update([0; 9]);
        assert_eq!(hash, <[u8; 32]>::from(expected.finalize()));
    }

    #[test]
    fn the_content_hash_ignores_times_and_keeps_fields_apart() {
        let one = accept(json(b"{}")).unwrap();
        let mut again = one.clone();
        again.occurred_at = Timestamp::from_micros(9);
        again.accepted_at = Timestamp::from_micros(9);
        assert_eq!(one.content_hash(), again.content_hash());
        let with = |subject: &str, version: &str| {
            let mut event = one.clone();
            event.subject = Some(subject.into());
            event.event_version = version.into();
            event.content_hash()
        };
        assert_ne!(with("ab", "c"), with("a", "bc"));
        let mut zero = one.clone();
        zero.sequence = Some(0);
        assert_ne!(zero.content_hash(), one.content_hash());
    }
}
