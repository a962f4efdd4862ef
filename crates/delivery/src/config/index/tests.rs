//! Endpoints whose retry policy is not known.

use super::*;
use crate::egress::tests::{ScriptedResolver, guard_allowing};
use turnbuckle_domain::{
    EndpointState, EndpointTarget, HttpTarget, Labels, Meta, RetryPolicy, SignatureProfile,
};
use turnbuckle_runtime::keyring::Keyring;
use uuid::Uuid;

const POLICY: RetryPolicyId = RetryPolicyId::from_uuid(Uuid::from_u128(3));
const TENANT: TenantId = TenantId::from_uuid(Uuid::from_u128(1));

fn tools() -> Tools {
    Tools {
        guard: Arc::new(guard_allowing(&[], ScriptedResolver::default())),
        sealer: Arc::new(Keyring::generate_in_memory().unwrap()),
        meter: Arc::default(),
    }
}

fn meta(revision: i64) -> Meta {
    Meta { revision: Revision(revision), ..Meta::default() }
}

fn endpoint(retry_policy: Option<RetryPolicyId>, revision: i64, deleted: bool) -> ConfigDelta {
    let value = Endpoint {
        id: EndpointId::from_uuid(Uuid::from_u128(2)),
        tenant: TENANT,
        slug: ResourceId::new("orders").unwrap(),
        display_name: String::new(),
        target: EndpointTarget::Http(HttpTarget {
            url: "https://receiver.test/".to_owned(),
            timeout: std::time::Duration::from_secs(1),
            headers: BTreeMap::new(),
            header_prefix: String::new(),
        }),
        signature_profile: SignatureProfile::StandardWebhooks,
        retry_policy,
        max_in_flight: 1,
        state: EndpointState::Active,
        labels: Labels::default(),
        meta: meta(revision),
    };
    let (endpoints, revision) = (vec![Deletable { value, deleted }], Revision(revision));
    ConfigDelta { revision, endpoints, ..ConfigDelta::default() }
}

fn policy(revision: i64) -> ConfigDelta {
    let value = RetryPolicy {
        id: POLICY,
        tenant: TENANT,
        slug: ResourceId::new("patient").unwrap(),
        version: 1,
        rule: RetryRule { max_attempts: 77, ..RetryRule::default() },
        labels: Labels::default(),
        meta: meta(revision),
    };
    let retry_policies = vec![Deletable { value, deleted: false }];
    ConfigDelta { revision: Revision(revision), retry_policies, ..ConfigDelta::default() }
}

/// Most attempts of the endpoint's rule, when there is one.
fn attempts(index: &ConfigIndex) -> Option<u32> {
    let entry = index.endpoint(EndpointId::from_uuid(Uuid::from_u128(2))).unwrap();
    entry.rule.as_ref().map(|rule| rule.max_attempts)
}

#[test]
fn an_endpoint_without_its_retry_policy_has_no_rule_and_is_reported() {
    let tools = tools();
    let index = ConfigIndex::default().apply(endpoint(Some(POLICY), 5, false), &tools);
    assert_eq!(attempts(&index), None, "the default rule is not what is configured");
    let refused = index.refused();
    assert_eq!(refused.len(), 1);
    assert_eq!((refused[0].kind.as_str(), refused[0].revision), ("endpoints", Revision(5)));
    assert!(refused[0].reason.starts_with("orders: its retry policy "), "{}", refused[0].reason);
    // It comes, in a form that can be read.
    let index = index.apply(policy(6), &tools);
    assert_eq!((attempts(&index), index.refused()), (Some(77), Vec::new()));
}

#[test]
fn what_is_reported_goes_with_its_cause() {
    let tools = tools();
    let index = ConfigIndex::default().apply(endpoint(Some(POLICY), 5, false), &tools);
    let default = RetryRule::default().max_attempts;
    let without = index.apply(endpoint(None, 6, false), &tools);
    assert_eq!((attempts(&without), without.refused()), (Some(default), Vec::new()));
    let gone = index.apply(endpoint(Some(POLICY), 6, true), &tools);
    assert_eq!(gone.refused(), []);
}
