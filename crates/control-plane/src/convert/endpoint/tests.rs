use super::*;
use crate::{
    convert::target::{PREFIX_FIELD, TIMEOUT_FIELD, URL_FIELD},
    target::{HEADERS_FIELD, HttpChange, PullChange, TargetChange},
};
use std::collections::{BTreeMap, HashMap};
use turnbuckle_domain::{Endpoint, EndpointId, Labels, Meta, TenantId};
use turnbuckle_signing::SigningKey;

/// Stands for the egress rules: only this scheme.
struct HttpsOnly;

impl TargetPolicy for HttpsOnly {
    fn check_url(&self, url: &str) -> Result<(), String> {
        if url.starts_with("https://") { Ok(()) } else { Err("is not https; use https".to_owned()) }
    }
}

fn http(url: &str) -> v1::HttpTarget {
    v1::HttpTarget { url: url.to_owned(), ..Default::default() }
}

fn wire(http: v1::HttpTarget) -> v1::Endpoint {
    v1::Endpoint { target: Some(v1::endpoint::Target::Http(http)), ..Default::default() }
}

fn http_change(command: &UpdateEndpoint) -> HttpChange {
    let TargetChange::Http(change) = &command.target else { panic!("no change of a receiver") };
    change.clone()
}

fn created(endpoint: v1::Endpoint, secret: &str) -> Result<CreateEndpoint, Error> {
    let request = v1::CreateEndpointRequest {
        parent: "tenants/acme".to_owned(),
        endpoint_id: String::new(),
        endpoint: Some(endpoint),
        secret: secret.to_owned(),
        ..Default::default()
    };
    create(request, &HttpsOnly)
}

fn updated(endpoint: v1::Endpoint, paths: &[&str]) -> Result<UpdateEndpoint, Error> {
    let name = "tenants/acme/endpoints/billing".to_owned();
    let paths = paths.iter().map(|path| (*path).to_owned()).collect();
    let request = v1::UpdateEndpointRequest {
        endpoint: Some(v1::Endpoint { name, ..endpoint }),
        update_mask: Some(prost_types::FieldMask { paths }),
        ..Default::default()
    };
    update(request, &HttpsOnly)
}

#[test]
fn an_endpoint_needs_only_a_url() {
    let command = created(wire(http("https://a.example/hook")), "").unwrap();
    assert_eq!(command.slug, None);
    let target = command.target.http().unwrap();
    assert_eq!(target.url, "https://a.example/hook");
    assert_eq!(target.timeout, limits::TIMEOUT_DEFAULT);
    assert_eq!(target.header_prefix, "webhook");
    assert_eq!(command.signature_profile, SignatureProfile::StandardWebhooks);
    assert_eq!(command.max_in_flight, limits::IN_FLIGHT_DEFAULT);
    assert_eq!(command.retry_policy, None);
    assert_eq!(command.key.as_ref().unwrap().algorithm(), KeyAlgorithm::HmacSha256);
}

#[test]
fn all_violations_come_at_once() {
    let target = v1::HttpTarget {
        url: "http://u:hunter2@a.example".to_owned(),
        timeout: Some(prost_types::Duration { seconds: 31, nanos: 0 }),
        headers: HashMap::from([("Host".to_owned(), "hunter2".to_owned())]),
        header_prefix: "x-webhook".to_owned(),
    };
    let endpoint = v1::Endpoint {
        display_name: "a\nb".to_owned(),
        signature_profile: 9,
        retry_policy: "tenants/other/retryPolicies/p".to_owned(),
        max_in_flight: 65,
        labels: HashMap::from([("ä".to_owned(), String::new())]),
        ..wire(target)
    };
    let error = created(endpoint, "whsec_hunter2").unwrap_err();
    let text = error.to_string();
    assert!(!text.contains("hunter2"), "{text}");
    let Error::Invalid(list) = error else { panic!("{text}") };
    let fields: Vec<&str> = list.iter().map(|violation| violation.field.as_str()).collect();
    assert_eq!(
        fields,
        [
            NAME_FIELD,
            URL_FIELD,
            TIMEOUT_FIELD,
            HEADERS_FIELD,
            PREFIX_FIELD,
            PROFILE_FIELD,
            POLICY_FIELD,
            IN_FLIGHT_FIELD,
            LABELS_FIELD,
            "secret",
        ]
    );
}

#[test]
fn urls_are_bounded_and_clean() {
    let long = format!("https://a.example/{}", "x".repeat(limits::URL_CHARS));
    for bad in ["", "http://a.example", "https://a.example/a b", "https://a\n.example", &long] {
        let error = created(wire(http(bad)), "").unwrap_err().to_string();
        assert!(error.contains("endpoint.http.url: "), "{error}");
    }
    let error = created(v1::Endpoint::default(), "").unwrap_err().to_string();
    assert!(error.contains("endpoint.http: is required"), "{error}");
}

#[test]
fn a_header_may_not_take_a_name_of_the_own_prefix() {
    let target = v1::HttpTarget {
        headers: HashMap::from([("Acme-Id".to_owned(), "1".to_owned())]),
        header_prefix: "acme".to_owned(),
        ..http("https://a.example")
    };
    let error = created(wire(target), "").unwrap_err().to_string();
    assert!(error.contains("header \"acme-id\" is reserved"), "{error}");
}

#[test]
fn an_own_secret_is_imported() {
    let key = SigningKey::ed25519(&[3; 32]);
    let command = created(wire(http("https://a.example")), key.secret_text().expose()).unwrap();
    assert_eq!(command.key.as_ref().unwrap().algorithm(), KeyAlgorithm::Ed25519);
    assert_eq!(command.key.unwrap().make().unwrap().fingerprint(), key.fingerprint());
}

#[test]
fn without_a_mask_the_parts_of_the_target_that_are_set_are_meant() {
    let change = updated(wire(http("https://b.example")), &[]).unwrap();
    let expected =
        HttpChange { url: Some("https://b.example".to_owned()), ..HttpChange::default() };
    assert_eq!(change.target, TargetChange::Http(expected));
    assert_eq!(
        (change.display_name, change.retry_policy, change.max_in_flight),
        (None, None, None)
    );
}

#[test]
fn the_whole_target_is_replaced_when_it_is_named() {
    let change = updated(wire(http("https://b.example")), &["http"]).unwrap();
    let change = http_change(&change);
    assert_eq!(change.timeout, Some(limits::TIMEOUT_DEFAULT));
    assert_eq!(change.headers, Some(BTreeMap::new()));
    assert_eq!(change.header_prefix.as_deref(), Some("webhook"));
    let error = updated(v1::Endpoint::default(), &["http"]).unwrap_err().to_string();
    assert!(error.contains("endpoint.http: is required"), "{error}");
    let error = updated(v1::Endpoint::default(), &["http.url"]).unwrap_err().to_string();
    assert!(error.contains("endpoint.http.url: is required"), "{error}");
}

#[test]
fn a_named_field_that_is_not_set_goes_back_to_its_default() {
    let paths = ["retry_policy", "max_in_flight", "signature_profile", "http.headers"];
    let change = updated(v1::Endpoint::default(), &paths).unwrap();
    assert_eq!(change.retry_policy, Some(None));
    assert_eq!(change.max_in_flight, Some(limits::IN_FLIGHT_DEFAULT));
    assert_eq!(change.signature_profile, Some(SignatureProfile::StandardWebhooks));
    let target = http_change(&change);
    assert_eq!(target.headers, Some(BTreeMap::new()));
    assert_eq!(target.url, None);
}

#[test]
fn the_state_is_changed_by_its_verbs_only() {
    let disabled = v1::Endpoint {
        state: v1::EndpointState::Disabled.into(),
        signing_secret: "whsec_x".to_owned(),
        ..Default::default()
    };
    let change = updated(disabled, &["state", "disable_reason", "signing_secret"]).unwrap();
    assert_eq!(change.target, TargetChange::default());
    let error = updated(v1::Endpoint::default(), &["target"]).unwrap_err().to_string();
    assert!(error.contains("http.header_prefix, pull, "), "{error}");
}

#[test]
fn what_goes_out_comes_back_the_same() {
    let command = created(
        v1::Endpoint {
            display_name: "Billing".to_owned(),
            signature_profile: v1::SignatureProfile::HubSha256.into(),
            retry_policy: "tenants/acme/retryPolicies/patient".to_owned(),
            max_in_flight: 3,
            ..wire(v1::HttpTarget {
                headers: HashMap::from([("X-Key".to_owned(), "k".to_owned())]),
                header_prefix: "svix".to_owned(),
                ..http("https://a.example")
            })
        },
        "",
    )
    .unwrap();
    let view = EndpointView {
        tenant: command.tenant.clone(),
        retry_policy: command.retry_policy.clone().map(|policy| policy.id),
        deleted_at: None,
        endpoint: Endpoint {
            id: "ep_00000000000000000000000000".parse::<EndpointId>().unwrap(),
            tenant: "ten_00000000000000000000000000".parse::<TenantId>().unwrap(),
            slug: ResourceId::new("billing").unwrap(),
            display_name: command.display_name.clone(),
            target: command.target.clone(),
            signature_profile: command.signature_profile,
            retry_policy: None,
            max_in_flight: command.max_in_flight,
            state: EndpointState::Disabled { reason: "moved".to_owned() },
            labels: Labels::default(),
            meta: Meta::default(),
        },
    };
    let out = message(&view);
    assert_eq!(out.name, "tenants/acme/endpoints/billing");
    assert_eq!((out.state(), out.disable_reason.as_str()), (v1::EndpointState::Disabled, "moved"));
    assert_eq!(out.signing_secret, "");
    let hidden = created(out.clone(), "").unwrap_err().to_string();
    assert!(hidden.contains("header \"x-key\" has no value to keep"), "{hidden}");
    let mut out = out;
    if let Some(v1::endpoint::Target::Http(http)) = &mut out.target {
        assert_eq!(http.headers.insert("x-key".into(), "k".into()).as_deref(), Some("***"));
    }
    let again = created(out, "").unwrap();
    assert!(again.target == command.target);
    assert_eq!(again.retry_policy, command.retry_policy);
    assert_eq!(again.signature_profile, command.signature_profile);
    assert_eq!((again.max_in_flight, again.display_name), (3, "Billing".to_owned()));
}

#[test]
fn a_reason_is_bounded() {
    let request = |reason: String| v1::DisableEndpointRequest {
        name: "tenants/acme/endpoints/billing".to_owned(),
        etag: String::new(),
        reason,
    };
    assert!(disable(request(String::new())).is_ok());
    let error = disable(request("x".repeat(501))).unwrap_err().to_string();
    assert!(error.contains("reason: has 501 characters"), "{error}");
}

fn pull(pull: v1::PullTarget) -> v1::Endpoint {
    v1::Endpoint { target: Some(v1::endpoint::Target::Pull(pull)), ..Default::default() }
}

#[test]
fn a_pull_endpoint_needs_nothing_and_has_neither_url_nor_keys() {
    let command = created(pull(v1::PullTarget::default()), "").unwrap();
    assert!(command.target.pull() == Some(&turnbuckle_domain::PullTarget::default()));
    assert!(command.key.is_none());
    let wrong = v1::Endpoint {
        signature_profile: v1::SignatureProfile::HubSha256.into(),
        max_in_flight: 3,
        ..pull(v1::PullTarget {
            lease: Some(prost_types::Duration { seconds: 1, nanos: 0 }),
            max_outstanding: 1_001,
            ordered_by_subject: true,
        })
    };
    let error = created(wrong, "whsec_x").unwrap_err().to_string();
    for field in [
        "endpoint.pull.lease",
        "endpoint.pull.max_outstanding: is 1001; use 1 to 1000",
        "endpoint.signature_profile",
        "endpoint.max_in_flight",
        "secret",
    ] {
        assert!(error.contains(field), "{field} is not in {error}");
    }
}

#[test]
fn parts_of_a_pull_target_change_alone_and_its_kind_never() {
    let wire = pull(v1::PullTarget { max_outstanding: 7, ..v1::PullTarget::default() });
    let change = updated(wire.clone(), &[]).unwrap().target;
    let expected = PullChange { max_outstanding: Some(7), ..PullChange::default() };
    assert_eq!(change, TargetChange::Pull(expected));
    let mut queue = created(wire.clone(), "").unwrap().target;
    change.apply(&mut queue).unwrap();
    assert_eq!(queue.pull().unwrap().max_outstanding, 7);
    let everything = updated(wire, &["*"]).unwrap();
    assert!(everything.target.apply(&mut queue).is_ok());
    let mut receiver = created(super::tests::wire(http("https://a.example")), "").unwrap().target;
    let error = everything.target.apply(&mut receiver).unwrap_err().to_string();
    assert!(error.contains("endpoint.pull: the endpoint has a URL"), "{error}");
    let change = updated(super::tests::wire(http("https://a.example")), &["*"]).unwrap();
    let error = change.target.apply(&mut queue).unwrap_err().to_string();
    assert!(error.contains("endpoint.http: the endpoint is a pull endpoint"), "{error}");
}
