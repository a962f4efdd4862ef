//! Repeats of requests that make API tokens.

use crate::api::{ACME, Api, fresh, refusal};
use std::time::Duration;
use tonic::Code;
use turnbuckle_client::proto as v1;

const DAY: Duration = Duration::from_secs(24 * 3600);

fn request(parent: &str, id: &str) -> v1::CreateApiTokenRequest {
    let token = v1::ApiToken { role: "viewer".to_owned(), ..Default::default() };
    v1::CreateApiTokenRequest {
        parent: parent.to_owned(),
        api_token_id: id.to_owned(),
        api_token: Some(token),
        every_tenant: parent.is_empty(),
        request_id: fresh(),
        ..Default::default()
    }
}

async fn all(api: &Api, parent: &str) -> Vec<v1::ApiToken> {
    let request = v1::ListApiTokensRequest {
        parent: parent.to_owned(),
        show_ended: true,
        ..Default::default()
    };
    api.client.api_tokens().list_api_tokens(request).await.unwrap().into_inner().api_tokens
}

#[tokio::test]
async fn a_repeat_answers_the_token_without_its_secret() {
    let api = Api::start().await;
    // Of a tenant and of the platform, with a name and with one that the server makes.
    for (parent, id) in [(ACME, "ci"), (ACME, ""), ("", "ci"), ("", "")] {
        let before = all(&api, parent).await.len();
        let request = request(parent, id);
        let made = api.client.create_api_token(request.clone()).await.unwrap();
        assert!(made.secret.starts_with("tbk_"));
        let again = api.client.create_api_token(request).await.unwrap();
        assert_eq!(again, v1::ApiToken { secret: String::new(), ..made });
        assert_eq!(all(&api, parent).await.len(), before + 1);
    }
}

#[tokio::test]
async fn of_fifty_concurrent_repeats_one_is_shown_the_secret() {
    let api = Api::start().await;
    let request = request(ACME, "");
    let calls: Vec<_> = (0..50)
        .map(|_| {
            let (client, request) = (api.client.clone(), request.clone());
            tokio::spawn(async move { client.create_api_token(request).await })
        })
        .collect();
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.unwrap().unwrap());
    }
    assert!(answers.iter().all(|answer| answer.uid == answers[0].uid));
    assert_eq!(answers.iter().filter(|answer| !answer.secret.is_empty()).count(), 1);
    assert_eq!(all(&api, ACME).await.len(), 1);
}

#[tokio::test]
async fn a_repeat_answers_the_present_state_of_a_token() {
    let api = Api::start().await;
    let request = request(ACME, "ci");
    let made = api.client.create_api_token(request.clone()).await.unwrap();
    let (name, reason) = (made.name, "its answer was lost".to_owned());
    let revoke = v1::RevokeApiTokenRequest { name, reason, ..Default::default() };
    api.client.api_tokens().revoke_api_token(revoke).await.unwrap();
    let again = api.client.create_api_token(request.clone()).await.unwrap();
    assert_eq!(again.state, i32::from(v1::ApiTokenState::Revoked));
    // Forgotten after a day: the name was given already.
    api.clock.advance(DAY);
    assert_eq!(refusal(api.client.create_api_token(request).await).0, Code::AlreadyExists);
}

#[tokio::test]
async fn other_content_or_another_caller_is_refused() {
    let api = Api::start().await;
    let request = request(ACME, "ci");
    api.client.create_api_token(request.clone()).await.unwrap();
    let reused = (Code::InvalidArgument, "REQUEST_ID_REUSED".to_owned());
    let token = v1::ApiToken { role: "admin".to_owned(), ..Default::default() };
    let stronger = v1::CreateApiTokenRequest { api_token: Some(token), ..request.clone() };
    assert_eq!(refusal(api.client.create_api_token(stronger).await), reused);
    let mallory = api.client_of("mallory").await;
    assert_eq!(refusal(mallory.create_api_token(request.clone()).await), reused);
    let garbage = v1::CreateApiTokenRequest { request_id: "7".to_owned(), ..request };
    assert_eq!(refusal(api.client.create_api_token(garbage).await).0, Code::InvalidArgument);
}

#[tokio::test]
async fn a_rehearsal_of_a_token_is_not_remembered() {
    let api = Api::start().await;
    let request = request(ACME, "ci");
    let dry = v1::CreateApiTokenRequest { validate_only: true, ..request.clone() };
    assert_eq!(api.client.create_api_token(dry).await.unwrap().secret, "");
    assert_ne!(api.client.create_api_token(request).await.unwrap().secret, "");
}
