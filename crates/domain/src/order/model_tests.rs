//! Random arrivals of one subject against what must hold whatever comes.

use super::*;
use crate::{Random, SeededRandom};
use std::collections::BTreeMap;
use uuid::Uuid;

const CASES: u64 = 2_000;
const TIMEOUT: Duration = Duration::from_millis(400);
/// How far the clocks are apart that accept events.
const SKEW: Duration = Duration::from_millis(100);

fn below(random: &SeededRandom, limit: u32) -> u32 {
    let mut bytes = [0; 4];
    random.fill(&mut bytes);
    u32::from_le_bytes(bytes) % limit
}

/// Deliveries as a store has them.
#[derive(Default)]
struct Deliveries {
    /// When each is due, and its sequence.
    due: BTreeMap<EventUid, (Timestamp, i64)>,
    /// When each was accepted, of those that waited.
    held: BTreeMap<EventUid, Timestamp>,
}

impl Deliveries {
    fn apply(&mut self, arrival: &Arrival, placing: &Placing) {
        for moved in &placing.moves {
            let (due_at, sequence) = self.due[&moved.event];
            assert_eq!(due_at, moved.from, "{moved:?}");
            // What is gone is never moved, nor what is to come into the past.
            assert!(due_at > arrival.at && moved.to.is_none_or(|to| to >= arrival.at), "{moved:?}");
            match moved.to {
                Some(to) => self.due.insert(moved.event, (to, sequence)),
                None => self.due.remove(&moved.event),
            };
        }
        if let Some(due_at) = placing.due_at {
            assert!(due_at >= arrival.at);
            self.due.insert(arrival.event, (due_at, arrival.sequence));
        }
        if placing.order == Some(EventOrder::Held) {
            self.held.insert(arrival.event, arrival.at);
        }
    }

    /// Sequences as they go.
    fn sent(&self) -> Vec<i64> {
        let mut sent: Vec<_> = self.due.values().copied().collect();
        sent.sort_unstable();
        sent.into_iter().map(|(_, sequence)| sequence).collect()
    }
}

fn case(seed: u64) -> (Vec<Arrival>, Deliveries, SubjectOrder) {
    let random = SeededRandom::from_number(seed);
    let mut order = SubjectOrder::default();
    let mut deliveries = Deliveries::default();
    let mut now = Timestamp::from_micros(1_800_000_000_000_000);
    let skew = if seed.is_multiple_of(2) { 1 } else { SKEW.as_millis().try_into().unwrap() };
    let mut arrivals = Vec::new();
    let (spread, end) = (1 + below(&random, 12), 60 + below(&random, 60));
    for number in 0..u128::from(20 + below(&random, 100)) {
        now = now + Duration::from_millis(u64::from(1 + below(&random, 40)));
        // Accepted by clocks that are a little apart.
        let at = now + Duration::from_millis(u64::from(below(&random, skew)));
        let near = u32::try_from(number).unwrap() + below(&random, spread);
        let sequence = i64::from(near);
        let instruction = OrderInstruction {
            policy: OrderingPolicy::Hold { timeout: TIMEOUT },
            is_final: near >= end,
            retention: Duration::from_secs(86_400),
        };
        let event = EventUid::from_uuid(Uuid::from_u128(number));
        let arrival = Arrival { event, sequence, at, instruction };
        let placing = order.place(&arrival);
        deliveries.apply(&arrival, &placing);
        check(&order);
        arrivals.push(arrival);
    }
    (arrivals, deliveries, order)
}

fn check(order: &SubjectOrder) {
    assert!(order.held.len() <= order_limits::HELD);
    for pair in order.held.windows(2) {
        assert!(pair[0].sequence < pair[1].sequence && pair[0].until < pair[1].until, "{order:?}");
        assert!(!pair[0].is_final, "{order:?}");
    }
    let first = order.held.first().map(|held| held.sequence);
    assert!(first.is_none_or(|first| Some(first - 1) > order.last), "{order:?}");
    assert!(order.held.last().is_none_or(|held| held.until < order.forget_at));
}

#[test]
fn under_hold_everything_goes_in_order_in_time_and_once() {
    for seed in 0..CASES {
        let (arrivals, deliveries, order) = case(seed);
        let sent = deliveries.sent();
        assert!(sent.windows(2).all(|pair| pair[0] < pair[1]), "seed {seed}: {sent:?}");
        // Nothing waits longer than it may.
        for (event, accepted_at) in &deliveries.held {
            if let Some((due_at, _)) = deliveries.due.get(event) {
                let slack = order_limits::HOLD_SLACK * 2 + SKEW;
                assert!(*due_at <= *accepted_at + TIMEOUT + slack, "seed {seed}");
            }
        }
        // At most one final state goes, as the last one.
        let is_final = |sequence: &i64| {
            arrivals.iter().any(|a| a.sequence == *sequence && a.instruction.is_final)
        };
        let finals = sent.iter().filter(|sequence| is_final(sequence)).count();
        assert!(finals <= 1, "seed {seed}: {sent:?}");
        assert!(finals == 0 || sent.last().is_some_and(is_final), "seed {seed}: {sent:?}");
        assert!(order.last >= arrivals.first().map(|first| first.sequence));
    }
}

/// What comes in time is lost never: a shuffle within the time goes out whole.
#[test]
fn a_shuffle_within_the_time_goes_out_whole() {
    for seed in 0..CASES {
        let random = SeededRandom::from_number(seed);
        let mut rest: Vec<i64> = (2..=30).collect();
        let mut order = SubjectOrder::default();
        let mut deliveries = Deliveries::default();
        let mut at = Timestamp::from_micros(1_800_000_000_000_000);
        let mut next: i64 = 1;
        loop {
            let instruction = OrderInstruction {
                policy: OrderingPolicy::Hold { timeout: TIMEOUT },
                is_final: next == 30,
                retention: Duration::from_secs(86_400),
            };
            let event = EventUid::from_uuid(Uuid::from_u128(next.unsigned_abs().into()));
            let arrival = Arrival { event, sequence: next, at, instruction };
            deliveries.apply(&arrival, &order.place(&arrival));
            if rest.is_empty() {
                break;
            }
            at = at + Duration::from_millis(10);
            let pick = below(&random, u32::try_from(rest.len()).unwrap());
            next = rest.swap_remove(usize::try_from(pick).unwrap());
        }
        assert_eq!(deliveries.sent(), (1..=30).collect::<Vec<_>>(), "seed {seed}");
        assert_eq!((order.last, order.is_final, order.held.len()), (Some(30), true, 0));
    }
}

/// Without holding the rule is short enough to be written twice.
#[test]
fn without_holding_it_is_the_highest_seen() {
    for seed in 0..CASES {
        let random = SeededRandom::from_number(seed);
        let policy = match seed % 2 {
            0 => OrderingPolicy::Mark,
            _ => OrderingPolicy::DropStale,
        };
        let mut order = SubjectOrder::default();
        let (mut highest, mut ended) = (None, false);
        for number in 0..60_u128 {
            let at = Timestamp::from_micros(1_800_000_000_000_000);
            let sequence = i64::from(below(&random, 40));
            let is_final = sequence >= 37;
            let instruction = OrderInstruction { policy, is_final, retention: TIMEOUT };
            let event = EventUid::from_uuid(Uuid::from_u128(number));
            let placing = order.place(&Arrival { event, sequence, at, instruction });
            let expected = match highest {
                Some(highest) if sequence <= highest => Some(EventOrder::Stale),
                Some(_) if ended => Some(EventOrder::AfterFinal),
                Some(highest) if sequence > highest + 1 => Some(EventOrder::Gap),
                _ => None,
            };
            let goes = matches!(expected, None | Some(EventOrder::Gap));
            let is_drop = policy == OrderingPolicy::DropStale;
            let note = expected.filter(|order| !(is_drop && *order == EventOrder::Gap));
            assert_eq!((placing.order, placing.moves.len()), (note, 0), "seed {seed}");
            assert_eq!(placing.due_at.is_some(), goes || !is_drop, "seed {seed}");
            if goes {
                highest = Some(sequence);
                ended |= is_final;
            }
        }
    }
}
