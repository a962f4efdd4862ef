use super::*;
use uuid::Uuid;

const SECOND: Duration = Duration::from_secs(1);
const HOLD: OrderingPolicy = OrderingPolicy::Hold { timeout: Duration::from_secs(60) };
const MONTH: Duration = Duration::from_secs(30 * 86_400);

fn uid(number: i64) -> EventUid {
    EventUid::from_uuid(Uuid::from_u128(u128::try_from(number).unwrap()))
}

fn second(second: u64) -> Timestamp {
    Timestamp::from_micros(1_800_000_000_000_000) + SECOND * u32::try_from(second).unwrap()
}

/// An event whose uid is its sequence, or 1,000 more for another one of the same sequence.
fn arrival(event: i64, at: Timestamp, policy: OrderingPolicy, is_final: bool) -> Arrival {
    let instruction = OrderInstruction { policy, is_final, retention: MONTH };
    Arrival { event: uid(event), sequence: event % 1_000, at, instruction }
}

/// Each event arrives a second after the one before; `!` makes it final. Answers how each was put:
/// `now`, `late` (at its deadline or before), `-` for no deliveries, each with its note, and moves as
/// `>5` for a release and `x5` for one that never goes.
fn told(policy: OrderingPolicy, events: &str) -> String {
    let mut order = SubjectOrder::default();
    let mut told = Vec::new();
    for (index, text) in events.split(' ').enumerate() {
        let at = second(u64::try_from(index).unwrap());
        let number = text.trim_end_matches('!').parse().unwrap();
        let placing = order.place(&arrival(number, at, policy, text.ends_with('!')));
        let mut line = match placing.due_at {
            Some(due_at) if due_at == at => "now".to_owned(),
            Some(_) => "late".to_owned(),
            None => "-".to_owned(),
        };
        if let Some(order) = placing.order {
            line = format!("{line}({})", order.as_str());
        }
        for moved in placing.moves {
            let sign = match (moved.is_release, moved.to) {
                (true, _) => '>',
                (false, Some(_)) => '~',
                (false, None) => 'x',
            };
            line = format!("{line}{sign}{}", moved.event.uuid().as_u128());
        }
        told.push(line);
    }
    told.join(" ")
}

#[test]
fn each_policy_says_what_becomes_of_an_event() {
    use OrderingPolicy::{DropStale, Mark, Pass};
    let table = [
        (Pass, "5 3 9 3", "now now now now"),
        (Mark, "1 2 3", "now now now"),
        // The first one seen begins the order, wherever it stands.
        (Mark, "7 8 6", "now now now(stale)"),
        (Mark, "1 3 2 4", "now now(gap) now(stale) now"),
        (Mark, "1 1001 2", "now now(stale) now"),
        (Mark, "1 2! 3 2 9", "now now now(after-final) now(stale) now(after-final)"),
        (Mark, "1 3! 2 4", "now now(gap) now(stale) now(after-final)"),
        // A final state that is stale was left before it was heard of.
        (Mark, "2 1! 3", "now now(stale) now"),
        (DropStale, "1 3 2 4", "now now -(stale) now"),
        (DropStale, "1 1001", "now -(stale)"),
        (DropStale, "1 5! 6 3", "now now -(after-final) -(stale)"),
        (HOLD, "1 2 3", "now now now"),
        (HOLD, "1 3 2 4", "now late(held) now>3 now"),
        (HOLD, "1 4 3 2", "now late(held) late(held) now>3>4"),
        (HOLD, "1 4 6 2 3 5", "now late(held) late(held) now now>4 now>6"),
        (HOLD, "1 3 1003 2 3", "now late(held) -(stale) now>3 -(stale)"),
        (HOLD, "5 4", "now -(stale)"),
        // What comes after a held final one comes after it for ever.
        (HOLD, "1 3! 4 2", "now late(held) -(after-final) now>3"),
        (HOLD, "1 4 3! 2 5", "now late(held) late(held)x4 now>3 -(after-final)"),
        (HOLD, "1 3 4 2! 5", "now late(held) late(held) nowx3x4 -(after-final)"),
        (HOLD, "1 3 2 4! 5", "now late(held) now>3 now -(after-final)"),
    ];
    for (policy, events, expected) in table {
        assert_eq!(told(policy, events), expected, "{policy:?} {events}");
    }
}

#[test]
fn the_ends_of_the_number_range_are_sequences_too() {
    let mut order = SubjectOrder::default();
    let mut place = |sequence, at| {
        let placing = order.place(&Arrival { sequence, ..arrival(1, second(at), HOLD, false) });
        (placing.order, placing.due_at == Some(second(at)))
    };
    assert_eq!(place(i64::MIN, 0), (None, true));
    assert_eq!(place(i64::MIN + 1, 1), (None, true));
    assert_eq!(place(i64::MAX, 2), (Some(EventOrder::Held), false));
    assert_eq!(place(i64::MAX, 3), (Some(EventOrder::Stale), false));
}

#[test]
fn a_gap_is_given_up_when_the_first_that_waits_for_it_has_waited_long_enough() {
    let mut order = SubjectOrder::default();
    let mut place = |number, at: u64| order.place(&arrival(number, second(at), HOLD, false));
    place(1, 0);
    let early = place(5, 10).due_at.unwrap();
    assert_eq!(early, second(70));
    // It may not be overtaken, so it goes with the one behind it, just before it.
    let third = place(3, 30);
    assert_eq!((third.due_at, third.moves.len()), (Some(early - order_limits::HOLD_STEP), 0));
    // Nothing is missing between them: it goes with the one before it.
    let sixth = place(6, 40).due_at.unwrap();
    assert!(early < sixth && sixth <= second(70) + order_limits::HOLD_SLACK * 2, "{sixth:?}");
    assert_eq!(place(8, 50).due_at, Some(second(110)));
    // After that the order goes on behind it, and what was given up is stale.
    let next = place(7, 80);
    assert_eq!((next.order, next.due_at), (None, Some(second(80))));
    assert_eq!(next.gaps, GapEnds { closed: 1, timed_out: 2, overfull: 0 });
    assert_eq!(next.moves.len(), 1);
    assert_eq!(place(2, 81).order, Some(EventOrder::Stale));
    assert_eq!(place(9, 82).order, None);
}

/// Its sender got it in later, and whoever took it has a clock that is behind.
#[test]
fn the_next_one_is_due_after_the_last_one_whatever_the_clocks_say() {
    let early = |micros| second(100) - Duration::from_micros(micros);
    for policy in [HOLD, OrderingPolicy::Mark, OrderingPolicy::DropStale] {
        let mut order = SubjectOrder::default();
        order.place(&arrival(1, second(100), policy, false));
        let next = order.place(&arrival(2, early(700), policy, false));
        assert_eq!(next.due_at, Some(second(100) + ONE));
        let next = order.place(&arrival(3, early(900), policy, false));
        assert_eq!(next.due_at, Some(second(100) + ONE * 2));
        // A clock that is set back by an hour stops nobody.
        let next = order.place(&arrival(4, second(50), policy, false));
        assert_eq!(next.due_at, Some(second(50)));
    }
}

/// The worst order of arrival still writes each of them once.
#[test]
fn what_waits_is_not_moved_for_those_that_come_before_it() {
    let mut order = SubjectOrder::default();
    order.place(&arrival(1, second(0), HOLD, false));
    let most = i64::try_from(order_limits::HELD).unwrap();
    for number in (3..3 + most).rev() {
        let placing = order.place(&arrival(number, second(1), HOLD, false));
        assert_eq!((placing.order, placing.moves.len()), (Some(EventOrder::Held), 0), "{number}");
    }
}

#[test]
fn a_shorter_time_moves_what_waits_before() {
    let mut order = SubjectOrder::default();
    order.place(&arrival(1, second(0), HOLD, false));
    order.place(&arrival(3, second(1), HOLD, false));
    let short = OrderingPolicy::Hold { timeout: SECOND };
    let placing = order.place(&arrival(5, second(2), short, false));
    let [moved] = placing.moves[..] else { panic!("{placing:?}") };
    assert_eq!((moved.event, moved.from, moved.to), (uid(3), second(61), Some(second(3))));
    assert!(!moved.is_release);
    assert!(placing.due_at > moved.to);
}

#[test]
fn past_the_bound_the_oldest_gap_is_given_up() {
    let mut order = SubjectOrder::default();
    order.place(&arrival(1, second(0), HOLD, false));
    let most = i64::try_from(order_limits::HELD).unwrap();
    for number in 0..most {
        let placing = order.place(&arrival(10 + number, second(1), HOLD, false));
        assert_eq!(placing.order, Some(EventOrder::Held));
    }
    assert_eq!(order.held.len(), order_limits::HELD);
    let placing = order.clone().place(&arrival(10 + most, second(2), HOLD, false));
    assert_eq!((placing.order, placing.gaps.overfull), (None, 1));
    assert_eq!(placing.moves.len(), order_limits::HELD);
    assert!(placing.moves.iter().all(|moved| moved.is_release));
    assert!(placing.due_at > placing.moves.last().unwrap().to);
    // One before all of them goes itself.
    let placing = order.place(&arrival(5, second(2), HOLD, false));
    assert_eq!((placing.order, placing.due_at), (None, Some(second(2))));
    assert!(placing.moves.is_empty());
    assert_eq!((order.last, order.held.len()), (Some(5), order_limits::HELD));
}

#[test]
fn what_waits_is_not_lost_when_the_policy_changes() {
    let mut order = SubjectOrder::default();
    order.place(&arrival(1, second(0), HOLD, false));
    order.place(&arrival(3, second(0), HOLD, false));
    order.place(&arrival(6, second(0), HOLD, false));
    let placing = order.place(&arrival(5, second(1), OrderingPolicy::Mark, false));
    assert_eq!(placing.order, Some(EventOrder::Gap));
    let released: Vec<_> = placing.moves.iter().map(|moved| moved.event).collect();
    assert_eq!(released, [uid(3), uid(6)]);
    assert_eq!((order.last, order.held.len()), (Some(6), 0));
}

#[test]
fn a_subject_is_forgotten_after_its_time_and_never_before_what_waits() {
    let hour = Duration::from_secs(3_600);
    let instruction = |policy| OrderInstruction { policy, is_final: true, retention: hour };
    let mut order = SubjectOrder::default();
    let first = arrival(9, second(0), OrderingPolicy::DropStale, true);
    let first = Arrival { instruction: instruction(OrderingPolicy::DropStale), ..first };
    order.place(&first);
    assert!(order.forget_at > first.at + hour && order.forget_at <= first.at + hour * 2);
    let later = Arrival { event: uid(1), sequence: 1, at: order.forget_at, ..first };
    assert_eq!(order.place(&later).order, None);
    assert_eq!(order.last, Some(1));

    let mut order = SubjectOrder { last: Some(1), forget_at: second(9_999), ..Default::default() };
    let day = OrderingPolicy::Hold { timeout: hour * 24 };
    order.place(&Arrival { instruction: instruction(day), ..arrival(3, second(0), day, true) });
    assert!(order.forget_at > order.held[0].until);
}
