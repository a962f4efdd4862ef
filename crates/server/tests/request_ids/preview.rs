//! Versions and previews of retry policies.

use crate::api::{ACME, Api, refusal};
use tonic::{Code, Status};
use turnbuckle_client::proto::{self as v1, preview_retry_policy_request::Policy};

fn seconds(seconds: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos: 0 })
}

fn list(delays: &[i64]) -> v1::RetryPolicy {
    let delays = delays.iter().filter_map(|delay| seconds(*delay)).collect();
    v1::RetryPolicy {
        backoff: Some(v1::retry_policy::Backoff::Delays(v1::DelayList { delays })),
        max_attempts: 3,
        ..Default::default()
    }
}

async fn preview(api: &Api, policy: Policy) -> Result<Vec<v1::PlannedAttempt>, Status> {
    let request = v1::PreviewRetryPolicyRequest {
        parent: ACME.to_owned(),
        policy: Some(policy),
        attempt_duration: seconds(1),
    };
    Ok(api.client.retry_policies().preview_retry_policy(request).await?.into_inner().attempts)
}

#[tokio::test]
async fn a_stored_and_a_given_policy_show_the_same_windows() {
    let api = Api::start().await;
    let request = v1::CreateRetryPolicyRequest {
        parent: ACME.to_owned(),
        retry_policy_id: "mine".to_owned(),
        retry_policy: Some(list(&[10, 60])),
        ..Default::default()
    };
    let name = api.client.create_retry_policy(request).await.unwrap().name;
    let given = preview(&api, Policy::RetryPolicy(list(&[10, 60]))).await.unwrap();
    assert_eq!(preview(&api, Policy::Name(name)).await.unwrap(), given);
    let windows: Vec<_> = given
        .iter()
        .map(|it| (it.number, it.earliest.unwrap().seconds, it.latest.unwrap().seconds))
        .collect();
    // Equal jitter: half of each delay to all of it, after an attempt of a second.
    assert_eq!(windows, [(1, 0, 0), (2, 6, 11), (3, 37, 72)]);
}

#[tokio::test]
async fn what_does_not_exist_or_breaks_rules_is_refused() {
    let api = Api::start().await;
    let missing = Policy::Name(format!("{ACME}/retryPolicies/none"));
    assert_eq!(refusal(preview(&api, missing).await).0, Code::NotFound);
    let wrong = Policy::RetryPolicy(v1::RetryPolicy { max_attempts: 101, ..Default::default() });
    assert_eq!(refusal(preview(&api, wrong).await).0, Code::InvalidArgument);
}

#[tokio::test]
async fn every_change_makes_the_next_version_and_no_change_makes_none() {
    let api = Api::start().await;
    let request = v1::CreateRetryPolicyRequest {
        parent: ACME.to_owned(),
        retry_policy_id: "mine".to_owned(),
        ..Default::default()
    };
    let made = api.client.create_retry_policy(request).await.unwrap();
    assert_eq!(made.version, 1);
    let update = |max_attempts| v1::UpdateRetryPolicyRequest {
        retry_policy: Some(v1::RetryPolicy {
            name: made.name.clone(),
            max_attempts,
            ..Default::default()
        }),
        ..Default::default()
    };
    let mut policies = api.client.retry_policies();
    for (attempts, version) in [(5, 2), (5, 2), (6, 3)] {
        let after = policies.update_retry_policy(update(attempts)).await.unwrap().into_inner();
        assert_eq!((after.max_attempts, after.version), (attempts, version));
    }
}
