use super::*;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Longest wait of a test: it is only used up when something is broken.
const PATIENCE: Duration = Duration::from_secs(10);

async fn send(receiver: &Receiver, path: &str, id: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(receiver.address()).await.unwrap();
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: r\r\nWebhook-Id: {id}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn status_of(receiver: &Receiver, path: &str, id: &str) -> u16 {
    let mut answer = String::new();
    send(receiver, path, id, "").await.read_to_string(&mut answer).await.unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_request_is_kept_byte_for_byte() {
    let receiver = Receiver::start(Script::default()).await.unwrap();
    let body = "{ \"emoji\": \"🎉\" }";
    send(&receiver, "/hooks?x=1", "evt-1", body).await;
    let received = receiver.wait_for(1, PATIENCE).await.unwrap();
    assert_eq!(received[0].body, body);
    assert_eq!((received[0].method.as_str(), received[0].path.as_str()), ("POST", "/hooks?x=1"));
    assert_eq!(received[0].header("webhook-id"), Some("evt-1"));
    assert!(received[0].unix_micros > 0);
    assert_eq!(receiver.totals().body_bytes, body.len() as u64);
}

#[tokio::test]
async fn a_sequence_is_counted_for_each_path_and_its_last_answer_repeats() {
    let script =
        Script::always(Answer::status(404)).on("/flaky", [503, 429, 200].map(Answer::status));
    let receiver = Receiver::start(script).await.unwrap();
    let mut seen = Vec::new();
    for path in ["/flaky", "/other", "/flaky", "/flaky", "/flaky"] {
        seen.push(status_of(&receiver, path, "e").await);
    }
    assert_eq!(seen, [503, 404, 429, 200, 200]);
}

#[tokio::test]
async fn a_sequence_can_be_counted_for_each_event() {
    let script = Script::sequence([503, 200].map(Answer::status)).counted_by("Webhook-Id");
    let receiver = Receiver::start(script).await.unwrap();
    let mut seen = Vec::new();
    for id in ["a", "b", "a", "b"] {
        seen.push(status_of(&receiver, "/", id).await);
    }
    assert_eq!(seen, [503, 503, 200, 200]);
}

#[tokio::test]
async fn headers_and_a_large_or_dripping_body_are_sent_in_full() {
    let script = Script::sequence([
        Answer::status(429).header("Retry-After", "7").with_body(200_000),
        Answer::status(200).dripping(5, Duration::from_millis(1)),
    ]);
    let receiver = Receiver::start(script).await.unwrap();
    let mut first = String::new();
    send(&receiver, "/", "e", "").await.read_to_string(&mut first).await.unwrap();
    assert!(first.contains("retry-after: 7\r\n"));
    assert!(first.len() > 200_000);
    let mut second = String::new();
    send(&receiver, "/", "e", "").await.read_to_string(&mut second).await.unwrap();
    assert!(second.ends_with("\r\n\r\n....."));
}

#[tokio::test]
async fn a_reset_is_an_error_for_the_sender_and_still_recorded() {
    let receiver = Receiver::start(Script::always(Answer::reset())).await.unwrap();
    let mut stream = send(&receiver, "/", "e", "body").await;
    let mut answer = Vec::new();
    let error = stream.read_to_end(&mut answer).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(receiver.received()[0].answer, 0);
}

#[tokio::test]
async fn a_hanging_request_is_in_flight_until_the_sender_leaves() {
    let receiver = Receiver::start(Script::always(Answer::hang())).await.unwrap();
    let stream = send(&receiver, "/", "e", "body").await;
    receiver.wait_for(1, PATIENCE).await.unwrap();
    assert_eq!(receiver.totals().in_flight, 1);
    drop(stream);
    assert_eq!(receiver.totals().most_in_flight, 1);
}

#[tokio::test]
async fn waiting_for_too_much_says_how_much_came() {
    let receiver = Receiver::start(Script::default()).await.unwrap();
    let error = receiver.wait_for(3, Duration::ZERO).await.unwrap_err();
    assert!(error.to_string().starts_with("0 of 3 requests"), "{error}");
}

#[tokio::test]
async fn under_load_only_counters_are_kept() {
    let receiver = Receiver::start(Script::default().counting_only()).await.unwrap();
    send(&receiver, "/", "e", "12345").await;
    assert!(receiver.wait_for(1, PATIENCE).await.unwrap().is_empty());
    assert_eq!(receiver.totals().body_bytes, 5);
}
