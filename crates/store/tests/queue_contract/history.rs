//! What people read: events, deliveries, pages and filters, each tenant its own.

use crate::{
    common::{by, endpoint, on_both_backends, ring, tenant as named_tenant},
    fixture::{DEAD, DELIVERED, Fixture, NOTHING_SEEN, lane},
};
use std::{collections::HashSet, time::Duration};
use turnbuckle_domain::{
    DeliveryFilter, DeliveryId, DeliveryState, EndpointId, Event, EventFilter, EventUid, Finished,
    TenantId, TypeName,
};

on_both_backends!(
    a_view_names_the_event_and_the_endpoint_also_a_deleted_one,
    a_finished_delivery_outlives_its_event,
    deliveries_are_filtered_by_endpoint_event_and_state,
    live_and_finished_deliveries_are_paged_together_each_once,
    deliveries_of_an_event_are_found_among_those_of_the_same_moment,
    events_are_listed_newest_first_without_payloads,
    events_are_found_by_id_and_by_type,
    an_event_is_found_under_its_own_id_only,
    no_tenant_sees_or_touches_the_rows_of_another,
);

async fn list(fixture: &Fixture, tenant: TenantId, filter: &DeliveryFilter) -> Vec<DeliveryId> {
    let found = fixture.store.history.deliveries(tenant, filter, None, 1000).await.unwrap();
    found.iter().map(|view| view.delivery.id).collect()
}

fn everything() -> DeliveryFilter {
    DeliveryFilter::default()
}

fn newest_first(mut ids: Vec<DeliveryId>) -> Vec<DeliveryId> {
    ids.sort();
    ids.reverse();
    ids
}

/// Settles the first of an endpoint's deliveries, one with each of these ways to end.
async fn finish_some(fixture: &Fixture, endpoint: EndpointId) -> [DeliveryId; 2] {
    let leader = fixture.leader().await;
    let claimed = fixture.claim(endpoint, 2).await;
    let turns = [leader.tried(&claimed[0], DELIVERED), leader.tried(&claimed[1], DEAD)];
    fixture.settle(&leader, &turns).await;
    fixture.store.queue.release(leader.worker, None).await.unwrap();
    [claimed[0].delivery.id, claimed[1].delivery.id]
}

async fn a_view_names_the_event_and_the_endpoint_also_a_deleted_one(fixture: &Fixture) {
    let config = &fixture.store.config;
    let acme = config.create_tenant(named_tenant("acme"), &by()).await.unwrap();
    let orders = config.create_endpoint(endpoint(acme.id, "orders"), ring(), &by()).await.unwrap();
    let one = fixture.to(fixture.event(acme.id, "e-1"), &[orders.id, fixture.endpoint()]);
    fixture.store.log.append(std::slice::from_ref(&one)).await.unwrap();
    config.delete_endpoint(&orders, fixture.now(), &by()).await.unwrap();
    let view = fixture.view(acme.id, one.deliveries[0].id).await;
    let names = (view.endpoint_slug.as_str(), view.event_id.as_str(), view.event_type.as_str());
    assert_eq!(names, ("orders", "e-1", "order.paid"));
    assert_eq!(fixture.view(acme.id, one.deliveries[1].id).await.endpoint_slug, "");
}

async fn a_finished_delivery_outlives_its_event(fixture: &Fixture) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    fixture.fill(tenant, endpoint, 2).await;
    let [delivered, _] = finish_some(fixture, endpoint).await;
    fixture.execute("delete from event").await;
    let view = fixture.view(tenant, delivered).await;
    assert_eq!((view.event_id.as_str(), view.event_type.as_str()), ("", ""));
    assert_eq!(view.delivery.state, DeliveryState::Delivered);
    assert_eq!(list(fixture, tenant, &everything()).await.len(), 2);
}

async fn deliveries_are_filtered_by_endpoint_event_and_state(fixture: &Fixture) {
    let (tenant, one, other) = (fixture.tenant(), fixture.endpoint(), fixture.endpoint());
    let made = fixture.fill(tenant, one, 5).await;
    let elsewhere = fixture.fill(tenant, other, 3).await;
    let [delivered, dead] = finish_some(fixture, one).await;
    let event = fixture.view(tenant, made[3]).await.delivery.event;

    let by_endpoint = DeliveryFilter { endpoint: Some(one), ..everything() };
    assert_eq!(list(fixture, tenant, &by_endpoint).await, newest_first(made.clone()));
    let by_event = DeliveryFilter { event: Some(event), ..everything() };
    assert_eq!(list(fixture, tenant, &by_event).await, [made[3]]);
    let by_state = |state| DeliveryFilter { state: Some(state), ..everything() };
    assert_eq!(list(fixture, tenant, &by_state(DeliveryState::Delivered)).await, [delivered]);
    assert_eq!(list(fixture, tenant, &by_state(DeliveryState::Dead)).await, [dead]);
    assert!(list(fixture, tenant, &by_state(DeliveryState::Cancelled)).await.is_empty());
    let live = [&made[2..], &elsewhere].concat();
    let pending = by_state(DeliveryState::Pending);
    assert_eq!(list(fixture, tenant, &pending).await, newest_first(live));
    let both = DeliveryFilter { endpoint: Some(other), event: Some(event), state: None };
    assert!(list(fixture, tenant, &both).await.is_empty());
    let all = DeliveryFilter {
        endpoint: Some(one),
        event: Some(fixture.view(tenant, dead).await.delivery.event),
        state: Some(DeliveryState::Dead),
    };
    assert_eq!(list(fixture, tenant, &all).await, [dead]);
}

async fn live_and_finished_deliveries_are_paged_together_each_once(fixture: &Fixture) {
    let (tenant, one) = (fixture.tenant(), fixture.endpoint());
    // All at one moment: only the ids tell them apart.
    let batch: Vec<_> = (0..25)
        .map(|number| fixture.to(fixture.event(tenant, &format!("e-{number}")), &[one]))
        .collect();
    fixture.store.log.append(&batch).await.unwrap();
    let leader = fixture.leader().await;
    let claimed = fixture.claim(one, 100).await;
    let turns: Vec<_> = claimed.iter().step_by(2).map(|c| leader.tried(c, DELIVERED)).collect();
    fixture.settle(&leader, &turns).await;

    for page_size in [1, 4, 7, 25, 26] {
        let mut seen = Vec::new();
        loop {
            let after = seen.last().copied();
            let history = &fixture.store.history;
            let page = history.deliveries(tenant, &everything(), after, page_size).await.unwrap();
            assert!(page.len() <= usize::from(page_size));
            if page.is_empty() {
                break;
            }
            seen.extend(page.iter().map(|view| view.delivery.id));
        }
        let all = batch.iter().map(|append| append.deliveries[0].id).collect();
        assert_eq!(seen, newest_first(all), "pages of {page_size}");
    }
}

async fn deliveries_of_an_event_are_found_among_those_of_the_same_moment(fixture: &Fixture) {
    let tenant = fixture.tenant();
    let endpoints: Vec<EndpointId> = (0..5).map(|_| fixture.endpoint()).collect();
    let batch: Vec<_> = (0..20)
        .map(|number| fixture.to(fixture.event(tenant, &format!("e-{number}")), &endpoints))
        .collect();
    fixture.store.log.append(&batch).await.unwrap();
    for append in &batch {
        let filter = DeliveryFilter { event: Some(append.event.uid), ..everything() };
        let expected = append.deliveries.iter().map(|delivery| delivery.id).collect();
        assert_eq!(list(fixture, tenant, &filter).await, newest_first(expected));
    }
}

async fn events(
    fixture: &Fixture,
    tenant: TenantId,
    filter: &EventFilter,
    after: Option<EventUid>,
    limit: u16,
) -> Vec<EventUid> {
    let found = fixture.store.history.events(tenant, filter, after, limit).await.unwrap();
    assert!(found.iter().all(|event| event.data.is_empty() && event.tenant == tenant));
    found.iter().map(|event| event.uid).collect()
}

async fn events_are_listed_newest_first_without_payloads(fixture: &Fixture) {
    let tenant = fixture.tenant();
    let batch: Vec<_> = (0..9)
        .map(|number| {
            fixture.clock.advance(Duration::from_micros(number % 2));
            fixture.to(fixture.event(tenant, &format!("e-{number}")), &[])
        })
        .collect();
    fixture.store.log.append(&batch).await.unwrap();
    let mut expected: Vec<EventUid> = batch.iter().map(|append| append.event.uid).collect();
    expected.sort();
    expected.reverse();
    let all = EventFilter::default();
    assert_eq!(events(fixture, tenant, &all, None, 100).await, expected);
    let mut seen = Vec::new();
    while seen.len() < 9 {
        let page = events(fixture, tenant, &all, seen.last().copied(), 4).await;
        assert!(!page.is_empty());
        seen.extend(page);
    }
    assert_eq!(seen, expected);
    let listed = fixture.store.history.events(tenant, &all, None, 1).await.unwrap().remove(0);
    let newest = fixture.store.history.event(tenant, expected[0]).await.unwrap().unwrap();
    assert!(listed == Event { data: bytes::Bytes::new(), ..newest });
}

async fn events_are_found_by_id_and_by_type(fixture: &Fixture) {
    let (tenant, other) = (fixture.tenant(), fixture.tenant());
    let with = |tenant, id: &str, source: &str, event_type: &str| {
        let event_type = TypeName::new(event_type).unwrap();
        let event = Event { event_type, source: source.into(), ..fixture.event(tenant, id) };
        fixture.to(event, &[])
    };
    let batch = [
        with(tenant, "e-1", "shop", "order.paid"),
        with(tenant, "e-1", "till", "order.sent"),
        with(tenant, "e-2", "shop", "order.paid"),
        with(other, "e-1", "shop", "order.paid"),
    ];
    fixture.store.log.append(&batch).await.unwrap();
    let uids = |indexes: &[usize]| -> HashSet<EventUid> {
        indexes.iter().map(|index| batch[*index].event.uid).collect()
    };
    for (id, event_type, expected) in [
        (Some("e-1"), None, vec![0, 1]),
        (None, Some("order.paid"), vec![0, 2]),
        (Some("e-1"), Some("order.paid"), vec![0]),
        (Some("e-3"), None, vec![]),
        (None, Some("order"), vec![]),
    ] {
        let filter = EventFilter {
            event_id: id.map(str::to_owned),
            event_type: event_type.map(|name| TypeName::new(name).unwrap()),
        };
        let found = events(fixture, tenant, &filter, None, 10).await;
        assert_eq!(HashSet::from_iter(found), uids(&expected), "{filter:?}");
    }
}

async fn an_event_is_found_under_its_own_id_only(fixture: &Fixture) {
    let tenant = fixture.tenant();
    let mut made_by_us = fixture.event(tenant, "");
    made_by_us.event_id = made_by_us.uid.to_string();
    let mut own = fixture.to(made_by_us, &[]);
    own.dedup = None;
    let chosen = fixture.to(fixture.event(tenant, "chosen"), &[]);
    fixture.store.log.append(&[own.clone(), chosen.clone()]).await.unwrap();
    let by_id = |id: String| EventFilter { event_id: Some(id), event_type: None };
    let uid = own.event.uid;
    assert_eq!(events(fixture, tenant, &by_id(uid.to_string()), None, 10).await, [uid]);
    // A uid is not the id that its sender chose.
    let other = by_id(chosen.event.uid.to_string());
    assert!(events(fixture, tenant, &other, None, 10).await.is_empty());
}

async fn no_tenant_sees_or_touches_the_rows_of_another(fixture: &Fixture) {
    let (mine, other, one) = (fixture.tenant(), fixture.tenant(), fixture.endpoint());
    let made = fixture.fill(mine, one, 3).await;
    let [delivered, dead] = finish_some(fixture, one).await;
    let history = &fixture.store.history;
    let uid = fixture.view(mine, made[2]).await.delivery.event;
    assert!(history.event(other, uid).await.unwrap().is_none());
    assert!(events(fixture, other, &EventFilter::default(), None, 10).await.is_empty());
    assert!(list(fixture, other, &everything()).await.is_empty());
    let by_event = DeliveryFilter { event: Some(uid), ..everything() };
    assert!(list(fixture, other, &by_event).await.is_empty());
    for id in [delivered, dead, made[2]] {
        assert!(history.delivery(other, id).await.unwrap().is_none());
        assert!(fixture.attempts(other, id).await.is_empty());
        let before = fixture.view(mine, id).await;
        assert_eq!(history.retry(other, id, fixture.now()).await.unwrap(), Finished::Missing);
        assert_eq!(history.cancel(other, id, fixture.now()).await.unwrap(), Finished::Missing);
        assert_eq!(fixture.view(mine, id).await, before);
    }
    let wish = [lane(one, NOTHING_SEEN, 10)];
    assert_eq!(fixture.store.queue.claim(&wish, fixture.now()).await.unwrap().len(), 1);
}
