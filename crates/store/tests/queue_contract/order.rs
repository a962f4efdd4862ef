//! The order of subjects: what each policy stores, and what becomes of those that wait.

use crate::{
    common::on_both_backends,
    fixture::{Fixture, START},
};
use std::time::Duration;
use turnbuckle_domain::{
    Append, AppendResult, DeliveryId, DeliveryState, EndpointId, Event, EventOrder, FinishReason,
    Finished, Next, OrderInstruction, OrderingPolicy, Placed, TenantId, Timestamp,
};

on_both_backends!(
    stale_ones_are_recorded_and_make_no_deliveries,
    a_mark_stands_with_the_event_and_its_deliveries,
    what_waits_goes_in_sequence_when_its_gap_closes,
    both_sides_of_a_gap_may_come_in_one_batch,
    a_gap_that_times_out_is_not_waited_for_again,
    a_cancelled_one_that_waited_stays_cancelled,
    one_that_somebody_hurried_or_tried_is_left_alone,
    a_final_state_withdraws_what_waits_behind_it,
    a_final_state_withdraws_inside_a_batch_too,
    subjects_sources_and_tenants_have_orders_of_their_own,
    events_without_an_instruction_have_no_order,
    past_the_bound_what_waits_goes_on,
    a_subject_is_forgotten_after_its_time_and_its_row_goes,
);

pub(crate) const HOLD: OrderingPolicy = OrderingPolicy::Hold { timeout: Duration::from_secs(60) };
pub(crate) const MILLI: Duration = Duration::from_millis(1);
const RETENTION: Duration = Duration::from_secs(86_400);

/// One subject, and one endpoint that wants everything of it.
pub(crate) struct Case {
    pub(crate) tenant: TenantId,
    pub(crate) endpoint: EndpointId,
    pub(crate) policy: OrderingPolicy,
}

impl Case {
    pub(crate) fn new(fixture: &Fixture, policy: OrderingPolicy) -> Self {
        Self { tenant: fixture.tenant(), endpoint: fixture.endpoint(), policy }
    }

    /// An event a millisecond later than the one before.
    pub(crate) fn event(&self, fixture: &Fixture, sequence: i64) -> Append {
        self.of(fixture, "order/7", sequence, false)
    }

    pub(crate) fn of(&self, fixture: &Fixture, subject: &str, at: i64, is_final: bool) -> Append {
        fixture.clock.advance(MILLI);
        let event = Event {
            subject: Some(subject.to_owned()),
            sequence: Some(at),
            ..fixture.event(self.tenant, &format!("{subject}:{at}"))
        };
        let instruction = OrderInstruction { policy: self.policy, is_final, retention: RETENTION };
        Append { order: Some(instruction), ..fixture.to(event, &[self.endpoint]) }
    }

    /// Appends these sequences one by one, and answers how each stood.
    async fn append(&self, fixture: &Fixture, sequences: &[i64]) -> Vec<Option<EventOrder>> {
        let mut stood = Vec::new();
        for sequence in sequences {
            stood.push(placed(fixture, self.event(fixture, *sequence)).await.order);
        }
        stood
    }

    /// Sequences that are due now, as they go, each with its note.
    pub(crate) async fn due(&self, fixture: &Fixture) -> Vec<(i64, Option<EventOrder>)> {
        fixture.clock.advance(MILLI);
        let claimed = fixture.claim(self.endpoint, 1_000).await;
        let event = |claimed: &turnbuckle_domain::Claimed| claimed.event.clone().unwrap();
        claimed.iter().map(|c| (event(c).sequence.unwrap(), event(c).order)).collect()
    }

    pub(crate) async fn sequences_due(&self, fixture: &Fixture) -> Vec<i64> {
        self.due(fixture).await.into_iter().map(|(sequence, _)| sequence).collect()
    }
}

pub(crate) async fn append(fixture: &Fixture, batch: &[Append]) -> Vec<AppendResult> {
    fixture.store.log.append(batch).await.unwrap()
}

pub(crate) async fn placed(fixture: &Fixture, event: Append) -> Placed {
    match append(fixture, &[event]).await.remove(0) {
        AppendResult::Placed(placed) => placed,
        other => panic!("{other:?}"),
    }
}

async fn noted(fixture: &Fixture, append: &Append) -> Option<EventOrder> {
    let event = &append.event;
    fixture.store.history.event(event.tenant, event.uid).await.unwrap().unwrap().order
}

async fn due_at(fixture: &Fixture, tenant: TenantId, id: DeliveryId) -> Option<Timestamp> {
    fixture.view(tenant, id).await.delivery.due_at
}

async fn stale_ones_are_recorded_and_make_no_deliveries(fixture: &Fixture) {
    let case = Case::new(fixture, OrderingPolicy::DropStale);
    assert_eq!(case.append(fixture, &[5, 9]).await, [None, None]);
    let late = case.event(fixture, 7);
    let late_placed = placed(fixture, late.clone()).await;
    assert_eq!((late_placed.order, late_placed.due_at), (Some(EventOrder::Stale), None));
    assert_eq!(noted(fixture, &late).await, Some(EventOrder::Stale));
    assert_eq!(fixture.number("select count(*) from delivery").await, 2);
    assert_eq!(case.due(fixture).await, [(5, None), (9, None)]);
    // Recorded means: a repeat is one.
    let again = append(fixture, &[case.event(fixture, 7)]).await;
    assert!(matches!(again[..], [AppendResult::Duplicate { uid, .. }] if uid == late.event.uid));
}

async fn a_mark_stands_with_the_event_and_its_deliveries(fixture: &Fixture) {
    let case = Case::new(fixture, OrderingPolicy::Mark);
    let (stale, gap) = (Some(EventOrder::Stale), Some(EventOrder::Gap));
    assert_eq!(case.append(fixture, &[1, 3, 2, 4]).await, [None, gap, stale, None]);
    let end = case.of(fixture, "order/7", 5, true);
    assert_eq!(placed(fixture, end).await.order, None);
    let after = case.event(fixture, 6);
    assert_eq!(placed(fixture, after.clone()).await.order, Some(EventOrder::AfterFinal));
    assert_eq!(noted(fixture, &after).await, Some(EventOrder::AfterFinal));
    let after = Some(EventOrder::AfterFinal);
    let due = [(1, None), (3, gap), (2, stale), (4, None), (5, None), (6, after)];
    assert_eq!(case.due(fixture).await, due);
}

async fn what_waits_goes_in_sequence_when_its_gap_closes(fixture: &Fixture) {
    let case = Case::new(fixture, HOLD);
    let held = Some(EventOrder::Held);
    assert_eq!(case.append(fixture, &[1, 4, 3, 6]).await, [None, held, held, held]);
    assert_eq!(case.sequences_due(fixture).await, [1]);
    let closing = placed(fixture, case.event(fixture, 2)).await;
    assert_eq!((closing.order, closing.gaps.closed), (None, 1));
    assert_eq!(closing.released, [case.endpoint]);
    assert_eq!(case.due(fixture).await, [(1, None), (2, None), (3, held), (4, held)]);
    assert_eq!(case.append(fixture, &[5, 7]).await, [None, None]);
    assert_eq!(case.sequences_due(fixture).await, [1, 2, 3, 4, 5, 6, 7]);
    // All of it was delivered once each, under one row of its subject.
    assert_eq!(fixture.number("select count(*) from delivery").await, 7);
    assert_eq!(fixture.number("select count(*) from subject_order where held is null").await, 1);
}

async fn both_sides_of_a_gap_may_come_in_one_batch(fixture: &Fixture) {
    let case = Case::new(fixture, HOLD);
    let batch = [1, 4, 3, 2, 6].map(|sequence| case.event(fixture, sequence));
    let results = append(fixture, &batch).await;
    let placed = |result: &AppendResult| match result {
        AppendResult::Placed(placed) => placed.clone(),
        other => panic!("{other:?}"),
    };
    let placed: Vec<Placed> = results.iter().map(placed).collect();
    // They are new: nobody is told of anything that waited.
    assert!(placed.iter().all(|placed| placed.released.is_empty()));
    assert!(placed[3].due_at < placed[2].due_at && placed[2].due_at < placed[1].due_at);
    assert_eq!(case.sequences_due(fixture).await, [1, 2, 3, 4]);
    assert_eq!(placed[4].due_at, Some(batch[4].event.accepted_at + Duration::from_secs(60)));
    let row = due_at(fixture, case.tenant, batch[4].deliveries[0].id).await;
    assert_eq!(row, placed[4].due_at);
    let repeats = append(fixture, &batch).await;
    assert!(repeats.iter().all(|result| matches!(result, AppendResult::Duplicate { .. })));
}

async fn a_gap_that_times_out_is_not_waited_for_again(fixture: &Fixture) {
    let case = Case::new(fixture, HOLD);
    case.append(fixture, &[1, 3, 4]).await;
    fixture.clock.advance(Duration::from_secs(59));
    assert_eq!(case.sequences_due(fixture).await, [1]);
    fixture.clock.advance(Duration::from_secs(1));
    // The row says when: nobody has to do anything for it.
    assert_eq!(case.sequences_due(fixture).await, [1, 3, 4]);
    let next = placed(fixture, case.event(fixture, 5)).await;
    assert_eq!((next.order, next.gaps.timed_out), (None, 1));
    assert_eq!(case.append(fixture, &[2]).await, [Some(EventOrder::Stale)]);
    assert_eq!(case.sequences_due(fixture).await, [1, 3, 4, 5]);
}

async fn a_cancelled_one_that_waited_stays_cancelled(fixture: &Fixture) {
    let case = Case::new(fixture, HOLD);
    case.append(fixture, &[1]).await;
    let (third, fourth) = (case.event(fixture, 3), case.event(fixture, 4));
    append(fixture, &[third.clone(), fourth]).await;
    let id = third.deliveries[0].id;
    let cancel = fixture.store.history.cancel(case.tenant, id, fixture.now());
    assert_eq!(cancel.await.unwrap(), Finished::Changed);
    let closing = placed(fixture, case.event(fixture, 2)).await;
    assert_eq!(closing.released, [case.endpoint]);
    assert_eq!(case.sequences_due(fixture).await, [1, 2, 4]);
    let view = fixture.view(case.tenant, id).await.delivery;
    assert_eq!(view.state, DeliveryState::Cancelled);
    assert_eq!(view.reason, Some(FinishReason::CancelledByCaller));
    // An operator may still want it.
    let retry = fixture.store.history.retry(case.tenant, id, fixture.now());
    assert_eq!(retry.await.unwrap(), Finished::Changed);
    assert_eq!(case.sequences_due(fixture).await, [1, 2, 4, 3]);
}

async fn one_that_somebody_hurried_or_tried_is_left_alone(fixture: &Fixture) {
    let case = Case::new(fixture, HOLD);
    let leader = fixture.leader().await;
    case.append(fixture, &[1]).await;
    let (third, fourth) = (case.event(fixture, 3), case.event(fixture, 4));
    append(fixture, &[third.clone(), fourth.clone()]).await;
    let hurried = [&third, &fourth].map(|append| append.deliveries[0].id);
    for id in hurried {
        fixture.store.history.retry(case.tenant, id, fixture.now()).await.unwrap();
    }
    let claimed = fixture.claim(case.endpoint, 10).await;
    let tried = claimed.iter().find(|claimed| claimed.delivery.id == hurried[1]).unwrap();
    let later = START + Duration::from_secs(7_200);
    fixture.settle(&leader, &[leader.tried(tried, Next::Retry { due_at: later })]).await;
    let due_before = due_at(fixture, case.tenant, hurried[0]).await;
    let closing = placed(fixture, case.event(fixture, 2)).await;
    assert_eq!((closing.gaps.closed, closing.released.len()), (1, 0));
    assert_eq!(due_at(fixture, case.tenant, hurried[0]).await, due_before);
    assert_eq!(due_at(fixture, case.tenant, hurried[1]).await, Some(later));
}

async fn a_final_state_withdraws_what_waits_behind_it(fixture: &Fixture) {
    let case = Case::new(fixture, HOLD);
    case.append(fixture, &[1, 3]).await;
    let behind = case.event(fixture, 5);
    placed(fixture, behind.clone()).await;
    let end = placed(fixture, case.of(fixture, "order/7", 4, true)).await;
    assert_eq!(end.order, Some(EventOrder::Held));
    let view = fixture.view(case.tenant, behind.deliveries[0].id).await.delivery;
    assert_eq!(view.state, DeliveryState::Cancelled);
    assert_eq!((view.reason, view.attempts), (Some(FinishReason::AfterFinal), 0));
    assert_eq!(noted(fixture, &behind).await, Some(EventOrder::AfterFinal));
    assert_eq!(case.append(fixture, &[6, 2]).await, [Some(EventOrder::AfterFinal), None]);
    fixture.clock.advance(Duration::from_secs(3_600));
    assert_eq!(case.sequences_due(fixture).await, [1, 2, 3, 4]);
    assert_eq!(case.append(fixture, &[7]).await, [Some(EventOrder::AfterFinal)]);
}

async fn a_final_state_withdraws_inside_a_batch_too(fixture: &Fixture) {
    let case = Case::new(fixture, HOLD);
    let behind = case.event(fixture, 4);
    let end = case.of(fixture, "order/7", 2, true);
    append(fixture, &[case.event(fixture, 1), behind.clone(), end]).await;
    assert_eq!(case.sequences_due(fixture).await, [1, 2]);
    assert_eq!(noted(fixture, &behind).await, Some(EventOrder::AfterFinal));
    assert_eq!(fixture.number("select count(*) from delivery").await, 2);
}

async fn subjects_sources_and_tenants_have_orders_of_their_own(fixture: &Fixture) {
    let case = Case::new(fixture, OrderingPolicy::Mark);
    let other = Case { tenant: fixture.tenant(), ..case };
    let elsewhere = case.event(fixture, 7);
    let event = Event { source: "elsewhere".into(), ..Event::clone(&elsewhere.event) };
    let elsewhere = Append { event: event.into(), ..elsewhere };
    let batch = [
        case.event(fixture, 1),
        case.of(fixture, "order/8", 5, false),
        elsewhere,
        other.event(fixture, 9),
        case.event(fixture, 2),
    ];
    let results = append(fixture, &batch).await;
    let is_next =
        |result: &AppendResult| matches!(result, AppendResult::Placed(Placed { order: None, .. }));
    assert!(results.iter().all(is_next), "{results:?}");
    assert_eq!(fixture.number("select count(*) from subject_order").await, 4);
}

async fn events_without_an_instruction_have_no_order(fixture: &Fixture) {
    let case = Case::new(fixture, OrderingPolicy::DropStale);
    let plain = |sequence| Append { order: None, ..case.event(fixture, sequence) };
    let results = append(fixture, &[plain(5), plain(3)]).await;
    assert_eq!(results, [const { AppendResult::Accepted }; 2]);
    assert_eq!(fixture.number("select count(*) from subject_order").await, 0);
    // Beside others in one batch they are what they always were.
    let mixed = [plain(2), case.event(fixture, 9), plain(1)];
    let results = append(fixture, &mixed).await;
    assert_eq!([&results[0], &results[2]], [&AppendResult::Accepted; 2]);
    assert!(matches!(results[1], AppendResult::Placed(_)));
    assert_eq!(case.sequences_due(fixture).await, [5, 3, 2, 9, 1]);
}

async fn past_the_bound_what_waits_goes_on(fixture: &Fixture) {
    let case = Case::new(fixture, HOLD);
    case.append(fixture, &[1]).await;
    let most = i64::try_from(turnbuckle_domain::order_limits::HELD).unwrap();
    let early: Vec<i64> = (10..10 + most).rev().collect();
    let held = case.append(fixture, &early).await;
    assert!(held.iter().all(|order| *order == Some(EventOrder::Held)));
    let last = placed(fixture, case.event(fixture, 10 + most)).await;
    assert_eq!(last.gaps.overfull, 1);
    let mut all = vec![1];
    all.extend(10..=10 + most);
    assert_eq!(case.sequences_due(fixture).await, all);
    let cell = "select count(*) from subject_order where held is not null";
    assert_eq!(fixture.number(cell).await, 0);
}

async fn a_subject_is_forgotten_after_its_time_and_its_row_goes(fixture: &Fixture) {
    let case = Case::new(fixture, OrderingPolicy::DropStale);
    case.append(fixture, &[9]).await;
    for number in 0..20 {
        placed(fixture, case.of(fixture, &format!("other/{number}"), 1, false)).await;
    }
    let rows = "select count(*) from subject_order";
    fixture.clock.advance(RETENTION);
    fixture.store.maintain(fixture.now()).await.unwrap();
    assert_eq!(fixture.number(rows).await, 21);
    assert_eq!(case.append(fixture, &[8]).await, [Some(EventOrder::Stale)]);
    fixture.clock.advance(Duration::from_secs(2 * 3_600));
    // The one that was heard of since is remembered.
    fixture.store.maintain(fixture.now()).await.unwrap();
    assert_eq!(fixture.number(rows).await, 1);
    fixture.clock.advance(RETENTION);
    // Also without anybody having looked, its time is over.
    assert_eq!(case.append(fixture, &[3]).await, [None]);
    fixture.clock.advance(RETENTION * 2);
    fixture.store.maintain(fixture.now()).await.unwrap();
    assert_eq!(fixture.number(rows).await, 0);
}
