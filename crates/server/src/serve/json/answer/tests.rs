use super::*;
use std::{collections::HashMap, time::Duration};
use tonic_types::ErrorDetails;

async fn json(response: Response<Body>) -> Value {
    serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

#[tokio::test]
async fn details_are_in_the_json_form_of_any() {
    let mut details = ErrorDetails::with_error_info(
        "ROTATION_IN_PROGRESS",
        "turnbuckle.dev",
        HashMap::from([("key".to_owned(), "value".to_owned())]),
    );
    details.add_precondition_failure_violation("KIND", "tenants/a", "wait");
    details.set_resource_info("endpoints", "tenants/a/endpoints/b", "", "");
    details.set_retry_info(Some(Duration::from_millis(1500)));
    let status = Status::with_error_details(Code::Unavailable, "busy", details);
    let response = Answers::new().unwrap().failure(&status);
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()[RETRY_AFTER], "2");
    let error = json(response).await["error"].take();
    assert_eq!(error["code"], 14);
    assert_eq!(error["status"], "UNAVAILABLE");
    assert_eq!(error["message"], "busy");
    let details = error["details"].as_array().unwrap();
    let of = |kind: &str| {
        let url = format!("type.googleapis.com/google.rpc.{kind}");
        details.iter().find(|detail| detail["@type"] == url.as_str()).unwrap()
    };
    assert_eq!(of("ErrorInfo")["reason"], "ROTATION_IN_PROGRESS");
    assert_eq!(of("ErrorInfo")["metadata"]["key"], "value");
    assert_eq!(of("PreconditionFailure")["violations"][0]["subject"], "tenants/a");
    assert_eq!(of("ResourceInfo")["resourceName"], "tenants/a/endpoints/b");
    assert_eq!(of("RetryInfo")["retryDelay"], "1.500s");
}

#[test]
fn a_detail_of_an_unknown_kind_keeps_its_bytes() {
    let answers = Answers::new().unwrap();
    let detail = answers.detail("type.googleapis.com/some.Thing", b"\x01\x02");
    assert_eq!(detail, json!({ "@type": "type.googleapis.com/some.Thing", "value": "AQI=" }));
    let broken = answers.detail("type.googleapis.com/google.rpc.ErrorInfo", b"\xff");
    assert_eq!(broken["value"], "/w==");
}

#[test]
fn every_code_has_the_documented_http_status() {
    let expected =
        [200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 413, 501, 500, 503, 500, 401];
    for (code, http) in (0..).zip(expected) {
        assert_eq!(http_status(&Status::new(Code::from_i32(code), "")), http, "{code}");
    }
    let resync = refusal::with_reason(Code::OutOfRange, String::new(), "RESYNC_REQUIRED");
    assert_eq!(http_status(&resync), 400);
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_an_error_and_no_panic() {
    let pool = DescriptorPool::decode(turnbuckle_proto::DESCRIPTORS).unwrap();
    let output = pool.get_message_by_name("turnbuckle.v1.Tenant").unwrap();
    for bytes in [&b""[..], b"\0\0", b"\0\0\0\0\x01\xff"] {
        let called = Response::new(body(bytes.to_vec()));
        let response = Answers::new().unwrap().call(called, output.clone()).await;
        assert_eq!(response.status(), 500);
        assert_eq!(json(response).await["error"]["status"], "INTERNAL");
    }
}
