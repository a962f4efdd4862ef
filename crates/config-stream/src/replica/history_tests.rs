//! Who followed every change has what a snapshot of the same revision has. Over every kind.

use super::*;
use crate::{
    fixture::{self, epoch, uuid},
    wire::{Encoded, encode},
};
use proptest::prelude::*;
use std::collections::BTreeSet;
use turnbuckle_domain::{
    ApiTokenId, EndpointId, Epoch, EventTypeId, EventTypeVersionId, NodeRole, RetryPolicyId,
    SourceId, SubscriptionId, TenantId, Timestamp,
};
use turnbuckle_proto::v1::ConfigKind;

/// Resources that are changed as one; a ring goes with its owner.
const KINDS: u8 = 8;
/// Resources of each.
const EACH: u8 = 3;

/// One change: which resource, and whether it goes.
type Step = (u8, u8, bool);

/// A delta of one resource, as the store gives it. A tombstone of a token is a revoked one.
fn one((kind, number, deleted): Step, revision: i64) -> ConfigDelta {
    let all = fixture::of_every_kind(revision);
    let id = uuid(5_000 + u128::from(kind) * 100 + u128::from(number));
    let mut one = ConfigDelta::default();
    match kind {
        0 => one.tenants = all.tenants,
        1 => one.event_types = all.event_types,
        2 => one.retry_policies = all.retry_policies,
        3 => one.endpoints = all.endpoints.into_iter().take(1).collect(),
        4 => one.subscriptions = all.subscriptions.into_iter().take(1).collect(),
        5 => one.event_type_versions = all.event_type_versions,
        6 => one.sources = all.sources,
        _ => one.api_tokens = all.api_tokens,
    }
    if kind == 3 && !deleted {
        let ring = all.key_rings.into_iter().take(1);
        one.key_rings = ring.map(|(_, ring)| (EndpointId::from_uuid(id), ring)).collect();
    }
    if kind == 6 && !deleted {
        let ring = all.source_key_rings.into_iter();
        one.source_key_rings = ring.map(|(_, ring)| (SourceId::from_uuid(id), ring)).collect();
    }
    for gone in &mut one.tenants {
        (gone.value.id, gone.deleted) = (TenantId::from_uuid(id), deleted);
        gone.value.meta.revision = Revision(revision);
    }
    for gone in &mut one.event_types {
        (gone.value.id, gone.deleted) = (EventTypeId::from_uuid(id), deleted);
        gone.value.meta.revision = Revision(revision);
    }
    for gone in &mut one.retry_policies {
        (gone.value.id, gone.deleted) = (RetryPolicyId::from_uuid(id), deleted);
        gone.value.meta.revision = Revision(revision);
    }
    for gone in &mut one.endpoints {
        (gone.value.id, gone.deleted) = (EndpointId::from_uuid(id), deleted);
    }
    for gone in &mut one.subscriptions {
        (gone.value.id, gone.deleted) = (SubscriptionId::from_uuid(id), deleted);
    }
    for gone in &mut one.event_type_versions {
        (gone.value.id, gone.deleted) = (EventTypeVersionId::from_uuid(id), deleted);
    }
    for gone in &mut one.sources {
        (gone.value.id, gone.deleted) = (SourceId::from_uuid(id), deleted);
    }
    for gone in &mut one.api_tokens {
        gone.id = ApiTokenId::from_uuid(id);
        let at = Timestamp::from_micros(revision);
        gone.revoked = deleted.then(|| Revocation { at, reason: "gone".to_owned() });
    }
    one
}

/// Puts deltas together. Names every kind, so that another one does not compile until it is here.
fn together(parts: impl IntoIterator<Item = ConfigDelta>, revision: i64) -> ConfigDelta {
    let mut all =
        ConfigDelta { epoch: epoch(1), revision: Revision(revision), ..ConfigDelta::default() };
    for part in parts {
        let ConfigDelta {
            epoch: _,
            revision: _,
            tenants,
            event_types,
            event_type_versions,
            retry_policies,
            endpoints,
            key_rings,
            subscriptions,
            sources,
            source_key_rings,
            api_tokens,
            unreadable,
        } = part;
        all.tenants.extend(tenants);
        all.event_types.extend(event_types);
        all.event_type_versions.extend(event_type_versions);
        all.retry_policies.extend(retry_policies);
        all.endpoints.extend(endpoints);
        all.key_rings.extend(key_rings);
        all.subscriptions.extend(subscriptions);
        all.sources.extend(sources);
        all.source_key_rings.extend(source_key_rings);
        all.api_tokens.extend(api_tokens);
        all.unreadable.extend(unreadable);
    }
    all
}

fn take_in(replica: &mut Replica, encoded: Encoded) {
    for bytes in encoded.upserts {
        replica.upsert(bytes).unwrap();
    }
    for key in encoded.removals {
        replica.remove(key, encoded.at.revision);
    }
    replica.reach(encoded.at.revision);
}

fn contents(replica: &Replica) -> Vec<(Key, Revision)> {
    replica.live.iter().map(|(key, held)| (*key, held.revision)).collect()
}

/// What a plane has that takes what the replica hands out: by kind and id.
fn follow(plane: &mut BTreeSet<(u8, Uuid)>, delta: &ConfigDelta) {
    let mut put = |kind: u8, id: Uuid, deleted: bool| match deleted {
        true => plane.remove(&(kind, id)),
        false => plane.insert((kind, id)),
    };
    for it in &delta.tenants {
        put(0, it.value.id.uuid(), it.deleted);
    }
    for it in &delta.event_types {
        put(1, it.value.id.uuid(), it.deleted);
    }
    for it in &delta.retry_policies {
        put(2, it.value.id.uuid(), it.deleted);
    }
    for it in &delta.endpoints {
        put(3, it.value.id.uuid(), it.deleted);
    }
    for it in &delta.subscriptions {
        put(4, it.value.id.uuid(), it.deleted);
    }
    for it in &delta.event_type_versions {
        put(5, it.value.id.uuid(), it.deleted);
    }
    for it in &delta.sources {
        put(6, it.value.id.uuid(), it.deleted);
    }
    for it in &delta.api_tokens {
        put(7, it.id.uuid(), it.revoked.is_some());
    }
}

/// A snapshot at a revision: what the last steps left.
fn snapshot(last: &BTreeMap<(u8, u8), (i64, bool)>, revision: i64, role: NodeRole) -> Replica {
    let live = last.iter().filter(|(_, (_, deleted))| !deleted);
    let parts = live.map(|((kind, number), (changed, _))| one((*kind, *number, false), *changed));
    let at = ConfigPosition { epoch: Epoch::default(), revision: Revision(revision) };
    let mut replica = Replica::new(at, Usable::default());
    take_in(&mut replica, encode(&together(parts, revision), role));
    replica
}

fn steps() -> impl Strategy<Value = Vec<Vec<Step>>> {
    let step = (0..KINDS, 0..EACH, any::<bool>());
    prop::collection::vec(prop::collection::vec(step, 1..6), 1..20)
}

/// Follows a history in deltas, and compares after each of them.
fn check(history: &[Vec<Step>], role: NodeRole) {
    let at = ConfigPosition { epoch: epoch(1), revision: Revision::ZERO };
    let mut replica = Replica::new(at, Usable::default());
    let (mut plane, mut plane_at) = (BTreeSet::new(), Revision::ZERO);
    let mut last = BTreeMap::new();
    let mut revision = 0;
    for delta in history {
        let mut changed = BTreeMap::new();
        for (kind, number, deleted) in delta {
            revision += 1;
            // What was never made cannot go.
            let is_known = last.contains_key(&(*kind, *number));
            if !deleted || is_known {
                changed.insert((*kind, *number), (revision, *deleted));
                last.insert((*kind, *number), (revision, *deleted));
            }
        }
        let parts = changed
            .into_iter()
            .map(|((kind, number), (changed, deleted))| one((kind, number, deleted), changed));
        take_in(&mut replica, encode(&together(parts, revision), role));
        let handed_out = replica.changes_since(plane_at);
        plane_at = handed_out.revision;
        follow(&mut plane, &handed_out);

        let mut anew = snapshot(&last, revision, role);
        assert_eq!(contents(&replica), contents(&anew), "{role:?} at {revision}: {history:?}");
        assert_eq!(replica.missing_in(&anew), 0);
        let mut plane_anew = BTreeSet::new();
        follow(&mut plane_anew, &anew.changes_since(Revision::ZERO));
        assert_eq!(plane, plane_anew, "{role:?} at {revision}: {history:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn deltas_lead_to_what_a_snapshot_has(history in steps()) {
        for role in [NodeRole::Delivery, NodeRole::Ingress] {
            check(&history, role);
        }
    }
}

#[test]
fn every_kind_is_in_the_histories() {
    let all: Vec<Vec<Step>> = vec![(0..KINDS).map(|kind| (kind, 0, false)).collect()];
    let mut found = BTreeSet::new();
    for role in [NodeRole::Delivery, NodeRole::Ingress] {
        check(&all, role);
        let parts = all[0].iter().map(|step| one(*step, 1));
        for bytes in encode(&together(parts, 1), role).upserts {
            found.insert(wire::header(&bytes).unwrap().0.key.kind);
        }
    }
    let known = (1..).take_while(|kind| ConfigKind::try_from(*kind).is_ok());
    assert_eq!(found, known.collect::<BTreeSet<i32>>(), "a kind is not tried");
}

#[test]
fn a_token_that_comes_revoked_takes_itself_out() {
    let mut replica = Replica::new(ConfigPosition::default(), Usable::default());
    take_in(&mut replica, encode(&one((7, 0, false), 1), NodeRole::Delivery));
    assert_eq!(replica.len(), 1);
    // As control planes before sent it, and as files before have it.
    let mut revoked = one((7, 0, true), 2).api_tokens.remove(0);
    let revocation = revoked.revoked.take();
    let delta = ConfigDelta { api_tokens: vec![revoked], ..ConfigDelta::default() };
    let bytes = encode(&delta, NodeRole::Delivery).upserts.remove(0);
    let mut resource = wire::header(&bytes).unwrap().1;
    if let Some(turnbuckle_proto::v1::config_resource::Record::ApiToken(record)) =
        &mut resource.record
    {
        record.revoked_at_us = revocation.map(|revoked| revoked.at.micros());
    }
    replica.upsert(prost::Message::encode_to_vec(&resource)).unwrap();
    replica.reach(Revision(2));
    assert_eq!(replica.len(), 0);
    let told = replica.changes_since(Revision(1)).api_tokens;
    assert!(told.len() == 1 && told[0].revoked.is_some());
}
