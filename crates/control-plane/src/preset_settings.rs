//! What a source is set to that says nothing: what its preset knows, and the defaults.

use std::time::Duration;
use turnbuckle_domain::{
    AnswerBody, Answers, Dedup, EventMapping, JsonPath, SchemeChoice, SourceSettings,
    UnknownVersionMode, Unprocessable, ValuePart, ValueSource, WithoutId, source_limits,
};
use turnbuckle_signing::scheme::{self, EventRule, Locator, Preset};

/// Between the values that name an event together.
const ID_SEPARATOR: &str = ":";

/// The settings of a source that says nothing.
pub(crate) fn filled(choice: &SchemeChoice) -> SourceSettings {
    match choice {
        SchemeChoice::Preset(name) => scheme::preset(name).map(of_preset).unwrap_or_default(),
        SchemeChoice::Custom(_) => SourceSettings::default(),
    }
}

/// Presets whose requests name no event, are tried again for longer than the hash of a body is remembered
/// by default, and differ from event to event by the times inside: equal bodies are repeats.
const REPEATED_WITHOUT_ID: [&str; 4] = ["calcom", "calendly", "lemon-squeezy", "retell"];

/// Senders of our own making: they are told what they send wrong. Others take a refusal for a fault of
/// the receiver, try again, and switch the webhook off; so what they sign is kept.
const OWN: [&str; 2] = ["hub", "turnbuckle"];

/// The settings that a preset knows.
pub(crate) fn of_preset(preset: &Preset) -> SourceSettings {
    // A third party cannot mend its request, and stops sending when it is refused too often: what cannot be
    // used is kept for us to mend. With our own contracts the sender is to know.
    let (unknown_version, unprocessable) = match OWN.contains(&preset.name.as_str()) {
        true => (UnknownVersionMode::Refuse, Unprocessable::Refuse),
        false => (UnknownVersionMode::DeadLetter, Unprocessable::DeadLetter),
    };
    let window =
        Duration::from_secs(preset.dedup_window_seconds.into()).min(source_limits::WINDOW_MAX);
    let without_id = match REPEATED_WITHOUT_ID.contains(&preset.name.as_str()) {
        true => WithoutId::BodyHash { window },
        false if preset.repeats_without_id => WithoutId::Accept,
        false => WithoutId::default(),
    };
    SourceSettings {
        event: EventMapping { unknown_version, ..event(&preset.event) },
        unprocessable,
        dedup: Dedup {
            event_id: event_id(&preset.event),
            window,
            without_id,
            excluded_fields: preset.hash_exclude.iter().filter_map(path).collect(),
            ..Dedup::default()
        },
        answers: Answers {
            accepted: preset.accepted_status,
            body: match preset.accepted_without_body {
                true => AnswerBody::None,
                false => AnswerBody::Status,
            },
            ..Answers::default()
        },
        ..SourceSettings::default()
    }
}

fn event(rule: &EventRule) -> EventMapping {
    let single =
        |at: &Option<Locator>| at.iter().filter_map(part).map(ValueSource::single).collect();
    EventMapping {
        event_type: event_type(rule),
        event_version: single(&rule.version),
        occurred_at: single(&rule.time),
        items: rule.items.as_ref().and_then(path),
        form_field: rule.form_payload.clone(),
        ..EventMapping::default()
    }
}

/// Where the type stands, and the one type of senders that write none.
fn event_type(rule: &EventRule) -> Vec<ValueSource> {
    let fixed = rule.type_default.iter().cloned().map(ValuePart::Fixed);
    rule.event_type.iter().filter_map(part).chain(fixed).map(ValueSource::single).collect()
}

/// One value of all the parts that name an event, and those tried after it; none when a part has no
/// place in settings.
fn event_id(rule: &EventRule) -> Vec<ValueSource> {
    let value = |places: &Vec<Locator>| {
        let parts: Option<Vec<ValuePart>> = places.iter().map(part).collect();
        let parts = parts.filter(|parts| !parts.is_empty())?;
        Some(ValueSource { parts, separator: ID_SEPARATOR.to_owned() })
    };
    std::iter::once(&rule.id).chain(&rule.id_otherwise).filter_map(value).collect()
}

fn part(at: &Locator) -> Option<ValuePart> {
    Some(match at {
        Locator::Header(name) => ValuePart::Header(name.clone()),
        Locator::Query(name) => ValuePart::Query(name.clone()),
        Locator::Form(name) => ValuePart::Form(name.clone()),
        Locator::Json(at) => ValuePart::JsonPath(path(at)?),
        // What only a signature needs.
        Locator::NumberedHeader { .. } | Locator::Authorization(_) | Locator::SignatureField(_) => {
            return None;
        }
    })
}

/// Both crates read the same form.
fn path(path: &scheme::JsonPath) -> Option<JsonPath> {
    JsonPath::parse(&path.to_string()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verification;
    use turnbuckle_domain::Violations;

    fn json(text: &str) -> Locator {
        Locator::Json(scheme::JsonPath::parse(text).unwrap())
    }

    #[test]
    fn every_preset_gives_settings_that_hold() {
        for preset in scheme::presets() {
            let settings = of_preset(preset);
            let mut violations = Violations::new();
            let tolerance = verification::tolerance(&preset.scheme);
            settings.check("source", tolerance, &mut violations);
            assert!(violations.finish().is_ok(), "{}", preset.name);
        }
    }

    #[test]
    fn only_senders_of_our_own_contracts_are_told_that_a_version_is_unknown() {
        for preset in scheme::presets() {
            let settings = of_preset(preset);
            let refuses = settings.event.unknown_version == UnknownVersionMode::Refuse;
            assert_eq!(refuses, ["hub", "turnbuckle"].contains(&preset.name.as_str()));
            assert_eq!(refuses, settings.unprocessable == Unprocessable::Refuse, "{}", preset.name);
        }
    }

    #[test]
    fn every_preset_reads_a_type_of_every_request() {
        for preset in scheme::presets().iter().filter(|preset| preset.name != "standard-webhooks") {
            let settings = of_preset(preset);
            let own = matches!(preset.name.as_str(), "hub" | "turnbuckle");
            // Without a place, the usual fields are read.
            assert!(own || !settings.event.event_type.is_empty(), "{}", preset.name);
        }
    }

    #[test]
    fn an_event_is_named_by_all_parts_together() {
        let rule = EventRule {
            id: vec![json("data.id"), Locator::Header("x-attempt".to_owned())],
            event_type: vec![Locator::Header("x-topic".to_owned()), json("type")],
            items: Some(scheme::JsonPath::parse("events[*]").unwrap()),
            ..EventRule::default()
        };
        let ids = event_id(&rule);
        assert_eq!(ids.len(), 1);
        assert_eq!(ids[0].parts.len(), 2);
        let event = event(&rule);
        assert_eq!(event.event_type.len(), 2);
        assert_eq!(event.items.unwrap().as_str(), "events[*]");
        assert!(event_id(&EventRule::default()).is_empty());
    }

    #[test]
    fn paths_mean_the_same_in_both_crates() {
        for text in ["id", "a.b[0].c", r#"["odd.name"].x"#, "items[*].x", "größe.$ref"] {
            let other = scheme::JsonPath::parse(text).unwrap();
            assert_eq!(path(&other).unwrap().as_str(), text);
        }
        let deep = ["a"; 12].join(".");
        assert!(scheme::JsonPath::parse(&deep).is_ok() && JsonPath::parse(&deep).is_ok());
    }

    #[test]
    fn a_scheme_of_ones_own_gets_the_defaults() {
        let document = turnbuckle_domain::SchemeDocument::new("{}").unwrap();
        let settings = filled(&SchemeChoice::Custom(document));
        assert_eq!(settings, SourceSettings::default());
        assert!(matches!(settings.dedup.without_id, WithoutId::BodyHash { .. }));
    }
}
