//! Endpoints on the wire.

use super::{
    change::{self, split_name},
    etag, finish, key_ring,
    mask::{Fields, Mask},
    new_id, page, single, target, uid,
    value::{self, WireMeta},
    with_deleted,
};
use crate::{
    endpoint::{
        CreateEndpoint, CreatedEndpoint, DisableEndpoint, EndpointVerb, EndpointView,
        ListEndpoints, NOT_SENT, UNSIGNED, UpdateEndpoint,
    },
    kept::{Listed, Lookup, Undelete},
    key_material::WantedKey,
    names::{EndpointName, RetryPolicyName, TenantName},
    page::Page,
    write::Upsert,
};
use turnbuckle_domain::{
    EndpointId, EndpointState, Error, KeyAlgorithm, ResourceId, SignatureProfile, TargetPolicy,
    Violations, limits,
};
use turnbuckle_proto::v1;
use turnbuckle_runtime::grpc;
use zeroize::Zeroizing;

const NAME_FIELD: &str = "endpoint.display_name";
const PROFILE_FIELD: &str = "endpoint.signature_profile";
const POLICY_FIELD: &str = "endpoint.retry_policy";
const IN_FLIGHT_FIELD: &str = "endpoint.max_in_flight";
const LABELS_FIELD: &str = "endpoint.labels";

fn signature_profile(number: i32) -> Result<SignatureProfile, String> {
    use v1::SignatureProfile as Wire;
    match Wire::try_from(number) {
        Ok(Wire::Unspecified | Wire::StandardWebhooks) => Ok(SignatureProfile::StandardWebhooks),
        Ok(Wire::TimestampedHex) => Ok(SignatureProfile::TimestampedHex),
        Ok(Wire::HubSha256) => Ok(SignatureProfile::HubSha256),
        Err(_) => Err(format!("is {number}, which names no signature profile")),
    }
}

const fn wire_profile(profile: SignatureProfile) -> v1::SignatureProfile {
    match profile {
        SignatureProfile::StandardWebhooks => v1::SignatureProfile::StandardWebhooks,
        SignatureProfile::TimestampedHex => v1::SignatureProfile::TimestampedHex,
        SignatureProfile::HubSha256 => v1::SignatureProfile::HubSha256,
    }
}

fn max_in_flight(given: i32) -> Result<u16, String> {
    match u16::try_from(given) {
        Ok(0) => Ok(limits::IN_FLIGHT_DEFAULT),
        Ok(count) if count <= limits::IN_FLIGHT_MAX => Ok(count),
        _ => Err(format!("is {given}; use 1 to {}", limits::IN_FLIGHT_MAX)),
    }
}

/// The retry policy, which must be the tenant's own. `Some(None)`: the built-in default.
fn retry_policy(
    violations: &mut Violations,
    tenant: Option<&ResourceId>,
    text: &str,
) -> Option<Option<RetryPolicyName>> {
    if text.is_empty() {
        return Some(None);
    }
    let policy = violations.take(POLICY_FIELD, RetryPolicyName::parse(text))?;
    if let Some(tenant) = tenant.filter(|tenant| **tenant != policy.tenant) {
        violations.add(
            POLICY_FIELD,
            format!("is of another tenant; use tenants/{tenant}/retryPolicies/{{retry_policy}}"),
        );
    }
    Some(Some(policy))
}

pub(crate) fn create(
    mut request: v1::CreateEndpointRequest,
    targets: &dyn TargetPolicy,
) -> Result<CreateEndpoint, Error> {
    let secret = Zeroizing::new(std::mem::take(&mut request.secret));
    let mut violations = Violations::new();
    let endpoint = request.endpoint.unwrap_or_default();
    let tenant = violations.take("parent", TenantName::parse(&request.parent)).map(|name| name.0);
    let slug = new_id(&mut violations, "endpoint_id", request.endpoint_id);
    let is_pull = matches!(endpoint.target, Some(v1::endpoint::Target::Pull(_)));
    if is_pull {
        refuse_of_http(&mut violations, &endpoint, &secret);
    }
    let display_name = violations.take(NAME_FIELD, value::display_name(endpoint.display_name));
    let target = target::new(&mut violations, endpoint.target, targets);
    let profile = violations.take(PROFILE_FIELD, signature_profile(endpoint.signature_profile));
    let retry_policy = retry_policy(&mut violations, tenant.as_ref(), &endpoint.retry_policy);
    let max_in_flight = violations.take(IN_FLIGHT_FIELD, max_in_flight(endpoint.max_in_flight));
    let labels = value::labels(&mut violations, LABELS_FIELD, endpoint.labels);
    let key = match (is_pull, secret.is_empty()) {
        (true, _) => Some(None),
        (false, true) => Some(Some(WantedKey::Fresh(KeyAlgorithm::HmacSha256))),
        (false, false) => violations
            .take("secret", key_ring::imported(&secret))
            .map(|key| Some(WantedKey::Imported(key))),
    };
    let command = || {
        Some(CreateEndpoint {
            tenant: tenant?,
            slug: slug?,
            display_name: display_name?,
            target: target?,
            signature_profile: profile?,
            retry_policy: retry_policy?,
            max_in_flight: max_in_flight?,
            labels: labels?,
            key: key?,
        })
    };
    finish(violations, command())
}

/// What a pull endpoint does not have.
fn refuse_of_http(violations: &mut Violations, endpoint: &v1::Endpoint, secret: &str) {
    if endpoint.signature_profile != 0 {
        violations.add(PROFILE_FIELD, UNSIGNED);
    }
    if endpoint.max_in_flight != 0 {
        violations.add(IN_FLIGHT_FIELD, NOT_SENT);
    }
    if !secret.is_empty() {
        violations.add("secret", UNSIGNED);
    }
}

pub(crate) fn get(request: v1::GetEndpointRequest) -> Result<Lookup<EndpointName>, Error> {
    let name = single("name", EndpointName::parse(&request.name))?;
    Ok(Lookup { name, show_deleted: request.show_deleted })
}

pub(crate) fn list(request: v1::ListEndpointsRequest) -> Result<ListEndpoints, Error> {
    let mut violations = Violations::new();
    let parent = violations.take("parent", TenantName::parse(&request.parent));
    let show_deleted = request.show_deleted;
    let scope = format!("{}/endpoints{}", request.parent, with_deleted(show_deleted));
    let page = page(&mut violations, scope, request.page_size, &request.page_token);
    let command = || Some(ListEndpoints { tenant: parent?.0, page: page?, show_deleted });
    finish(violations, command())
}

fn read_mask(
    mask: Option<prost_types::FieldMask>,
    endpoint: &v1::Endpoint,
    violations: &mut Violations,
) -> Mask {
    use v1::endpoint::Target::{Http, Pull};
    let http = |part: fn(&v1::HttpTarget) -> bool| matches!(&endpoint.target, Some(Http(http)) if part(http));
    let pull = |part: fn(&v1::PullTarget) -> bool| matches!(&endpoint.target, Some(Pull(pull)) if part(pull));
    let fields = Fields {
        changeable: &[
            ("display_name", !endpoint.display_name.is_empty()),
            // Without a mask only the parts that are set are meant, not the whole.
            ("http", false),
            ("http.url", http(|http| !http.url.is_empty())),
            ("http.timeout", http(|http| http.timeout.is_some())),
            ("http.headers", http(|http| !http.headers.is_empty())),
            ("http.header_prefix", http(|http| !http.header_prefix.is_empty())),
            ("pull", false),
            ("pull.lease", pull(|pull| pull.lease.is_some())),
            ("pull.max_outstanding", pull(|pull| pull.max_outstanding != 0)),
            ("pull.ordered_by_subject", pull(|pull| pull.ordered_by_subject)),
            ("signature_profile", endpoint.signature_profile != 0),
            ("retry_policy", !endpoint.retry_policy.is_empty()),
            ("max_in_flight", endpoint.max_in_flight != 0),
            ("labels", !endpoint.labels.is_empty()),
        ],
        output_only: &["state", "disable_reason", "signing_secret"],
        fixed: &[],
    };
    Mask::read(mask, &fields, violations)
}

pub(crate) fn update(
    request: v1::UpdateEndpointRequest,
    targets: &dyn TargetPolicy,
) -> Result<UpdateEndpoint, Error> {
    let mut violations = Violations::new();
    let Some(endpoint) = request.endpoint else {
        return Err(Error::invalid("endpoint", "is required"));
    };
    let mask = read_mask(request.update_mask, &endpoint, &mut violations);
    let name = violations.take("endpoint.name", EndpointName::parse(&endpoint.name));
    let etag = etag(&mut violations, "endpoint.etag", &endpoint.etag);
    let display_name = mask
        .has("display_name")
        .then(|| violations.take(NAME_FIELD, value::display_name(endpoint.display_name)))
        .flatten();
    let target = target::masked(&mut violations, &mask, endpoint.target, targets);
    let profile = mask
        .has("signature_profile")
        .then(|| violations.take(PROFILE_FIELD, signature_profile(endpoint.signature_profile)))
        .flatten();
    let tenant = name.as_ref().map(|name| &name.tenant);
    let retry_policy = mask
        .has("retry_policy")
        .then(|| retry_policy(&mut violations, tenant, &endpoint.retry_policy))
        .flatten();
    let max_in_flight = mask
        .has("max_in_flight")
        .then(|| violations.take(IN_FLIGHT_FIELD, max_in_flight(endpoint.max_in_flight)))
        .flatten();
    let labels = mask
        .has("labels")
        .then(|| value::labels(&mut violations, LABELS_FIELD, endpoint.labels))
        .flatten();
    let command = name.map(|name| UpdateEndpoint {
        name,
        etag,
        display_name,
        target,
        signature_profile: profile,
        retry_policy,
        max_in_flight,
        labels,
    });
    finish(violations, command)
}

pub(crate) fn upsert(
    request: v1::UpdateEndpointRequest,
    targets: &dyn TargetPolicy,
) -> Result<Upsert<UpdateEndpoint, CreateEndpoint>, Error> {
    let wanted = request.allow_missing.then(|| request.endpoint.clone().unwrap_or_default());
    let update = update(request, targets)?;
    let create = wanted.map(|endpoint| {
        let (parent, endpoint_id) = split_name(&endpoint.name);
        let endpoint = Some(endpoint);
        let request =
            v1::CreateEndpointRequest { parent, endpoint_id, endpoint, ..Default::default() };
        create(request, targets)
    });
    change::upsert(update, create)
}

fn verb(name: &str, sent_etag: &str) -> Result<EndpointVerb, Error> {
    let mut violations = Violations::new();
    let name = violations.take("name", EndpointName::parse(name));
    let etag = etag(&mut violations, "etag", sent_etag);
    finish(violations, name.map(|name| EndpointVerb { name, etag }))
}

pub(crate) fn delete(request: v1::DeleteEndpointRequest) -> Result<EndpointVerb, Error> {
    verb(&request.name, &request.etag)
}

pub(crate) fn enable(request: v1::EnableEndpointRequest) -> Result<EndpointVerb, Error> {
    verb(&request.name, &request.etag)
}

pub(crate) fn disable(request: v1::DisableEndpointRequest) -> Result<DisableEndpoint, Error> {
    let mut violations = Violations::new();
    let name = violations.take("name", EndpointName::parse(&request.name));
    let etag = etag(&mut violations, "etag", &request.etag);
    let reason = violations.take("reason", value::reason(request.reason));
    let command = || Some(DisableEndpoint { name: name?, etag, reason: reason? });
    finish(violations, command())
}

pub(crate) fn undelete(
    request: v1::UndeleteEndpointRequest,
) -> Result<Undelete<EndpointName, EndpointId>, Error> {
    let mut violations = Violations::new();
    let name = violations.take("name", EndpointName::parse(&request.name));
    let uid = uid(&mut violations, "uid", &request.uid);
    let etag = etag(&mut violations, "etag", &request.etag);
    let command = || Some(Undelete { name: name?, uid: uid?, etag });
    finish(violations, command())
}

pub(crate) fn message(view: &EndpointView) -> v1::Endpoint {
    let endpoint = &view.endpoint;
    let meta = WireMeta::from(&endpoint.meta);
    let name = EndpointName { tenant: view.tenant.clone(), id: endpoint.slug.clone() };
    let policy = view
        .retry_policy
        .as_ref()
        .map(|slug| RetryPolicyName { tenant: view.tenant.clone(), id: slug.clone() }.to_string());
    let (state, disable_reason) = match &endpoint.state {
        EndpointState::Active => (v1::EndpointState::Active, String::new()),
        EndpointState::Disabled { reason } => (v1::EndpointState::Disabled, reason.clone()),
    };
    let is_pull = endpoint.target.pull().is_some();
    let profile = wire_profile(endpoint.signature_profile);
    v1::Endpoint {
        name: name.to_string(),
        uid: value::uid(&endpoint.meta, endpoint.id),
        display_name: endpoint.display_name.clone(),
        target: Some(target::wire(&endpoint.target)),
        signature_profile: if is_pull { 0 } else { profile.into() },
        retry_policy: policy.unwrap_or_default(),
        max_in_flight: if is_pull { 0 } else { endpoint.max_in_flight.into() },
        state: state.into(),
        disable_reason,
        labels: value::label_map(&endpoint.labels),
        create_time: meta.create_time,
        update_time: meta.update_time,
        etag: meta.etag,
        revision: meta.revision,
        delete_time: view.deleted_at.map(grpc::timestamp),
        purge_time: value::purge_time(view.deleted_at),
        signing_secret: String::new(),
    }
}

/// The one answer that shows the secret.
pub(crate) fn created(created: &CreatedEndpoint) -> v1::Endpoint {
    let secret = created.secret.as_ref().map(|secret| secret.expose().to_owned());
    v1::Endpoint { signing_secret: secret.unwrap_or_default(), ..message(&created.view) }
}

pub(crate) fn messages(page: &Page<Listed<EndpointView>>) -> v1::ListEndpointsResponse {
    let (endpoints, next_page_token) =
        super::page::messages(page, |listed| listed.place.as_str(), |listed| message(&listed.row));
    v1::ListEndpointsResponse { endpoints, next_page_token }
}

#[cfg(test)]
mod tests;
