//! The settings of sources on the wire. Durations, sizes and enums are judged here; the rest of the rules
//! belongs to the domain.

use super::value::duration_or;
use std::{ops::RangeInclusive, time::Duration};
use turnbuckle_domain::{
    AnswerBody, Answers, Dedup, DuplicateAnswer, EventMapping, FinalStates, HandshakeChoice,
    IntakeLimits, JsonPath, Ordering, OrderingPolicy, OrderingRule, ReceiptSettings,
    TimestampWindow, TypePattern, UnknownVersionMode, Unprocessable, ValuePart, ValueSource,
    Violations, WithoutId, source_limits as limits,
};
use turnbuckle_proto::v1;

const TOLERANCES: RangeInclusive<Duration> = limits::TOLERANCE_MIN..=limits::TOLERANCE_MAX;
const WINDOWS: RangeInclusive<Duration> = Duration::from_secs(1)..=limits::WINDOW_MAX;
const BODY_HASH_WINDOWS: RangeInclusive<Duration> =
    limits::BODY_HASH_WINDOW_MIN..=limits::WINDOW_MAX;
const HOLDS: RangeInclusive<Duration> = limits::HOLD_MIN..=limits::HOLD_MAX;
const RETENTIONS: RangeInclusive<Duration> =
    limits::ORDER_RETENTION_MIN..=limits::ORDER_RETENTION_MAX;
const READ_TIMEOUTS: RangeInclusive<Duration> = limits::READ_TIMEOUT_MIN..=limits::READ_TIMEOUT_MAX;
const PAYLOAD_RETENTIONS: RangeInclusive<Duration> = Duration::ZERO..=limits::RECEIPT_PAYLOAD_MAX;

/// Reads one field after another, and notes what is wrong with each.
struct Reader<'a> {
    field: &'a str,
    violations: &'a mut Violations,
}

impl Reader<'_> {
    fn at(&self, part: &str) -> String {
        format!("{}.{part}", self.field)
    }

    fn duration(
        &mut self,
        part: &str,
        given: Option<&prost_types::Duration>,
        default: Duration,
        bounds: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        let field = self.at(part);
        self.violations.take(&field, duration_or(given, default, bounds))
    }

    fn number(
        &mut self,
        part: &str,
        given: i32,
        default: u32,
        bounds: RangeInclusive<u32>,
    ) -> Option<u32> {
        let number = match u32::try_from(given) {
            Ok(0) => Ok(default),
            Ok(number) if bounds.contains(&number) => Ok(number),
            _ => Err(format!("is {given}; use {} to {}", bounds.start(), bounds.end())),
        };
        let field = self.at(part);
        self.violations.take(&field, number)
    }

    fn path(&mut self, part: &str, text: &str) -> Option<JsonPath> {
        let field = self.at(part);
        self.violations.take(&field, JsonPath::parse(text))
    }

    /// A path that may be left out: `Some(None)` when it is.
    fn optional_path(&mut self, part: &str, text: &str) -> Option<Option<JsonPath>> {
        match text {
            "" => Some(None),
            text => self.path(part, text).map(Some),
        }
    }

    /// All of a list, or none when one is malformed.
    fn list<T, R>(
        &mut self,
        part: &str,
        given: Vec<T>,
        mut read: impl FnMut(&mut Reader<'_>, T) -> Option<R>,
    ) -> Option<Vec<R>> {
        let mut all = Some(Vec::with_capacity(given.len()));
        for (index, item) in given.into_iter().enumerate() {
            let field = format!("{}.{part}[{index}]", self.field);
            let mut reader = Reader { field: &field, violations: self.violations };
            match (read(&mut reader, item), &mut all) {
                (Some(item), Some(list)) => list.push(item),
                _ => all = None,
            }
        }
        all
    }

    fn values(&mut self, part: &str, given: Vec<v1::ValueSource>) -> Option<Vec<ValueSource>> {
        self.list(part, given, |reader, source| {
            let parts =
                reader.list("parts", source.parts, |reader, part| reader.value_part(part))?;
            Some(ValueSource { parts, separator: source.separator })
        })
    }

    fn value_part(&mut self, wire: v1::ValuePart) -> Option<ValuePart> {
        use v1::value_part::Part;
        match wire.part {
            // Headers have no case; one spelling makes the same setting equal.
            Some(Part::Header(name)) => Some(ValuePart::Header(name.to_ascii_lowercase())),
            Some(Part::JsonPath(text)) => self.path("json_path", &text).map(ValuePart::JsonPath),
            Some(Part::Query(name)) => Some(ValuePart::Query(name)),
            Some(Part::Fixed(text)) => Some(ValuePart::Fixed(text)),
            Some(Part::Form(name)) => Some(ValuePart::Form(name)),
            None => {
                self.violations.add(self.field, "is empty; name a header, a path or a text");
                None
            }
        }
    }
}

/// One number of an enum, by a table whose first entry is the default.
fn choice<T: Copy>(number: i32, what: &str, table: &[(i32, T)]) -> Result<T, String> {
    let wanted = |(known, _): &&(i32, T)| *known == number;
    let default = table.first().filter(|_| number == 0);
    let found = default.or_else(|| table.iter().find(wanted));
    found.map(|(_, choice)| *choice).ok_or_else(|| format!("is {number}, which names no {what}"))
}

fn number_of<T: PartialEq>(choice: &T, table: &[(i32, T)]) -> i32 {
    table.iter().find(|(_, known)| known == choice).map_or(0, |(number, _)| *number)
}

const UNKNOWN_VERSIONS: [(i32, UnknownVersionMode); 2] = [
    (v1::UnknownVersionMode::Refuse as i32, UnknownVersionMode::Refuse),
    (v1::UnknownVersionMode::DeadLetter as i32, UnknownVersionMode::DeadLetter),
];
const UNPROCESSABLE: [(i32, Unprocessable); 2] = [
    (v1::UnprocessableMode::Refuse as i32, Unprocessable::Refuse),
    (v1::UnprocessableMode::DeadLetter as i32, Unprocessable::DeadLetter),
];
const HANDSHAKES: [(i32, HandshakeChoice); 2] = [
    (v1::HandshakeMode::AsScheme as i32, HandshakeChoice::AsScheme),
    (v1::HandshakeMode::Off as i32, HandshakeChoice::Off),
];
const BODIES: [(i32, AnswerBody); 2] = [
    (v1::AnswerBody::Status as i32, AnswerBody::Status),
    (v1::AnswerBody::None as i32, AnswerBody::None),
];

const DUPLICATES: [(i32, DuplicateAnswer); 2] = [
    (v1::DuplicateAnswer::Ok as i32, DuplicateAnswer::Ok),
    (v1::DuplicateAnswer::Conflict as i32, DuplicateAnswer::Conflict),
];

pub(super) fn handshake(number: i32) -> Result<HandshakeChoice, String> {
    choice(number, "handshake mode", &HANDSHAKES)
}

pub(super) fn unprocessable(number: i32) -> Result<Unprocessable, String> {
    choice(number, "mode", &UNPROCESSABLE)
}

pub(super) fn event(violations: &mut Violations, wire: v1::EventMapping) -> Option<EventMapping> {
    let mut reader = Reader { field: "source.event", violations };
    let event_type = reader.values("event_type", wire.event_type);
    let event_version = reader.values("event_version", wire.event_version);
    let occurred_at = reader.values("occurred_at", wire.occurred_at);
    let items = reader.optional_path("items", &wire.items);
    let mode = choice(wire.unknown_version_mode, "mode", &UNKNOWN_VERSIONS);
    let unknown_version = violations.take("source.event.unknown_version_mode", mode);
    Some(EventMapping {
        event_type: event_type?,
        event_version: event_version?,
        occurred_at: occurred_at?,
        known_versions: wire.known_versions,
        unknown_version: unknown_version?,
        items: items?,
        form_field: (!wire.form_field.is_empty()).then_some(wire.form_field),
    })
}

pub(super) fn dedup(violations: &mut Violations, wire: v1::DedupSettings) -> Option<Dedup> {
    let mut reader = Reader { field: "source.dedup", violations };
    let event_id = reader.values("event_id", wire.event_id);
    let window = reader.duration("window", wire.window.as_ref(), limits::WINDOW_DEFAULT, WINDOWS);
    let hash_window = reader.duration(
        "body_hash_window",
        wire.body_hash_window.as_ref(),
        limits::BODY_HASH_WINDOW_DEFAULT,
        BODY_HASH_WINDOWS,
    );
    let excluded_fields = reader.list("excluded_fields", wire.excluded_fields, |reader, text| {
        reader.violations.take(reader.field, JsonPath::parse(&text))
    });
    let modes = [
        (v1::MissingIdMode::BodyHash as i32, WithoutId::BodyHash { window: hash_window? }),
        (v1::MissingIdMode::Accept as i32, WithoutId::Accept),
        (v1::MissingIdMode::Refuse as i32, WithoutId::Refuse),
    ];
    let mode = choice(wire.missing_id_mode, "mode", &modes);
    let without_id = violations.take("source.dedup.missing_id_mode", mode)?;
    if wire.body_hash_window.is_some() && !matches!(without_id, WithoutId::BodyHash { .. }) {
        violations.add("source.dedup.body_hash_window", "is for BODY_HASH; leave it out");
    }
    let mut reader = Reader { field: "source.dedup", violations };
    let unsigned_id_window = reader.duration(
        "unsigned_id_window",
        wire.unsigned_id_window.as_ref(),
        limits::BODY_HASH_WINDOW_DEFAULT,
        Duration::ZERO..=limits::WINDOW_MAX,
    );
    Some(Dedup {
        event_id: event_id?,
        without_id,
        window: window?,
        excluded_fields: excluded_fields?,
        unsigned_id_window: unsigned_id_window?,
    })
}

pub(super) fn ordering(
    violations: &mut Violations,
    wire: v1::OrderingSettings,
) -> Option<Ordering> {
    let mut reader = Reader { field: "source.ordering", violations };
    let hold = wire.hold_timeout.as_ref();
    let timeout = reader.duration("hold_timeout", hold, limits::HOLD_DEFAULT, HOLDS);
    let retention = reader.duration(
        "retention",
        wire.retention.as_ref(),
        limits::ORDER_RETENTION_DEFAULT,
        RETENTIONS,
    );
    let rules = reader.list("rules", wire.rules, ordering_rule);
    let states = match wire.final_states {
        None => Some(None),
        Some(states) => reader
            .path("final_states.path", &states.path)
            .map(|path| Some(FinalStates { path, values: states.values })),
    };
    let policies = [
        (v1::OrderingPolicy::Pass as i32, OrderingPolicy::Pass),
        (v1::OrderingPolicy::Mark as i32, OrderingPolicy::Mark),
        (v1::OrderingPolicy::DropStale as i32, OrderingPolicy::DropStale),
        (v1::OrderingPolicy::Hold as i32, OrderingPolicy::Hold { timeout: timeout? }),
    ];
    let policy = choice(wire.policy, "ordering policy", &policies);
    let policy = violations.take("source.ordering.policy", policy)?;
    if wire.hold_timeout.is_some() && !matches!(policy, OrderingPolicy::Hold { .. }) {
        violations.add("source.ordering.hold_timeout", "is for the policy HOLD; leave it out");
    }
    Some(Ordering { policy, rules: rules?, final_states: states?, retention: retention? })
}

fn ordering_rule(reader: &mut Reader<'_>, wire: v1::OrderingRule) -> Option<OrderingRule> {
    let patterns = reader.list("event_types", wire.event_types, |reader, text| {
        reader.violations.take(reader.field, TypePattern::parse(&text))
    });
    let subject = reader.path("subject", &wire.subject);
    let sequence = reader.path("sequence", &wire.sequence);
    Some(OrderingRule { patterns: patterns?, subject: subject?, sequence: sequence? })
}

pub(super) fn tolerance(
    violations: &mut Violations,
    wire: &v1::TimestampTolerance,
) -> Option<TimestampWindow> {
    let mut reader = Reader { field: "source.timestamp_tolerance", violations };
    let default = limits::TOLERANCE_DEFAULT;
    let past = reader.duration("past", wire.past.as_ref(), default, TOLERANCES);
    let future = reader.duration("future", wire.future.as_ref(), default, TOLERANCES);
    Some(TimestampWindow { past: past?, future: future? })
}

pub(super) fn intake(violations: &mut Violations, wire: v1::IntakeLimits) -> Option<IntakeLimits> {
    let mut reader = Reader { field: "source.limits", violations };
    let defaults = IntakeLimits::default();
    let body = limits::BODY_BYTES_MIN..=limits::BODY_BYTES_MAX;
    let body = reader.number("max_body_bytes", wire.max_body_bytes, defaults.body_bytes, body);
    let bytes = limits::HEADER_BYTES_MIN..=limits::HEADER_BYTES_MAX;
    let bytes =
        reader.number("max_header_bytes", wire.max_header_bytes, defaults.header_bytes, bytes);
    let headers = 1..=limits::HEADERS_MAX;
    let headers = reader.number("max_headers", wire.max_headers, defaults.headers, headers);
    let read_timeout = reader.duration(
        "read_timeout",
        wire.read_timeout.as_ref(),
        defaults.read_timeout,
        READ_TIMEOUTS,
    );
    let rates = 1..=limits::RATE_MAX;
    let rate = reader.number(
        "requests_per_second",
        wire.requests_per_second,
        defaults.requests_per_second,
        rates.clone(),
    );
    let address_rate = reader.number(
        "requests_per_second_per_address",
        wire.requests_per_second_per_address,
        defaults.requests_per_second_per_address,
        rates,
    );
    let connections = reader.number(
        "connections_per_address",
        wire.connections_per_address,
        defaults.connections_per_address,
        1..=limits::ADDRESS_CONNECTIONS_MAX,
    );
    let lower = |text: String| text.to_ascii_lowercase();
    Some(IntakeLimits {
        body_bytes: body?,
        header_bytes: bytes?,
        headers: headers?,
        read_timeout: read_timeout?,
        requests_per_second: rate?,
        requests_per_second_per_address: address_rate?,
        connections_per_address: connections?,
        content_types: wire.content_types.into_iter().map(lower).collect(),
    })
}

pub(super) fn answers(violations: &mut Violations, wire: &v1::AnswerSettings) -> Option<Answers> {
    let duplicate = choice(wire.duplicate_answer, "answer", &DUPLICATES);
    let duplicate = violations.take("source.answers.duplicate_answer", duplicate);
    let accepted = match wire.accepted_status {
        0 => Ok(Answers::ACCEPTED_DEFAULT),
        given => u16::try_from(given).map_err(|_| format!("is {given}; use 200, 201, 202 or 204")),
    };
    let accepted = violations.take("source.answers.accepted_status", accepted);
    let body = choice(wire.body, "body", &BODIES);
    let body = violations.take("source.answers.body", body);
    Some(Answers { accepted: accepted?, duplicate: duplicate?, body: body? })
}

pub(super) fn receipts(
    violations: &mut Violations,
    wire: v1::ReceiptSettings,
) -> Option<ReceiptSettings> {
    let mut reader = Reader { field: "source.receipts", violations };
    let retention = wire.payload_retention.as_ref();
    let retention =
        reader.duration("payload_retention", retention, Duration::ZERO, PAYLOAD_RETENTIONS);
    let lower = |text: String| text.to_ascii_lowercase();
    let headers = wire.headers.into_iter().map(lower).collect();
    Some(ReceiptSettings { payload_retention: retention?, headers })
}

mod outgoing;

pub(super) use outgoing::{
    wire_answers, wire_dedup, wire_event, wire_handshake, wire_intake, wire_ordering,
    wire_receipts, wire_tolerance, wire_unprocessable,
};

#[cfg(test)]
mod tests;
