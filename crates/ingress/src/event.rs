//! From a verified request to events.

mod content;
mod find;
mod value;

use bytes::Bytes;
use find::{Finder, first};
use std::borrow::Cow;
use turnbuckle_domain::{
    EventDraft, IntakeEvent, JsonPath as DomainPath, Source, SourceSettings, Timestamp, WithoutId,
};
use turnbuckle_runtime::grpc::from_timestamp;
use turnbuckle_signing::scheme::{JsonPath, Locator, Refusal, Request, Wish};
use url::form_urlencoded;

/// What a form is sent as.
const FORM: &str = "application/x-www-form-urlencoded";
/// Media type of payloads that stand inside something else.
const JSON: &str = "application/json";

/// What a source's settings say about events, with every place read once.
pub(crate) struct Mapping {
    event_type: Vec<Finder>,
    version: Vec<Finder>,
    occurred_at: Vec<Finder>,
    /// None: the id of the message, else the usual fields.
    event_id: Option<Vec<Finder>>,
    usual_ids: Vec<Finder>,
    items: Option<JsonPath>,
    /// Subject and sequence of each ordering rule, in the order of the rules.
    ordering: Vec<(Locator, Locator)>,
}

/// A verified request, as far as events are made of it.
pub(crate) struct Message<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) body: &'a Bytes,
    pub(crate) content_type: &'a str,
    /// The id that the scheme reads, where it reads one.
    pub(crate) message_id: Option<&'a str>,
    pub(crate) received_at: Timestamp,
}

/// An event on its way, and what the window of its body's hash takes.
pub(crate) struct Mapped {
    pub(crate) event: IntakeEvent,
    /// Without an id of the sender: the id that it would have in the window before this one.
    pub(crate) earlier_id: Option<String>,
}

/// Why there is no event. Holds nothing of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoEvent {
    /// The body, or a part of it, is not what the settings read.
    Unusable(&'static str),
    /// The version is not among the known ones.
    UnknownVersion,
}

type Items = Vec<Result<Mapped, NoEvent>>;

impl Mapping {
    /// Reads every place of the settings; says in one line what cannot be read.
    pub(crate) fn of(settings: &SourceSettings) -> Result<Self, String> {
        let event = &settings.event;
        let usual = |names: &[&str]| find::usual(names);
        let or_usual = |chosen: &[turnbuckle_domain::ValueSource], names: &[&str]| {
            if chosen.is_empty() { usual(names) } else { find::all(chosen) }
        };
        let ids = &settings.dedup.event_id;
        let rules = settings.ordering.rules.iter();
        let ordering = rules.map(|rule| {
            Ok((Locator::Json(path(&rule.subject)?), Locator::Json(path(&rule.sequence)?)))
        });
        Ok(Self {
            event_type: or_usual(&event.event_type, &["event_type", "type"])?,
            version: or_usual(&event.event_version, &["event_version"])?,
            occurred_at: or_usual(&event.occurred_at, &["occurred_at"])?,
            event_id: (!ids.is_empty()).then(|| find::all(ids)).transpose()?,
            usual_ids: usual(&["event_id", "id"])?,
            items: event.items.as_ref().map(items_path).transpose()?,
            ordering: ordering.collect::<Result<_, String>>()?,
        })
    }

    /// What a sample must hold to become an event of this type and id.
    pub(crate) fn wishes(&self, source: &Source, event_type: &str, id: &str) -> Vec<Wish> {
        let items = self.items.as_ref();
        let known = source.settings.event.known_versions.first();
        let version =
            known.and_then(|known| self.version.first().map(|at| at.wishes(items, known)));
        let places = [
            (self.event_type.first(), event_type),
            (self.event_id.as_ref().unwrap_or(&self.usual_ids).first(), id),
        ];
        let found = places.into_iter().filter_map(|(at, text)| Some(at?.wishes(items, text)));
        found.chain(version).flatten().collect()
    }

    /// The events of a message: one, or one for each item. The outer error concerns all of it.
    pub(crate) fn events(&self, source: &Source, message: &Message<'_>) -> Result<Items, NoEvent> {
        let (payload, content_type) = payload(source, message)?;
        let Some(items) = &self.items else {
            let one = self.event(source, message, payload, content_type, None);
            return Ok(vec![one]);
        };
        let inner = Request { body: &payload, ..*message.request };
        let found = inner.items(items).map_err(unusable)?;
        let mapped = found.into_iter().enumerate().map(|(index, item)| {
            let item = payload.slice_ref(item);
            self.event(source, message, item, JSON, Some(index))
        });
        Ok(mapped.collect())
    }

    fn event(
        &self,
        source: &Source,
        message: &Message<'_>,
        data: Bytes,
        content_type: &str,
        index: Option<usize>,
    ) -> Result<Mapped, NoEvent> {
        let settings = &source.settings;
        let find = |finders: &[Finder]| first(finders, message.request, &data).map_err(unusable);
        let event_type = find(&self.event_type)?
            .and_then(|text| value::type_name(&text))
            .ok_or(NoEvent::Unusable("it has no event type at the places of the settings"))?;
        let version = find(&self.version)?;
        let known = &settings.event.known_versions;
        let shown = version.as_deref().unwrap_or(EventDraft::DEFAULT_VERSION);
        if !known.is_empty() && !known.iter().any(|known| known == shown) {
            return Err(NoEvent::UnknownVersion);
        }
        let occurred_at = find(&self.occurred_at)?.and_then(|text| value::time(&text));
        let content = content::without(&data, &settings.dedup.excluded_fields);
        let (subject, sequence) = self.order(source, message, &data, &event_type);
        let (event_id, earlier_id) =
            self.id(source, message, &data, content.as_deref().unwrap_or(&data), index)?;
        let draft = EventDraft {
            event_id,
            event_type,
            event_version: version.unwrap_or_default(),
            occurred_at,
            source: source.slug.as_str().to_owned(),
            subject: subject.unwrap_or_default(),
            sequence,
            content_type: content_type.to_owned(),
            channels: Vec::new(),
            data,
        };
        let event = IntakeEvent { draft, content: content.map(Bytes::from) };
        Ok(Mapped { event, earlier_id })
    }

    /// The id of an event, and the one that it would have had a window earlier.
    fn id(
        &self,
        source: &Source,
        message: &Message<'_>,
        data: &Bytes,
        content: &[u8],
        index: Option<usize>,
    ) -> Result<(String, Option<String>), NoEvent> {
        let find = |finders: &[Finder]| first(finders, message.request, data).map_err(unusable);
        let found = match (&self.event_id, message.message_id, index) {
            (Some(chosen), ..) => find(chosen)?,
            (None, Some(id), None) => Some(id.to_owned()),
            // Items share the id of their message, and often have their own.
            (None, id, Some(index)) => match find(&self.usual_ids)? {
                Some(own) => Some(own),
                None => id.map(|id| format!("{id}:{index}")),
            },
            (None, None, None) => find(&self.usual_ids)?,
        };
        if let Some(id) = found {
            return Ok((value::event_id(&id), None));
        }
        match source.settings.dedup.without_id {
            WithoutId::Accept => Ok((String::new(), None)),
            WithoutId::Refuse => {
                Err(NoEvent::Unusable("it has no event id at the places of the settings"))
            }
            WithoutId::BodyHash { window } => {
                let (id, earlier) = value::body_ids(content, message.received_at, window);
                // Of a batch each item would cost a look at the store.
                Ok((id, index.is_none().then_some(earlier)))
            }
        }
    }

    /// What the event is about, and that object's version.
    fn order(
        &self,
        source: &Source,
        message: &Message<'_>,
        data: &Bytes,
        event_type: &str,
    ) -> (Option<String>, Option<i64>) {
        let rules = &source.settings.ordering.rules;
        let applies = |rule: &turnbuckle_domain::OrderingRule| {
            rule.patterns.iter().any(|pattern| pattern.matches(event_type))
        };
        let places = rules.iter().position(applies).and_then(|index| self.ordering.get(index));
        let Some((subject, sequence)) = places else { return (None, None) };
        let text = |at: &Locator| {
            let found = message.request.value_in(data, at).ok()??;
            String::from_utf8(found.into_owned()).ok().filter(|text| !text.is_empty())
        };
        (text(subject), text(sequence).and_then(|text| text.parse().ok()))
    }
}

/// The bytes that are the event, or its items, and their media type.
fn payload<'a>(source: &Source, message: &Message<'a>) -> Result<(Bytes, &'a str), NoEvent> {
    let essence = message.content_type.split(';').next().unwrap_or_default().trim();
    let is_form = essence.eq_ignore_ascii_case(FORM);
    let Some(field) = source.settings.event.form_field.as_deref().filter(|_| is_form) else {
        return Ok((message.body.clone(), message.content_type));
    };
    let mut values = form_urlencoded::parse(message.body).filter(|(name, _)| name == field);
    match (values.next(), values.next()) {
        (Some((_, Cow::Owned(text))), None) => Ok((Bytes::from(text), JSON)),
        (Some((_, Cow::Borrowed(text))), None) => {
            Ok((message.body.slice_ref(text.as_bytes()), JSON))
        }
        (None, _) => Err(NoEvent::Unusable("its form lacks the field with the payload")),
        (Some(_), Some(_)) => {
            Err(NoEvent::Unusable("its form has the field with the payload more than once"))
        }
    }
}

/// Every item of an array, also where the settings name the array alone.
fn items_path(items: &DomainPath) -> Result<JsonPath, String> {
    if items.is_plural() {
        return path(items);
    }
    let text = format!("{items}[*]");
    JsonPath::parse(&text).map_err(|error| error.to_string())
}

fn path(path: &DomainPath) -> Result<JsonPath, String> {
    JsonPath::parse(path.as_str()).map_err(|error| error.to_string())
}

fn unusable(refusal: Refusal) -> NoEvent {
    NoEvent::Unusable(match refusal {
        Refusal::MalformedBody => "its body is not valid JSON",
        Refusal::Repeated(_) => "a part of the event is there more than once",
        Refusal::TooLong(_) => "a part of the event is too long",
        Refusal::TooManyItems => "it has too many items",
        _ => "a part of the event is malformed",
    })
}

/// The time of a text in RFC 3339.
fn rfc3339(text: &str) -> Option<Timestamp> {
    from_timestamp(&text.parse().ok()?)
}

#[cfg(test)]
mod tests;
