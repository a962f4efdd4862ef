use super::*;
use crate::{fixture, wire::encode};
use std::os::unix::fs::PermissionsExt as _;
use turnbuckle_runtime::Keyring;

const PROVEN: Timestamp = Timestamp::from_micros(77);

fn replica() -> Replica {
    filled(2)
}

fn filled(endpoints: u128) -> Replica {
    let delta = fixture::sized(5, endpoints);
    let at = ConfigPosition { epoch: delta.epoch, revision: delta.revision };
    let mut replica = Replica::new(at);
    for bytes in encode(&delta, NodeRole::Delivery).upserts {
        replica.upsert(bytes).unwrap();
    }
    replica
}

fn keyring() -> Arc<dyn SecretSealer> {
    Arc::new(Keyring::generate_in_memory().unwrap())
}

/// A file with a state in it.
fn written(directory: &Path, sealer: &Arc<dyn SecretSealer>) -> LastKnownGood {
    let file = LastKnownGood::new(directory, NodeRole::Delivery, Arc::clone(sealer));
    file.write(&Content::new(&replica(), Some(PROVEN))).unwrap();
    file
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_was_written_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let file = written(directory.path(), &keyring());
    let (mut found, proven_at) = file.load().unwrap();
    assert_eq!((found.at(), proven_at), (replica().at(), Some(PROVEN)));
    let all = found.changes_since(Revision::ZERO);
    assert_eq!(all.endpoints, fixture::delta(5).endpoints);
    assert_eq!(all.subscriptions, fixture::delta(5).subscriptions);
    assert_eq!(names(directory.path()), ["configuration.delivery"]);
}

#[test]
fn nothing_of_the_configuration_can_be_read_in_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = written(directory.path(), &keyring());
    let bytes = fs::read(&file.path).unwrap();
    for secret in [fixture::SEALED, b"receiver.test", b"x-team", b"acme"] {
        assert!(!bytes.windows(secret.len()).any(|window| window == secret));
    }
    assert_eq!(fs::metadata(&file.path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn no_file_is_no_fault() {
    let directory = tempfile::tempdir().unwrap();
    let file = LastKnownGood::new(directory.path(), NodeRole::Ingress, keyring());
    assert!(file.load().is_none());
    assert!(names(directory.path()).is_empty());
}

#[test]
fn a_damaged_file_is_set_aside() {
    let good = {
        let directory = tempfile::tempdir().unwrap();
        fs::read(written(directory.path(), &keyring()).path).unwrap()
    };
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let cut = good[..good.len() - 7].to_vec();
    let mut newer = good;
    newer[8] = 2;
    for bad in [flipped, cut, newer, Vec::new(), b"hello".to_vec()] {
        let directory = tempfile::tempdir().unwrap();
        let file = LastKnownGood::new(directory.path(), NodeRole::Delivery, keyring());
        fs::write(&file.path, &bad).unwrap();
        assert!(file.load().is_none());
        assert_eq!(names(directory.path()), ["configuration.delivery.refused"]);
        assert!(file.load().is_none());
    }
}

#[test]
fn a_file_of_another_keyring_or_role_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let sealer = keyring();
    let file = written(directory.path(), &sealer);
    let other = LastKnownGood::new(directory.path(), NodeRole::Delivery, keyring());
    assert!(matches!(other.read(), Err(FileError::Foreign(_))));
    let ingress = LastKnownGood::new(directory.path(), NodeRole::Ingress, sealer);
    fs::copy(&file.path, &ingress.path).unwrap();
    assert!(matches!(ingress.read(), Err(FileError::Foreign(_))));
    assert!(file.load().is_some());
}

#[test]
fn a_write_that_fails_leaves_the_file_before() {
    let directory = tempfile::tempdir().unwrap();
    let file = written(directory.path(), &keyring());
    // Where the new file would be made there is a directory.
    fs::create_dir(directory.path().join("configuration.delivery.new")).unwrap();
    let error = file.write(&Content::new(&replica(), None)).unwrap_err();
    assert!(matches!(error, FileError::Io { .. }));
    assert!(file.load().is_some());
}

/// Enough resources for several blocks.
const MANY: u128 = 2_000;

#[test]
fn blocks_are_read_in_their_order_and_none_may_be_missing() {
    let directory = tempfile::tempdir().unwrap();
    let file = LastKnownGood::new(directory.path(), NodeRole::Delivery, keyring());
    let large = filled(MANY);
    file.write(&Content::new(&large, Some(PROVEN))).unwrap();
    let (found, _) = file.read().unwrap().unwrap();
    assert_eq!(found.resources(), large.resources());
    let bytes = fs::read(&file.path).unwrap();
    let (start, mut rest) = bytes.split_at(MAGIC.len() + 1);
    let mut blocks = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_be_bytes(rest[..4].try_into().unwrap());
        let (block, more) = rest.split_at(4 + HASH_BYTES + usize::try_from(length).unwrap());
        blocks.push(block);
        rest = more;
    }
    assert!(blocks.len() > 2, "{}", blocks.len());
    let last = blocks.len() - 1;
    let swapped: Vec<usize> = [1, 0].into_iter().chain(2..=last).collect();
    let without_one: Vec<usize> = (0..=last).filter(|block| *block != 1).collect();
    let cut: Vec<usize> = (0..last).collect();
    let repeated: Vec<usize> = (0..=last).chain([last]).collect();
    for order in [swapped, without_one, cut, repeated] {
        let mixed: Vec<&[u8]> = order.iter().map(|block| blocks[*block]).collect();
        fs::write(&file.path, [&[start], mixed.as_slice()].concat().concat()).unwrap();
        assert!(file.read().is_err(), "{order:?}");
    }
}

#[test]
fn who_starts_with_a_file_from_which_something_was_refused_asks_for_everything() {
    let directory = tempfile::tempdir().unwrap();
    let file = LastKnownGood::new(directory.path(), NodeRole::Delivery, keyring());
    let mut refusing = replica();
    let unreadable = turnbuckle_domain::UnreadableResource {
        kind: turnbuckle_domain::ResourceKind::Endpoint,
        id: Uuid::from_u128(4711),
        name: "new".to_owned(),
        revision: Revision(5),
        reason: "of a later version".to_owned(),
        deleted: false,
    };
    let delta = turnbuckle_domain::ConfigDelta {
        unreadable: vec![unreadable],
        ..turnbuckle_domain::ConfigDelta::default()
    };
    refusing.upsert(encode(&delta, NodeRole::Delivery).upserts.remove(0)).unwrap();
    assert!(!refusing.is_complete());
    file.write(&Content::new(&refusing, Some(PROVEN))).unwrap();
    let (mut found, _) = file.load().unwrap();
    // No control plane has such an epoch, so that it sends a snapshot.
    assert_eq!(found.at(), ConfigPosition { epoch: Epoch::default(), ..replica().at() });
    assert_eq!(found.changes_since(Revision::ZERO).endpoints, fixture::delta(5).endpoints);
}

#[test]
fn writes_that_meet_leave_a_good_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = LastKnownGood::new(directory.path(), NodeRole::Delivery, keyring());
    let (small, large) = (filled(2), filled(MANY));
    for _ in 0..10 {
        std::thread::scope(|scope| {
            for replica in [&small, &large, &small] {
                let file = file.clone();
                scope.spawn(move || file.write(&Content::new(replica, None)).unwrap());
            }
        });
        assert!(file.read().unwrap().is_some());
    }
}
