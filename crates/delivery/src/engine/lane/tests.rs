//! What a lane remembers, and a model run: whatever the order of hand-offs, claims, settles and
//! discoveries, every delivery of the store is taken exactly once.

use super::*;
use bytes::Bytes;
use std::{collections::BTreeSet, sync::Arc};
use turnbuckle_domain::{
    Event, EventUid, LiveDelivery, PayloadFormat, Random as _, SeededRandom, TenantId, TypeName,
};

fn endpoint() -> EndpointId {
    EndpointId::from_uuid(Uuid::from_u128(7))
}

fn id(number: u32) -> DeliveryId {
    DeliveryId::from_uuid(Uuid::from_u128(u128::from(number)))
}

fn at(number: i64) -> Timestamp {
    Timestamp::from_micros(number)
}

fn job(number: u32, due_at: Timestamp) -> Job {
    let tenant = TenantId::from_uuid(Uuid::nil());
    let event = Event {
        uid: EventUid::from_uuid(Uuid::nil()),
        tenant,
        event_id: number.to_string(),
        event_type: TypeName::new("a").unwrap(),
        event_version: "1".into(),
        occurred_at: due_at,
        source: "s".into(),
        subject: None,
        sequence: None,
        content_type: "application/json".into(),
        data: Bytes::from_static(b"{}"),
        accepted_at: due_at,
        channels: turnbuckle_domain::Channels::default(),
        order: None,
    };
    Job {
        delivery: LiveDelivery {
            id: id(number),
            tenant,
            endpoint: endpoint(),
            shard: Shard::of(endpoint()),
            format: PayloadFormat::Raw,
            due_at,
            attempts: 0,
            round_start: 0,
            round_at: due_at,
        },
        event: Arc::new(event),
        weight: 2,
    }
}

#[test]
fn a_full_lane_leaves_deliveries_to_the_store_and_asks_for_them_when_it_runs_low() {
    let mut lane = Lane::new(endpoint());
    for number in 0..LANE_QUEUE_MAX as u32 {
        assert!(lane.hand_off(job(number, at(1)), true).is_ok());
    }
    assert!(lane.hand_off(job(9_000, at(2)), true).is_err());
    assert!(lane.wanted_claim().is_none(), "no room yet");
    while lane.queued() > LANE_REFILL_AT {
        let job = lane.pop().unwrap();
        lane.settled(job.delivery.id);
    }
    let claim = lane.wanted_claim().unwrap();
    assert_eq!(usize::from(claim.limit), LANE_QUEUE_MAX - LANE_REFILL_AT);
}

#[test]
fn nothing_overtakes_the_backlog() {
    let mut lane = Lane::new(endpoint());
    lane.note_overflow();
    assert!(lane.hand_off(job(1, at(1)), true).is_err(), "older ones wait in the store");
    lane.claim_started();
    assert!(lane.hand_off(job(2, at(2)), true).is_err(), "a claim is under way");
    lane.claim_ended(10, 0);
    assert!(lane.backlog, "what came during the claim may have been missed by it");
    lane.claim_started();
    lane.claim_ended(10, 0);
    assert!(lane.hand_off(job(3, at(3)), true).is_ok());
}

#[test]
fn a_claim_brings_nothing_twice_and_the_cursor_only_goes_back_for_what_came_to_light_behind_it() {
    let mut lane = Lane::new(endpoint());
    lane.note_overflow();
    lane.claim_started();
    assert!(lane.claimed(job(5, at(50))));
    assert!(!lane.claimed(job(5, at(50))), "it is here already");
    lane.claim_ended(10, 2);
    lane.discovered(at(50), id(5), false);
    assert!(!lane.backlog, "the first pending one is here");
    lane.note_overflow();
    assert_eq!(lane.wanted_claim().unwrap().after, (at(50), id(5)));
    lane.discovered(at(10), id(1), false);
    assert_eq!(lane.wanted_claim().unwrap().after, START, "it is due before the cursor");
}

#[test]
fn a_row_that_was_settled_while_a_claim_had_it_is_not_sent_again() {
    let mut lane = Lane::new(endpoint());
    assert!(lane.hand_off(job(1, at(1)), true).is_ok());
    lane.pop();
    lane.note_overflow();
    lane.claim_started();
    lane.settled(id(1));
    assert!(!lane.claimed(job(1, at(1))), "the claim read it before it was settled");
    lane.claim_ended(10, 1);
    lane.note_overflow();
    lane.claim_started();
    assert!(lane.claimed(job(1, at(9))), "a retry that is due later is another turn");
}

#[test]
fn losing_the_shard_forgets_what_waits_and_keeps_what_is_in_flight() {
    let mut lane = Lane::new(endpoint());
    for number in 0..3 {
        assert!(lane.hand_off(job(number, at(1)), true).is_ok());
    }
    let in_flight = lane.pop().unwrap();
    assert_eq!(lane.drain(), (2, 4));
    assert_eq!(lane.held(), 1);
    lane.settled(in_flight.delivery.id);
    assert!(lane.is_idle());
}

/// The store and the dispatcher in a nutshell: pending rows, and a lane that must empty them.
struct Model {
    lane: Lane,
    /// Pending rows in the store.
    pending: BTreeSet<(Timestamp, DeliveryId)>,
    in_flight: Vec<(Timestamp, DeliveryId)>,
    unsettled: Vec<(Timestamp, DeliveryId)>,
    started: BTreeSet<DeliveryId>,
    handed_over: Vec<Job>,
    on_their_way: Option<Vec<(Timestamp, DeliveryId)>>,
    clock: i64,
    next: u32,
}

impl Model {
    fn publish(&mut self, late_by: i64, handed_over: bool) {
        self.next += 1;
        let due_at = at(self.clock - late_by);
        self.pending.insert((due_at, id(self.next)));
        if handed_over {
            self.handed_over.push(job(self.next, due_at));
        }
    }

    /// A hand-off may arrive long after its commit, even after a claim brought the same row.
    fn handed_off(&mut self, index: usize) {
        let job = self.handed_over.swap_remove(index);
        drop(self.lane.hand_off(job, true));
    }

    /// The store reads; the rows are on their way.
    fn claim(&mut self) {
        let Some(claim) = self.lane.wanted_claim().filter(|_| self.on_their_way.is_none()) else {
            return;
        };
        self.lane.claim_started();
        let rows = self
            .pending
            .iter()
            .filter(|(due_at, id)| *due_at <= at(self.clock) && (*due_at, *id) > claim.after)
            .take(3)
            .copied()
            .collect();
        self.on_their_way = Some(rows);
    }

    /// The rows arrive.
    fn claimed(&mut self) {
        let Some(rows) = self.on_their_way.take() else { return };
        for (due_at, id) in &rows {
            let number = u32::try_from(id.uuid().as_u128()).unwrap();
            self.lane.claimed(job(number, *due_at));
        }
        self.lane.claim_ended(3, rows.len());
    }

    fn start(&mut self) {
        let Some(job) = self.lane.pop() else { return };
        let row = (job.delivery.due_at, job.delivery.id);
        assert!(self.started.insert(row.1), "{row:?} was started twice");
        self.in_flight.push(row);
    }

    fn discover(&mut self) {
        if let Some((due_at, first)) = self.pending.first().copied() {
            self.lane.discovered(due_at, first, false);
        }
    }

    fn step(&mut self, random: &SeededRandom) {
        let pick = |count: usize| (random.unit() * count as f64) as usize;
        self.clock += 1;
        match pick(10) {
            9 if !self.handed_over.is_empty() => self.handed_off(pick(self.handed_over.len())),
            0 => self.publish(0, true),
            1 => self.publish(0, false),
            2 => self.publish(pick(20) as i64, false),
            3 => self.claim(),
            4 | 5 => self.start(),
            8 => self.claimed(),
            6 if !self.in_flight.is_empty() => {
                let row = self.in_flight.swap_remove(pick(self.in_flight.len()));
                self.unsettled.push(row);
            }
            6 => self.discover(),
            _ => self.settle(),
        }
    }

    fn settle(&mut self) {
        if let Some(row) = self.unsettled.pop() {
            self.pending.remove(&row);
            self.lane.settled(row.1);
        }
    }
}

#[test]
fn every_pending_delivery_is_started_exactly_once_whatever_the_order() {
    for seed in 0..3_000 {
        let random = SeededRandom::from_number(seed);
        let mut model = Model {
            lane: Lane::new(endpoint()),
            pending: BTreeSet::new(),
            in_flight: Vec::new(),
            unsettled: Vec::new(),
            started: BTreeSet::new(),
            handed_over: Vec::new(),
            on_their_way: None,
            clock: 1_000,
            next: 0,
        };
        for _ in 0..120 {
            model.step(&random);
        }
        for _ in 0..1_000 {
            if !model.handed_over.is_empty() {
                model.handed_off(0);
            }
            model.discover();
            model.claim();
            model.claimed();
            model.start();
            model.unsettled.append(&mut model.in_flight);
            model.settle();
        }
        assert!(model.pending.is_empty(), "seed {seed}: {} never left", model.pending.len());
        assert_eq!(model.started.len(), model.next as usize, "seed {seed}");
        assert_eq!(model.lane.held(), 0, "seed {seed}");
    }
}
