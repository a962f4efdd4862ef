//! Repeats of requests that make versions of event types.

use crate::api::{ACME, Api, fresh, refusal};
use tonic::Code;
use turnbuckle_client::proto as v1;

const TYPE: &str = "tenants/acme/eventTypes/order.paid";

async fn with_type() -> Api {
    let api = Api::start().await;
    make_type(&api).await;
    api
}

async fn make_type(api: &Api) {
    // Its latest version may be deleted.
    let compatibility = v1::Compatibility::None.into();
    let request = v1::CreateEventTypeRequest {
        parent: ACME.to_owned(),
        event_type_id: "order.paid".to_owned(),
        event_type: Some(v1::EventType { compatibility, ..Default::default() }),
        ..Default::default()
    };
    api.client.create_event_type(request).await.unwrap();
}

fn request(id: &str, schema: &str) -> v1::CreateEventTypeVersionRequest {
    let version = v1::EventTypeVersion { schema: schema.to_owned(), ..Default::default() };
    v1::CreateEventTypeVersionRequest {
        parent: TYPE.to_owned(),
        event_type_version_id: id.to_owned(),
        event_type_version: Some(version),
        request_id: fresh(),
        ..Default::default()
    }
}

#[tokio::test]
async fn fifty_concurrent_repeats_make_one_version() {
    let api = with_type().await;
    let request = request("1", "{}");
    let calls: Vec<_> = (0..50)
        .map(|_| {
            let (client, request) = (api.client.clone(), request.clone());
            tokio::spawn(async move { client.create_event_type_version(request).await })
        })
        .collect();
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.unwrap().unwrap());
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]));
}

#[tokio::test]
async fn a_repeat_is_answered_and_anything_else_is_refused() {
    let api = with_type().await;
    let first = request("1", "{}");
    let made = api.client.create_event_type_version(first.clone()).await.unwrap();
    assert_eq!(api.client.create_event_type_version(first.clone()).await.unwrap(), made);
    // Without the id of the first call the version is taken, even by the same schema.
    let stranger = request("1", "{}");
    let refused = refusal(api.client.create_event_type_version(stranger).await);
    assert_eq!(refused.0, Code::AlreadyExists);
    let reused = (Code::InvalidArgument, "REQUEST_ID_REUSED".to_owned());
    for other in [request("1", "true"), request("2", "{}")] {
        let request_id = first.request_id.clone();
        let other = v1::CreateEventTypeVersionRequest { request_id, ..other };
        assert_eq!(refusal(api.client.create_event_type_version(other).await), reused);
    }
}

#[tokio::test]
async fn a_version_that_has_the_name_since_then_is_another() {
    let api = with_type().await;
    let first = request("1", "{}");
    let made = api.client.create_event_type_version(first.clone()).await.unwrap();
    let mut versions = api.client.event_type_versions();
    let delete = v1::DeleteEventTypeVersionRequest { name: made.name, ..Default::default() };
    versions.delete_event_type_version(delete).await.unwrap();
    let again = async || refusal(api.client.create_event_type_version(first.clone()).await).0;
    assert_eq!(again().await, Code::NotFound);
    api.client.create_event_type_version(request("1", "{}")).await.unwrap();
    assert_eq!(again().await, Code::NotFound);
    // Its type goes, and comes back as another.
    let delete = v1::DeleteEventTypeRequest { name: TYPE.to_owned(), ..Default::default() };
    api.client.event_types().delete_event_type(delete).await.unwrap();
    assert_eq!(again().await, Code::NotFound);
    make_type(&api).await;
    assert_eq!(again().await, Code::NotFound);
}
