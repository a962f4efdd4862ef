//! What names an event, and how sure that is.
//!
//! An id that the signature does not cover can be changed by whoever repeats a captured request. So the
//! signed body is remembered beside it for a short time, and is no new event under another id until
//! then. Where not even the body is covered, the values that are (a token) are taken once.

use super::Message;
use std::time::Duration;
use turnbuckle_domain::{DedupRule, SignedBody, Source, SourceSettings, ValuePart, ValueSource};
use turnbuckle_signing::scheme::{JsonPath, Locator, Proof, Scheme};

/// What the scheme says about ids.
pub(super) struct Identity {
    /// Whether the ids that the settings choose are covered.
    pub(super) chosen_is_signed: bool,
    /// Whether the usual fields of the body are.
    pub(super) usual_is_signed: bool,
    /// How long a captured request stays valid by its time.
    valid_for: Duration,
    /// How long a signed body is remembered beside an id that is not signed.
    window: Duration,
    once: Vec<Locator>,
}

/// The name of an event.
pub(super) struct Named {
    /// Empty: it has none.
    pub(super) id: String,
    pub(super) dedup: DedupRule,
    /// Whether a signature covers the id; none without an id of the sender.
    pub(super) signed: Option<bool>,
}

impl Identity {
    pub(super) fn of(settings: &SourceSettings, scheme: &Scheme) -> Self {
        let chosen = &settings.dedup.event_id;
        let valid_for = valid_for(scheme);
        let window = settings.dedup.unsigned_id_window;
        Self {
            chosen_is_signed: chosen.iter().all(|source| is_signed(source, scheme)),
            // The place does not matter: it is in the body, and that is covered or not.
            usual_is_signed: JsonPath::parse("id")
                .is_ok_and(|path| scheme.signs(&Locator::Json(path))),
            valid_for,
            window: if window.is_zero() { window } else { window.max(valid_for) },
            once: scheme.once_values().into_iter().cloned().collect(),
        }
    }

    /// A window in which a captured request is not believed twice.
    pub(super) fn as_long_as_valid(&self, window: Duration) -> Duration {
        window.max(self.valid_for)
    }

    /// What is remembered beside an id.
    pub(super) fn beside(
        &self,
        message: &Message<'_>,
        id_is_signed: bool,
        part: Option<usize>,
    ) -> Option<SignedBody> {
        if !self.once.is_empty() {
            let mut values = Vec::new();
            for at in &self.once {
                let value = message.request.value_in(message.body, at).ok().flatten();
                values.extend_from_slice(value.as_deref().unwrap_or_default());
                // Two values never run together to two others.
                values.push(0);
            }
            return Some(SignedBody::of(&values, part, self.valid_for.max(self.window)));
        }
        let remembers = !id_is_signed && !self.window.is_zero();
        remembers.then(|| SignedBody::of(message.body, part, self.window))
    }

    pub(super) fn rule(
        &self,
        source: &Source,
        window: Duration,
        body: Option<SignedBody>,
    ) -> DedupRule {
        DedupRule { window, body, scope: Some(source.id) }
    }
}

fn is_signed(source: &ValueSource, scheme: &Scheme) -> bool {
    source.parts.iter().all(|part| {
        let at = match part {
            ValuePart::Fixed(_) => return true,
            ValuePart::Header(name) => Locator::Header(name.clone()),
            ValuePart::Query(name) => Locator::Query(name.clone()),
            ValuePart::Form(name) => Locator::Form(name.clone()),
            ValuePart::JsonPath(path) => match JsonPath::parse(path.as_str()) {
                Ok(path) => Locator::Json(path),
                Err(_) => return false,
            },
        };
        scheme.signs(&at)
    })
}

/// From the earliest to the latest moment that a signed time allows; nothing without a time.
fn valid_for(scheme: &Scheme) -> Duration {
    let seconds = match (&scheme.proof, &scheme.timestamp) {
        (Proof::Jwt(proof), _) => proof.max_age_seconds.saturating_add(proof.max_future_seconds),
        (_, Some(rule)) => rule.max_age_seconds.saturating_add(rule.max_future_seconds),
        (_, None) => 0,
    };
    Duration::from_secs(seconds.into())
}
