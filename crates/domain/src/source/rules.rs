//! What settings of a source must hold, whoever wrote them. Durations and sizes are checked where they
//! are read, against the same bounds.

use super::{
    Answers, Dedup, EventMapping, FinalStates, IntakeLimits, JsonPath, Ordering, OrderingPolicy,
    ReceiptSettings, SourceSettings, TimestampWindow, ValuePart, ValueSource,
    source_limits as limits,
};
use crate::{Violations, event_limits, limits::PATTERNS};

/// Headers whose values let somebody in: never kept.
const CREDENTIAL_HEADERS: [&str; 4] =
    ["authorization", "proxy-authorization", "cookie", "set-cookie"];

/// Parts of names of headers that hold signatures or tokens: never kept either.
const CREDENTIAL_WORDS: [&str; 6] = ["signature", "token", "secret", "hmac", "api-key", "apikey"];

/// Whether a header of this lower-case name may hold a credential or a signature, which is never kept.
#[must_use]
pub fn may_hold_credential(name: &str) -> bool {
    CREDENTIAL_HEADERS.contains(&name) || CREDENTIAL_WORDS.iter().any(|word| name.contains(word))
}

impl SourceSettings {
    /// Notes everything wrong. `field` is where the settings stand in a request; `scheme` is the
    /// tolerance of the source's scheme, none when its requests carry no time.
    pub fn check(&self, field: &str, scheme: Option<TimestampWindow>, violations: &mut Violations) {
        let at = |part: &str| format!("{field}.{part}");
        self.event.check(&at("event"), violations);
        self.dedup.check(&at("dedup"), self.timestamp.or(scheme), violations);
        self.ordering.check(&at("ordering"), violations);
        self.limits.check(&at("limits"), violations);
        self.answers.check(&at("answers"), violations);
        self.receipts.check(&at("receipts"), violations);
    }
}

impl EventMapping {
    fn check(&self, field: &str, violations: &mut Violations) {
        for (part, list) in [
            ("event_type", &self.event_type),
            ("event_version", &self.event_version),
            ("occurred_at", &self.occurred_at),
        ] {
            check_values(list, &format!("{field}.{part}"), violations);
        }
        let versions = format!("{field}.known_versions");
        check_count(self.known_versions.len(), limits::KNOWN_VERSIONS, &versions, violations);
        for (index, version) in self.known_versions.iter().enumerate() {
            if !is_version(version) {
                let remedy =
                    format!("use 1 to {} of A-Z a-z 0-9 _ - .", event_limits::VERSION_CHARS);
                violations.add(format!("{versions}[{index}]"), remedy);
            }
        }
        if let Some(name) = &self.form_field {
            check_text(name, &format!("{field}.form_field"), violations);
        }
    }
}

impl Dedup {
    fn check(&self, field: &str, tolerance: Option<TimestampWindow>, violations: &mut Violations) {
        check_values(&self.event_id, &format!("{field}.event_id"), violations);
        let excluded = format!("{field}.excluded_fields");
        check_count(self.excluded_fields.len(), limits::EXCLUDED_FIELDS, &excluded, violations);
        // A captured request stays valid from the earliest to the latest moment its time allows.
        let floor = tolerance.map(|window| window.past + window.future).unwrap_or_default();
        if self.window < floor {
            violations.add(
                format!("{field}.window"),
                format!(
                    "is shorter than the {} s a captured request stays valid; use at least that",
                    floor.as_secs()
                ),
            );
        }
    }
}

impl Ordering {
    fn check(&self, field: &str, violations: &mut Violations) {
        let rules = format!("{field}.rules");
        check_count(self.rules.len(), limits::ORDERING_RULES, &rules, violations);
        let orders = self.policy != OrderingPolicy::Pass || self.final_states.is_some();
        if orders && self.rules.is_empty() {
            violations.add(&rules, "is empty; say where subject and sequence stand");
        }
        for (index, rule) in self.rules.iter().enumerate() {
            let at = |part: &str| format!("{rules}[{index}].{part}");
            check_count(rule.patterns.len(), PATTERNS, &at("event_types"), violations);
            if rule.patterns.is_empty() {
                violations.add(at("event_types"), "is empty; use * for every type");
            }
            check_single(&rule.subject, &at("subject"), violations);
            check_single(&rule.sequence, &at("sequence"), violations);
        }
        if let Some(states) = &self.final_states {
            states.check(&format!("{field}.final_states"), violations);
        }
    }
}

impl FinalStates {
    fn check(&self, field: &str, violations: &mut Violations) {
        check_single(&self.path, &format!("{field}.path"), violations);
        let values = format!("{field}.values");
        check_count(self.values.len(), limits::FINAL_STATES, &values, violations);
        if self.values.is_empty() {
            violations.add(&values, "is empty; name at least one state");
        }
        for (index, value) in self.values.iter().enumerate() {
            check_text(value, &format!("{values}[{index}]"), violations);
        }
    }
}

impl IntakeLimits {
    fn check(&self, field: &str, violations: &mut Violations) {
        let types = format!("{field}.content_types");
        check_count(self.content_types.len(), limits::CONTENT_TYPES, &types, violations);
        for (index, media) in self.content_types.iter().enumerate() {
            if !is_essence(media) {
                violations.add(
                    format!("{types}[{index}]"),
                    "use type/subtype in lower case without parameters, such as application/json",
                );
            }
        }
    }
}

impl Answers {
    fn check(self, field: &str, violations: &mut Violations) {
        if !Self::ACCEPTED.contains(&self.accepted) {
            let message = format!("is {}; use 200, 201, 202 or 204", self.accepted);
            violations.add(format!("{field}.accepted_status"), message);
        }
    }
}

impl ReceiptSettings {
    fn check(&self, field: &str, violations: &mut Violations) {
        let headers = format!("{field}.headers");
        check_count(self.headers.len(), limits::RECEIPT_HEADERS, &headers, violations);
        for (index, name) in self.headers.iter().enumerate() {
            let at = format!("{headers}[{index}]");
            check_header(name, &at, violations);
            if may_hold_credential(name) {
                violations.add(at, "may hold a credential or a signature, which is never kept");
            }
        }
    }
}

fn check_values(list: &[ValueSource], field: &str, violations: &mut Violations) {
    check_count(list.len(), limits::VALUE_SOURCES, field, violations);
    for (index, source) in list.iter().enumerate() {
        source.check(&format!("{field}[{index}]"), violations);
    }
}

impl ValueSource {
    fn check(&self, field: &str, violations: &mut Violations) {
        let parts = format!("{field}.parts");
        check_count(self.parts.len(), limits::VALUE_PARTS, &parts, violations);
        if self.parts.is_empty() {
            violations.add(&parts, "is empty; name a header, a path, a parameter or a text");
        }
        for (index, part) in self.parts.iter().enumerate() {
            let at = |kind: &str| format!("{parts}[{index}].{kind}");
            match part {
                ValuePart::Header(name) => check_header(name, &at("header"), violations),
                ValuePart::JsonPath(path) => check_single(path, &at("json_path"), violations),
                ValuePart::Query(name) => check_text(name, &at("query"), violations),
                ValuePart::Form(name) => check_text(name, &at("form"), violations),
                ValuePart::Fixed(text) => check_text(text, &at("fixed"), violations),
            }
        }
        if !self.separator.is_empty() {
            check_text(&self.separator, &format!("{field}.separator"), violations);
        }
    }
}

fn check_count(count: usize, most: usize, field: &str, violations: &mut Violations) {
    if count > most {
        violations.add(field, format!("has {count} entries; use at most {most}"));
    }
}

fn check_single(path: &JsonPath, field: &str, violations: &mut Violations) {
    if path.is_plural() {
        violations.add(field, "stands for many values; name one element instead of [*]");
    }
}

fn check_text(text: &str, field: &str, violations: &mut Violations) {
    let count = text.chars().count();
    if count == 0 || count > limits::TEXT_CHARS || text.contains(char::is_control) {
        let most = limits::TEXT_CHARS;
        violations.add(field, format!("use 1 to {most} characters without control characters"));
    }
}

fn check_header(name: &str, field: &str, violations: &mut Violations) {
    let token = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&byte)
    };
    if name.is_empty() || name.len() > limits::TEXT_CHARS || !name.bytes().all(token) {
        let most = limits::TEXT_CHARS;
        violations.add(field, format!("use a header name of 1 to {most} characters"));
    }
}

fn is_version(text: &str) -> bool {
    (1..=event_limits::VERSION_CHARS).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

/// A media type without its parameters.
fn is_essence(text: &str) -> bool {
    let part = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$&-^_.+".contains(&byte)
            })
    };
    text.len() <= event_limits::CONTENT_TYPE_CHARS
        && text.split_once('/').is_some_and(|(kind, sub)| part(kind) && part(sub))
}
