use super::*;
use crate::{
    fixture::{self, epoch},
    wire::{Encoded, encode},
};
use proptest::prelude::*;
use turnbuckle_domain::{ConfigDelta, NodeRole};
use turnbuckle_proto::v1::{ConfigRemoval, ResyncRequired};

const NOW: Timestamp = Timestamp::from_micros(1_000_000);

fn position(epoch_number: u128, revision: i64) -> ConfigPosition {
    ConfigPosition { epoch: epoch(epoch_number), revision: Revision(revision) }
}

/// A snapshot, a resource a chunk.
fn snapshot(encoded: &Encoded) -> Vec<Message> {
    let mut hash = SnapshotHash::default();
    let begin =
        SnapshotBegin { epoch: encoded.at.epoch.to_string(), revision: encoded.at.revision.0 };
    let mut messages = vec![Message::SnapshotBegin(begin)];
    for resource in &encoded.upserts {
        hash.add(resource);
        messages.push(Message::SnapshotChunk(SnapshotChunk { resources: vec![resource.clone()] }));
    }
    let count = i64::try_from(encoded.upserts.len()).unwrap();
    messages.push(Message::SnapshotEnd(SnapshotEnd { count, hash: hash.finish().to_vec() }));
    messages
}

fn encoded(delta: &ConfigDelta) -> Encoded {
    encode(delta, NodeRole::Delivery)
}

fn apply_all(state: &mut State, messages: Vec<Message>) -> Result<Effect, Fault> {
    let mut last = Effect::None;
    for message in messages {
        last = state.apply(message, NOW)?;
    }
    Ok(last)
}

fn loaded(endpoints: u128) -> State {
    let mut state = State::default();
    let snapshot = snapshot(&encoded(&fixture::sized(5, endpoints)));
    assert_eq!(apply_all(&mut state, snapshot), Ok(Effect::Changed));
    state
}

fn of_epoch(number: u128, revision: i64, endpoints: u128) -> Encoded {
    encoded(&ConfigDelta { epoch: epoch(number), ..fixture::sized(revision, endpoints) })
}

fn changes(from: i64, delta: &ConfigDelta) -> ConfigChanges {
    let encoded = encoded(delta);
    ConfigChanges {
        from_revision: from,
        to_revision: delta.revision.0,
        upserts: encoded.upserts,
        removals: encoded
            .removals
            .iter()
            .map(|key| ConfigRemoval { kind: key.kind, id: key.id.as_bytes().to_vec() })
            .collect(),
        continues: false,
    }
}

fn one_endpoint(revision: i64, number: u128, deleted: bool) -> ConfigDelta {
    let mut endpoint = fixture::live(fixture::endpoint(number, revision));
    endpoint.deleted = deleted;
    ConfigDelta {
        epoch: epoch(1),
        revision: Revision(revision),
        endpoints: vec![endpoint],
        ..ConfigDelta::default()
    }
}

fn at(state: &State) -> ConfigPosition {
    state.present().unwrap().at()
}

#[test]
fn a_snapshot_counts_only_after_its_end() {
    let mut messages = snapshot(&encoded(&fixture::delta(5)));
    let end = messages.pop().unwrap();
    let mut state = State::default();
    assert_eq!(apply_all(&mut state, messages), Ok(Effect::None));
    assert!(state.present().is_none());
    assert_eq!(state.apply(end, NOW), Ok(Effect::Changed));
    assert_eq!((at(&state), state.proven_at()), (position(1, 5), Some(NOW)));
}

#[test]
fn a_damaged_snapshot_changes_nothing() {
    let good = snapshot(&encoded(&fixture::sized(9, 3)));
    let cut: Vec<Message> =
        good.iter().enumerate().filter(|(index, _)| *index != 2).map(|(_, m)| m.clone()).collect();
    let mut swapped = good.clone();
    swapped.swap(1, 2);
    let mut miscounted = good;
    if let Some(Message::SnapshotEnd(end)) = miscounted.last_mut() {
        end.count += 1;
    }
    for bad in [cut, swapped, miscounted] {
        let mut state = loaded(2);
        assert_eq!(apply_all(&mut state, bad), Err(Fault::Damaged));
        assert_eq!(at(&state), position(1, 5));
        assert_eq!(state.begin(), Some(position(1, 5)));
    }
}

#[test]
fn a_snapshot_that_breaks_off_is_forgotten_with_its_stream() {
    let mut state = loaded(2);
    let mut messages = snapshot(&encoded(&fixture::sized(9, 3)));
    messages.truncate(3);
    apply_all(&mut state, messages).unwrap();
    state.begin();
    let chunk = Message::SnapshotChunk(SnapshotChunk::default());
    assert_eq!(state.apply(chunk, NOW), Err(Fault::OutOfTurn));
    assert_eq!(at(&state), position(1, 5));
}

#[test]
fn a_lower_revision_of_the_same_epoch_is_never_applied() {
    let mut state = loaded(2);
    let lower = snapshot(&encoded(&fixture::delta(4)));
    assert_eq!(apply_all(&mut state, lower), Err(Fault::Backwards));
    let back = Message::Changes(changes(5, &one_endpoint(4, 1001, false)));
    assert_eq!(state.apply(back, NOW), Err(Fault::Backwards));
    assert_eq!(at(&state), position(1, 5));
}

#[test]
fn another_epoch_may_have_a_lower_revision() {
    let mut state = loaded(2);
    let mut messages =
        vec![Message::ResyncRequired(ResyncRequired { reason: "another epoch".to_owned() })];
    messages.extend(snapshot(&of_epoch(2, 3, 2)));
    assert_eq!(apply_all(&mut state, messages), Ok(Effect::Changed));
    assert_eq!(at(&state), position(2, 3));
}

#[test]
fn changes_need_their_base_and_absence_deletes_nothing() {
    let mut state = loaded(2);
    let gap = Message::Changes(changes(6, &one_endpoint(7, 1001, false)));
    assert_eq!(state.apply(gap, NOW), Err(Fault::Gap));
    let next = Message::Changes(changes(5, &one_endpoint(7, 1001, false)));
    assert_eq!(state.apply(next, NOW), Ok(Effect::Changed));
    assert_eq!((at(&state), state.present().unwrap().len()), (position(1, 7), 9));
    let gone = Message::Changes(changes(7, &one_endpoint(8, 1001, true)));
    assert_eq!(state.apply(gone, NOW), Ok(Effect::Changed));
    // The endpoint and its ring.
    assert_eq!(state.present().unwrap().len(), 7);
}

#[test]
fn parts_of_changes_are_applied_together() {
    let mut state = loaded(2);
    let mut first = changes(5, &one_endpoint(7, 1001, true));
    first.continues = true;
    assert_eq!(state.apply(Message::Changes(first), NOW), Ok(Effect::None));
    assert_eq!((at(&state), state.present().unwrap().len()), (position(1, 5), 9));
    let early = Message::Checkpoint(Checkpoint { revision: 5 });
    assert_eq!(state.apply(early, NOW), Err(Fault::OutOfTurn));
    let last = Message::Changes(changes(5, &one_endpoint(7, 1002, true)));
    assert_eq!(state.apply(last, NOW), Ok(Effect::Changed));
    assert_eq!((at(&state), state.present().unwrap().len()), (position(1, 7), 5));
}

#[test]
fn a_checkpoint_proves_only_what_is_here() {
    let mut state = loaded(2);
    let later = NOW + std::time::Duration::from_secs(9);
    let same = Message::Checkpoint(Checkpoint { revision: 5 });
    assert_eq!(state.apply(same, later), Ok(Effect::Proven));
    assert_eq!(state.proven_at(), Some(later));
    let other = Message::Checkpoint(Checkpoint { revision: 6 });
    assert_eq!(state.apply(other, NOW), Err(Fault::Gap));
}

#[test]
fn a_snapshot_that_takes_away_more_than_half_waits_for_a_word() {
    let mut state = loaded(10);
    let emptied = of_epoch(2, 1, 1);
    assert_eq!(apply_all(&mut state, snapshot(&emptied)), Ok(Effect::Held));
    assert_eq!(at(&state), position(1, 5));
    assert!(!state.is_complete(), "what is missing in the store is in use here");
    let held = state.held().unwrap();
    assert_eq!((held.at, held.present, held.removed), (position(2, 1), 33, 27));
    assert_eq!(state.accept(position(1, 9)), Effect::Held, "another epoch was accepted");
    // It is still the one that was accepted after changes on top of it.
    let next = ConfigDelta { epoch: epoch(2), ..one_endpoint(2, 1001, false) };
    assert_eq!(state.apply(Message::Changes(changes(1, &next)), NOW), Ok(Effect::Held));
    assert_eq!(state.accept(position(2, 1)), Effect::Changed);
    assert_eq!((at(&state), state.held()), (position(2, 2), None));
    assert_eq!(state.present().unwrap().len(), 6);
}

#[test]
fn a_held_snapshot_that_fills_up_again_needs_no_word() {
    let mut state = loaded(10);
    assert_eq!(apply_all(&mut state, snapshot(&of_epoch(2, 1, 1))), Ok(Effect::Held));
    let full = ConfigDelta { epoch: epoch(2), ..fixture::sized(2, 9) };
    assert_eq!(state.apply(Message::Changes(changes(1, &full)), NOW), Ok(Effect::Changed));
    assert_eq!(at(&state), position(2, 2));
}

#[test]
fn half_of_it_and_a_small_one_may_go_without_a_word() {
    let mut state = loaded(10);
    // 3 and 30 resources before, 3 and 15 after.
    assert_eq!(apply_all(&mut state, snapshot(&of_epoch(2, 1, 5))), Ok(Effect::Changed));
    let mut state = loaded(2);
    assert_eq!(apply_all(&mut state, snapshot(&of_epoch(2, 1, 0))), Ok(Effect::Changed));
}

#[test]
fn nothing_but_a_snapshot_can_be_first() {
    for message in [
        Message::Checkpoint(Checkpoint { revision: 0 }),
        Message::Changes(ConfigChanges::default()),
        Message::SnapshotChunk(SnapshotChunk::default()),
        Message::SnapshotEnd(SnapshotEnd::default()),
    ] {
        assert_eq!(State::default().apply(message, NOW), Err(Fault::OutOfTurn));
    }
    let begin = SnapshotBegin { epoch: "x".to_owned(), revision: 1 };
    let malformed = State::default().apply(Message::SnapshotBegin(begin), NOW);
    assert_eq!(malformed, Err(Fault::Malformed));
}

#[test]
fn changes_with_a_broken_resource_change_nothing() {
    let mut state = loaded(2);
    let mut broken = changes(5, &one_endpoint(7, 1001, true));
    broken.upserts.push(b"hello".to_vec());
    assert_eq!(state.apply(Message::Changes(broken), NOW), Err(Fault::Malformed));
    assert_eq!((at(&state), state.present().unwrap().len()), (position(1, 5), 9));
}

/// Steps of a stream, in any order and of any kind.
fn any_message() -> impl Strategy<Value = Vec<Message>> {
    let number = 1000_u128..1006;
    prop_oneof![
        (1_i64..12, 0_u128..6, 1_u128..3).prop_map(|(revision, endpoints, epoch)| snapshot(
            &of_epoch(epoch, revision, endpoints)
        )),
        (0_i64..12, 0_i64..12, number, any::<bool>()).prop_map(|(from, to, number, deleted)| {
            vec![Message::Changes(changes(from, &one_endpoint(to, number, deleted)))]
        }),
        (0_i64..12).prop_map(|revision| vec![Message::Checkpoint(Checkpoint { revision })]),
    ]
}

proptest! {
    /// I14: whatever comes, in one epoch the revision in use never goes down.
    #[test]
    fn the_revision_never_goes_down_in_one_epoch(steps in prop::collection::vec(any_message(), 1..30)) {
        let mut state = State::default();
        let mut last: Option<ConfigPosition> = None;
        for messages in steps {
            if apply_all(&mut state, messages).is_err() {
                state.begin();
            }
            let now = state.present().map(Replica::at);
            if let (Some(before), Some(now)) = (last, now) {
                prop_assert!(before.epoch != now.epoch || before.revision <= now.revision);
            }
            last = now;
        }
    }
}
