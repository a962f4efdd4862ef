//! Replays: each row is looked at once, whoever dies, and late ones change nothing.

use crate::{
    common::on_both_backends,
    fixture::{DEAD, DELIVERED, Fixture, Leader},
};
use std::time::Duration;
use turnbuckle_domain::{
    Caller, DeliveryFilter, DeliveryId, DeliveryState, EndpointId, EventUid, IdGenerator,
    NewDelivery, PayloadFormat, Random as _, ReopenedStates, Reopening, Replay, ReplayCounts,
    ReplayCreated, ReplayEnd, ReplayFilter, ReplayId, ReplayLease, ReplayRow, ReplayScope,
    ReplayState, ReplayStep, ReplayTurned, RequestKey, Rerouted, Role, SeededRandom, StepDone,
    TenantId, replay_limits,
};
use uuid::Uuid;

on_both_backends!(
    a_replay_comes_back_as_it_was,
    a_request_makes_one_replay_and_a_tenant_has_few,
    failed_deliveries_are_opened_once_and_others_left,
    a_late_step_changes_nothing,
    a_missing_delivery_is_made_once_by_whoever_looks_first,
    no_tenant_reaches_replays_of_another,
    finished_replays_go_in_time,
);

const SEEDS_EMBEDDED: u64 = 60;
const SEEDS_POSTGRES: u64 = 12;
const LEASE: Duration = Duration::from_secs(15);

fn new_replay(fixture: &Fixture, tenant: TenantId, scope: ReplayScope) -> Replay {
    let now = fixture.now();
    let states = match scope {
        ReplayScope::Deliveries => ReopenedStates::FAILED,
        ReplayScope::Events => ReopenedStates { delivered: false, dead: false, cancelled: false },
    };
    Replay {
        id: ReplayId::from_uuid(fixture.worker().uuid()),
        tenant,
        scope,
        filter: ReplayFilter {
            endpoint: None,
            event_types: Vec::new(),
            source: None,
            events: Vec::new(),
            from: None,
            until: now + Duration::from_secs(1),
            states,
            reasons: Vec::new(),
        },
        endpoint_slug: "shop".to_owned(),
        rate: 100,
        reason: "größe".to_owned(),
        created_by: "alice".to_owned(),
        created_at: now,
        state: ReplayState::Pending,
        counts: ReplayCounts::default(),
        position: None,
        waiting: false,
        started_at: None,
        updated_at: now,
        finished_at: None,
        failure: String::new(),
    }
}

async fn create(fixture: &Fixture, replay: &Replay) {
    let made = fixture.store.replays.create_replay(replay, None).await.unwrap();
    assert_eq!(made, ReplayCreated::Made);
}

async fn claim(fixture: &Fixture) -> Option<(Replay, ReplayLease)> {
    let (worker, now) = (fixture.worker(), fixture.now());
    fixture.store.replays.claim_replay(worker, now, LEASE).await.unwrap()
}

async fn step(fixture: &Fixture, lease: &ReplayLease, step: &ReplayStep) -> Option<StepDone> {
    fixture.store.replays.step_replay(lease, step).await.unwrap()
}

async fn reread(fixture: &Fixture, replay: &Replay) -> Replay {
    fixture.store.replays.replay(replay.tenant, replay.id).await.unwrap().unwrap()
}

/// Deliveries that ended this way.
async fn finished(
    fixture: &Fixture,
    leader: &Leader,
    (tenant, endpoint): (TenantId, EndpointId),
    (count, next): (u16, turnbuckle_domain::Next),
) -> Vec<DeliveryId> {
    let ids = fixture.fill(tenant, endpoint, usize::from(count)).await;
    let claimed = fixture.claim(endpoint, count).await;
    let turns: Vec<_> = claimed.iter().map(|one| leader.tried(one, next)).collect();
    fixture.settle(leader, &turns).await;
    ids
}

/// A step over the next rows, as the delivery plane would make it.
async fn next_step(fixture: &Fixture, replay: &Replay, limit: u16) -> ReplayStep {
    let walk = replay.walk();
    let rows = fixture.store.replays.replay_page(&walk, replay.position, limit).await.unwrap();
    let mut next = ReplayStep::empty(fixture.now());
    next.states = replay.filter.states;
    next.after = replay.position;
    next.end = rows.is_empty().then_some(ReplayEnd::Done);
    for row in rows {
        next.position = Some(row.position());
        next.counts.looked_at += 1;
        if let ReplayRow::Delivery { id, endpoint, state, .. } = row
            && replay.filter.states.has(state)
        {
            next.counts.matched += 1;
            next.reopen.push(Reopening { delivery: id, endpoint });
        }
    }
    next
}

async fn pending(fixture: &Fixture, tenant: TenantId) -> usize {
    let filter =
        DeliveryFilter { state: Some(DeliveryState::Pending), ..DeliveryFilter::default() };
    fixture.store.history.deliveries(tenant, &filter, None, u16::MAX).await.unwrap().len()
}

async fn a_replay_comes_back_as_it_was(fixture: &Fixture) {
    let replay = new_replay(fixture, fixture.tenant(), ReplayScope::Deliveries);
    create(fixture, &replay).await;
    assert_eq!(reread(fixture, &replay).await, replay);
    let (claimed, lease) = claim(fixture).await.unwrap();
    assert_eq!((claimed.id, claimed.state), (replay.id, ReplayState::Running));
    assert_eq!(claimed.started_at, Some(fixture.now()));
    // Nobody else gets it while the lease holds; given back, it is there at once.
    assert!(claim(fixture).await.is_none());
    fixture.store.replays.release_replay(&lease).await.unwrap();
    let (_, again) = claim(fixture).await.unwrap();
    assert!(again.token > lease.token);
}

fn request(number: u128, content: &str) -> RequestKey {
    let caller = Caller {
        issuer: String::new(),
        subject: "alice".to_owned(),
        role: Role::Admin,
        tenant: None,
    };
    let id = Uuid::from_u128(number).to_string();
    RequestKey::new(&id, &caller, [content.as_bytes()]).unwrap()
}

async fn a_request_makes_one_replay_and_a_tenant_has_few(fixture: &Fixture) {
    let (store, tenant) = (&fixture.store.replays, fixture.tenant());
    let first = new_replay(fixture, tenant, ReplayScope::Deliveries);
    let key = request(1, "a");
    let replay = |_| new_replay(fixture, tenant, ReplayScope::Deliveries);
    let same: Vec<Replay> = (0..4).map(replay).collect();
    assert_eq!(store.create_replay(&first, Some(&key)).await.unwrap(), ReplayCreated::Made);
    for other in &same {
        let again = store.create_replay(other, Some(&key)).await.unwrap();
        assert_eq!(again, ReplayCreated::Again(Box::new(first.clone())));
    }
    let other = store.create_replay(&same[0], Some(&request(1, "b"))).await.unwrap();
    assert_eq!(other, ReplayCreated::RequestIdReused);
    // Of many at once exactly as many are made as there may be.
    let more: Vec<Replay> = (0..8).map(replay).collect();
    let made =
        futures_util::future::join_all(more.iter().map(|one| store.create_replay(one, None)));
    let made = made.await.into_iter().map(Result::unwrap);
    let made = made.filter(|what| *what == ReplayCreated::Made).count();
    assert_eq!(u32::try_from(made).unwrap(), replay_limits::OPEN_PER_TENANT - 1);
    let again = store.create_replay(&same[0], Some(&key)).await.unwrap();
    assert_eq!(again, ReplayCreated::Again(Box::new(first)));
}

async fn failed_deliveries_are_opened_once_and_others_left(fixture: &Fixture) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    let leader = fixture.leader().await;
    let dead = finished(fixture, &leader, (tenant, endpoint), (7, DEAD)).await;
    finished(fixture, &leader, (tenant, endpoint), (3, DELIVERED)).await;
    let others = fixture.tenant();
    finished(fixture, &leader, (others, fixture.endpoint()), (2, DEAD)).await;
    let replay = new_replay(fixture, tenant, ReplayScope::Deliveries);
    create(fixture, &replay).await;
    let (mut replay, lease) = claim(fixture).await.unwrap();
    loop {
        let next = next_step(fixture, &replay, 4).await;
        let done = step(fixture, &lease, &next).await.unwrap();
        // Who is opened is told, so that its lane can be woken.
        assert_eq!(done.endpoints.is_empty(), done.counts.reopened == 0);
        replay = reread(fixture, &replay).await;
        if replay.state == ReplayState::Done {
            break;
        }
    }
    let counts = replay.counts;
    assert_eq!((counts.looked_at, counts.matched, counts.reopened), (10, 7, 7));
    assert_eq!(replay.finished_at, Some(fixture.now()));
    assert_eq!((pending(fixture, tenant).await, pending(fixture, others).await), (7, 0));
    for (most, seen) in [(5, 5), (100, 7)] {
        assert_eq!(fixture.store.replays.pending_at(endpoint, most).await.unwrap(), seen);
    }
    for id in dead {
        let view = fixture.view(tenant, id).await;
        assert_eq!((view.delivery.state, view.delivery.attempts), (DeliveryState::Pending, 1));
    }
}

async fn a_late_step_changes_nothing(fixture: &Fixture) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    let leader = fixture.leader().await;
    finished(fixture, &leader, (tenant, endpoint), (4, DEAD)).await;
    let replay = new_replay(fixture, tenant, ReplayScope::Deliveries);
    create(fixture, &replay).await;
    let (claimed, old) = claim(fixture).await.unwrap();
    let late = next_step(fixture, &claimed, 2).await;
    fixture.clock.advance(LEASE);
    let (_, new) = claim(fixture).await.unwrap();
    assert!(step(fixture, &old, &late).await.is_none());
    assert_eq!(pending(fixture, tenant).await, 0);
    // Rows that somebody opened meanwhile are counted, and opened no second time.
    assert_eq!(step(fixture, &new, &late).await.unwrap().counts.reopened, 2);
    // Whose answer was lost may come again, and is not done again.
    assert!(step(fixture, &new, &late).await.is_none());
    let again = ReplayStep { after: late.position, ..late.clone() };
    assert_eq!(step(fixture, &new, &again).await.unwrap().counts.skipped_pending, 2);
    let turn = |to| fixture.store.replays.turn_replay(tenant, replay.id, to, fixture.now());
    let cancelled = turn(ReplayState::Cancelled).await.unwrap();
    assert!(matches!(cancelled, ReplayTurned::Turned(_, false)), "{cancelled:?}");
    assert!(step(fixture, &new, &next_step(fixture, &claimed, 9).await).await.is_none());
    assert_eq!(pending(fixture, tenant).await, 2);
    assert!(matches!(turn(ReplayState::Cancelled).await, Ok(ReplayTurned::Turned(_, true))));
    assert!(matches!(turn(ReplayState::Pending).await, Ok(ReplayTurned::Refused(_))));
    assert!(claim(fixture).await.is_none());
}

async fn a_missing_delivery_is_made_once_by_whoever_looks_first(fixture: &Fixture) {
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    let event = fixture.event(tenant, "alone");
    let uid = event.uid;
    fixture.store.log.append(&[fixture.to(event, &[])]).await.unwrap();
    let ids =
        IdGenerator::new(fixture.clock.clone(), std::sync::Arc::new(SeededRandom::from_number(77)));
    let place = |event: EventUid| Rerouted {
        event,
        delivery: NewDelivery { id: ids.delivery_of(event), endpoint, format: PayloadFormat::Raw },
    };
    let mut made = Vec::new();
    for _ in 0..2 {
        let replay = new_replay(fixture, tenant, ReplayScope::Events);
        create(fixture, &replay).await;
        let (claimed, lease) = claim(fixture).await.unwrap();
        let rows = fixture.store.replays.replay_page(&claimed.walk(), None, 9).await.unwrap();
        assert!(matches!(&rows[..], [ReplayRow::Event(found)] if found.uid == uid));
        let gone = EventUid::from_uuid(Uuid::from_u128(uid.uuid().as_u128() ^ 1));
        let mut next = ReplayStep::empty(fixture.now());
        next.states = claimed.filter.states;
        next.place = vec![place(uid), place(gone)];
        next.end = Some(ReplayEnd::Done);
        let counts = step(fixture, &lease, &next).await.unwrap().counts;
        made.push((counts.made, counts.skipped_pending, counts.skipped_gone));
    }
    assert_eq!(made, [(1, 0, 1), (0, 1, 1)]);
    assert_eq!(pending(fixture, tenant).await, 1);
    assert_eq!(fixture.claim(endpoint, 9).await.len(), 1);
}

async fn no_tenant_reaches_replays_of_another(fixture: &Fixture) {
    let (own, other) = (fixture.tenant(), fixture.tenant());
    let replay = new_replay(fixture, own, ReplayScope::Deliveries);
    create(fixture, &replay).await;
    let store = &fixture.store.replays;
    assert_eq!(store.replay(other, replay.id).await.unwrap(), None);
    assert!(store.replays(other, None, None, 9).await.unwrap().is_empty());
    let turned = store.turn_replay(other, replay.id, ReplayState::Cancelled, fixture.now()).await;
    assert_eq!(turned.unwrap(), ReplayTurned::Missing);
    assert_eq!(store.replays(own, None, None, 9).await.unwrap(), std::slice::from_ref(&replay));
    assert_eq!(store.open_replays(own).await.unwrap(), 1);
    let paused = store.replays(own, Some(ReplayState::Paused), None, 9).await.unwrap();
    assert!(paused.is_empty());
}

async fn finished_replays_go_in_time(fixture: &Fixture) {
    let replay = new_replay(fixture, fixture.tenant(), ReplayScope::Deliveries);
    create(fixture, &replay).await;
    let (_, lease) = claim(fixture).await.unwrap();
    let failed = ReplayEnd::Failed("it could not".to_owned());
    let end = ReplayStep { end: Some(failed), ..ReplayStep::empty(fixture.now()) };
    step(fixture, &lease, &end).await.unwrap();
    let read = reread(fixture, &replay).await;
    assert_eq!((read.state, read.failure.as_str()), (ReplayState::Failed, "it could not"));
    let store = &fixture.store.replays;
    assert_eq!(store.prune_replays(fixture.now()).await.unwrap(), 0);
    fixture.clock.advance(Duration::from_secs(1));
    assert_eq!(store.prune_replays(fixture.now()).await.unwrap(), 1);
    assert_eq!(store.replay(replay.tenant, replay.id).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn embedded_replays_open_each_once_whoever_dies() {
    let fixture = Fixture::sqlite().await;
    let leader = fixture.leader().await;
    for seed in 0..SEEDS_EMBEDDED {
        history(&fixture, &leader, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_replays_open_each_once_whoever_dies() {
    let Some(fixture) = Fixture::postgres().await else { return };
    let leader = fixture.leader().await;
    for seed in 0..SEEDS_POSTGRES {
        history(&fixture, &leader, seed).await;
    }
}

/// Steps of any size, deaths between reading and writing and after writing, pauses, late writers; what is
/// opened is delivered meanwhile. In the end each failed delivery was opened once.
async fn history(fixture: &Fixture, leader: &Leader, seed: u64) {
    let random = SeededRandom::from_number(seed);
    let pick = |most: u8| {
        let mut byte = [0];
        random.fill(&mut byte);
        byte[0] % most
    };
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    let count = u16::from(pick(30)) + 1;
    finished(fixture, leader, (tenant, endpoint), (count, DEAD)).await;
    let replay = new_replay(fixture, tenant, ReplayScope::Deliveries);
    create(fixture, &replay).await;
    let mut late: Vec<(ReplayLease, ReplayStep)> = Vec::new();
    // A step whose answer was lost, and that is sent again when what it opened has ended anew.
    let mut unanswered: Option<(ReplayLease, ReplayStep)> = None;
    loop {
        let Some((claimed, lease)) = claim(fixture).await else {
            let now = fixture.now();
            let store = &fixture.store.replays;
            store.turn_replay(tenant, replay.id, ReplayState::Pending, now).await.unwrap();
            fixture.clock.advance(LEASE);
            if reread(fixture, &replay).await.state.is_final() {
                break;
            }
            continue;
        };
        let next = next_step(fixture, &claimed, u16::from(pick(5)) + 1).await;
        match pick(5) {
            // It dies before it writes; or hangs, and writes too late.
            0 => late.push((lease, next)),
            1 => {
                let (store, now) = (&fixture.store.replays, fixture.now());
                let to = ReplayState::Paused;
                store.turn_replay(tenant, replay.id, to, now).await.unwrap();
                assert!(step(fixture, &lease, &next).await.is_none(), "seed {seed}");
            }
            _ => {
                assert!(step(fixture, &lease, &next).await.is_some(), "seed {seed}");
                unanswered = next.position.is_some().then(|| (lease, next.clone()));
                // It dies without giving it back, or not.
                if pick(2) == 0 {
                    fixture.store.replays.release_replay(&lease).await.unwrap();
                }
            }
        }
        let opened = fixture.claim(endpoint, u16::from(pick(4)) + 1).await;
        let turns: Vec<_> = opened.iter().map(|one| leader.tried(one, DEAD)).collect();
        fixture.settle(leader, &turns).await;
        if let Some((lease, next)) = unanswered.take() {
            assert!(step(fixture, &lease, &next).await.is_none(), "seed {seed}");
        }
        fixture.clock.advance(Duration::from_millis(u64::from(pick(3)) * 7_500));
        if let Some((lease, next)) = late.pop_if(|(old, _)| old.token < lease.token) {
            assert!(step(fixture, &lease, &next).await.is_none(), "seed {seed}");
        }
    }
    let done = reread(fixture, &replay).await;
    assert_eq!(done.state, ReplayState::Done, "seed {seed}");
    assert_eq!(done.counts.reopened, u64::from(count), "seed {seed}: {:?}", done.counts);
    let rest = fixture.claim(endpoint, u16::MAX).await;
    let turns: Vec<_> = rest.iter().map(|one| leader.tried(one, DEAD)).collect();
    fixture.settle(leader, &turns).await;
    let all = DeliveryFilter::default();
    for view in fixture.store.history.deliveries(tenant, &all, None, u16::MAX).await.unwrap() {
        assert_eq!(view.delivery.attempts, 2, "seed {seed}: {view:?}");
    }
}
