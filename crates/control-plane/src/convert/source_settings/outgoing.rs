//! Settings as they go out.

use super::{BODIES, DUPLICATES, HANDSHAKES, UNKNOWN_VERSIONS, UNPROCESSABLE, number_of};
use turnbuckle_domain::{
    Answers, Dedup, EventMapping, FinalStates, HandshakeChoice, IntakeLimits, JsonPath, Ordering,
    OrderingPolicy, OrderingRule, ReceiptSettings, TimestampWindow, Unprocessable, ValuePart,
    ValueSource, WithoutId,
};
use turnbuckle_proto::v1;
use turnbuckle_runtime::grpc::duration;

pub(in crate::convert) fn wire_handshake(choice: HandshakeChoice) -> i32 {
    number_of(&choice, &HANDSHAKES)
}

pub(in crate::convert) fn wire_unprocessable(choice: Unprocessable) -> i32 {
    number_of(&choice, &UNPROCESSABLE)
}

fn value(source: &ValueSource) -> v1::ValueSource {
    use v1::value_part::Part;
    let part = |part: &ValuePart| {
        let part = match part {
            ValuePart::Header(name) => Part::Header(name.clone()),
            ValuePart::JsonPath(path) => Part::JsonPath(path.to_string()),
            ValuePart::Query(name) => Part::Query(name.clone()),
            ValuePart::Fixed(text) => Part::Fixed(text.clone()),
            ValuePart::Form(name) => Part::Form(name.clone()),
        };
        v1::ValuePart { part: Some(part) }
    };
    v1::ValueSource {
        parts: source.parts.iter().map(part).collect(),
        separator: source.separator.clone(),
    }
}

fn text(path: Option<&JsonPath>) -> String {
    path.map(ToString::to_string).unwrap_or_default()
}

pub(in crate::convert) fn wire_event(event: &EventMapping) -> v1::EventMapping {
    v1::EventMapping {
        event_type: event.event_type.iter().map(value).collect(),
        event_version: event.event_version.iter().map(value).collect(),
        occurred_at: event.occurred_at.iter().map(value).collect(),
        known_versions: event.known_versions.clone(),
        unknown_version_mode: number_of(&event.unknown_version, &UNKNOWN_VERSIONS),
        items: text(event.items.as_ref()),
        form_field: event.form_field.clone().unwrap_or_default(),
    }
}

pub(in crate::convert) fn wire_dedup(dedup: &Dedup) -> v1::DedupSettings {
    let (mode, hash_window) = match dedup.without_id {
        WithoutId::BodyHash { window } => (v1::MissingIdMode::BodyHash, Some(duration(window))),
        WithoutId::Accept => (v1::MissingIdMode::Accept, None),
        WithoutId::Refuse => (v1::MissingIdMode::Refuse, None),
    };
    v1::DedupSettings {
        event_id: dedup.event_id.iter().map(value).collect(),
        missing_id_mode: mode.into(),
        body_hash_window: hash_window,
        window: Some(duration(dedup.window)),
        excluded_fields: dedup.excluded_fields.iter().map(ToString::to_string).collect(),
        unsigned_id_window: Some(duration(dedup.unsigned_id_window)),
    }
}

pub(in crate::convert) fn wire_ordering(ordering: &Ordering) -> v1::OrderingSettings {
    let (policy, hold_timeout) = match ordering.policy {
        OrderingPolicy::Pass => (v1::OrderingPolicy::Pass, None),
        OrderingPolicy::Mark => (v1::OrderingPolicy::Mark, None),
        OrderingPolicy::DropStale => (v1::OrderingPolicy::DropStale, None),
        OrderingPolicy::Hold { timeout } => (v1::OrderingPolicy::Hold, Some(duration(timeout))),
    };
    let rule = |rule: &OrderingRule| v1::OrderingRule {
        event_types: rule.patterns.iter().map(ToString::to_string).collect(),
        subject: rule.subject.to_string(),
        sequence: rule.sequence.to_string(),
    };
    let states = |states: &FinalStates| v1::FinalStates {
        path: states.path.to_string(),
        values: states.values.clone(),
    };
    v1::OrderingSettings {
        policy: policy.into(),
        hold_timeout,
        rules: ordering.rules.iter().map(rule).collect(),
        final_states: ordering.final_states.as_ref().map(states),
        retention: Some(duration(ordering.retention)),
    }
}

pub(in crate::convert) fn wire_tolerance(window: TimestampWindow) -> v1::TimestampTolerance {
    v1::TimestampTolerance {
        past: Some(duration(window.past)),
        future: Some(duration(window.future)),
    }
}

fn number(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

pub(in crate::convert) fn wire_intake(limits: &IntakeLimits) -> v1::IntakeLimits {
    v1::IntakeLimits {
        max_body_bytes: number(limits.body_bytes),
        max_header_bytes: number(limits.header_bytes),
        max_headers: number(limits.headers),
        read_timeout: Some(duration(limits.read_timeout)),
        requests_per_second: number(limits.requests_per_second),
        requests_per_second_per_address: number(limits.requests_per_second_per_address),
        connections_per_address: number(limits.connections_per_address),
        content_types: limits.content_types.clone(),
    }
}

pub(in crate::convert) fn wire_answers(answers: Answers) -> v1::AnswerSettings {
    v1::AnswerSettings {
        accepted_status: answers.accepted.into(),
        duplicate_answer: number_of(&answers.duplicate, &DUPLICATES),
        body: number_of(&answers.body, &BODIES),
    }
}

pub(in crate::convert) fn wire_receipts(receipts: &ReceiptSettings) -> v1::ReceiptSettings {
    v1::ReceiptSettings {
        payload_retention: Some(duration(receipts.payload_retention)),
        headers: receipts.headers.clone(),
    }
}
