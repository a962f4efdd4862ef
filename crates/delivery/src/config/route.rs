//! Which endpoints want the events of a type, and in which format.

use std::{collections::HashMap, sync::Arc};
use turnbuckle_domain::{EndpointId, Event, Filter, FilterInput, PayloadFormat, Subscription};

/// One endpoint that wants events of a type, on a condition or without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Where it goes.
    pub endpoint: EndpointId,
    /// What the body looks like.
    pub format: PayloadFormat,
    /// Which of the events; none: every one.
    pub filter: Option<Arc<Filter>>,
}

/// The routes of one event type: those of an endpoint stand together, the oldest subscription first,
/// and end with the first that has no filter, because no later one can decide anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routes(Arc<[Route]>);

impl Routes {
    /// From the subscriptions that want the type, oldest first.
    pub(super) fn new<'a>(subscriptions: impl IntoIterator<Item = &'a Subscription>) -> Self {
        let mut places: HashMap<EndpointId, usize> = HashMap::new();
        let mut groups: Vec<Vec<Route>> = Vec::new();
        for subscription in subscriptions {
            let endpoint = subscription.endpoint;
            let place = *places.entry(endpoint).or_insert(groups.len());
            if place == groups.len() {
                groups.push(Vec::new());
            }
            if let Some(group) = groups.get_mut(place)
                && group.last().is_none_or(|last| last.filter.is_some())
            {
                let filter = subscription.filter.clone().map(Arc::new);
                group.push(Route { endpoint, format: subscription.format, filter });
            }
        }
        Self(groups.into_iter().flatten().collect())
    }

    /// How many endpoints get an event at most.
    #[must_use]
    pub fn len_max(&self) -> usize {
        self.0.len()
    }

    /// The route of each endpoint that wants this event: the oldest one whose filter does. The payload
    /// is read only when a filter looks into it.
    pub fn of<'a>(&'a self, event: &'a Event) -> impl Iterator<Item = &'a Route> {
        let input = FilterInput::from(event);
        let mut taken: Option<EndpointId> = None;
        self.0.iter().filter(move |route| {
            let wanted = taken != Some(route.endpoint)
                && route.filter.as_ref().is_none_or(|filter| filter.matches(&input));
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
        EventUid, Labels, Meta, ResourceId, Revision, SubscriptionId, TenantId, Timestamp,
        TypeName, TypePattern,
    };
    use uuid::Uuid;

    fn endpoint(number: u128) -> EndpointId {
        EndpointId::from_uuid(Uuid::from_u128(number))
    }

    fn subscription(number: u128, format: PayloadFormat, filter: &str) -> Subscription {
        Subscription {
            id: SubscriptionId::from_uuid(Uuid::from_u128(9)),
            tenant: TenantId::from_uuid(Uuid::from_u128(9)),
            slug: ResourceId::new("s".to_owned()).unwrap(),
            endpoint: endpoint(number),
            patterns: vec![TypePattern::Any],
            format,
            filter: (!filter.is_empty()).then(|| Filter::parse(filter).unwrap()),
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
