use super::*;
use turnbuckle_config_stream::wire::Key;
use turnbuckle_domain::{ConfigPosition, Epoch};

fn encoded(sizes: &[usize], removals: usize) -> Arc<Encoded> {
    let at = ConfigPosition { epoch: Epoch::default(), revision: Revision(9) };
    let key = Key { kind: 5, id: Default::default() };
    let upserts = sizes.iter().map(|size| vec![7; *size]).collect();
    Arc::new(Encoded { at, upserts, removals: vec![key; removals] })
}

fn all(mut outgoing: Outgoing) -> Vec<Message> {
    std::iter::from_fn(|| outgoing.next()).collect()
}

#[test]
fn a_snapshot_is_cut_into_parts_and_ends_with_its_count_and_hash() {
    let sizes = [CHUNK_BYTES - 1, 1, 1, CHUNK_BYTES * 2, 5];
    let messages = all(Outgoing::snapshot(encoded(&sizes, 0), Some("why")));
    let mut parts = Vec::new();
    let mut hash = SnapshotHash::default();
    for message in &messages {
        if let Message::SnapshotChunk(chunk) = message {
            chunk.resources.iter().for_each(|resource| hash.add(resource));
            parts.push(chunk.resources.iter().map(Vec::len).collect::<Vec<_>>());
        }
    }
    // One that is too large goes alone; the others fill parts up.
    let expected = [vec![CHUNK_BYTES - 1, 1], vec![1], vec![CHUNK_BYTES * 2], vec![5]];
    assert_eq!(parts, expected);
    assert!(matches!(&messages[0], Message::ResyncRequired(resync) if resync.reason == "why"));
    assert!(matches!(&messages[1], Message::SnapshotBegin(begin) if begin.revision == 9));
    let hash = hash.finish().to_vec();
    assert_eq!(messages.last(), Some(&Message::SnapshotEnd(SnapshotEnd { count: 5, hash })));
}

#[test]
fn an_empty_snapshot_has_an_end() {
    let messages = all(Outgoing::snapshot(encoded(&[], 0), None));
    assert_eq!(messages.len(), 2);
    assert!(matches!(&messages[1], Message::SnapshotEnd(end) if end.count == 0));
}

#[test]
fn changes_say_whether_more_follow_and_removals_come_last() {
    let messages =
        all(Outgoing::changes(encoded(&[CHUNK_BYTES, 5], REMOVALS_MAX + 1), Revision(4)));
    let shape: Vec<_> = messages
        .iter()
        .map(|message| match message {
            Message::Changes(part) => {
                assert_eq!((part.from_revision, part.to_revision), (4, 9));
                (part.upserts.len(), part.removals.len(), part.continues)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(shape, [(1, 0, true), (1, REMOVALS_MAX, true), (0, 1, false)]);
}

#[test]
fn a_revision_without_changes_for_a_role_is_one_message() {
    let messages = all(Outgoing::changes(encoded(&[], 0), Revision(4)));
    assert_eq!(messages.len(), 1);
    assert!(matches!(&messages[0], Message::Changes(part) if !part.continues));
}
