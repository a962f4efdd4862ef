//! Domain values to records.

use super::{Key, is_for};
use prost::Message as _;
use std::collections::HashMap;
use turnbuckle_domain::{
    ConfigDelta, ConfigPosition, Deletable, Endpoint, EndpointId, EndpointState, EventType,
    HttpTarget, Key as SigningKey, KeyRing, Labels, Meta, NodeRole, RetryPolicy, Subscription,
    Tenant, Timestamp,
};
use turnbuckle_proto::v1::{self, ConfigKind, ConfigResource, config_resource::Record};
use uuid::Uuid;

/// A delta as one role of nodes gets it. Made once and sent to many.
#[derive(Debug, Clone, Default)]
pub struct Encoded {
    /// The state it leads to.
    pub at: ConfigPosition,
    /// Encoded resources, in the order in which they are sent.
    pub upserts: Vec<Vec<u8>>,
    /// What is gone, in the order in which it is sent.
    pub removals: Vec<Key>,
}

/// Encodes a delta for one role: what others need comes first, and goes last.
#[must_use]
pub fn encode(delta: &ConfigDelta, role: NodeRole) -> Encoded {
    let at = ConfigPosition { epoch: delta.epoch, revision: delta.revision };
    let mut to = Encoder { role, encoded: Encoded { at, ..Encoded::default() } };
    to.all(ConfigKind::Tenant, &delta.tenants, tenant);
    to.all(ConfigKind::EventType, &delta.event_types, event_type);
    to.all(ConfigKind::RetryPolicy, &delta.retry_policies, retry_policy);
    for (owner, ring) in &delta.key_rings {
        to.upsert(ConfigKind::KeyRing, key_ring(*owner, ring));
    }
    to.all(ConfigKind::Endpoint, &delta.endpoints, endpoint);
    for gone in delta.endpoints.iter().filter(|endpoint| endpoint.deleted) {
        to.remove(ConfigKind::KeyRing, gone.value.id.uuid());
    }
    to.all(ConfigKind::Subscription, &delta.subscriptions, subscription);
    let mut encoded = to.encoded;
    encoded.removals.sort_by(|a, b| b.cmp(a));
    encoded
}

struct Encoder {
    role: NodeRole,
    encoded: Encoded,
}

impl Encoder {
    fn all<T>(
        &mut self,
        kind: ConfigKind,
        values: &[Deletable<T>],
        record: fn(&T) -> ConfigResource,
    ) {
        if !is_for(self.role, kind) {
            return;
        }
        for Deletable { value, deleted } in values {
            let resource = record(value);
            if *deleted {
                let id = Uuid::from_slice(&resource.id).unwrap_or_default();
                self.remove(kind, id);
            } else {
                self.upsert(kind, resource);
            }
        }
    }

    fn upsert(&mut self, kind: ConfigKind, resource: ConfigResource) {
        if is_for(self.role, kind) {
            let resource = ConfigResource { kind: kind.into(), ..resource };
            self.encoded.upserts.push(resource.encode_to_vec());
        }
    }

    fn remove(&mut self, kind: ConfigKind, id: Uuid) {
        if is_for(self.role, kind) {
            self.encoded.removals.push(Key { kind: kind.into(), id });
        }
    }
}

fn bytes(id: Uuid) -> Vec<u8> {
    id.as_bytes().to_vec()
}

fn resource(id: Uuid, tenant: Uuid, meta: &Meta, labels: &Labels) -> ConfigResource {
    let Meta { created_at, updated_at, revision } = *meta;
    ConfigResource {
        id: bytes(id),
        tenant_id: bytes(tenant),
        revision: revision.0,
        created_at_us: created_at.micros(),
        updated_at_us: updated_at.micros(),
        labels: labels.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        ..ConfigResource::default()
    }
}

fn tenant(value: &Tenant) -> ConfigResource {
    let Tenant { id, slug, display_name, labels, meta } = value;
    ConfigResource {
        slug: slug.as_str().to_owned(),
        record: Some(Record::Tenant(v1::TenantRecord { display_name: display_name.clone() })),
        ..resource(id.uuid(), id.uuid(), meta, labels)
    }
}

fn event_type(value: &EventType) -> ConfigResource {
    let EventType { id, tenant, type_name, description, labels, meta } = value;
    let record = v1::EventTypeRecord { description: description.clone() };
    ConfigResource {
        slug: type_name.as_str().to_owned(),
        record: Some(Record::EventType(record)),
        ..resource(id.uuid(), tenant.uuid(), meta, labels)
    }
}

fn retry_policy(value: &RetryPolicy) -> ConfigResource {
    let RetryPolicy { id, tenant, slug, version, rule, labels, meta } = value;
    // A rule has text and numbers only; an empty text is refused by the node, which says so.
    let rule = serde_json::to_string(rule).unwrap_or_default();
    ConfigResource {
        slug: slug.as_str().to_owned(),
        record: Some(Record::RetryPolicy(v1::RetryPolicyRecord { version: *version, rule })),
        ..resource(id.uuid(), tenant.uuid(), meta, labels)
    }
}

fn endpoint(value: &Endpoint) -> ConfigResource {
    let Endpoint {
        id,
        tenant,
        slug,
        display_name,
        target,
        signature_profile,
        retry_policy,
        max_in_flight,
        state,
        labels,
        meta,
    } = value;
    let HttpTarget { url, timeout, headers, header_prefix } = target;
    let (disabled, disable_reason) = match state {
        EndpointState::Active => (false, String::new()),
        EndpointState::Disabled { reason } => (true, reason.clone()),
    };
    let record = v1::EndpointRecord {
        display_name: display_name.clone(),
        url: url.clone(),
        timeout_us: i64::try_from(timeout.as_micros()).unwrap_or(i64::MAX),
        headers: headers.clone().into_iter().collect::<HashMap<_, _>>(),
        header_prefix: header_prefix.clone(),
        signature_profile: signature_profile.as_str().to_owned(),
        retry_policy_id: retry_policy.map(|id| bytes(id.uuid())).unwrap_or_default(),
        max_in_flight: u32::from(*max_in_flight),
        disabled,
        disable_reason,
    };
    ConfigResource {
        slug: slug.as_str().to_owned(),
        record: Some(Record::Endpoint(record)),
        ..resource(id.uuid(), tenant.uuid(), meta, labels)
    }
}

fn key_ring(owner: EndpointId, ring: &KeyRing) -> ConfigResource {
    let KeyRing { keys, revision } = ring;
    let record = v1::KeyRingRecord { keys: keys.iter().map(signing_key).collect() };
    ConfigResource {
        id: bytes(owner.uuid()),
        revision: revision.0,
        record: Some(Record::KeyRing(record)),
        ..ConfigResource::default()
    }
}

fn signing_key(key: &SigningKey) -> v1::KeyRecord {
    let SigningKey {
        id,
        state,
        algorithm,
        fingerprint,
        public_key,
        secret,
        created_at,
        activated_at,
        retire_at,
        revoke_reason,
    } = key;
    v1::KeyRecord {
        id: bytes(id.uuid()),
        state: state.as_str().to_owned(),
        algorithm: algorithm.as_str().to_owned(),
        fingerprint: fingerprint.clone(),
        public_key: public_key.clone(),
        sealed_secret: secret.as_ref().map(|sealed| sealed.as_bytes().to_vec()),
        created_at_us: created_at.micros(),
        activated_at_us: activated_at.map(Timestamp::micros),
        retire_at_us: retire_at.map(Timestamp::micros),
        revoke_reason: revoke_reason.clone(),
    }
}

fn subscription(value: &Subscription) -> ConfigResource {
    let Subscription { id, tenant, slug, endpoint, patterns, format, filter, labels, meta } = value;
    let record = v1::SubscriptionRecord {
        endpoint_id: bytes(endpoint.uuid()),
        patterns: patterns.iter().map(ToString::to_string).collect(),
        format: i32::from(format.code()),
        filter: filter.as_ref().map(ToString::to_string),
    };
    ConfigResource {
        slug: slug.as_str().to_owned(),
        record: Some(Record::Subscription(record)),
        ..resource(id.uuid(), tenant.uuid(), meta, labels)
    }
}
