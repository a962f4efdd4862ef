use super::*;
use crate::DeliveryId;

fn filter() -> ReplayFilter {
    ReplayFilter {
        endpoint: None,
        event_types: Vec::new(),
        source: None,
        events: Vec::new(),
        from: None,
        until: Timestamp::from_micros(1_800_000_000_000_000),
        states: ReopenedStates::FAILED,
        reasons: Vec::new(),
    }
}

fn row(
    state: DeliveryState,
    reason: Option<FinishReason>,
    kept: Option<(&str, &str)>,
) -> ReplayRow {
    ReplayRow::Delivery {
        id: DeliveryId::from_uuid(Uuid::from_u128(7 << 64 | 1)),
        endpoint: EndpointId::from_uuid(Uuid::from_u128(3)),
        event: EventUid::from_uuid(Uuid::from_u128(7 << 64 | 2)),
        state,
        reason,
        kept: kept.map(|(source, event_type)| (source.to_owned(), event_type.to_owned())),
    }
}

const DEAD: (DeliveryState, Option<FinishReason>) =
    (DeliveryState::Dead, Some(FinishReason::AttemptsExhausted));

#[test]
fn a_filter_chooses_by_every_part_of_it() {
    let dead = row(DEAD.0, DEAD.1, Some(("shop", "order.paid")));
    let delivered = row(DeliveryState::Delivered, None, Some(("shop", "order.paid")));
    assert_eq!(filter().look(&dead), Looked::Chosen);
    assert_eq!(filter().look(&delivered), Looked::Other);
    let endpoint = |number| Some(EndpointId::from_uuid(Uuid::from_u128(number)));
    let event = |low: u128| EventUid::from_uuid(Uuid::from_u128(7 << 64 | low));
    let pattern = |text| vec![TypePattern::parse(text).unwrap()];
    let all = ReopenedStates { delivered: true, ..ReopenedStates::FAILED };
    for (filter, expected) in [
        (ReplayFilter { endpoint: endpoint(3), ..filter() }, Looked::Chosen),
        (ReplayFilter { endpoint: endpoint(4), ..filter() }, Looked::Other),
        (ReplayFilter { event_types: pattern("order.*"), ..filter() }, Looked::Chosen),
        (ReplayFilter { event_types: pattern("user.*"), ..filter() }, Looked::Other),
        (ReplayFilter { source: Some("shop".into()), ..filter() }, Looked::Chosen),
        (ReplayFilter { source: Some("till".into()), ..filter() }, Looked::Other),
        (ReplayFilter { events: vec![event(1), event(2)], ..filter() }, Looked::Chosen),
        (ReplayFilter { events: vec![event(1), event(3)], ..filter() }, Looked::Other),
        (
            ReplayFilter { reasons: vec![FinishReason::AttemptsExhausted], ..filter() },
            Looked::Chosen,
        ),
        (ReplayFilter { reasons: vec![FinishReason::FinalAnswer], ..filter() }, Looked::Other),
    ] {
        assert_eq!(filter.look(&dead), expected, "{filter:?}");
    }
    assert_eq!(ReplayFilter { states: all, ..filter() }.look(&delivered), Looked::Chosen);
}

#[test]
fn of_an_event_that_is_gone_only_its_delivery_is_known() {
    let gone = row(DEAD.0, DEAD.1, None);
    assert_eq!(filter().look(&gone), Looked::Gone);
    let by_source = ReplayFilter { source: Some("shop".into()), ..filter() };
    assert_eq!(by_source.look(&gone), Looked::Other);
    let dead_only = ReopenedStates { dead: false, ..ReopenedStates::FAILED };
    assert_eq!(ReplayFilter { states: dead_only, ..filter() }.look(&gone), Looked::Other);
}

#[test]
fn a_walk_is_bounded_by_times_and_by_named_events() {
    let at = |millis: i64| Timestamp::from_micros(millis * 1_000);
    let id = |millis: u128| millis << 80;
    let (first, last) = ReplayFilter { from: Some(at(5)), until: at(9), ..filter() }.range();
    assert_eq!((first.as_u128(), last.as_u128()), (id(5), id(9) - 1));
    // A moment inside a millisecond takes the whole of it.
    let odd = ReplayFilter {
        from: Some(Timestamp::from_micros(5_001)),
        until: Timestamp::from_micros(8_001),
        ..filter()
    };
    assert_eq!(odd.range(), (first, last));
    let events = vec![EventUid::from_uuid(Uuid::from_u128(id(6) | 5 << 64 | 77))];
    let named = ReplayFilter { events, from: Some(at(5)), until: at(9), ..filter() };
    let (first, last) = named.range();
    assert_eq!((first.as_u128(), last.as_u128()), (id(6) | (5 << 64), id(6) | ((6 << 64) - 1)));
}

#[test]
fn finished_replays_stay_as_they_are() {
    for state in ReplayState::ALL {
        assert_eq!(ReplayState::parse(state.as_str()), Some(state));
        for to in ReplayState::ALL {
            assert!(!(state.is_final() && state.may_become(to)), "{state:?} {to:?}");
        }
    }
    assert!(ReplayState::Running.may_become(ReplayState::Paused));
    assert!(ReplayState::Paused.may_become(ReplayState::Pending));
    assert!(!ReplayState::Running.may_become(ReplayState::Pending));
}
