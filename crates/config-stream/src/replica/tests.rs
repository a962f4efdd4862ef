use super::*;
use crate::{
    fixture::{self, epoch},
    wire::encode,
};
use prost::Message as _;
use turnbuckle_domain::NodeRole;
use turnbuckle_proto::v1::{ConfigKind, ConfigResource};

fn at(revision: i64) -> ConfigPosition {
    ConfigPosition { epoch: epoch(1), revision: Revision(revision) }
}

fn filled(delta: &ConfigDelta) -> Replica {
    let mut replica = Replica::new(at(delta.revision.0), Usable::default());
    for bytes in encode(delta, NodeRole::Delivery).upserts {
        replica.upsert(bytes).unwrap();
    }
    replica
}

fn endpoint_key(number: u128) -> Key {
    Key { kind: ConfigKind::Endpoint.into(), id: fixture::uuid(number) }
}

/// An endpoint that no version can use.
fn poison(number: u128, revision: i64) -> Vec<u8> {
    let delta = ConfigDelta {
        endpoints: vec![fixture::live(fixture::endpoint(number, revision))],
        ..ConfigDelta::default()
    };
    let bytes = encode(&delta, NodeRole::Delivery).upserts.remove(0);
    let resource = ConfigResource::decode(bytes.as_slice()).unwrap();
    ConfigResource { slug: "NOT GOOD".to_owned(), ..resource }.encode_to_vec()
}

#[test]
fn who_knows_nothing_gets_everything_in_the_order_of_need() {
    let delta = fixture::delta(5);
    let mut replica = filled(&delta);
    let all = replica.changes_since(Revision::ZERO);
    assert_eq!((all.epoch, all.revision), (epoch(1), Revision(5)));
    assert_eq!(all.endpoints, delta.endpoints);
    assert_eq!(all.key_rings, delta.key_rings);
    assert_eq!(all.subscriptions, delta.subscriptions);
    assert_eq!(replica.len(), 9);
}

#[test]
fn who_knows_a_revision_gets_what_came_and_went_after_it_once() {
    let mut replica = filled(&fixture::delta(5));
    let key = endpoint_key(1001);
    replica.remove(key, Revision(6));
    replica.reach(Revision(6));
    let changes = replica.changes_since(Revision(5));
    assert_eq!(changes.endpoints.len(), 1);
    assert!(changes.endpoints[0].deleted);
    assert_eq!(changes.endpoints[0].value.slug.as_str(), "e-1001");
    assert!(changes.subscriptions.is_empty() && changes.tenants.is_empty());
    // Asked again for the same, it answers the same.
    assert_eq!(replica.changes_since(Revision(5)).endpoints.len(), 1);
    assert!(replica.changes_since(Revision(6)).endpoints.is_empty());
}

#[test]
fn a_resource_that_comes_back_is_not_gone() {
    let mut replica = filled(&fixture::delta(5));
    replica.remove(endpoint_key(1001), Revision(6));
    let back = ConfigDelta {
        endpoints: vec![fixture::live(fixture::endpoint(1001, 7))],
        ..ConfigDelta::default()
    };
    replica.upsert(encode(&back, NodeRole::Delivery).upserts.remove(0)).unwrap();
    replica.reach(Revision(7));
    let changes = replica.changes_since(Revision(5));
    assert_eq!(changes.endpoints, back.endpoints);
}

#[test]
fn a_poisoned_resource_keeps_its_version_before_and_spoils_no_other() {
    let mut replica = filled(&fixture::delta(5));
    replica.upsert(poison(1001, 6)).unwrap();
    replica.reach(Revision(6));
    let all = replica.changes_since(Revision::ZERO);
    assert_eq!(all.endpoints, fixture::delta(5).endpoints);
    let refused = replica.refused();
    assert_eq!(refused.len(), 1);
    assert_eq!((refused[0].kind.as_str(), refused[0].revision), ("endpoints", Revision(6)));
    assert!(!refused[0].reason.contains("NOT GOOD"));
    assert!(replica.is_complete(), "its version before is here");
    // A new one has none: what is missing here may exist.
    replica.upsert(poison(1009, 7)).unwrap();
    assert!(!replica.is_complete());
    // Mended, it is a resource like any other.
    let good = ConfigDelta {
        endpoints: vec![fixture::live(fixture::endpoint(1009, 8))],
        ..ConfigDelta::default()
    };
    replica.upsert(encode(&good, NodeRole::Delivery).upserts.remove(0)).unwrap();
    assert!(replica.is_complete());
    assert_eq!(replica.refused().len(), 1);
}

#[test]
fn a_state_that_takes_the_place_of_another_tells_what_went() {
    let before = filled(&fixture::sized(5, 4));
    let next = filled(&fixture::sized(9, 2));
    assert_eq!(before.missing_in(&next), 6);
    let mut next = next.replace(before);
    let changes = next.changes_since(Revision(5));
    let gone: Vec<&str> = changes
        .endpoints
        .iter()
        .filter(|endpoint| endpoint.deleted)
        .map(|endpoint| endpoint.value.slug.as_str())
        .collect();
    assert_eq!(gone, ["e-1003", "e-1004"]);
}

#[test]
fn what_a_snapshot_had_to_refuse_stays_as_it_was() {
    let before = filled(&fixture::delta(5));
    let mut next = Replica::new(at(9), Usable::default());
    for bytes in encode(&fixture::delta(9), NodeRole::Delivery).upserts {
        let (header, _) = wire::header(&bytes).unwrap();
        let is_poisoned = header.key == endpoint_key(1001);
        next.upsert(if is_poisoned { poison(1001, 9) } else { bytes }).unwrap();
    }
    let mut next = next.replace(before);
    let all = next.changes_since(Revision::ZERO);
    let kept = all.endpoints.iter().find(|endpoint| endpoint.value.slug.as_str() == "e-1001");
    assert_eq!(kept.unwrap().value.meta.revision, Revision(5));
    assert!(next.is_complete());
}

#[test]
fn what_the_store_cannot_read_keeps_its_version_before_and_goes_when_it_is_deleted() {
    let delta = fixture::delta(5);
    let mut replica = filled(&delta);
    let unreadable = |deleted| turnbuckle_domain::UnreadableResource {
        kind: turnbuckle_domain::ResourceKind::Endpoint,
        id: fixture::uuid(1001),
        name: "e-1001".to_owned(),
        revision: Revision(6),
        reason: "column url holds something malformed".to_owned(),
        deleted,
    };
    let broken = ConfigDelta { unreadable: vec![unreadable(false)], ..ConfigDelta::default() };
    let encoded = encode(&broken, NodeRole::Delivery);
    replica.upsert(encoded.upserts[0].clone()).unwrap();
    let refused = replica.refused();
    assert_eq!((refused.len(), refused[0].kind.as_str()), (1, "endpoints"));
    assert_eq!(refused[0].reason, "e-1001: column url holds something malformed");
    assert_eq!(replica.changes_since(Revision::ZERO).endpoints, delta.endpoints);
    // Nor does a snapshot take it away that names it without being able to show it.
    let mut next = Replica::new(at(7), Usable::default());
    next.upsert(encoded.upserts[0].clone()).unwrap();
    assert!(next.replace(replica.clone()).changes_since(Revision::ZERO).endpoints.len() == 1);
    let gone = ConfigDelta { unreadable: vec![unreadable(true)], ..ConfigDelta::default() };
    let encoded = encode(&gone, NodeRole::Delivery);
    assert!(encoded.upserts.is_empty());
    assert!(encoded.removals.contains(&endpoint_key(1001)) && encoded.removals.len() == 2);
    assert!(encode(&gone, NodeRole::Ingress).removals.is_empty());
}

#[test]
fn a_revoked_token_goes_from_nodes_as_it_goes_from_snapshots() {
    let delta = fixture::of_every_kind(5);
    let mut replica = filled(&delta);
    let before = replica.len();
    let ended = turnbuckle_domain::Revocation {
        at: turnbuckle_domain::Timestamp::from_micros(9),
        reason: "leaked".to_owned(),
    };
    let mut token = delta.api_tokens[0].clone();
    token.revoked = Some(ended);
    let revoked = ConfigDelta { api_tokens: vec![token.clone()], ..ConfigDelta::default() };
    let encoded = encode(&revoked, NodeRole::Delivery);
    assert!(encoded.upserts.is_empty());
    replica.remove(encoded.removals[0], Revision(6));
    replica.reach(Revision(6));
    assert_eq!(replica.len(), before - 1);
    let told = replica.changes_since(Revision(5)).api_tokens;
    assert!(told.len() == 1 && told[0].id == token.id && told[0].revoked.is_some());
    // Nothing is missing in a snapshot, which never had it.
    let snapshot = ConfigDelta { api_tokens: Vec::new(), ..fixture::of_every_kind(6) };
    assert_eq!(replica.missing_in(&filled(&snapshot)), 0);
}
