//! Previews of retry policies on the wire.

use super::{finish, retry_policy::rule, value::duration_or};
use crate::{
    names::{RetryPolicyName, TenantName},
    retry_policy::{PreviewRetryPolicy, PreviewedPolicy},
};
use std::{ops::RangeInclusive, time::Duration};
use turnbuckle_domain::{Error, PlannedAttempt, ResourceId, Violations, limits};
use turnbuckle_proto::v1;
use turnbuckle_runtime::grpc;

/// How long an attempt may take: as long as an endpoint can make it.
const ATTEMPTS: RangeInclusive<Duration> = Duration::ZERO..=limits::TIMEOUT_MAX;

pub(crate) fn preview(request: v1::PreviewRetryPolicyRequest) -> Result<PreviewRetryPolicy, Error> {
    use v1::preview_retry_policy_request::Policy;
    let mut violations = Violations::new();
    let parent = violations.take("parent", TenantName::parse(&request.parent));
    let tenant = parent.as_ref().map(|parent| &parent.0);
    let policy = match request.policy {
        None => {
            violations.add("policy", "is required: name a policy, or send one");
            None
        }
        Some(Policy::Name(name)) => stored(&mut violations, tenant, &name),
        Some(Policy::RetryPolicy(policy)) => {
            rule(&mut violations, &policy).map(PreviewedPolicy::Given)
        }
    };
    let attempt_duration = violations.take(
        "attempt_duration",
        duration_or(request.attempt_duration.as_ref(), Duration::ZERO, ATTEMPTS),
    );
    let command = || {
        Some(PreviewRetryPolicy {
            tenant: tenant.cloned()?,
            policy: policy?,
            attempt_duration: attempt_duration?,
        })
    };
    finish(violations, command())
}

fn stored(
    violations: &mut Violations,
    tenant: Option<&ResourceId>,
    name: &str,
) -> Option<PreviewedPolicy> {
    let name = violations.take("name", RetryPolicyName::parse(name))?;
    if tenant.is_some_and(|tenant| *tenant != name.tenant) {
        violations.add("name", "is of another tenant than parent; use a policy of that tenant");
    }
    Some(PreviewedPolicy::Stored(name))
}

pub(crate) fn planned(attempts: &[PlannedAttempt]) -> v1::PreviewRetryPolicyResponse {
    let message = |attempt: &PlannedAttempt| v1::PlannedAttempt {
        number: i32::try_from(attempt.number).unwrap_or(i32::MAX),
        delay_min: Some(grpc::duration(attempt.delay_min)),
        delay_max: Some(grpc::duration(attempt.delay_max)),
        earliest: Some(grpc::duration(attempt.earliest)),
        latest: Some(grpc::duration(attempt.latest)),
        uncertain: attempt.uncertain,
    };
    v1::PreviewRetryPolicyResponse { attempts: attempts.iter().map(message).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use v1::preview_retry_policy_request::Policy;

    fn request(policy: Policy) -> v1::PreviewRetryPolicyRequest {
        let parent = "tenants/acme".to_owned();
        v1::PreviewRetryPolicyRequest { parent, policy: Some(policy), ..Default::default() }
    }

    #[test]
    fn a_policy_is_named_or_sent() {
        let stored = preview(request(Policy::Name("tenants/acme/retryPolicies/q".into()))).unwrap();
        assert!(matches!(stored.policy, PreviewedPolicy::Stored(name) if name.id.as_str() == "q"));
        let given = preview(request(Policy::RetryPolicy(v1::RetryPolicy::default()))).unwrap();
        assert_eq!(given.policy, PreviewedPolicy::Given(turnbuckle_domain::RetryRule::default()));
    }

    #[test]
    fn everything_wrong_is_told_at_once() {
        let policy = v1::RetryPolicy { max_attempts: 101, jitter: 9, ..Default::default() };
        let mut bad = request(Policy::RetryPolicy(policy));
        bad.attempt_duration = Some(prost_types::Duration { seconds: 31, nanos: 0 });
        let error = preview(bad).unwrap_err().to_string();
        for field in ["retry_policy.max_attempts: ", "retry_policy.jitter: ", "attempt_duration: "]
        {
            assert!(error.contains(field), "{error}");
        }
        let foreign = request(Policy::Name("tenants/other/retryPolicies/q".into()));
        assert!(preview(foreign).unwrap_err().to_string().contains("name: is of another tenant"));
        let none = v1::PreviewRetryPolicyRequest::default();
        let error = preview(none).unwrap_err().to_string();
        assert!(error.contains("parent: ") && error.contains("policy: is required"), "{error}");
    }
}
