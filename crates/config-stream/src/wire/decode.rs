//! Records to domain values. What does not fit is refused by name, without its content.

use super::Key;
use prost::Message as _;
use std::{fmt, time::Duration};
use turnbuckle_domain::{
    ApiToken, ApiTokenHash, ApiTokenId, Channels, Compatibility, Endpoint, EndpointId,
    EndpointState, EndpointTarget, EventType, EventTypeId, EventTypeVersion, EventTypeVersionId,
    Filter, HttpTarget, IngestPath, IngestToken, Key as SigningKey, KeyAlgorithm, KeyId, KeyRing,
    KeyState, Labels, Meta, PayloadFormat, PullTarget, ResourceId, RetryPolicy, RetryPolicyId,
    Revision, Revocation, Role, RotationPause, SchemeChoice, SchemeDocument, SealedSecret,
    SignatureProfile, Source, SourceId, Subscription, SubscriptionId, Tenant, TenantId, Timestamp,
    TypeName, TypePattern, UnknownVersion, VersionName, Violations, limits,
};
use turnbuckle_proto::v1::{self, ConfigResource, config_resource::Record as Wire};
use uuid::Uuid;

/// A resource that this program can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// A tenant.
    Tenant(Tenant),
    /// An event type.
    EventType(EventType),
    /// A retry policy.
    RetryPolicy(RetryPolicy),
    /// The keys of an endpoint.
    KeyRing(EndpointId, KeyRing),
    /// An endpoint.
    Endpoint(Box<Endpoint>),
    /// A subscription.
    Subscription(Subscription),
    /// A version of an event type.
    EventTypeVersion(EventTypeVersion),
    /// The keys of a source.
    SourceKeyRing(SourceId, KeyRing),
    /// A source.
    Source(Box<Source>),
    /// An API token.
    ApiToken(Box<ApiToken>),
    /// Something newer than this program.
    Unknown,
}

/// What every resource says of itself, also one that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Which one.
    pub key: Key,
    /// Revision of its last change.
    pub revision: Revision,
}

/// A part of a resource that cannot be used. Names the part and never its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} cannot be used by this version")]
pub struct Unusable(pub &'static str);

/// Reads what a resource is. None when the bytes are no resource at all.
#[must_use]
pub fn header(bytes: &[u8]) -> Option<(Header, ConfigResource)> {
    let resource = ConfigResource::decode(bytes).ok()?;
    let key = Key { kind: resource.kind, id: Uuid::from_slice(&resource.id).ok()? };
    let header = Header { key, revision: Revision(resource.revision) };
    Some((header, resource))
}

/// Makes the value of a resource.
///
/// # Errors
/// When a part of it is not as it must be.
pub fn decode(mut resource: ConfigResource) -> Result<Record, Unusable> {
    let Some(record) = resource.record.take() else { return Ok(Record::Unknown) };
    Ok(match record {
        Wire::Tenant(record) => Record::Tenant(tenant(resource, record)?),
        Wire::EventType(record) => Record::EventType(event_type(resource, record)?),
        Wire::RetryPolicy(record) => Record::RetryPolicy(retry_policy(resource, &record)?),
        Wire::KeyRing(record) => {
            Record::KeyRing(EndpointId::from_uuid(id(&resource.id)?), key_ring(resource, record)?)
        }
        Wire::Endpoint(record) => Record::Endpoint(Box::new(endpoint(resource, record)?)),
        Wire::Subscription(record) => Record::Subscription(subscription(resource, record)?),
        Wire::EventTypeVersion(record) => {
            Record::EventTypeVersion(event_type_version(&resource, record)?)
        }
        Wire::SourceKeyRing(record) => {
            let owner = SourceId::from_uuid(id(&resource.id)?);
            Record::SourceKeyRing(owner, key_ring(resource, record)?)
        }
        Wire::Source(record) => Record::Source(Box::new(source(resource, record)?)),
        Wire::ApiToken(record) => Record::ApiToken(Box::new(api_token(&resource, record)?)),
    })
}

fn part<T, E: fmt::Display>(name: &'static str, value: Result<T, E>) -> Result<T, Unusable> {
    value.map_err(|_| Unusable(name))
}

fn some<T>(name: &'static str, value: Option<T>) -> Result<T, Unusable> {
    value.ok_or(Unusable(name))
}

fn id(bytes: &[u8]) -> Result<Uuid, Unusable> {
    part("id", Uuid::from_slice(bytes))
}

fn tenant_id(resource: &ConfigResource) -> Result<TenantId, Unusable> {
    Ok(TenantId::from_uuid(part("tenant_id", Uuid::from_slice(&resource.tenant_id))?))
}

fn slug(resource: &ConfigResource) -> Result<ResourceId, Unusable> {
    part("slug", ResourceId::new(resource.slug.clone()))
}

fn labels(resource: &mut ConfigResource) -> Result<Labels, Unusable> {
    part("labels", Labels::new(std::mem::take(&mut resource.labels)))
}

const fn meta(resource: &ConfigResource) -> Meta {
    Meta {
        created_at: Timestamp::from_micros(resource.created_at_us),
        updated_at: Timestamp::from_micros(resource.updated_at_us),
        revision: Revision(resource.revision),
    }
}

fn tenant(mut resource: ConfigResource, record: v1::TenantRecord) -> Result<Tenant, Unusable> {
    Ok(Tenant {
        id: TenantId::from_uuid(id(&resource.id)?),
        slug: slug(&resource)?,
        display_name: record.display_name,
        labels: labels(&mut resource)?,
        meta: meta(&resource),
    })
}

fn event_type(
    mut resource: ConfigResource,
    record: v1::EventTypeRecord,
) -> Result<EventType, Unusable> {
    Ok(EventType {
        id: EventTypeId::from_uuid(id(&resource.id)?),
        tenant: tenant_id(&resource)?,
        type_name: part("slug", TypeName::new(resource.slug.clone()))?,
        description: record.description,
        compatibility: choice("compatibility", &record.compatibility, Compatibility::parse)?,
        unknown_version: choice("unknown_version", &record.unknown_version, UnknownVersion::parse)?,
        labels: labels(&mut resource)?,
        meta: meta(&resource),
    })
}

/// A word, or the default of who does not know it yet.
fn choice<T: Default>(
    name: &'static str,
    word: &str,
    parse: fn(&str) -> Option<T>,
) -> Result<T, Unusable> {
    if word.is_empty() { Ok(T::default()) } else { some(name, parse(word)) }
}

fn retry_policy(
    mut resource: ConfigResource,
    record: &v1::RetryPolicyRecord,
) -> Result<RetryPolicy, Unusable> {
    Ok(RetryPolicy {
        id: RetryPolicyId::from_uuid(id(&resource.id)?),
        tenant: tenant_id(&resource)?,
        slug: slug(&resource)?,
        version: record.version,
        rule: part("rule", serde_json::from_str(&record.rule))?,
        labels: labels(&mut resource)?,
        meta: meta(&resource),
    })
}

fn endpoint(
    mut resource: ConfigResource,
    record: v1::EndpointRecord,
) -> Result<Endpoint, Unusable> {
    let timeout = part("timeout_us", u64::try_from(record.timeout_us))?;
    let profile = SignatureProfile::parse(&record.signature_profile);
    let policy = match record.retry_policy_id.as_slice() {
        [] => None,
        bytes => Some(RetryPolicyId::from_uuid(part("retry_policy_id", Uuid::from_slice(bytes))?)),
    };
    let state = match record.disabled {
        true => EndpointState::Disabled { reason: record.disable_reason },
        false => EndpointState::Active,
    };
    let target = match record.pull {
        Some(pull) => EndpointTarget::Pull(pull_target(&pull)?),
        None => EndpointTarget::Http(HttpTarget {
            url: record.url,
            timeout: Duration::from_micros(timeout),
            headers: record.headers.into_iter().collect(),
            header_prefix: record.header_prefix,
        }),
    };
    Ok(Endpoint {
        id: EndpointId::from_uuid(id(&resource.id)?),
        tenant: tenant_id(&resource)?,
        slug: slug(&resource)?,
        display_name: record.display_name,
        target,
        signature_profile: some("signature_profile", profile)?,
        retry_policy: policy,
        max_in_flight: part("max_in_flight", u16::try_from(record.max_in_flight))?,
        state,
        labels: labels(&mut resource)?,
        meta: meta(&resource),
    })
}

fn pull_target(record: &v1::PullRecord) -> Result<PullTarget, Unusable> {
    Ok(PullTarget {
        lease: Duration::from_micros(part("lease_us", u64::try_from(record.lease_us))?),
        max_outstanding: part("max_outstanding", u16::try_from(record.max_outstanding))?,
        ordered_by_subject: record.ordered_by_subject,
    })
}

fn key_ring(resource: ConfigResource, record: v1::KeyRingRecord) -> Result<KeyRing, Unusable> {
    let keys = record.keys.into_iter().map(signing_key).collect::<Result<_, _>>()?;
    let pause = match (record.pause_reason, record.paused_at_us) {
        (None, None) => None,
        (Some(reason), Some(at)) => Some(RotationPause {
            reason,
            at: Timestamp::from_micros(at),
            resumed_at: record.resumed_at_us.map(Timestamp::from_micros),
        }),
        _ => return Err(Unusable("pause")),
    };
    Ok(KeyRing { keys, pause, revision: Revision(resource.revision) })
}

fn signing_key(record: v1::KeyRecord) -> Result<SigningKey, Unusable> {
    Ok(SigningKey {
        id: KeyId::from_uuid(part("keys.id", Uuid::from_slice(&record.id))?),
        state: some("keys.state", KeyState::parse(&record.state))?,
        algorithm: some("keys.algorithm", KeyAlgorithm::parse(&record.algorithm))?,
        fingerprint: record.fingerprint,
        public_key: record.public_key,
        secret: record.sealed_secret.map(SealedSecret::from_bytes),
        created_at: Timestamp::from_micros(record.created_at_us),
        activated_at: record.activated_at_us.map(Timestamp::from_micros),
        retire_at: record.retire_at_us.map(Timestamp::from_micros),
        revoke_reason: record.revoke_reason,
        held: record.held,
    })
}

fn subscription(
    mut resource: ConfigResource,
    record: v1::SubscriptionRecord,
) -> Result<Subscription, Unusable> {
    let mut violations = Violations::new();
    let channels = Channels::read(record.channels, limits::CHANNELS, "channels", &mut violations);
    let patterns = record.patterns.iter().map(|text| TypePattern::parse(text));
    let format = i16::try_from(record.format).ok().and_then(PayloadFormat::from_code);
    let filter = record.filter.as_ref().map(|text| Filter::parse(text)).transpose();
    let owner = part("endpoint_id", Uuid::from_slice(&record.endpoint_id))?;
    Ok(Subscription {
        id: SubscriptionId::from_uuid(id(&resource.id)?),
        tenant: tenant_id(&resource)?,
        slug: slug(&resource)?,
        endpoint: EndpointId::from_uuid(owner),
        patterns: part("patterns", patterns.collect::<Result<_, _>>())?,
        channels: some("channels", channels)?,
        format: some("format", format)?,
        filter: part("filter", filter)?,
        labels: labels(&mut resource)?,
        meta: meta(&resource),
    })
}

fn event_type_version(
    resource: &ConfigResource,
    record: v1::EventTypeVersionRecord,
) -> Result<EventTypeVersion, Unusable> {
    let owner = part("event_type_id", Uuid::from_slice(&record.event_type_id))?;
    Ok(EventTypeVersion {
        id: EventTypeVersionId::from_uuid(id(&resource.id)?),
        tenant: tenant_id(resource)?,
        event_type: EventTypeId::from_uuid(owner),
        version: part("slug", VersionName::new(resource.slug.clone()))?,
        schema: record.schema,
        description: record.description,
        meta: meta(resource),
    })
}

fn source(mut resource: ConfigResource, record: v1::SourceRecord) -> Result<Source, Unusable> {
    let token = |text: &str| some("ingest_token", IngestToken::parse(text));
    let previous = match (&record.previous_token, record.previous_until_us) {
        (None, None) => None,
        (Some(text), Some(until)) => Some((token(text)?, Timestamp::from_micros(until))),
        _ => return Err(Unusable("previous_token")),
    };
    let scheme = match (record.preset, record.scheme) {
        (Some(name), None) => SchemeChoice::Preset(name),
        (None, Some(text)) => SchemeChoice::Custom(part("scheme", SchemeDocument::new(text))?),
        _ => return Err(Unusable("scheme")),
    };
    Ok(Source {
        id: SourceId::from_uuid(id(&resource.id)?),
        tenant: tenant_id(&resource)?,
        slug: slug(&resource)?,
        display_name: record.display_name,
        scheme,
        scheme_settings: record.scheme_settings.into_iter().collect(),
        path: IngestPath { token: token(&record.ingest_token)?, previous },
        public_url: record.public_url,
        settings: part("settings", serde_json::from_str(&record.settings))?,
        disabled: record.disable_reason,
        labels: labels(&mut resource)?,
        meta: meta(&resource),
    })
}

fn api_token(resource: &ConfigResource, record: v1::ApiTokenRecord) -> Result<ApiToken, Unusable> {
    let hash = <[u8; 32]>::try_from(record.hash.as_slice());
    let reason = record.revoke_reason;
    let revoked =
        record.revoked_at_us.map(|at| Revocation { at: Timestamp::from_micros(at), reason });
    Ok(ApiToken {
        id: ApiTokenId::from_uuid(id(&resource.id)?),
        tenant: (!resource.tenant_id.is_empty()).then(|| tenant_id(resource)).transpose()?,
        slug: slug(resource)?,
        description: record.description,
        role: some("role", Role::parse(&record.role))?,
        hash: ApiTokenHash::from_bytes(part("hash", hash)?),
        hint: record.hint,
        creator: record.creator,
        expires_at: Timestamp::from_micros(record.expires_at_us),
        revoked,
        last_used_at: None,
        meta: meta(resource),
    })
}
