//! The order of subjects when several write at once, and when something fails.

use crate::{
    common::on_both_backends,
    fixture::{Fixture, Home, PATIENCE},
    order::{Case, HOLD, append, placed},
};
use bytes::Bytes;
use std::sync::Arc;
use tokio::task::JoinSet;
use turnbuckle_domain::{
    Append, AppendResult, Event, EventLog, EventOrder, OrderingPolicy, Placed, Random as _,
    SeededRandom, event_limits,
};
use turnbuckle_store::Store;

on_both_backends!(
    several_writers_of_one_subject_make_one_order,
    batches_with_the_same_subjects_in_other_order_do_not_dead_lock,
    what_was_not_stored_was_not_seen,
    repeats_and_anomalies_change_nothing,
);

/// The store, and on Postgres a second process' connections to it.
async fn logs(fixture: &Fixture) -> Vec<Arc<dyn EventLog>> {
    let mut logs = vec![Arc::clone(&fixture.store.log)];
    if let Home::Postgres(database) = &fixture.home {
        logs.push(Store::open_postgres(database.url(), fixture.now()).await.unwrap().log);
    }
    logs
}

fn shuffle<T>(items: &mut [T], seed: u64) {
    let random = SeededRandom::from_number(seed);
    for end in (1..items.len()).rev() {
        let mut bytes = [0; 8];
        random.fill(&mut bytes);
        let pick = usize::try_from(u64::from_le_bytes(bytes) % (end as u64 + 1)).unwrap();
        items.swap(end, pick);
    }
}

async fn several_writers_of_one_subject_make_one_order(fixture: &Fixture) {
    let logs = logs(fixture).await;
    for round in 0..8 {
        let case = Case::new(fixture, HOLD);
        placed(fixture, case.event(fixture, 1)).await;
        let mut events: Vec<Append> = (2..=40).map(|n| case.event(fixture, n)).collect();
        shuffle(&mut events, round);
        let mut writers = JoinSet::new();
        // Alone, and several in a batch.
        for (number, batch) in events.chunks(3).enumerate() {
            let (log, batch) = (Arc::clone(&logs[number % logs.len()]), batch.to_vec());
            writers.spawn(async move { log.append(&batch).await.unwrap() });
        }
        let all = tokio::time::timeout(PATIENCE, writers.join_all()).await.unwrap();
        let results: Vec<AppendResult> = all.into_iter().flatten().collect();
        let is_kept = |result: &AppendResult| {
            matches!(result, AppendResult::Placed(Placed { due_at: Some(_), .. }))
        };
        assert!(results.len() == 39 && results.iter().all(is_kept), "{results:?}");
        // Nothing is left waiting: whoever came last closed the last gap.
        assert_eq!(case.sequences_due(fixture).await, (1..=40).collect::<Vec<_>>());
    }
}

async fn batches_with_the_same_subjects_in_other_order_do_not_dead_lock(fixture: &Fixture) {
    let logs = logs(fixture).await;
    let case = Case::new(fixture, OrderingPolicy::Mark);
    for round in 0..10 {
        let batch = || -> Vec<Append> {
            let subject = |number| case.of(fixture, &format!("order/{number}"), round, false);
            (0..50).map(subject).collect()
        };
        let (forward, mut backward) = (batch(), batch());
        for append in &mut backward {
            let event_id = format!("{}:other", append.event.event_id);
            append.event = Arc::new(Event { event_id, ..Event::clone(&append.event) });
        }
        backward.reverse();
        let (one, other) = (&logs[0], &logs[logs.len() - 1]);
        let both = async { tokio::join!(one.append(&forward), other.append(&backward)) };
        let (one, other) = tokio::time::timeout(PATIENCE, both).await.unwrap();
        let results = [one.unwrap(), other.unwrap()].concat();
        let stale = Some(EventOrder::Stale);
        let is_stale = |result: &&AppendResult| matches!(result, AppendResult::Placed(placed) if placed.order == stale);
        // Of each subject one was first, whichever.
        assert_eq!(results.iter().filter(is_stale).count(), 50, "{results:?}");
    }
}

async fn what_was_not_stored_was_not_seen(fixture: &Fixture) {
    let case = Case::new(fixture, OrderingPolicy::DropStale);
    placed(fixture, case.event(fixture, 1)).await;
    let large = case.event(fixture, 9);
    let data = Bytes::from(vec![0; event_limits::RECEIVED_BYTES + 1]);
    let event = Arc::new(Event { data, ..Event::clone(&large.event) });
    let failed = [case.event(fixture, 8), Append { event, ..large }];
    fixture.store.log.append(&failed).await.unwrap_err();
    assert_eq!(fixture.number("select last_sequence from subject_order").await, 1);
    // A repeat of what failed is as good as the first.
    let again = placed(fixture, failed[0].clone()).await;
    assert_eq!(again.order, None);
    assert_eq!(case.sequences_due(fixture).await, [1, 8]);
}

async fn repeats_and_anomalies_change_nothing(fixture: &Fixture) {
    let case = Case::new(fixture, OrderingPolicy::DropStale);
    let first = case.event(fixture, 1);
    placed(fixture, first.clone()).await;
    // Under the id of the first, far ahead of it.
    let ahead = Event { sequence: Some(100), ..Event::clone(&first.event) };
    let ahead =
        Append { content_hash: ahead.content_hash(), event: Arc::new(ahead), ..first.clone() };
    let results = append(fixture, &[first.clone(), ahead]).await;
    assert!(matches!(results[..], [AppendResult::Duplicate { .. }, AppendResult::Anomaly]));
    assert_eq!(fixture.number("select last_sequence from subject_order").await, 1);
    // Inside a batch as well.
    let second = case.event(fixture, 2);
    let results = append(fixture, &[second.clone(), second]).await;
    assert!(matches!(results[..], [AppendResult::Placed(_), AppendResult::Duplicate { .. }]));
    assert_eq!(placed(fixture, case.event(fixture, 3)).await.order, None);
    assert_eq!(case.sequences_due(fixture).await, [1, 2, 3]);
}
