//! From a verified request to events.

mod content;
mod context;
mod find;
mod identity;
mod order;
mod value;

use crate::verify::MessageId;
use bytes::Bytes;
use find::{Finder, first};
use identity::{Identity, Named};
pub(crate) use order::MissingOrder;
use order::OrderPlaces;
use std::{borrow::Cow, collections::HashMap, time::Duration};
use turnbuckle_domain::{
    EventDraft, IntakeEvent, JsonPath as DomainPath, Source, SourceSettings, Timestamp, WithoutId,
};
use turnbuckle_runtime::grpc::from_timestamp;
use turnbuckle_signing::scheme::{JsonPath, Refusal, Request, Scheme, Wish};
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
    identity: Identity,
    items: Option<JsonPath>,
    order: OrderPlaces,
}

/// A verified request, as far as events are made of it.
pub(crate) struct Message<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) body: &'a Bytes,
    pub(crate) content_type: &'a str,
    /// The id that the scheme reads, where it reads one.
    pub(crate) message_id: Option<&'a MessageId>,
}

/// An event on its way.
pub(crate) struct Mapped {
    pub(crate) event: IntakeEvent,
    /// Whether a signature covers its id; none without an id of the sender.
    pub(crate) id_signed: Option<bool>,
    /// Why its order is not watched although its source wants that.
    pub(crate) missing_order: Option<MissingOrder>,
}

/// Why there is no event. Holds nothing of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoEvent {
    /// The body, or a part of it, is not what the settings read.
    Unusable(&'static str),
    /// The version is not among the known ones.
    UnknownVersion,
    /// The media type is not among those that the source takes.
    MediaType,
}

impl Mapped {
    /// Gives an item without an id of its own a name that its equals in the same request do not have, and
    /// that the same request brings again.
    fn number(&mut self, equals: &mut HashMap<String, usize>) {
        let id = &mut self.event.draft.event_id;
        if self.id_signed.is_some() || id.is_empty() {
            return;
        }
        let before = equals.entry(id.clone()).or_default();
        *before += 1;
        if *before > 1 {
            *id = format!("{id}:{before}");
        }
    }
}

type Items = Vec<Result<Mapped, NoEvent>>;

/// A body without the array, or an element without its inner part: something was sent, and it is not
/// what the settings read.
const NO_ITEM: NoEvent = NoEvent::Unusable("it has no item at the place of the settings");

impl Mapping {
    /// Reads every place of the settings; says in one line what cannot be read.
    pub(crate) fn of(settings: &SourceSettings, scheme: &Scheme) -> Result<Self, String> {
        let event = &settings.event;
        let usual = |names: &[&str]| find::usual(names);
        let or_usual = |chosen: &[turnbuckle_domain::ValueSource], names: &[&str]| {
            if chosen.is_empty() { usual(names) } else { find::all(chosen) }
        };
        let ids = &settings.dedup.event_id;
        Ok(Self {
            event_type: or_usual(&event.event_type, &["event_type", "type"])?,
            version: or_usual(&event.event_version, &["event_version"])?,
            occurred_at: or_usual(&event.occurred_at, &["occurred_at"])?,
            event_id: (!ids.is_empty()).then(|| find::all(ids)).transpose()?,
            usual_ids: usual(&["event_id", "id"])?,
            identity: Identity::of(settings, scheme),
            items: event.items.as_ref().map(items_path).transpose()?,
            order: OrderPlaces::of(settings)?,
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
        let mut equals = HashMap::new();
        let mapped = found.into_iter().enumerate().map(|(index, item)| {
            let Some(item) = item else { return Err(NO_ITEM) };
            // Its own bytes: a slice would keep the whole batch in memory for as long as one event.
            let item = Bytes::copy_from_slice(item);
            let mut mapped = self.event(source, message, item, JSON, Some(index))?;
            mapped.number(&mut equals);
            Ok(mapped)
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
        let order = self.order.find(&settings.ordering, message, &data, &event_type);
        let named = self.id(source, message, &data, content.as_deref().unwrap_or(&data), index)?;
        let draft = EventDraft {
            event_id: named.id,
            event_type,
            event_version: version.unwrap_or_default(),
            occurred_at,
            source: source.slug.as_str().to_owned(),
            subject: order.subject.unwrap_or_default(),
            sequence: order.sequence,
            content_type: content_type.to_owned(),
            channels: Vec::new(),
            data,
        };
        let content = content.map(Bytes::from);
        let (dedup, id_signed) = (Some(named.dedup), named.signed);
        let event = IntakeEvent { draft, content, order: order.instruction, dedup };
        Ok(Mapped { event, id_signed, missing_order: order.missing })
    }

    /// What names an event, and how its repeats are known.
    fn id(
        &self,
        source: &Source,
        message: &Message<'_>,
        data: &Bytes,
        content: &[u8],
        index: Option<usize>,
    ) -> Result<Named, NoEvent> {
        let find = |finders: &[Finder]| first(finders, message.request, data).map_err(unusable);
        let identity = &self.identity;
        let usual = |found: Option<String>| found.map(|id| (id, identity.usual_is_signed));
        let found = match (&self.event_id, message.message_id, index) {
            (Some(chosen), ..) => find(chosen)?.map(|id| (id, identity.chosen_is_signed)),
            (None, Some(id), None) => Some((id.text.clone(), id.signed)),
            // Items share the id of their message, and often have their own.
            (None, id, Some(index)) => match usual(find(&self.usual_ids)?) {
                Some(own) => Some(own),
                None => id.map(|id| (format!("{}:{index}", id.text), id.signed)),
            },
            (None, None, None) => usual(find(&self.usual_ids)?),
        };
        if let Some((id, signed)) = found {
            let beside = identity.beside(message, signed, index);
            return Ok(Named {
                id: value::event_id(&id),
                dedup: identity.rule(source, source.settings.dedup.window, beside),
                signed: Some(signed),
            });
        }
        let beside = identity.beside(message, true, index);
        let (id, window) = match source.settings.dedup.without_id {
            WithoutId::Accept => (String::new(), Duration::ZERO),
            WithoutId::Refuse => {
                return Err(NoEvent::Unusable("it has no event id at the places of the settings"));
            }
            WithoutId::BodyHash { window } => {
                (value::body_id(content), identity.as_long_as_valid(window))
            }
        };
        Ok(Named { id, dedup: identity.rule(source, window, beside), signed: None })
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
pub(crate) mod tests;
