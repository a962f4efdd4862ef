//! Retry policies on the wire.

use super::{
    change::{self, split_name},
    etag, finish,
    mask::{Fields, Mask},
    new_id, page, single, uid,
    value::{self, WireMeta, duration, duration_or},
    with_deleted,
};
use crate::{
    kept::{Listed, Lookup, Undelete},
    names::{RetryPolicyName, TenantName},
    page::Page,
    retry_policy::{
        CreateRetryPolicy, DeleteRetryPolicy, ListRetryPolicies, RetryPolicyView, UpdateRetryPolicy,
    },
    write::Upsert,
};
use std::{ops::RangeInclusive, time::Duration};
use turnbuckle_domain::{
    Backoff, Error, Jitter, RetryPolicyId, RetryRule, Violations, retry_limits,
};
use turnbuckle_proto::v1;
use turnbuckle_runtime::grpc;

const DELAYS: RangeInclusive<Duration> = retry_limits::DELAY_MIN..=retry_limits::DELAY_MAX;
const HORIZONS: RangeInclusive<Duration> = retry_limits::HORIZON_MIN..=retry_limits::HORIZON_MAX;
const RETRY_AFTERS: RangeInclusive<Duration> = Duration::ZERO..=retry_limits::RETRY_AFTER_MAX;

/// Answers a policy can add: the final ones.
const STATUSES: RangeInclusive<i32> = 400..=499;

/// The receiver is gone for good: no policy can retry that.
const GONE: i32 = 410;

const JITTER_FIELD: &str = "retry_policy.jitter";
const ATTEMPTS_FIELD: &str = "retry_policy.max_attempts";
const HORIZON_FIELD: &str = "retry_policy.horizon";
const RETRY_AFTER_FIELD: &str = "retry_policy.max_retry_after";
const LABELS_FIELD: &str = "retry_policy.labels";

fn required_delay(
    violations: &mut Violations,
    field: &str,
    given: Option<&prost_types::Duration>,
) -> Option<Duration> {
    let checked = given
        .ok_or_else(|| "is required; use 10 ms to 24 h".to_owned())
        .and_then(|given| duration(given, DELAYS));
    violations.take(field, checked)
}

fn exponential(violations: &mut Violations, wire: &v1::ExponentialBackoff) -> Option<Backoff> {
    let first_delay = required_delay(
        violations,
        "retry_policy.exponential.first_delay",
        wire.first_delay.as_ref(),
    );
    let max_delay =
        required_delay(violations, "retry_policy.exponential.max_delay", wire.max_delay.as_ref());
    // A range holds no NaN, so this refuses it too.
    let factor = (1.0..=retry_limits::FACTOR_MAX).contains(&wire.factor).then_some(wire.factor);
    if factor.is_none() {
        violations.add(
            "retry_policy.exponential.factor",
            format!("is {}; use 1.0 to {:.1}", wire.factor, retry_limits::FACTOR_MAX),
        );
    }
    let (first_delay, max_delay) = (first_delay?, max_delay?);
    if max_delay < first_delay {
        violations.add(
            "retry_policy.exponential.max_delay",
            "is shorter than first_delay; use at least first_delay",
        );
    }
    Some(Backoff::Exponential { first_delay, factor: factor?, max_delay })
}

fn delays(violations: &mut Violations, wire: &v1::DelayList) -> Option<Backoff> {
    const FIELD: &str = "retry_policy.delays.delays";
    let count = wire.delays.len();
    if count == 0 || count > retry_limits::DELAYS_MAX {
        violations.add(FIELD, format!("has {count} delays; use 1 to {}", retry_limits::DELAYS_MAX));
        return None;
    }
    let mut delays = Vec::with_capacity(count);
    for (index, given) in wire.delays.iter().enumerate() {
        delays.extend(violations.take(&format!("{FIELD}[{index}]"), duration(given, DELAYS)));
    }
    Some(Backoff::Delays(delays))
}

fn backoff(
    violations: &mut Violations,
    wire: Option<&v1::retry_policy::Backoff>,
) -> Option<Backoff> {
    match wire {
        None => Some(RetryRule::default().backoff),
        Some(v1::retry_policy::Backoff::Exponential(wire)) => exponential(violations, wire),
        Some(v1::retry_policy::Backoff::Delays(wire)) => delays(violations, wire),
    }
}

fn jitter(number: i32) -> Result<Jitter, String> {
    match v1::Jitter::try_from(number) {
        Ok(v1::Jitter::Unspecified) => Ok(RetryRule::default().jitter),
        Ok(v1::Jitter::None) => Ok(Jitter::None),
        Ok(v1::Jitter::Equal) => Ok(Jitter::Equal),
        Ok(v1::Jitter::Full) => Ok(Jitter::Full),
        Err(_) => Err(format!("is {number}, which names no jitter")),
    }
}

fn max_attempts(given: i32) -> Result<u32, String> {
    match u32::try_from(given) {
        Ok(0) => Ok(RetryRule::default().max_attempts),
        Ok(attempts) if attempts <= retry_limits::ATTEMPTS_MAX => Ok(attempts),
        _ => Err(format!("is {given}; use 1 to {}", retry_limits::ATTEMPTS_MAX)),
    }
}

fn horizon(given: Option<&prost_types::Duration>) -> Result<Duration, String> {
    duration_or(given, RetryRule::default().horizon, HORIZONS)
}

fn max_retry_after(given: Option<&prost_types::Duration>) -> Result<Duration, String> {
    duration_or(given, RetryRule::default().max_retry_after, RETRY_AFTERS)
}

/// Sorted and without repeats, so that the same set is the same policy.
fn statuses(violations: &mut Violations, given: &[i32]) -> Option<Vec<u16>> {
    const FIELD: &str = "retry_policy.retry_statuses";
    if given.len() > retry_limits::STATUSES_MAX {
        violations.add(
            FIELD,
            format!("has {} codes; use at most {}", given.len(), retry_limits::STATUSES_MAX),
        );
        return None;
    }
    let mut statuses = Vec::with_capacity(given.len());
    for (index, status) in given.iter().enumerate() {
        let fits = STATUSES.contains(status) && *status != GONE;
        let code = u16::try_from(*status).ok().filter(|_| fits).ok_or_else(|| {
            format!("is {status}; use 400 to 499 without 410, which says that the receiver is gone")
        });
        statuses.extend(violations.take(&format!("{FIELD}[{index}]"), code));
    }
    statuses.sort_unstable();
    statuses.dedup();
    Some(statuses)
}

pub(crate) fn create(request: v1::CreateRetryPolicyRequest) -> Result<CreateRetryPolicy, Error> {
    let mut violations = Violations::new();
    let policy = request.retry_policy.unwrap_or_default();
    let parent = violations.take("parent", TenantName::parse(&request.parent));
    let slug = new_id(&mut violations, "retry_policy_id", request.retry_policy_id);
    let rule = rule(&mut violations, &policy);
    let labels = value::labels(&mut violations, LABELS_FIELD, policy.labels);
    let command =
        || Some(CreateRetryPolicy { tenant: parent?.0, slug: slug?, rule: rule?, labels: labels? });
    finish(violations, command())
}

/// A whole rule; what is not set has its default.
pub(super) fn rule(violations: &mut Violations, policy: &v1::RetryPolicy) -> Option<RetryRule> {
    let backoff = backoff(violations, policy.backoff.as_ref());
    let jitter = violations.take(JITTER_FIELD, jitter(policy.jitter));
    let max_attempts = violations.take(ATTEMPTS_FIELD, max_attempts(policy.max_attempts));
    let horizon = violations.take(HORIZON_FIELD, horizon(policy.horizon.as_ref()));
    let max_retry_after =
        violations.take(RETRY_AFTER_FIELD, max_retry_after(policy.max_retry_after.as_ref()));
    let retry_statuses = statuses(violations, &policy.retry_statuses);
    Some(RetryRule {
        backoff: backoff?,
        jitter: jitter?,
        max_attempts: max_attempts?,
        horizon: horizon?,
        max_retry_after: max_retry_after?,
        retry_statuses: retry_statuses?,
    })
}

pub(crate) fn get(request: v1::GetRetryPolicyRequest) -> Result<Lookup<RetryPolicyName>, Error> {
    let name = single("name", RetryPolicyName::parse(&request.name))?;
    Ok(Lookup { name, show_deleted: request.show_deleted })
}

pub(crate) fn list(request: v1::ListRetryPoliciesRequest) -> Result<ListRetryPolicies, Error> {
    let mut violations = Violations::new();
    let parent = violations.take("parent", TenantName::parse(&request.parent));
    let show_deleted = request.show_deleted;
    let scope = format!("{}/retryPolicies{}", request.parent, with_deleted(show_deleted));
    let page = page(&mut violations, scope, request.page_size, &request.page_token);
    let command = || Some(ListRetryPolicies { tenant: parent?.0, page: page?, show_deleted });
    finish(violations, command())
}

/// The growth an update means. Only one kind can be set; a mask that names the other one alone
/// contradicts its message.
fn masked_backoff(
    violations: &mut Violations,
    mask: &Mask,
    wire: Option<&v1::retry_policy::Backoff>,
) -> Option<Backoff> {
    use v1::retry_policy::Backoff as Wire;
    let named = [mask.has("exponential"), mask.has("delays")];
    match (named, wire) {
        ([false, false], _) => None,
        ([true, false], Some(Wire::Delays(_))) => {
            violations.add("update_mask", "names exponential, but delays is set: name delays");
            None
        }
        ([false, true], Some(Wire::Exponential(_))) => {
            violations.add("update_mask", "names delays, but exponential is set: name exponential");
            None
        }
        (_, wire) => backoff(violations, wire),
    }
}

fn read_mask(
    mask: Option<prost_types::FieldMask>,
    policy: &v1::RetryPolicy,
    violations: &mut Violations,
) -> Mask {
    use v1::retry_policy::Backoff as Wire;
    let fields = Fields {
        changeable: &[
            ("exponential", matches!(policy.backoff, Some(Wire::Exponential(_)))),
            ("delays", matches!(policy.backoff, Some(Wire::Delays(_)))),
            ("jitter", policy.jitter != 0),
            ("max_attempts", policy.max_attempts != 0),
            ("horizon", policy.horizon.is_some()),
            ("max_retry_after", policy.max_retry_after.is_some()),
            ("retry_statuses", !policy.retry_statuses.is_empty()),
            ("labels", !policy.labels.is_empty()),
        ],
        output_only: &["version"],
        fixed: &[],
    };
    Mask::read(mask, &fields, violations)
}

pub(crate) fn update(request: v1::UpdateRetryPolicyRequest) -> Result<UpdateRetryPolicy, Error> {
    let mut violations = Violations::new();
    let Some(policy) = request.retry_policy else {
        return Err(Error::invalid("retry_policy", "is required"));
    };
    let mask = read_mask(request.update_mask, &policy, &mut violations);
    let name = violations.take("retry_policy.name", RetryPolicyName::parse(&policy.name));
    let etag = etag(&mut violations, "retry_policy.etag", &policy.etag);
    let backoff = masked_backoff(&mut violations, &mask, policy.backoff.as_ref());
    let jitter =
        mask.has("jitter").then(|| violations.take(JITTER_FIELD, jitter(policy.jitter))).flatten();
    let max_attempts = mask
        .has("max_attempts")
        .then(|| violations.take(ATTEMPTS_FIELD, max_attempts(policy.max_attempts)))
        .flatten();
    let horizon = mask
        .has("horizon")
        .then(|| violations.take(HORIZON_FIELD, horizon(policy.horizon.as_ref())))
        .flatten();
    let max_retry_after = mask
        .has("max_retry_after")
        .then(|| {
            let checked = max_retry_after(policy.max_retry_after.as_ref());
            violations.take(RETRY_AFTER_FIELD, checked)
        })
        .flatten();
    let retry_statuses = mask
        .has("retry_statuses")
        .then(|| statuses(&mut violations, &policy.retry_statuses))
        .flatten();
    let labels = mask
        .has("labels")
        .then(|| value::labels(&mut violations, LABELS_FIELD, policy.labels))
        .flatten();
    let command = name.map(|name| UpdateRetryPolicy {
        name,
        etag,
        backoff,
        jitter,
        max_attempts,
        horizon,
        max_retry_after,
        retry_statuses,
        labels,
    });
    finish(violations, command)
}

pub(crate) fn upsert(
    request: v1::UpdateRetryPolicyRequest,
) -> Result<Upsert<UpdateRetryPolicy, CreateRetryPolicy>, Error> {
    let wanted = request.allow_missing.then(|| request.retry_policy.clone().unwrap_or_default());
    let update = update(request)?;
    let create = wanted.map(|retry_policy| {
        let (parent, retry_policy_id) = split_name(&retry_policy.name);
        let retry_policy = Some(retry_policy);
        create(v1::CreateRetryPolicyRequest {
            parent,
            retry_policy_id,
            retry_policy,
            ..Default::default()
        })
    });
    change::upsert(update, create)
}

pub(crate) fn delete(request: v1::DeleteRetryPolicyRequest) -> Result<DeleteRetryPolicy, Error> {
    let mut violations = Violations::new();
    let name = violations.take("name", RetryPolicyName::parse(&request.name));
    let etag = etag(&mut violations, "etag", &request.etag);
    finish(violations, name.map(|name| DeleteRetryPolicy { name, etag }))
}

fn wire_backoff(backoff: &Backoff) -> v1::retry_policy::Backoff {
    match backoff {
        Backoff::Exponential { first_delay, factor, max_delay } => {
            v1::retry_policy::Backoff::Exponential(v1::ExponentialBackoff {
                first_delay: Some(grpc::duration(*first_delay)),
                factor: *factor,
                max_delay: Some(grpc::duration(*max_delay)),
            })
        }
        Backoff::Delays(delays) => v1::retry_policy::Backoff::Delays(v1::DelayList {
            delays: delays.iter().copied().map(grpc::duration).collect(),
        }),
    }
}

const fn wire_jitter(jitter: Jitter) -> v1::Jitter {
    match jitter {
        Jitter::None => v1::Jitter::None,
        Jitter::Equal => v1::Jitter::Equal,
        Jitter::Full => v1::Jitter::Full,
    }
}

pub(crate) fn undelete(
    request: v1::UndeleteRetryPolicyRequest,
) -> Result<Undelete<RetryPolicyName, RetryPolicyId>, Error> {
    let mut violations = Violations::new();
    let name = violations.take("name", RetryPolicyName::parse(&request.name));
    let uid = uid(&mut violations, "uid", &request.uid);
    let etag = etag(&mut violations, "etag", &request.etag);
    let command = || Some(Undelete { name: name?, uid: uid?, etag });
    finish(violations, command())
}

pub(crate) fn message(view: &RetryPolicyView) -> v1::RetryPolicy {
    let policy = &view.policy;
    let rule = &policy.rule;
    let meta = WireMeta::from(&policy.meta);
    let name = RetryPolicyName { tenant: view.tenant.clone(), id: policy.slug.clone() };
    v1::RetryPolicy {
        name: name.to_string(),
        uid: value::uid(&policy.meta, policy.id),
        version: policy.version,
        backoff: Some(wire_backoff(&rule.backoff)),
        jitter: wire_jitter(rule.jitter).into(),
        max_attempts: i32::try_from(rule.max_attempts).unwrap_or(i32::MAX),
        horizon: Some(grpc::duration(rule.horizon)),
        max_retry_after: Some(grpc::duration(rule.max_retry_after)),
        retry_statuses: rule.retry_statuses.iter().copied().map(i32::from).collect(),
        labels: value::label_map(&policy.labels),
        create_time: meta.create_time,
        update_time: meta.update_time,
        etag: meta.etag,
        revision: meta.revision,
        delete_time: view.deleted_at.map(grpc::timestamp),
        purge_time: value::purge_time(view.deleted_at),
    }
}

pub(crate) fn messages(page: &Page<Listed<RetryPolicyView>>) -> v1::ListRetryPoliciesResponse {
    let (retry_policies, next_page_token) =
        super::page::messages(page, |listed| listed.place.as_str(), |listed| message(&listed.row));
    v1::ListRetryPoliciesResponse { retry_policies, next_page_token }
}

#[cfg(test)]
mod tests;
