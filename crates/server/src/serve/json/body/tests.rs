use super::*;
use prost_reflect::DescriptorPool;
use tonic_types::StatusExt as _;
use turnbuckle_proto::{DESCRIPTORS, v1};

fn input(name: &str) -> MessageDescriptor {
    let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
    pool.get_message_by_name(&format!("turnbuckle.v1.{name}")).unwrap()
}

/// Reason, field and message of the refusal.
fn refusal(name: &str, json: &str) -> (String, String, String) {
    let status = frame(json.as_bytes(), &input(name)).unwrap_err();
    let reason = status.get_details_error_info().unwrap().reason;
    let field = status.get_details_bad_request().map(|bad| bad.field_violations[0].field.clone());
    (reason, field.unwrap_or_default(), status.message().to_owned())
}

#[test]
fn a_message_in_either_spelling_becomes_one_frame() {
    let json = r#"{"parent":"tenants/a","event":{"event_id":"e-1","eventType":"x.y",
        "occurredAt":"2027-01-15T08:00:00Z","sequence":"9007199254740993","data":"e30="}}"#;
    let framed = frame(json.as_bytes(), &input("PublishEventRequest")).unwrap();
    assert_eq!(framed[0], 0);
    assert_eq!(framed[1..5], u32::try_from(framed.len() - PREFIX).unwrap().to_be_bytes());
    let event = v1::PublishEventRequest::decode(&framed[PREFIX..]).unwrap().event.unwrap();
    assert_eq!((event.event_id.as_str(), event.event_type.as_str()), ("e-1", "x.y"));
    assert_eq!(event.occurred_at.unwrap().seconds, 1_800_000_000);
    assert_eq!(event.sequence, Some(9_007_199_254_740_993));
    assert_eq!(event.data, "{}");
}

#[test]
fn an_unknown_field_is_named_with_its_path() {
    let (reason, field, message) = refusal("CreateTenantRequest", r#"{"tenantID":"a"}"#);
    assert_eq!((reason.as_str(), field.as_str()), ("INVALID_REQUEST", "tenantID"));
    assert!(message.contains("line 1 column"), "{message}");
    let nested = r#"{"endpoint":{"http":{"url":"https://a.example","time_out":"1s"}}}"#;
    let (_, field, _) = refusal("CreateEndpointRequest", nested);
    assert_eq!(field, "endpoint.http.time_out");
    let (_, field, _) = refusal("BatchPublishEventsRequest", r#"{"events":[{},{"typ":"a"}]}"#);
    assert_eq!(field, "events[1].typ");
}

#[test]
fn a_value_of_the_wrong_kind_is_named_with_its_path() {
    let json = r#"{"endpoint":{"http":{"timeout":15}}}"#;
    let (reason, field, _) = refusal("CreateEndpointRequest", json);
    assert_eq!((reason.as_str(), field.as_str()), ("INVALID_REQUEST", "endpoint.http.timeout"));
    let (_, field, _) = refusal("PublishEventRequest", r#"{"event":{"data":"***"}}"#);
    assert_eq!(field, "event.data");
}

#[test]
fn text_that_is_no_json_is_refused_with_its_place() {
    for text in ["", "{", "{\"parent\"", "[]]", "{} {}", "nope", "\u{0}", "{\"parent\": \"\u{1}\"}"]
    {
        let (reason, field, message) = refusal("ListEndpointsRequest", text);
        assert!(message.contains("line 1 column"), "{text}: {message}");
        assert!(field.is_empty(), "{text}: {field}");
        assert!(["INVALID_JSON", "INVALID_REQUEST"].contains(&reason.as_str()), "{text}: {reason}");
    }
}

#[test]
fn deep_nesting_and_very_many_values_are_refused_and_not_built() {
    let deep = "{\"endpoint\":".repeat(10_000);
    refusal("CreateEndpointRequest", &deep);
    refusal("CreateEndpointRequest", &"[".repeat(90_000));
    let many = format!("{{\"events\":[{}{{}}]}}", "{},".repeat(VALUES_MAX));
    let (reason, _, _) = refusal("BatchPublishEventsRequest", &many);
    assert_eq!(reason, "REQUEST_TOO_LARGE");
}

#[test]
fn separators_inside_strings_are_no_values() {
    assert_eq!(values(br#"{"a":",,[{\",,","b":[1,2]}"#), 4);
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_not_collected() {
    use http_body_util::Full;
    let body = Body::new(Full::new(Bytes::from(vec![b' '; JSON_MAX + 1])));
    let status = read(body).await.unwrap_err();
    assert_eq!(status.get_details_error_info().unwrap().reason, "REQUEST_TOO_LARGE");
}
