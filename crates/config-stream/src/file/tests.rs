use super::*;
use crate::{
    fixture,
    wire::{Record, encode},
};
use std::os::unix::fs::PermissionsExt as _;
use turnbuckle_domain::{ConfigDelta, Endpoint, EndpointTarget};
use turnbuckle_runtime::Keyring;

const PROVEN: Timestamp = Timestamp::from_micros(77);

fn replica() -> Replica {
    filled(2)
}

fn filled(endpoints: u128) -> Replica {
    let delta = fixture::sized(5, endpoints);
    let at = ConfigPosition { epoch: delta.epoch, revision: delta.revision };
    let mut replica = Replica::new(at, Usable::default());
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
    let (mut found, proven_at) = file.load(&Usable::default()).unwrap();
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
    assert!(file.load(&Usable::default()).is_none());
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
        assert!(file.load(&Usable::default()).is_none());
        assert_eq!(names(directory.path()), ["configuration.delivery.refused"]);
        assert!(file.load(&Usable::default()).is_none());
    }
}

#[test]
fn a_file_of_another_keyring_or_role_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let sealer = keyring();
    let file = written(directory.path(), &sealer);
    let other = LastKnownGood::new(directory.path(), NodeRole::Delivery, keyring());
    assert!(matches!(other.read(&Usable::default()), Err(FileError::Foreign(_))));
    let ingress = LastKnownGood::new(directory.path(), NodeRole::Ingress, sealer);
    fs::copy(&file.path, &ingress.path).unwrap();
    assert!(matches!(ingress.read(&Usable::default()), Err(FileError::Foreign(_))));
    assert!(file.load(&Usable::default()).is_some());
}

#[test]
fn a_write_that_fails_leaves_the_file_before() {
    let directory = tempfile::tempdir().unwrap();
    let file = written(directory.path(), &keyring());
    // Where the new file would be made there is a directory.
    fs::create_dir(directory.path().join("configuration.delivery.new")).unwrap();
    let error = file.write(&Content::new(&replica(), None)).unwrap_err();
    assert!(matches!(error, FileError::Io { .. }));
    assert!(file.load(&Usable::default()).is_some());
}

/// Enough resources for several blocks.
const MANY: u128 = 2_000;

#[test]
fn blocks_are_read_in_their_order_and_none_may_be_missing() {
    let directory = tempfile::tempdir().unwrap();
    let file = LastKnownGood::new(directory.path(), NodeRole::Delivery, keyring());
    let large = filled(MANY);
    file.write(&Content::new(&large, Some(PROVEN))).unwrap();
    let (found, _) = file.read(&Usable::default()).unwrap().unwrap();
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
        assert!(file.read(&Usable::default()).is_err(), "{order:?}");
    }
}

fn url_of(endpoint: &Endpoint) -> &str {
    endpoint.target.http().map_or("", |http| http.url.as_str())
}

/// Takes no endpoint whose URL has this word.
fn refusing(word: &'static str) -> Usable {
    Usable::new(move |record| match record {
        Record::Endpoint(endpoint) if url_of(endpoint).contains(word) => Err(format!("no {word}")),
        _ => Ok(()),
    })
}

fn endpoint(number: u128, revision: i64, url: &str) -> Vec<u8> {
    let mut endpoint = fixture::endpoint(number, revision);
    let EndpointTarget::Http(http) = &mut endpoint.target else { unreachable!("made so") };
    http.url = url.to_owned();
    let delta = ConfigDelta { endpoints: vec![fixture::live(endpoint)], ..ConfigDelta::default() };
    encode(&delta, NodeRole::Delivery).upserts.remove(0)
}

#[test]
fn what_was_refused_is_still_refused_after_a_restart_and_is_taken_by_who_can() {
    let directory = tempfile::tempdir().unwrap();
    let file = LastKnownGood::new(directory.path(), NodeRole::Delivery, keyring());
    let old = refusing("quic");
    let mut before = Replica::new(replica().at(), old.clone());
    for bytes in encode(&fixture::delta(5), NodeRole::Delivery).upserts {
        before.upsert(bytes).unwrap();
    }
    // A change of what is there, and something new: both by a newer control plane.
    before.upsert(endpoint(1001, 6, "quic://a.test/")).unwrap();
    before.upsert(endpoint(1009, 7, "quic://b.test/")).unwrap();
    file.write(&Content::new(&before, None)).unwrap();

    let (mut restarted, _) = file.load(&old).unwrap();
    assert_eq!(restarted.refused(), before.refused());
    assert_eq!(restarted.refused().len(), 2);
    assert!(!restarted.is_complete(), "what is missing here may exist");
    let kept = restarted.changes_since(Revision::ZERO).endpoints;
    assert_eq!(kept, fixture::delta(5).endpoints, "the versions before stay");

    let (mut upgraded, _) = file.load(&Usable::default()).unwrap();
    assert!(upgraded.refused().is_empty() && upgraded.is_complete());
    let now = upgraded.changes_since(Revision::ZERO).endpoints;
    let urls = |word: &str| now.iter().filter(|it| url_of(&it.value).contains(word)).count();
    assert_eq!((now.len(), urls("quic")), (3, 2));
}

#[test]
fn what_is_refused_stays_through_another_epoch() {
    let usable = refusing("quic");
    let mut before = Replica::new(replica().at(), usable.clone());
    before.upsert(endpoint(1001, 5, "https://a.test/")).unwrap();
    let mut next = Replica::new(replica().at(), usable);
    next.upsert(endpoint(1001, 9, "quic://a.test/")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = LastKnownGood::new(directory.path(), NodeRole::Delivery, keyring());
    file.write(&Content::new(&next.replace(before), None)).unwrap();
    let (mut found, _) = file.load(&refusing("quic")).unwrap();
    let kept = found.changes_since(Revision::ZERO).endpoints;
    assert_eq!(url_of(&kept[0].value), "https://a.test/");
    assert_eq!(found.refused().len(), 1);
}

#[test]
fn a_file_that_cannot_be_read_now_stays() {
    let directory = tempfile::tempdir().unwrap();
    let file = LastKnownGood::new(directory.path(), NodeRole::Delivery, keyring());
    // It opens, and every read of it fails.
    fs::create_dir(&file.path).unwrap();
    assert!(matches!(file.read(&Usable::default()), Err(FileError::Io { .. })));
    assert!(file.load(&Usable::default()).is_none());
    assert_eq!(names(directory.path()), ["configuration.delivery"]);
}

#[test]
fn writers_at_the_same_time_leave_one_whole_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = LastKnownGood::new(directory.path(), NodeRole::Delivery, keyring());
    let sizes = [3, 700, 1_300, 2_000];
    let replicas = sizes.map(filled);
    for _ in 0..3 {
        std::thread::scope(|scope| {
            for replica in &replicas {
                let file = file.clone();
                scope.spawn(move || file.write(&Content::new(replica, None)).unwrap());
            }
        });
        let (found, _) = file.read(&Usable::default()).unwrap().unwrap();
        assert!(replicas.iter().any(|replica| replica.len() == found.len()));
        assert_eq!(names(directory.path()), ["configuration.delivery"]);
    }
}
