//! Payloads that a parser would change, lose or refuse.

use anyhow::Context as _;
use turnbuckle_proto::v1::{Event, GetEventRequest, PayloadFormat};
use turnbuckle_testkit::receiver::{Receiver, Script};
use turnbuckle_tests::{PATIENCE, Scene, Server, StoreKind, http_endpoint, scene::EVENT_TYPE};

on_both_stores!(
    json_arrives_byte_for_byte_whatever_a_parser_would_make_of_it,
    bytes_that_are_no_json_arrive_as_they_are,
    the_largest_payload_arrives_whole_and_a_larger_one_is_refused,
);

const AWKWARD: [&str; 12] = [
    r#"{"nul":"a\u0000b"}"#,
    r#"{"lone":"\ud800"}"#,
    r#"{"n":1e131071}"#,
    r#"{"n":18446744073709551616}"#,
    r#"{"n":0.1000000000000000055511151231257827}"#,
    "  {\n\t\"odd\" :   [ 1 ,2,  3 ]\r\n}  ",
    r#"{"a":1,"a":2}"#,
    r#"{"b":1,"a":2}"#,
    r#"{"e":"\u00fc\/\u2028","u":"ü🎉"}"#,
    "null",
    "\"text\"",
    "-0.0",
];

async fn json_arrives_byte_for_byte_whatever_a_parser_would_make_of_it(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    scene.raw("raw", http_endpoint(&receiver.url("/raw"))).await?;
    let envelope = http_endpoint(&receiver.url("/envelope"));
    scene.subscriber("envelope", envelope, PayloadFormat::Envelope).await?;
    for (number, payload) in AWKWARD.into_iter().enumerate() {
        let published = scene.publish(&format!("e{number}"), payload).await;
        let name = published.with_context(|| payload.to_owned())?.name;
        let kept = scene.client.events().get_event(GetEventRequest { name }).await?.into_inner();
        assert_eq!(kept.data, payload);
    }
    let received = receiver.wait_for(2 * AWKWARD.len() as u64, PATIENCE).await?;
    for (number, payload) in AWKWARD.into_iter().enumerate() {
        let id = format!("e{number}");
        let body = |path: &str| {
            let found = received
                .iter()
                .find(|request| request.path == path && request.header("webhook-id") == Some(&id));
            found.map(|request| request.body.clone()).context("it did not come")
        };
        assert_eq!(body("/raw")?, payload);
        let envelope = String::from_utf8(body("/envelope")?.to_vec())?;
        assert!(envelope.ends_with(&format!(",\"data\":{payload}}}")), "{envelope}");
    }
    Ok(())
}

async fn bytes_that_are_no_json_arrive_as_they_are(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    scene.raw("raw", http_endpoint(&receiver.url("/raw"))).await?;
    let envelope = http_endpoint(&receiver.url("/envelope"));
    scene.subscriber("envelope", envelope, PayloadFormat::Envelope).await?;
    let every_byte: Vec<u8> = (0..=255).collect();
    let event = Event {
        event_type: EVENT_TYPE.into(),
        data: every_byte.clone().into(),
        content_type: "application/octet-stream".into(),
        ..Event::default()
    };
    scene.publish_event(event).await?;
    let received = receiver.wait_for(2, PATIENCE).await?;
    let find = |path: &str| {
        received.iter().find(|request| request.path == path).context("it did not come")
    };
    let raw = find("/raw")?;
    assert_eq!(raw.body, every_byte);
    assert_eq!(raw.header("content-type"), Some("application/octet-stream"));
    assert_eq!(raw.header("content-length"), Some("256"));
    let envelope = find("/envelope")?;
    assert_eq!(envelope.header("content-type"), Some("application/json"));
    let parsed: serde_json::Value = serde_json::from_slice(&envelope.body)?;
    let encoded = parsed["data_base64"].as_str().context("no data_base64")?;
    assert_eq!(data_encoding::BASE64.decode(encoded.as_bytes())?, every_byte);
    Ok(())
}

async fn the_largest_payload_arrives_whole_and_a_larger_one_is_refused(
    kind: StoreKind,
) -> anyhow::Result<()> {
    const LARGEST: usize = 256 * 1024;
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    scene.raw("raw", http_endpoint(&receiver.url("/raw"))).await?;
    let sized = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    scene.publish("largest", sized(LARGEST)).await?;
    let refused = scene.publish("larger", sized(LARGEST + 1)).await;
    let status = refused.err().context("it was accepted")?;
    assert_eq!(status.code(), tonic::Code::InvalidArgument, "{status}");
    let received = receiver.wait_for(1, PATIENCE).await?;
    assert_eq!(received[0].body, sized(LARGEST));
    Ok(())
}
