//! Where subject, sequence and state of an event stand, and what its source wants of its order.

use super::{Message, path};
use bytes::Bytes;
use turnbuckle_domain::{OrderInstruction, Ordering, OrderingPolicy, SourceSettings};
use turnbuckle_signing::scheme::Locator;

/// The places, read once.
pub(super) struct OrderPlaces {
    /// Subject and sequence of each rule, in the order of the rules.
    rules: Vec<(Locator, Locator)>,
    state: Option<Locator>,
}

/// What was found.
#[derive(Default)]
pub(super) struct Found {
    pub(super) subject: Option<String>,
    pub(super) sequence: Option<i64>,
    pub(super) instruction: Option<OrderInstruction>,
    /// What its order cannot be watched for, although its source wants that.
    pub(super) missing: Option<MissingOrder>,
}

/// A part of the order that an event lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingOrder {
    /// The object it is about.
    Subject,
    /// That object's version, as a whole number.
    Sequence,
}

impl MissingOrder {
    /// The name in metrics and receipts.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Subject => "subject",
            Self::Sequence => "sequence",
        }
    }
}

impl OrderPlaces {
    pub(super) fn of(settings: &SourceSettings) -> Result<Self, String> {
        let Ordering { rules, final_states, .. } = &settings.ordering;
        let places = rules.iter().map(|rule| {
            Ok((Locator::Json(path(&rule.subject)?), Locator::Json(path(&rule.sequence)?)))
        });
        let state = final_states.as_ref().map(|states| path(&states.path).map(Locator::Json));
        Ok(Self { rules: places.collect::<Result<_, String>>()?, state: state.transpose()? })
    }

    /// What the event is about, that object's version, and what is to be done about it. The first rule
    /// for its type counts; an event of another type goes on as it is.
    pub(super) fn find(
        &self,
        settings: &Ordering,
        message: &Message<'_>,
        data: &Bytes,
        event_type: &str,
    ) -> Found {
        let applies = |rule: &turnbuckle_domain::OrderingRule| {
            rule.patterns.iter().any(|pattern| pattern.matches(event_type))
        };
        let place = settings.rules.iter().position(applies);
        let Some((subject, sequence)) = place.and_then(|index| self.rules.get(index)) else {
            return Found::default();
        };
        let text = |at: &Locator| {
            let found = message.request.value_in(data, at).ok()??;
            String::from_utf8(found.into_owned()).ok().filter(|text| !text.is_empty())
        };
        let subject = text(subject);
        let sequence = text(sequence).and_then(|text| text.parse().ok());
        if settings.policy == OrderingPolicy::Pass {
            return Found { subject, sequence, ..Found::default() };
        }
        let missing = match (&subject, sequence) {
            (None, _) => Some(MissingOrder::Subject),
            (Some(_), None) => Some(MissingOrder::Sequence),
            (Some(_), Some(_)) => None,
        };
        let is_final = || {
            let values = settings.final_states.as_ref().map(|states| &states.values);
            let state = self.state.as_ref().and_then(text);
            state.is_some_and(|state| values.is_some_and(|values| values.contains(&state)))
        };
        let instruction = missing.is_none().then(|| OrderInstruction {
            policy: settings.policy,
            is_final: is_final(),
            retention: settings.retention,
        });
        Found { subject, sequence, instruction, missing }
    }
}
