//! Repeats of requests that make sources or give them paths, and how many sources there may be.

use crate::api::{ACME, Api, fresh, refusal};
use std::time::Duration;
use tonic::Code;
use turnbuckle_client::{ApiError, proto as v1};
use turnbuckle_domain::Quotas;

const TEN_MINUTES: Duration = Duration::from_secs(600);
const DAY: Duration = Duration::from_secs(24 * 3600);

fn request(id: &str) -> v1::CreateSourceRequest {
    let labels = [("team", "a"), ("stage", "b")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    let verification = Some(v1::source::Verification::Preset("github".to_owned()));
    v1::CreateSourceRequest {
        parent: ACME.to_owned(),
        source_id: id.to_owned(),
        source: Some(v1::Source { verification, labels, ..Default::default() }),
        generate_secret: true,
        request_id: fresh(),
        ..Default::default()
    }
}

fn rotation(name: &str, etag: &str) -> v1::RotateIngestPathRequest {
    v1::RotateIngestPathRequest {
        name: name.to_owned(),
        etag: etag.to_owned(),
        request_id: fresh(),
        ..Default::default()
    }
}

async fn all(api: &Api) -> Vec<v1::Source> {
    let request = v1::ListSourcesRequest { parent: ACME.to_owned(), ..Default::default() };
    api.client.sources().list_sources(request).await.unwrap().into_inner().sources
}

#[tokio::test]
async fn a_secret_that_was_made_with_a_source_is_shown_again_for_ten_minutes() {
    let api = Api::start().await;
    // Under a name of its own, and under one that the server makes.
    for id in ["git", ""] {
        let request = request(id);
        let made = api.client.create_source(request.clone()).await.unwrap();
        assert!(!made.verification_secret.is_empty());
        api.clock.advance(TEN_MINUTES - Duration::from_micros(1));
        assert_eq!(api.client.create_source(request.clone()).await.unwrap(), made);
        api.clock.advance(Duration::from_micros(1));
        let late = api.client.create_source(request).await.unwrap();
        assert_eq!(late, v1::Source { verification_secret: String::new(), ..made });
    }
    assert_eq!(all(&api).await.len(), 2);
}

#[tokio::test]
async fn what_the_caller_gave_is_not_shown_by_a_repeat() {
    let api = Api::start().await;
    let given = v1::CreateSourceRequest {
        secret: "marker-secret-of-16".to_owned(),
        generate_secret: false,
        ..request("git")
    };
    let made = api.client.create_source(given.clone()).await.unwrap();
    assert_eq!(made.verification_secret, "");
    assert_eq!(api.client.create_source(given.clone()).await.unwrap(), made);
    let keyless = v1::CreateSourceRequest { generate_secret: false, ..request("keyless") };
    let made = api.client.create_source(keyless.clone()).await.unwrap();
    assert_eq!(api.client.create_source(keyless).await.unwrap(), made);
    // Another secret is another request, and a refusal does not tell either.
    let other = v1::CreateSourceRequest { secret: "another-secret-of-it".to_owned(), ..given };
    let refused = api.client.create_source(other).await.unwrap_err();
    assert_eq!(ApiError::new(&refused).reason.as_deref(), Some("REQUEST_ID_REUSED"));
    assert!(!refused.message().contains("secret-of"), "{}", refused.message());
}

#[tokio::test]
async fn nobody_else_is_shown_the_secret_of_a_source() {
    let api = Api::start().await;
    let request = request("git");
    api.client.create_source(request.clone()).await.unwrap();
    let mallory = api.client_of("mallory").await;
    let refused = refusal(mallory.create_source(request).await);
    assert_eq!(refused, (Code::InvalidArgument, "REQUEST_ID_REUSED".to_owned()));
}

#[tokio::test]
async fn fifty_concurrent_repeats_make_one_source_and_all_learn_its_secret() {
    let api = Api::start().await;
    let request = request("");
    let calls: Vec<_> = (0..50)
        .map(|_| {
            let (client, request) = (api.client.clone(), request.clone());
            tokio::spawn(async move { client.create_source(request).await })
        })
        .collect();
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.unwrap().unwrap());
    }
    assert!(!answers[0].verification_secret.is_empty());
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    assert_eq!(all(&api).await.len(), 1);
}

#[tokio::test]
async fn fifty_concurrent_repeats_give_one_new_path() {
    let api = Api::start().await;
    let made = api.client.create_source(request("git")).await.unwrap();
    // Whoever insists on what it has seen, and whoever does not.
    for etag in [made.etag.as_str(), ""] {
        let before = all(&api).await.remove(0);
        let request = rotation(&made.name, etag);
        let calls: Vec<_> = (0..50)
            .map(|_| {
                let (client, request) = (api.client.clone(), request.clone());
                tokio::spawn(async move { client.rotate_ingest_path(request).await })
            })
            .collect();
        let mut answers = Vec::new();
        for call in calls {
            answers.push(call.await.unwrap().unwrap());
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]));
        // The path before is still taken, so nobody rotated twice.
        assert_eq!(answers[0].previous_ingest_path, before.ingest_path);
        assert_ne!(answers[0].ingest_path, before.ingest_path);
        assert_eq!(all(&api).await, answers[..1]);
    }
}

#[tokio::test]
async fn a_repeated_rotation_answers_the_present_state_and_is_forgotten_after_a_day() {
    let api = Api::start().await;
    let made = api.client.create_source(request("git")).await.unwrap();
    let first = rotation(&made.name, "");
    api.client.rotate_ingest_path(first.clone()).await.unwrap();
    let second = api.client.rotate_ingest_path(rotation(&made.name, "")).await.unwrap();
    assert_eq!(api.client.rotate_ingest_path(first.clone()).await.unwrap(), second);
    let overlap = Some(prost_types::Duration { seconds: 60, nanos: 0 });
    let other = v1::RotateIngestPathRequest { overlap, ..first.clone() };
    let refused = refusal(api.client.rotate_ingest_path(other).await);
    assert_eq!(refused, (Code::InvalidArgument, "REQUEST_ID_REUSED".to_owned()));
    api.clock.advance(DAY);
    let late = api.client.rotate_ingest_path(first).await.unwrap();
    assert_ne!(late.ingest_path, second.ingest_path);
}

#[tokio::test]
async fn a_source_that_has_the_name_since_then_is_another() {
    let api = Api::start().await;
    let (create, mut sources) = (request("git"), api.client.sources());
    let made = api.client.create_source(create.clone()).await.unwrap();
    let rotate = rotation(&made.name, "");
    api.client.rotate_ingest_path(rotate.clone()).await.unwrap();
    let delete = v1::DeleteSourceRequest { name: made.name, ..Default::default() };
    sources.delete_source(delete).await.unwrap();
    assert_eq!(refusal(api.client.create_source(create.clone()).await).0, Code::NotFound);
    let successor = api.client.create_source(request("git")).await.unwrap();
    assert_eq!(refusal(api.client.create_source(create).await).0, Code::NotFound);
    assert_eq!(refusal(api.client.rotate_ingest_path(rotate).await).0, Code::NotFound);
    let now = all(&api).await;
    assert_eq!(now[0].ingest_path, successor.ingest_path);
}

#[tokio::test]
async fn a_quota_of_sources_says_what_helps_and_a_repeat_is_none_more() {
    let api = Api::with(Quotas { sources: 1, ..Quotas::default() }).await;
    let first = request("a");
    let made = api.client.create_source(first.clone()).await.unwrap();
    let refused = api.client.create_source(request("b")).await.unwrap_err();
    let error = ApiError::new(&refused);
    assert_eq!(
        (error.code, error.reason.as_deref()),
        (Code::ResourceExhausted, Some("QUOTA_EXCEEDED"))
    );
    assert!(error.message.contains("--max-sources"), "{}", error.message);
    assert_eq!(error.metadata.get("limit").map(String::as_str), Some("1"));
    assert_eq!(api.client.create_source(first).await.unwrap(), made);
}
