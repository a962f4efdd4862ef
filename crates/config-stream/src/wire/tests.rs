use super::*;
use crate::{fixture, replica};
use turnbuckle_domain::{ConfigDelta, Endpoint, EndpointTarget, PullTarget, Revision};
use turnbuckle_proto::v1::config_resource;

/// One of each, with every optional part there and with none.
fn everything() -> ConfigDelta {
    fixture::delta(7)
}

fn decoded(bytes: &[u8]) -> Record {
    let (_, resource) = header(bytes).unwrap();
    decode(resource).unwrap()
}

#[test]
fn every_value_comes_out_as_it_went_in() {
    let delta = fixture::of_every_kind(5);
    let mut found = ConfigDelta::default();
    for role in [NodeRole::Delivery, NodeRole::Ingress] {
        for bytes in &encode(&delta, role).upserts {
            assert!(!matches!(decoded(bytes), Record::Unknown), "a kind of ours is unknown");
            replica::add(&mut found, bytes, false);
        }
    }
    found.tenants.dedup();
    assert_eq!(found.tenants, delta.tenants);
    assert_eq!(found.event_types, delta.event_types);
    assert_eq!(found.event_type_versions, delta.event_type_versions);
    assert_eq!(found.retry_policies, delta.retry_policies);
    assert_eq!(found.key_rings, delta.key_rings);
    assert_eq!(found.endpoints, delta.endpoints);
    assert_eq!(found.subscriptions, delta.subscriptions);
    assert_eq!(found.sources, delta.sources);
    assert_eq!(found.source_key_rings, delta.source_key_rings);
    assert_eq!(found.api_tokens, delta.api_tokens);
}

#[test]
fn a_pull_endpoint_travels_with_its_settings_and_a_url_that_leads_nowhere() {
    let target = EndpointTarget::Pull(PullTarget {
        lease: std::time::Duration::from_millis(7_500),
        max_outstanding: 321,
        ordered_by_subject: true,
    });
    let endpoint = Endpoint { target, ..fixture::endpoint(9, 4) };
    let endpoints = vec![fixture::live(endpoint.clone())];
    let delta = ConfigDelta { endpoints, ..ConfigDelta::default() };
    let encoded = encode(&delta, NodeRole::Delivery);
    let (_, resource) = header(&encoded.upserts[0]).unwrap();
    let Some(config_resource::Record::Endpoint(record)) = &resource.record else { panic!() };
    assert_eq!(record.url, "pull:");
    assert_eq!(decode(resource), Ok(Record::Endpoint(Box::new(endpoint))));
}

#[test]
fn what_others_need_comes_first_and_goes_last() {
    let mut delta = everything();
    let kinds = |encoded: &Encoded| -> Vec<i32> {
        encoded.upserts.iter().map(|bytes| header(bytes).unwrap().0.key.kind).collect()
    };
    let made = kinds(&encode(&delta, NodeRole::Delivery));
    assert!(made.is_sorted(), "{made:?}");
    for endpoint in &mut delta.endpoints {
        endpoint.deleted = true;
    }
    for subscription in &mut delta.subscriptions {
        subscription.deleted = true;
    }
    let encoded = encode(&delta, NodeRole::Delivery);
    let gone: Vec<i32> = encoded.removals.iter().map(|key| key.kind).collect();
    assert!(gone.is_sorted_by(|a, b| a >= b), "{gone:?}");
    assert_eq!(gone.first(), Some(&ConfigKind::Subscription.into()));
    assert_eq!(gone.last(), Some(&ConfigKind::KeyRing.into()));
}

#[test]
fn a_role_gets_its_own_part_only() {
    let encoded = encode(&fixture::of_every_kind(7), NodeRole::Ingress);
    let kinds: Vec<i32> =
        encoded.upserts.iter().map(|bytes| header(bytes).unwrap().0.key.kind).collect();
    let own = [ConfigKind::Tenant, ConfigKind::SourceKeyRing, ConfigKind::Source];
    assert_eq!(kinds, own.map(i32::from));
    assert_eq!(encoded.at.revision, Revision(7));
}

#[test]
fn a_broken_part_is_named_and_not_quoted() {
    let delta = everything();
    let encoded = encode(&delta, NodeRole::Delivery);
    let endpoint = encoded
        .upserts
        .iter()
        .map(|bytes| header(bytes).unwrap().1)
        .find(|resource| resource.kind == i32::from(ConfigKind::Endpoint))
        .unwrap();
    let mut broken = endpoint.clone();
    broken.slug = "hunter2!".to_owned();
    let text = decode(broken).unwrap_err().to_string();
    assert!(text.contains("slug") && !text.contains("hunter2"), "{text}");
    let mut broken = endpoint;
    broken.tenant_id = vec![1, 2, 3];
    assert_eq!(decode(broken).unwrap_err(), Unusable("tenant_id"));
}

#[test]
fn a_kind_of_a_newer_program_is_left_alone() {
    let newer = v1::ConfigResource { kind: 99, id: vec![7; 16], revision: 3, ..Default::default() };
    let bytes = prost::Message::encode_to_vec(&newer);
    let (header, resource) = header(&bytes).unwrap();
    assert_eq!((header.key.kind, header.revision), (99, Revision(3)));
    assert_eq!(decode(resource).unwrap(), Record::Unknown);
}

#[test]
fn bytes_of_anything_else_are_no_resource() {
    for bytes in [&b""[..], b"\xff\xff\xff", b"hello"] {
        assert!(header(bytes).is_none(), "{bytes:?}");
    }
}

#[test]
fn secrets_are_sent_as_they_are_stored() {
    let encoded = encode(&everything(), NodeRole::Delivery);
    let ring = encoded.upserts.iter().find_map(|bytes| match decoded(bytes) {
        Record::KeyRing(_, ring) => Some(ring),
        _ => None,
    });
    let sealed = ring.unwrap().keys[0].secret.clone().unwrap();
    assert_eq!(sealed.as_bytes(), fixture::SEALED);
}

/// The part of the contract that says what configuration looks like on its way, without comments.
fn contract() -> String {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto/turnbuckle/v1/configuration.proto");
    let text = std::fs::read_to_string(path).unwrap();
    let from = text.find("enum ConfigKind").unwrap();
    let to = text.find("// Request of GetRevision").unwrap();
    let lines = text[from..to].lines().map(str::trim);
    let lines: Vec<&str> =
        lines.filter(|line| !line.is_empty() && !line.starts_with("//")).collect();
    lines.join("\n")
}

#[test]
fn whoever_changes_what_nodes_get_raises_the_number_of_the_form() {
    use std::fmt::Write as _;
    let mut form = Sha256::new();
    form.update(contract());
    for role in [NodeRole::Delivery, NodeRole::Ingress] {
        for kind in (1..).map_while(|kind| ConfigKind::try_from(kind).ok()) {
            form.update([u8::from(is_for(role, kind))]);
        }
    }
    let mut text = String::new();
    for byte in &form.finalize()[..8] {
        write!(text, "{byte:02x}").unwrap();
    }
    // Differs: raise SCHEMA, or nodes keep what they have without the new part; then set this.
    assert_eq!((SCHEMA, text.as_str()), (1, "56a4accc67b0eaaf"));
}

#[test]
fn an_epoch_on_the_wire_tells_the_form_too() {
    let epoch = fixture::epoch(7);
    assert_ne!(wire_epoch(epoch), epoch, "as control planes before the number sent it");
    assert_eq!(domain_epoch(wire_epoch(epoch)), epoch);
}
