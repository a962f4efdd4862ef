//! Domain values to records.

use super::{Key, is_for, wire_kind};
use prost::Message as _;
use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};
use turnbuckle_domain::{
    ApiToken, ConfigDelta, ConfigPosition, Deletable, Endpoint, EndpointState, EndpointTarget,
    EventType, EventTypeVersion, HttpTarget, IngestPath, Key as SigningKey, KeyRing, Labels, Meta,
    NodeRole, PullTarget, RetryPolicy, Revocation, SchemeChoice, Source, Subscription, Tenant,
    Timestamp, UnreadableResource,
};
use turnbuckle_proto::v1::{self, ConfigKind, ConfigResource, config_resource::Record};
use uuid::Uuid;

/// Stands where a URL stands otherwise: a node that knows no pull endpoints sends nothing there.
const PULL_URL: &str = "pull:";

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
        to.upsert(ConfigKind::KeyRing, key_ring(owner.uuid(), ring, Record::KeyRing));
    }
    to.all(ConfigKind::Endpoint, &delta.endpoints, endpoint);
    for gone in delta.endpoints.iter().filter(|endpoint| endpoint.deleted) {
        to.remove(ConfigKind::KeyRing, gone.value.id.uuid());
    }
    to.all(ConfigKind::Subscription, &delta.subscriptions, subscription);
    to.all(ConfigKind::EventTypeVersion, &delta.event_type_versions, event_type_version);
    for (owner, ring) in &delta.source_key_rings {
        let ring = key_ring(owner.uuid(), ring, Record::SourceKeyRing);
        to.upsert(ConfigKind::SourceKeyRing, ring);
    }
    to.all(ConfigKind::Source, &delta.sources, source);
    for gone in delta.sources.iter().filter(|source| source.deleted) {
        to.remove(ConfigKind::SourceKeyRing, gone.value.id.uuid());
    }
    for token in &delta.api_tokens {
        match token.revoked {
            None => to.upsert(ConfigKind::ApiToken, api_token(token)),
            // A snapshot lacks it too.
            Some(_) => to.remove(ConfigKind::ApiToken, token.id.uuid()),
        }
    }
    for one in &delta.unreadable {
        to.unreadable(one);
    }
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

    /// Something deleted goes, readable or not; of anything else the node keeps what it has.
    fn unreadable(&mut self, one: &UnreadableResource) {
        let kind = wire_kind(one.kind);
        if !one.deleted {
            let resource = ConfigResource {
                id: bytes(one.id),
                revision: one.revision.0,
                slug: one.name.clone(),
                unreadable: one.reason.clone(),
                ..ConfigResource::default()
            };
            return self.upsert(kind, resource);
        }
        match kind {
            ConfigKind::Endpoint => self.remove(ConfigKind::KeyRing, one.id),
            ConfigKind::Source => self.remove(ConfigKind::SourceKeyRing, one.id),
            _ => {}
        }
        self.remove(kind, one.id);
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
    let EventType {
        id,
        tenant,
        type_name,
        description,
        compatibility,
        unknown_version,
        labels,
        meta,
    } = value;
    let record = v1::EventTypeRecord {
        description: description.clone(),
        compatibility: compatibility.as_str().to_owned(),
        unknown_version: unknown_version.as_str().to_owned(),
    };
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
    let (url, timeout, headers, header_prefix, pull) = match target {
        EndpointTarget::Http(HttpTarget { url, timeout, headers, header_prefix }) => {
            (url.as_str(), *timeout, headers.clone(), header_prefix.as_str(), None)
        }
        EndpointTarget::Pull(PullTarget { lease, max_outstanding, ordered_by_subject }) => {
            let pull = v1::PullRecord {
                lease_us: i64::try_from(lease.as_micros()).unwrap_or(i64::MAX),
                max_outstanding: u32::from(*max_outstanding),
                ordered_by_subject: *ordered_by_subject,
            };
            (PULL_URL, Duration::ZERO, BTreeMap::new(), "", Some(pull))
        }
    };
    let (disabled, disable_reason) = match state {
        EndpointState::Active => (false, String::new()),
        EndpointState::Disabled { reason } => (true, reason.clone()),
    };
    let record = v1::EndpointRecord {
        display_name: display_name.clone(),
        url: url.to_owned(),
        timeout_us: i64::try_from(timeout.as_micros()).unwrap_or(i64::MAX),
        headers: headers.into_iter().collect::<HashMap<_, _>>(),
        header_prefix: header_prefix.to_owned(),
        signature_profile: signature_profile.as_str().to_owned(),
        retry_policy_id: retry_policy.map(|id| bytes(id.uuid())).unwrap_or_default(),
        max_in_flight: u32::from(*max_in_flight),
        disabled,
        disable_reason,
        pull,
    };
    ConfigResource {
        slug: slug.as_str().to_owned(),
        record: Some(Record::Endpoint(record)),
        ..resource(id.uuid(), tenant.uuid(), meta, labels)
    }
}

fn key_ring(owner: Uuid, ring: &KeyRing, kind: fn(v1::KeyRingRecord) -> Record) -> ConfigResource {
    let KeyRing { keys, pause, revision } = ring;
    let record = v1::KeyRingRecord {
        keys: keys.iter().map(signing_key).collect(),
        pause_reason: pause.as_ref().map(|pause| pause.reason.clone()),
        paused_at_us: pause.as_ref().map(|pause| pause.at.micros()),
        resumed_at_us: pause.as_ref().and_then(|pause| pause.resumed_at).map(Timestamp::micros),
    };
    ConfigResource {
        id: bytes(owner),
        revision: revision.0,
        record: Some(kind(record)),
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
        held,
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
        held: *held,
    }
}

fn subscription(value: &Subscription) -> ConfigResource {
    let Subscription {
        id,
        tenant,
        slug,
        endpoint,
        patterns,
        channels,
        format,
        filter,
        labels,
        meta,
    } = value;
    let record = v1::SubscriptionRecord {
        endpoint_id: bytes(endpoint.uuid()),
        patterns: patterns.iter().map(ToString::to_string).collect(),
        format: i32::from(format.code()),
        filter: filter.as_ref().map(ToString::to_string),
        channels: channels.iter().map(|channel| channel.as_str().to_owned()).collect(),
    };
    ConfigResource {
        slug: slug.as_str().to_owned(),
        record: Some(Record::Subscription(record)),
        ..resource(id.uuid(), tenant.uuid(), meta, labels)
    }
}

fn event_type_version(value: &EventTypeVersion) -> ConfigResource {
    let EventTypeVersion { id, tenant, event_type, version, schema, description, meta } = value;
    let record = v1::EventTypeVersionRecord {
        event_type_id: bytes(event_type.uuid()),
        schema: schema.clone(),
        description: description.clone(),
    };
    ConfigResource {
        slug: version.as_str().to_owned(),
        record: Some(Record::EventTypeVersion(record)),
        ..resource(id.uuid(), tenant.uuid(), meta, &Labels::default())
    }
}

fn source(value: &Source) -> ConfigResource {
    let Source {
        id,
        tenant,
        slug,
        display_name,
        scheme,
        scheme_settings,
        path,
        public_url,
        settings,
        disabled,
        labels,
        meta,
    } = value;
    let IngestPath { token, previous } = path;
    let (preset, scheme) = match scheme {
        SchemeChoice::Preset(name) => (Some(name.clone()), None),
        SchemeChoice::Custom(document) => (None, Some(document.as_str().to_owned())),
    };
    let record = v1::SourceRecord {
        display_name: display_name.clone(),
        preset,
        scheme,
        scheme_settings: scheme_settings.clone().into_iter().collect(),
        ingest_token: token.as_str().to_owned(),
        previous_token: previous.as_ref().map(|(token, _)| token.as_str().to_owned()),
        previous_until_us: previous.as_ref().map(|(_, until)| until.micros()),
        public_url: public_url.clone(),
        // An empty text is refused by the node, which says so.
        settings: serde_json::to_string(settings).unwrap_or_default(),
        disable_reason: disabled.clone(),
    };
    ConfigResource {
        slug: slug.as_str().to_owned(),
        record: Some(Record::Source(record)),
        ..resource(id.uuid(), tenant.uuid(), meta, labels)
    }
}

fn api_token(value: &ApiToken) -> ConfigResource {
    let ApiToken {
        id,
        tenant,
        slug,
        description,
        role,
        hash,
        hint,
        creator,
        expires_at,
        revoked,
        // Noted by whoever takes the token: no part of the configuration.
        last_used_at: _,
        meta,
    } = value;
    let (revoked_at, reason) = match revoked {
        None => (None, String::new()),
        Some(Revocation { at, reason }) => (Some(at.micros()), reason.clone()),
    };
    let record = v1::ApiTokenRecord {
        description: description.clone(),
        role: role.as_str().to_owned(),
        hash: hash.as_bytes().to_vec(),
        hint: hint.clone(),
        creator: creator.clone(),
        expires_at_us: expires_at.micros(),
        revoked_at_us: revoked_at,
        revoke_reason: reason,
    };
    let tenant_id = tenant.map(|tenant| bytes(tenant.uuid())).unwrap_or_default();
    ConfigResource {
        slug: slug.as_str().to_owned(),
        tenant_id,
        record: Some(Record::ApiToken(record)),
        ..resource(id.uuid(), Uuid::nil(), meta, &Labels::default())
    }
}
