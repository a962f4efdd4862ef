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

#[tokio::test]
async fn versions_of_a_policy_come_page_by_page_the_newest_first() {
    let api = Api::start().await;
    let mut policies = api.client.retry_policies();
    let request = v1::CreateRetryPolicyRequest {
        parent: ACME.to_owned(),
        retry_policy_id: "quick".to_owned(),
        ..Default::default()
    };
    let mut policy = policies.create_retry_policy(request).await.unwrap().into_inner();
    let mut expected = vec![policy.clone()];
    for max_attempts in [3, 4] {
        let changed = v1::RetryPolicy { max_attempts, ..policy };
        let request =
            v1::UpdateRetryPolicyRequest { retry_policy: Some(changed), ..Default::default() };
        policy = policies.update_retry_policy(request).await.unwrap().into_inner();
        expected.insert(0, policy.clone());
    }
    let mut request = v1::ListRetryPolicyVersionsRequest {
        name: policy.name.clone(),
        page_size: 1,
        ..Default::default()
    };
    for one in &expected {
        let page = policies.list_retry_policy_versions(request.clone()).await.unwrap().into_inner();
        assert_eq!(page.versions, std::slice::from_ref(one));
        request.page_token = page.next_page_token;
    }
    assert_eq!(request.page_token, "", "the last page says so");
    request.page_token = "garbage".to_owned();
    let refused = policies.list_retry_policy_versions(request).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    let name = format!("{ACME}/retryPolicies/none");
    let missing = v1::ListRetryPolicyVersionsRequest { name, ..Default::default() };
    let refused = policies.list_retry_policy_versions(missing).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::NotFound);
}
