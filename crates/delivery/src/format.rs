//! Bodies of deliveries: built from the stored event alone, so that every attempt sends the same bytes.
//!
//! The layouts are part of the contract with receivers: a change would break I3 across an upgrade.

use bytes::{BufMut as _, Bytes, BytesMut};
use serde::Serialize;
use turnbuckle_domain::{Event, PayloadFormat, Timestamp};

/// A body and its media type.
pub(crate) struct Body {
    /// The bytes to sign and send.
    pub(crate) bytes: Bytes,
    /// Media type for the request.
    pub(crate) content_type: BodyType,
}

/// Media type of a body.
pub(crate) enum BodyType {
    /// `application/json`.
    Json,
    /// That of the event.
    Published,
}

/// Room for the envelope's names around the payload.
const ENVELOPE_OVERHEAD: usize = 384;

/// Builds the body of an event in a format.
#[must_use]
pub(crate) fn body(event: &Event, format: PayloadFormat) -> Body {
    match format {
        PayloadFormat::Raw => Body { bytes: event.data.clone(), content_type: BodyType::Published },
        PayloadFormat::Envelope => json(event, envelope),
        PayloadFormat::Standard => json(event, standard),
    }
}

fn json(event: &Event, write: fn(&Event, &mut Writer)) -> Body {
    let mut writer = Writer(BytesMut::with_capacity(event.data.len() + ENVELOPE_OVERHEAD));
    write(event, &mut writer);
    Body { bytes: writer.0.freeze(), content_type: BodyType::Json }
}

fn envelope(event: &Event, writer: &mut Writer) {
    writer.text("{\"event_id\":", &event.event_id);
    writer.text(",\"event_type\":", event.event_type.as_str());
    writer.text(",\"event_version\":", &event.event_version);
    writer.text(",\"occurred_at\":", &rfc3339(event.occurred_at));
    writer.text(",\"source\":", &event.source);
    if let Some(subject) = &event.subject {
        writer.text(",\"subject\":", subject);
    }
    if let Some(sequence) = event.sequence {
        writer.raw(b",\"sequence\":");
        writer.raw(sequence.to_string().as_bytes());
    }
    writer.data(event, b",\"data\":");
    writer.raw(b"}");
}

fn standard(event: &Event, writer: &mut Writer) {
    writer.text("{\"type\":", event.event_type.as_str());
    writer.text(",\"timestamp\":", &rfc3339(event.occurred_at));
    writer.data(event, b",\"data\":");
    writer.raw(b"}");
}

struct Writer(BytesMut);

impl Writer {
    fn raw(&mut self, bytes: &[u8]) {
        self.0.put_slice(bytes);
    }

    fn text(&mut self, name: &str, value: &str) {
        self.raw(name.as_bytes());
        let mut serializer = serde_json::Serializer::new((&mut self.0).writer());
        // A string into memory cannot fail.
        drop(value.serialize(&mut serializer));
    }

    /// JSON payloads go in as they are, byte for byte; others as base64 with their media type.
    fn data(&mut self, event: &Event, name: &[u8]) {
        if event.is_json() {
            self.raw(name);
            self.raw(&event.data);
        } else {
            self.text(",\"content_type\":", &event.content_type);
            let encoded =
                base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &event.data);
            self.text(",\"data_base64\":", &encoded);
        }
    }
}

/// `2026-11-30T12:34:56.789012Z`. The golden tests below hold the text form still.
fn rfc3339(at: Timestamp) -> String {
    turnbuckle_runtime::grpc::timestamp(at).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnbuckle_domain::{Channels, EventUid, TenantId, TypeName};
    use uuid::Uuid;

    fn event(data: &'static [u8], content_type: &str) -> Event {
        Event {
            uid: EventUid::from_uuid(Uuid::nil()),
            tenant: TenantId::from_uuid(Uuid::nil()),
            event_id: "evt-1".into(),
            event_type: TypeName::new("order.paid").unwrap(),
            event_version: "1".into(),
            occurred_at: Timestamp::from_micros(1_796_042_096_789_012),
            source: "shop".into(),
            subject: None,
            sequence: None,
            content_type: content_type.into(),
            data: Bytes::from_static(data),
            accepted_at: Timestamp::EPOCH,
            channels: Channels::default(),
            order: None,
        }
    }

    fn text(event: &Event, format: PayloadFormat) -> String {
        String::from_utf8_lossy(&body(event, format).bytes).into_owned()
    }

    #[test]
    fn bodies_are_golden_and_keep_the_payload_byte_for_byte() {
        let mut order =
            event(b" {\"n\": 18446744073709551616, \"e\":1e131071 } ", "application/json");
        assert_eq!(
            text(&order, PayloadFormat::Envelope),
            "{\"event_id\":\"evt-1\",\"event_type\":\"order.paid\",\"event_version\":\"1\",\
             \"occurred_at\":\"2026-11-30T12:34:56.789012Z\",\"source\":\"shop\",\
             \"data\": {\"n\": 18446744073709551616, \"e\":1e131071 } }"
        );
        assert_eq!(
            text(&order, PayloadFormat::Standard),
            "{\"type\":\"order.paid\",\"timestamp\":\"2026-11-30T12:34:56.789012Z\",\
             \"data\": {\"n\": 18446744073709551616, \"e\":1e131071 } }"
        );
        order.subject = Some("order \"7\"".into());
        order.sequence = Some(-3);
        assert!(
            text(&order, PayloadFormat::Envelope)
                .contains(",\"subject\":\"order \\\"7\\\"\",\"sequence\":-3,\"data\":")
        );
    }

    #[test]
    fn bytes_that_are_not_json_travel_as_base64_or_raw() {
        let blob = event(b"\x00\xff", "application/octet-stream");
        assert!(
            text(&blob, PayloadFormat::Envelope).ends_with(
                ",\"content_type\":\"application/octet-stream\",\"data_base64\":\"AP8=\"}"
            )
        );
        assert_eq!(&body(&blob, PayloadFormat::Raw).bytes[..], b"\x00\xff");
    }
}
