//! Former versions of retry policies.

use crate::common::{at, by, on_both_backends};
use crate::fixture::{Fixture, retry_policy};
use turnbuckle_domain::{
    ChangeContext, ConfigStore as _, Labels, RetryPolicy, Tombstones as _, retry_limits,
};

on_both_backends!(
    a_change_keeps_what_the_policy_was,
    only_the_last_versions_are_kept,
    a_change_that_is_not_made_keeps_nothing,
    versions_go_with_the_policy_when_it_is_purged,
    no_policy_shows_versions_of_another,
);

/// More than are kept.
const ALL: u16 = 1_000;

async fn changed(fixture: &Fixture, policy: &RetryPolicy) -> RetryPolicy {
    let mut next = policy.clone();
    next.version += 1;
    next.rule.max_attempts = u32::try_from(next.version).unwrap();
    next.labels = Labels::default();
    next.meta.updated_at = at(10 + next.version);
    fixture.config.update_retry_policy(next, policy.meta.revision, &by()).await.unwrap()
}

async fn former(fixture: &Fixture, policy: &RetryPolicy) -> Vec<RetryPolicy> {
    fixture.config.former_retry_policies(policy, policy.version, ALL).await.unwrap()
}

async fn a_change_keeps_what_the_policy_was(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let first = config.create_retry_policy(retry_policy(acme.id, "quick"), &by()).await.unwrap();
    assert_eq!(former(fixture, &first).await, []);
    let second = changed(fixture, &first).await;
    let third = changed(fixture, &second).await;
    // As they were, with their labels, times and revisions.
    assert_eq!(former(fixture, &third).await, [second.clone(), first.clone()]);
    let page = config.former_retry_policies(&third, third.version, 1).await.unwrap();
    assert_eq!(page, std::slice::from_ref(&second));
    let page = config.former_retry_policies(&third, second.version, 1).await.unwrap();
    assert_eq!(page, std::slice::from_ref(&first));
    assert_eq!(config.former_retry_policies(&third, first.version, 1).await.unwrap(), []);
    // A policy that comes back has them still.
    config.delete_retry_policy(&third, at(40), &by()).await.unwrap();
    let kept = config.deleted_retry_policy(acme.id, &third.slug).await.unwrap().unwrap();
    let back = config.undelete_retry_policy(&kept.value, at(41), &by()).await.unwrap();
    assert_eq!(former(fixture, &back).await, [second, first]);
}

async fn only_the_last_versions_are_kept(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let mut policy =
        config.create_retry_policy(retry_policy(acme.id, "quick"), &by()).await.unwrap();
    for _ in 0..retry_limits::VERSIONS_KEPT + 3 {
        policy = changed(fixture, &policy).await;
    }
    let versions: Vec<i64> = former(fixture, &policy).await.iter().map(|row| row.version).collect();
    let newest = policy.version - 1;
    let expected: Vec<i64> = (newest - retry_limits::VERSIONS_KEPT + 1..=newest).rev().collect();
    assert_eq!(versions, expected);
}

async fn a_change_that_is_not_made_keeps_nothing(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let first = config.create_retry_policy(retry_policy(acme.id, "quick"), &by()).await.unwrap();
    let second = changed(fixture, &first).await;
    let next = RetryPolicy { version: 3, ..second.clone() };
    let late = config.update_retry_policy(next.clone(), first.meta.revision, &by()).await;
    assert_eq!(late.unwrap_err().reason(), "ETAG_MISMATCH");
    let trial = ChangeContext { validate_only: true, ..by() };
    config.update_retry_policy(next, second.meta.revision, &trial).await.unwrap();
    assert_eq!(former(fixture, &second).await, [first]);
}

async fn versions_go_with_the_policy_when_it_is_purged(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let first = config.create_retry_policy(retry_policy(acme.id, "quick"), &by()).await.unwrap();
    let policy = changed(fixture, &first).await;
    config.delete_retry_policy(&policy, at(40), &by()).await.unwrap();
    assert_eq!(former(fixture, &policy).await.len(), 1);
    let purged = config.purge_one(at(41), &by()).await.unwrap();
    assert_eq!(purged.as_deref(), Some("tenants/acme/retryPolicies/quick"));
    assert_eq!(former(fixture, &policy).await, []);
}

async fn no_policy_shows_versions_of_another(fixture: &Fixture) {
    let config = &fixture.config;
    let (acme, rival) = (fixture.tenant("acme").await, fixture.tenant("rival").await);
    let own = config.create_retry_policy(retry_policy(acme.id, "quick"), &by()).await.unwrap();
    let own = changed(fixture, &own).await;
    let other = config.create_retry_policy(retry_policy(acme.id, "slow"), &by()).await.unwrap();
    assert_eq!(former(fixture, &other).await, []);
    let forged = RetryPolicy { tenant: rival.id, ..own };
    assert_eq!(former(fixture, &forged).await, []);
}
