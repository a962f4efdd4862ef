//! What is due, and who has something pending.

use crate::{
    common::on_both_backends,
    fixture::{Fixture, NOTHING_SEEN, START, lane},
};
use std::{collections::HashMap, time::Duration};
use turnbuckle_domain::{DeliveryId, EndpointId, Shard, Timestamp};

on_both_backends!(
    only_what_is_due_is_claimed_oldest_first,
    a_lane_goes_on_behind_what_it_has_seen,
    equal_times_are_told_apart_by_id,
    several_lanes_are_served_each_within_its_room,
    other_endpoints_and_wrong_shards_are_left_out,
    a_delivery_whose_event_is_gone_is_claimed_without_it,
    an_event_of_another_tenant_is_not_taken_for_ours,
    claiming_changes_nothing,
    pending_names_each_endpoint_with_its_first,
    pending_looks_at_the_given_shards_only,
);

async fn ids(fixture: &Fixture, endpoint: EndpointId, limit: u16) -> Vec<DeliveryId> {
    fixture.claim(endpoint, limit).await.iter().map(|claimed| claimed.delivery.id).collect()
}

async fn set_due(fixture: &Fixture, id: DeliveryId, due_at: Timestamp) {
    let id = fixture.quoted(id.uuid());
    let micros = due_at.micros();
    fixture.execute(&format!("update delivery set due_at_us = {micros} where id = {id}")).await;
}

async fn only_what_is_due_is_claimed_oldest_first(fixture: &Fixture) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    let made = fixture.fill(tenant, endpoint, 5).await;
    let now = fixture.now();
    set_due(fixture, made[1], now + Duration::from_micros(1)).await;
    set_due(fixture, made[3], START - Duration::from_secs(1)).await;
    assert_eq!(ids(fixture, endpoint, 10).await, [made[3], made[0], made[2], made[4]]);
    assert_eq!(ids(fixture, endpoint, 2).await, [made[3], made[0]]);
    assert!(ids(fixture, endpoint, 0).await.is_empty());
    fixture.clock.advance(Duration::from_micros(1));
    assert_eq!(ids(fixture, endpoint, 10).await.last(), Some(&made[1]));
}

async fn a_lane_goes_on_behind_what_it_has_seen(fixture: &Fixture) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    let made = fixture.fill(tenant, endpoint, 7).await;
    let mut seen = Vec::new();
    let mut after = NOTHING_SEEN;
    loop {
        let wish = [lane(endpoint, after, 3)];
        let page = fixture.store.queue.claim(&wish, fixture.now()).await.unwrap();
        let Some(last) = page.last() else { break };
        after = (last.delivery.due_at, last.delivery.id);
        seen.extend(page.iter().map(|claimed| claimed.delivery.id));
    }
    assert_eq!(seen, made);
}

async fn equal_times_are_told_apart_by_id(fixture: &Fixture) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    let mut made = fixture.fill(tenant, endpoint, 6).await;
    fixture.execute(&format!("update delivery set due_at_us = {}", START.micros())).await;
    made.sort();
    assert_eq!(ids(fixture, endpoint, 10).await, made);
    let wish = [lane(endpoint, (START, made[2]), 2)];
    let page = fixture.store.queue.claim(&wish, START).await.unwrap();
    let page: Vec<_> = page.iter().map(|claimed| claimed.delivery.id).collect();
    assert_eq!(page, made[3..5]);
}

async fn several_lanes_are_served_each_within_its_room(fixture: &Fixture) {
    let tenants = [fixture.tenant(), fixture.tenant()];
    let mut expected: HashMap<EndpointId, Vec<DeliveryId>> = HashMap::new();
    let mut wishes = Vec::new();
    for number in 0..40_u8 {
        let endpoint = fixture.endpoint_in(number % 5);
        let made = fixture.fill(tenants[usize::from(number % 2)], endpoint, 4).await;
        let room = u16::from(number % 4);
        wishes.push(lane(endpoint, NOTHING_SEEN, room));
        expected.insert(endpoint, made[..usize::from(room)].to_vec());
    }
    let mut found: HashMap<EndpointId, Vec<DeliveryId>> =
        expected.keys().map(|endpoint| (*endpoint, Vec::new())).collect();
    for claimed in fixture.store.queue.claim(&wishes, fixture.now()).await.unwrap() {
        assert!(claimed.event.is_some_and(|event| event.tenant == claimed.delivery.tenant));
        found.get_mut(&claimed.delivery.endpoint).unwrap().push(claimed.delivery.id);
    }
    assert_eq!(found, expected);
    assert!(fixture.store.queue.claim(&[], fixture.now()).await.unwrap().is_empty());
}

async fn other_endpoints_and_wrong_shards_are_left_out(fixture: &Fixture) {
    let tenant = fixture.tenant();
    let (mine, other) = (fixture.endpoint_in(4), fixture.endpoint_in(4));
    let made = fixture.fill(tenant, mine, 2).await;
    fixture.fill(tenant, other, 2).await;
    assert_eq!(ids(fixture, mine, 10).await, made);
    let mut wish = lane(mine, NOTHING_SEEN, 10);
    wish.shard = Shard::from_number(5);
    assert!(fixture.store.queue.claim(&[wish], fixture.now()).await.unwrap().is_empty());
}

async fn a_delivery_whose_event_is_gone_is_claimed_without_it(fixture: &Fixture) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    let made = fixture.fill(tenant, endpoint, 2).await;
    let event = fixture.view(tenant, made[0]).await.delivery.event;
    let uid = fixture.quoted(event.uuid());
    fixture.execute(&format!("delete from event where uid = {uid}")).await;
    let claimed = fixture.claim(endpoint, 10).await;
    assert_eq!(claimed.len(), 2);
    assert_eq!((claimed[0].delivery.id, claimed[0].event.is_none()), (made[0], true));
    assert_eq!((claimed[1].delivery.id, claimed[1].event.is_some()), (made[1], true));
}

async fn an_event_of_another_tenant_is_not_taken_for_ours(fixture: &Fixture) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    fixture.fill(tenant, endpoint, 1).await;
    let other = fixture.quoted(fixture.tenant().uuid());
    fixture.execute(&format!("update delivery set tenant_id = {other}")).await;
    assert!(fixture.claim(endpoint, 10).await[0].event.is_none());
}

async fn claiming_changes_nothing(fixture: &Fixture) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    let made = fixture.fill(tenant, endpoint, 3).await;
    for _ in 0..3 {
        let claimed = fixture.claim(endpoint, 10).await;
        assert_eq!(claimed.iter().map(|c| c.delivery.id).collect::<Vec<_>>(), made);
        let live = &claimed[0].delivery;
        assert_eq!(
            (live.tenant, live.endpoint, live.shard),
            (tenant, endpoint, Shard::of(endpoint))
        );
        assert_eq!((live.attempts, live.round_start, live.round_at), (0, 0, live.due_at));
    }
}

async fn pending_names_each_endpoint_with_its_first(fixture: &Fixture) {
    let tenants = [fixture.tenant(), fixture.tenant()];
    let mut expected = HashMap::new();
    for number in 0..200_u8 {
        let endpoint = fixture.endpoint_in(number);
        let made = fixture.fill(tenants[usize::from(number % 2)], endpoint, 2).await;
        let due_at = START - Duration::from_secs(u64::from(number));
        set_due(fixture, made[1], due_at).await;
        expected.insert(endpoint, (due_at, made[1]));
    }
    let deep = fixture.endpoint_in(9);
    let made = fixture.fill(tenants[0], deep, 3000).await;
    let first = fixture.claim(deep, 1).await.remove(0).delivery;
    assert_eq!(first.id, made[0]);
    expected.insert(deep, (first.due_at, first.id));

    let all: Vec<Shard> = Shard::all().collect();
    let lanes = fixture.store.queue.pending(&all).await.unwrap();
    assert_eq!(lanes.len(), 201);
    let found: HashMap<_, _> =
        lanes.iter().map(|lane| (lane.endpoint, (lane.due_at, lane.first))).collect();
    assert_eq!(found, expected);
}

async fn pending_looks_at_the_given_shards_only(fixture: &Fixture) {
    let tenant = fixture.tenant();
    let queue = &fixture.store.queue;
    assert!(queue.pending(&Shard::all().collect::<Vec<_>>()).await.unwrap().is_empty());
    let endpoints = [0, 0, 1, 63].map(|shard| fixture.endpoint_in(shard));
    for endpoint in endpoints {
        fixture.fill(tenant, endpoint, 1).await;
    }
    for (shards, count) in
        [(vec![], 0), (vec![0], 2), (vec![1, 63], 2), (vec![2], 0), (vec![63], 1)]
    {
        let shards: Vec<Shard> = shards.into_iter().map(Shard::from_number).collect();
        let lanes = queue.pending(&shards).await.unwrap();
        assert_eq!(lanes.len(), count, "{shards:?}");
        assert!(lanes.iter().all(|lane| shards.contains(&Shard::of(lane.endpoint))));
    }
}
