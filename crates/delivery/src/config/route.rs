//! Which endpoints want the events of a type, and in which format.

use std::{collections::HashMap, sync::Arc};
use turnbuckle_domain::{
    Channels, EndpointId, Event, Filter, FilterInput, PayloadFormat, Subscription, TypePattern,
};

/// One endpoint that wants events of a type, on a condition or without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Where it goes.
    pub endpoint: EndpointId,
    /// What the body looks like.
    pub format: PayloadFormat,
    /// Which of the events; none: every one.
    pub filter: Option<Arc<Filter>>,
    /// Only events with one of these channels; none: every one.
    pub channels: Option<Arc<Channels>>,
}

/// What a subscription says about events; the rest of it is for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) patterns: Box<[TypePattern]>,
    pub(super) route: Route,
}

impl From<Subscription> for Wanted {
    fn from(subscription: Subscription) -> Self {
        let Subscription { endpoint, patterns, channels, format, filter, .. } = subscription;
        let filter = filter.map(Arc::new);
        let channels = (!channels.is_empty()).then(|| Arc::new(channels));
        let route = Route { endpoint, format, filter, channels };
        Self { patterns: patterns.into_boxed_slice(), route }
    }
}

impl Route {
    const fn is_conditional(&self) -> bool {
        self.filter.is_some() || self.channels.is_some()
    }

    /// Channels first: they cost less than a look into the payload.
    fn wants(&self, event: &Event, input: &FilterInput<'_>) -> bool {
        self.channels.as_ref().is_none_or(|channels| channels.share_any(&event.channels))
            && self.filter.as_ref().is_none_or(|filter| filter.matches(input))
    }
}

/// The routes of one event type: those of an endpoint stand together, the oldest subscription first,
/// and end with the first that has no condition, because no later one can decide anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routes(Arc<[Route]>);

impl Routes {
    /// From the subscriptions that want the type, oldest first.
    pub(super) fn new<'a>(subscriptions: impl IntoIterator<Item = &'a Wanted>) -> Self {
        let mut places: HashMap<EndpointId, usize> = HashMap::new();
        let mut groups: Vec<Vec<Route>> = Vec::new();
        for Wanted { route, .. } in subscriptions {
            let place = *places.entry(route.endpoint).or_insert(groups.len());
            if place == groups.len() {
                groups.push(Vec::new());
            }
            if let Some(group) = groups.get_mut(place)
                && group.last().is_none_or(Route::is_conditional)
            {
                group.push(route.clone());
            }
        }
        Self(groups.into_iter().flatten().collect())
    }

    /// How many endpoints get an event at most.
    #[must_use]
    pub fn len_max(&self) -> usize {
        self.0.len()
    }

    /// Whether a condition may look into the payload.
    pub(crate) fn is_conditional(&self) -> bool {
        self.0.iter().any(|route| route.filter.is_some())
    }

    /// The route of each endpoint that wants this event: the oldest one whose channels and filter do. The payload
    /// is read only when a filter looks into it.
    pub fn of<'a>(&'a self, event: &'a Event) -> impl Iterator<Item = &'a Route> {
        let input = FilterInput::from(event);
        let mut taken: Option<EndpointId> = None;
        self.0.iter().filter(move |route| {
            let wanted = taken != Some(route.endpoint) && route.wants(event, &input);
            if wanted {
                taken = Some(route.endpoint);
            }
            wanted
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PayloadFormat::{Envelope, Raw, Standard};
    use turnbuckle_domain::{
        Channel, EventUid, Labels, Meta, ResourceId, Revision, SubscriptionId, TenantId, Timestamp,
        TypeName,
    };
    use uuid::Uuid;

    fn endpoint(number: u128) -> EndpointId {
        EndpointId::from_uuid(Uuid::from_u128(number))
    }

    fn subscription(number: u128, format: PayloadFormat, filter: &str) -> Wanted {
        whole(number, format, filter).into()
    }

    fn whole(number: u128, format: PayloadFormat, filter: &str) -> Subscription {
        Subscription {
            id: SubscriptionId::from_uuid(Uuid::from_u128(9)),
            tenant: TenantId::from_uuid(Uuid::from_u128(9)),
            slug: ResourceId::new("s".to_owned()).unwrap(),
            endpoint: endpoint(number),
            patterns: vec![TypePattern::Any],
            format,
            filter: (!filter.is_empty()).then(|| Filter::parse(filter).unwrap()),
            channels: Channels::default(),
            labels: Labels::default(),
            meta: Meta {
                created_at: Timestamp::from_micros(0),
                updated_at: Timestamp::from_micros(0),
                revision: Revision(1),
            },
        }
    }

    fn event(data: &'static str) -> Event {
        Event {
            uid: EventUid::from_uuid(Uuid::from_u128(1)),
            tenant: TenantId::from_uuid(Uuid::from_u128(9)),
            event_id: "e".to_owned(),
            event_type: TypeName::new("order.paid").unwrap(),
            event_version: "1".to_owned(),
            occurred_at: Timestamp::from_micros(0),
            source: "shop".to_owned(),
            subject: None,
            sequence: None,
            content_type: String::new(),
            data: data.into(),
            accepted_at: Timestamp::from_micros(0),
            channels: Channels::default(),
            order: None,
        }
    }

    fn chosen(routes: &Routes, data: &'static str) -> Vec<(EndpointId, PayloadFormat)> {
        routes.of(&event(data)).map(|route| (route.endpoint, route.format)).collect()
    }

    #[test]
    fn an_endpoint_gets_an_event_once_by_the_oldest_route_that_wants_it() {
        let routes = Routes::new(&[
            subscription(1, Raw, "data.total >= 100"),
            subscription(2, Envelope, ""),
            subscription(1, Standard, r#"source == "shop" && exists(data.total)"#),
            subscription(2, Raw, ""),
        ]);
        assert_eq!(
            chosen(&routes, r#"{"total":100}"#),
            [(endpoint(1), Raw), (endpoint(2), Envelope)]
        );
        assert_eq!(
            chosen(&routes, r#"{"total":99}"#),
            [(endpoint(1), Standard), (endpoint(2), Envelope)]
        );
        assert_eq!(chosen(&routes, "{}"), [(endpoint(2), Envelope)]);
        assert_eq!(chosen(&routes, "no json"), [(endpoint(2), Envelope)]);
    }

    fn channels(names: &str) -> Channels {
        names.split_whitespace().map(|name| Channel::new(name).unwrap()).collect()
    }

    #[test]
    fn a_subscription_with_channels_wants_events_that_share_one() {
        for (asked, carried, wanted) in [
            ("", "", true),
            ("", "a", true),
            ("a", "", false),
            ("a", "a", true),
            ("a", "b", false),
            ("a b", "b c", true),
            ("a b", "c d", false),
            ("ab", "a b", false),
        ] {
            let asking = Subscription { channels: channels(asked), ..whole(1, Raw, "") }.into();
            let carrying = Event { channels: channels(carried), ..event("{}") };
            let routes = Routes::new(&[asking]);
            assert_eq!(routes.of(&carrying).count() == 1, wanted, "{asked:?} {carried:?}");
        }
    }

    #[test]
    fn channels_and_filter_must_both_want_an_event() {
        let asking = |format, asked, filter| {
            let channels = channels(asked);
            Wanted::from(Subscription { channels, ..whole(1, format, filter) })
        };
        let routes = Routes::new(&[
            asking(Raw, "a", "data.total >= 100"),
            asking(Standard, "b", ""),
            asking(Envelope, "", "data.total >= 200"),
        ]);
        assert_eq!(routes.len_max(), 3);
        let format = |carried, data| {
            let event = Event { channels: channels(carried), ..event(data) };
            routes.of(&event).map(|route| route.format).next()
        };
        assert_eq!(format("a", r#"{"total":100}"#), Some(Raw));
        assert_eq!(format("a", r#"{"total":1}"#), None);
        assert_eq!(format("b a", r#"{"total":1}"#), Some(Standard));
        assert_eq!(format("", r#"{"total":100}"#), None);
        assert_eq!(format("c", r#"{"total":200}"#), Some(Envelope));
    }

    #[test]
    fn nothing_is_kept_behind_a_route_without_a_filter() {
        let routes = Routes::new(&[
            subscription(1, Raw, "data.total >= 100"),
            subscription(1, Standard, ""),
            subscription(1, Envelope, "data.total < 100"),
            subscription(1, Envelope, ""),
        ]);
        assert_eq!(routes.len_max(), 2);
        assert_eq!(chosen(&routes, r#"{"total":1}"#), [(endpoint(1), Standard)]);
    }
}
