//! Targets of endpoints on the wire.

use super::{mask::Mask, value::duration_or};
use crate::{
    headers,
    target::{HEADERS_FIELD, HttpChange, PullChange, TargetChange},
};
use std::{collections::BTreeMap, time::Duration};
use turnbuckle_domain::{EndpointTarget, HttpTarget, PullTarget, TargetPolicy, Violations, limits};
use turnbuckle_proto::v1::{self, endpoint::Target};
use turnbuckle_runtime::grpc;

const HTTP_FIELD: &str = "endpoint.http";
pub(super) const URL_FIELD: &str = "endpoint.http.url";
pub(super) const TIMEOUT_FIELD: &str = "endpoint.http.timeout";
pub(super) const PREFIX_FIELD: &str = "endpoint.http.header_prefix";
const LEASE_FIELD: &str = "endpoint.pull.lease";
const OUTSTANDING_FIELD: &str = "endpoint.pull.max_outstanding";
const ABSENT: &str = "is required, or endpoint.pull";

/// The URL, judged as far as that needs no name resolution. Never repeated in a message: it may
/// carry credentials.
fn url(text: String, targets: &dyn TargetPolicy) -> Result<String, String> {
    if text.is_empty() {
        return Err("is required".to_owned());
    }
    let count = text.chars().count();
    if count > limits::URL_CHARS {
        return Err(format!("has {count} characters; use at most {}", limits::URL_CHARS));
    }
    if text.contains(|c: char| c.is_control() || c.is_whitespace()) {
        return Err("has spaces or control characters; percent-encode them".to_owned());
    }
    targets.check_url(&text).map(|()| text)
}

fn timeout(given: Option<&prost_types::Duration>) -> Result<Duration, String> {
    duration_or(given, limits::TIMEOUT_DEFAULT, limits::TIMEOUT_MIN..=limits::TIMEOUT_MAX)
}

fn lease(given: Option<&prost_types::Duration>) -> Result<Duration, String> {
    duration_or(given, limits::LEASE_DEFAULT, limits::LEASE_MIN..=limits::LEASE_MAX)
}

fn max_outstanding(given: i32) -> Result<u16, String> {
    match u16::try_from(given) {
        Ok(0) => Ok(limits::OUTSTANDING_DEFAULT),
        Ok(count) if count <= limits::OUTSTANDING_MAX => Ok(count),
        _ => Err(format!("is {given}; use 1 to {}", limits::OUTSTANDING_MAX)),
    }
}

/// The parts of a receiver that are meant, each checked.
fn http_change(
    violations: &mut Violations,
    http: v1::HttpTarget,
    means: impl Fn(&str) -> bool,
    targets: &dyn TargetPolicy,
) -> HttpChange {
    let v1::HttpTarget { url: address, timeout: time, headers: pairs, header_prefix } = http;
    let new_url =
        means("http.url").then(|| violations.take(URL_FIELD, url(address, targets))).flatten();
    let new_timeout = means("http.timeout")
        .then(|| violations.take(TIMEOUT_FIELD, timeout(time.as_ref())))
        .flatten();
    let new_headers: Option<BTreeMap<String, String>> =
        means("http.headers").then(|| headers::check(pairs, HEADERS_FIELD, violations));
    let new_prefix = means("http.header_prefix")
        .then(|| violations.take(PREFIX_FIELD, headers::check_prefix(&header_prefix)))
        .flatten();
    HttpChange {
        url: new_url,
        timeout: new_timeout,
        headers: new_headers,
        header_prefix: new_prefix,
    }
}

/// The parts of a pull queue that are meant, each checked.
fn pull_change(
    violations: &mut Violations,
    pull: &v1::PullTarget,
    means: impl Fn(&str) -> bool,
) -> PullChange {
    PullChange {
        lease: means("pull.lease")
            .then(|| violations.take(LEASE_FIELD, lease(pull.lease.as_ref())))
            .flatten(),
        max_outstanding: means("pull.max_outstanding")
            .then(|| violations.take(OUTSTANDING_FIELD, max_outstanding(pull.max_outstanding)))
            .flatten(),
        ordered_by_subject: means("pull.ordered_by_subject").then_some(pull.ordered_by_subject),
    }
}

/// The target of a new endpoint.
pub(super) fn new(
    violations: &mut Violations,
    wire: Option<Target>,
    targets: &dyn TargetPolicy,
) -> Option<EndpointTarget> {
    match wire {
        None => {
            violations.add(HTTP_FIELD, ABSENT);
            None
        }
        Some(Target::Http(http)) => new_http(violations, http, targets).map(EndpointTarget::Http),
        Some(Target::Pull(pull)) => {
            let parts = pull_change(violations, &pull, |_| true);
            Some(EndpointTarget::Pull(PullTarget {
                lease: parts.lease?,
                max_outstanding: parts.max_outstanding?,
                ordered_by_subject: pull.ordered_by_subject,
            }))
        }
    }
}

/// A whole receiver.
fn new_http(
    violations: &mut Violations,
    http: v1::HttpTarget,
    targets: &dyn TargetPolicy,
) -> Option<HttpTarget> {
    let parts = http_change(violations, http, |_| true, targets);
    let (headers, header_prefix) = (parts.headers?, parts.header_prefix?);
    headers::check_family(&headers, &header_prefix, HEADERS_FIELD, violations);
    let none = BTreeMap::new();
    let headers = headers::keep_hidden(&headers, &none, false, HEADERS_FIELD, violations);
    Some(HttpTarget { url: parts.url?, timeout: parts.timeout?, headers, header_prefix })
}

/// The change that a mask means. What is sent says which kind of target is meant; nothing sent, what the
/// mask names goes back to its default.
pub(super) fn masked(
    violations: &mut Violations,
    mask: &Mask,
    wire: Option<Target>,
    targets: &dyn TargetPolicy,
) -> TargetChange {
    let names = |kind: &str| {
        let parts = ["url", "timeout", "headers", "header_prefix"];
        let of_pull = ["lease", "max_outstanding", "ordered_by_subject"];
        let mut all = parts.iter().chain(&of_pull);
        mask.has(kind) || all.any(|part| mask.has(&format!("{kind}.{part}")))
    };
    let target = match wire {
        Some(target) => target,
        None if mask.has("http") => {
            violations.add(HTTP_FIELD, ABSENT);
            return TargetChange::Keep;
        }
        None if names("http") => Target::Http(v1::HttpTarget::default()),
        None => Target::Pull(v1::PullTarget::default()),
    };
    match target {
        Target::Http(http) if names("http") => {
            let whole = mask.has("http");
            let means = |path: &str| whole || mask.has(path);
            TargetChange::Http(http_change(violations, http, means, targets))
        }
        Target::Pull(pull) if names("pull") => {
            let whole = mask.has("pull");
            let means = |path: &str| whole || mask.has(path);
            TargetChange::Pull(pull_change(violations, &pull, means))
        }
        Target::Http(_) | Target::Pull(_) => TargetChange::Keep,
    }
}

pub(super) fn wire(target: &EndpointTarget) -> Target {
    match target {
        EndpointTarget::Http(target) => {
            let headers = target.headers.keys();
            let headers = headers.map(|name| (name.clone(), headers::HIDDEN.to_owned()));
            Target::Http(v1::HttpTarget {
                url: target.url.clone(),
                timeout: Some(grpc::duration(target.timeout)),
                headers: headers.collect(),
                header_prefix: target.header_prefix.clone(),
            })
        }
        EndpointTarget::Pull(target) => Target::Pull(v1::PullTarget {
            lease: Some(grpc::duration(target.lease)),
            max_outstanding: target.max_outstanding.into(),
            ordered_by_subject: target.ordered_by_subject,
        }),
    }
}
