//! The sender against receivers of every kind.

mod receiver;
mod tls;

use self::receiver::{LONG, OK, SHORT, Step, ok, post, receiver, sender, sender_with, url, write};
use super::{
    OutgoingRequest, SenderLimits,
    pool::{IDLE_TIMEOUT, MAX_AGE},
};
use crate::egress::tests::{ScriptedResolver, guard_allowing};
use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, HeaderValue};
use std::{sync::Arc, time::Duration};
use tokio::{net::TcpListener, time::Instant};
use turnbuckle_domain::{AttemptOutcome, Phase, Unreachable};

const DELIVERED: AttemptOutcome = AttemptOutcome::Delivered { status: 200 };

fn unreachable(cause: Unreachable) -> AttemptOutcome {
    AttemptOutcome::Unreachable { cause }
}

fn refused(status: u16) -> AttemptOutcome {
    AttemptOutcome::Refused { status, retry_after: None }
}

/// The outcome of one POST to a receiver with this script.
async fn outcome_of(script: Vec<Step>, timeout: Duration) -> AttemptOutcome {
    let (port, _seen) = receiver(vec![script]).await;
    post(&sender(), &url(port), timeout).await.outcome
}

#[tokio::test]
async fn a_request_is_a_plain_post_with_a_length_and_nothing_to_negotiate() {
    let (port, seen) = receiver(vec![vec![Step::Read, ok()]]).await;
    let sender = sender();
    let target = Arc::new(sender.guard().check_url(&url(port)).unwrap());
    let mut headers = HeaderMap::new();
    for name in ["transfer-encoding", "connection", "expect", "accept-encoding", "host", "x-own"] {
        headers.insert(name, HeaderValue::from_static("chunked"));
    }
    let body = Bytes::from_static(b"hello");
    let is_current = &|| true;
    let request = OutgoingRequest { target: &target, headers, body, timeout: LONG, is_current };
    let sent = sender.send(request).await.unwrap();
    assert_eq!(sent.outcome, DELIVERED);
    assert_eq!(sent.body_excerpt, "ok");
    let (_, text) = seen.requests().remove(0);
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<_> = head.lines().collect();
    lines.sort_unstable();
    let agent = concat!("user-agent: turnbuckle/", env!("CARGO_PKG_VERSION"));
    let host = format!("host: 127.0.0.1:{port}");
    let length = "content-length: 5";
    assert_eq!(lines, ["POST /hook?x=1 HTTP/1.1", length, &host, agent, "x-own: chunked"]);
    assert_eq!(body, "hello");
}

#[tokio::test]
async fn an_empty_body_has_a_length_too() {
    let (port, seen) = receiver(vec![vec![Step::Read, ok()]]).await;
    let sender = sender();
    let target = Arc::new(sender.guard().check_url(&url(port)).unwrap());
    let headers = HeaderMap::new();
    let body = Bytes::new();
    let is_current = &|| true;
    let request = OutgoingRequest { target: &target, headers, body, timeout: LONG, is_current };
    sender.send(request).await.unwrap();
    assert!(seen.requests()[0].1.contains("content-length: 0\r\n"));
}

#[tokio::test]
async fn a_connection_is_kept_and_used_again() {
    let turn = [Step::Read, ok()];
    let (port, seen) = receiver(vec![turn.iter().cycle().take(6).cloned().collect()]).await;
    let sender = sender();
    for expected in [false, true, true] {
        let sent = post(&sender, &url(port), LONG).await;
        assert_eq!((sent.outcome, sent.reused), (DELIVERED, expected));
    }
    assert_eq!(seen.requests().len(), 3);
    assert!(seen.requests().iter().all(|(connection, _)| *connection == 0));
}

#[tokio::test]
async fn a_chunked_answer_keeps_the_connection() {
    let chunked = write("HTTP/1.1 204 No Content\r\n\r\n");
    let other = write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n");
    let (port, _seen) = receiver(vec![vec![Step::Read, other, Step::Read, chunked]]).await;
    let sender = sender();
    assert_eq!(post(&sender, &url(port), LONG).await.body_excerpt, "ok");
    let sent = post(&sender, &url(port), LONG).await;
    assert_eq!((sent.outcome.status(), sent.reused), (Some(204), true));
}

#[tokio::test]
async fn a_request_that_meets_the_close_of_an_idle_connection_is_sent_once_more() {
    // The receiver takes the second request and closes without a byte of an answer.
    let first = vec![Step::Read, ok(), Step::Read];
    let (port, seen) = receiver(vec![first, vec![Step::Read, ok()]]).await;
    let sender = sender();
    post(&sender, &url(port), LONG).await;
    let sent = post(&sender, &url(port), LONG).await;
    assert_eq!((sent.outcome, sent.reused), (DELIVERED, false));
    let requests = seen.requests();
    assert_eq!(requests.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 0, 1]);
    assert_eq!(requests[1].1, requests[2].1);
}

#[tokio::test]
async fn receivers_that_close_after_each_answer_lose_nothing() {
    let (port, seen) = receiver(vec![vec![Step::Read, ok()]; 30]).await;
    let sender = sender();
    for _ in 0..30 {
        assert_eq!(post(&sender, &url(port), LONG).await.outcome, DELIVERED);
    }
    // The race may lose a request in a socket that was closing, but never repeats an answered one.
    assert_eq!(seen.requests().len(), 30);
}

#[tokio::test]
async fn a_second_failure_is_not_followed_by_a_third_try() {
    let (port, seen) = receiver(vec![vec![Step::Read, ok(), Step::Read], vec![Step::Read]]).await;
    let sender = sender();
    post(&sender, &url(port), LONG).await;
    let sent = post(&sender, &url(port), LONG).await;
    assert_eq!(sent.outcome, unreachable(Unreachable::Reset));
    assert_eq!(seen.requests().len(), 3);
}

#[tokio::test]
async fn half_an_answer_on_a_reused_connection_is_not_resent() {
    let first = vec![Step::Read, ok(), Step::Read, write("HTTP/1.1 20")];
    let (port, seen) = receiver(vec![first]).await;
    let sender = sender();
    post(&sender, &url(port), LONG).await;
    let sent = post(&sender, &url(port), LONG).await;
    assert_eq!(sent.outcome, unreachable(Unreachable::Reset));
    assert_eq!(seen.requests().len(), 2);
}

#[tokio::test]
async fn silence_and_dribbled_heads_run_out_of_time() {
    let first_byte = AttemptOutcome::TimedOut { phase: Phase::FirstByte };
    assert_eq!(outcome_of(vec![Step::Read, Step::Hold], SHORT).await, first_byte);
    let head = b"HTTP/1.1 200 OK\r\n".to_vec();
    let dribble = vec![Step::Read, Step::Write(head), Step::Drip(b"x: y\r\n".to_vec())];
    assert_eq!(outcome_of(dribble, SHORT).await, first_byte);
}

#[tokio::test]
async fn a_dribbled_body_does_not_undo_the_status() {
    let head = write("HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n");
    let (port, seen) = receiver(vec![vec![Step::Read, head, Step::Drip(vec![b'x'])]]).await;
    let sender = sender();
    let sent = post(&sender, &url(port), SHORT).await;
    assert_eq!(sent.outcome, DELIVERED);
    assert!(sent.duration < SHORT, "counted to the head");
    assert!(!sent.body_excerpt.is_empty());
    assert_eq!(sender.pool().len(), 0);
    seen.written_at_the_end().await;
}

#[tokio::test]
async fn a_broken_body_does_not_undo_the_status() {
    for status in [200, 500] {
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: 10\r\n\r\nhalf");
        let outcome = outcome_of(vec![Step::Read, write(&head), Step::Reset], LONG).await;
        assert_eq!(outcome.status(), Some(status));
    }
}

#[tokio::test]
async fn a_huge_body_is_cut_off_and_its_connection_dropped() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n";
    let flood = Step::Flood(vec![b'x'; 64 * 1024]);
    let (port, seen) = receiver(vec![vec![Step::Read, write(head), flood]]).await;
    let sender = sender();
    let sent = post(&sender, &url(port), LONG).await;
    assert_eq!(sent.outcome, DELIVERED);
    assert_eq!(sent.body_excerpt.len(), SenderLimits::default().max_body);
    // The rest are socket buffers.
    assert!(seen.written_at_the_end().await < 20_000_000);
}

#[tokio::test]
async fn bodies_in_the_smallest_of_chunks_are_bounded() {
    let head = write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
    let flood = Step::Flood(b"1\r\nx\r\n".repeat(1_000));
    let (port, seen) = receiver(vec![vec![Step::Read, head, flood]]).await;
    let sent = post(&sender(), &url(port), LONG).await;
    assert_eq!(sent.outcome, DELIVERED);
    assert!(sent.body_excerpt.len() <= SenderLimits::default().max_body);
    seen.written_at_the_end().await;
}

#[tokio::test]
async fn what_is_not_an_answer_is_a_protocol_failure() {
    let protocol = unreachable(Unreachable::Protocol);
    let endless_head = [Step::Flood(b"x-filler: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n".to_vec())];
    let one_header = [Step::Flood(vec![b'x'; 4096])];
    let many_headers = [write(&"x: y\r\n".repeat(10_000)), write("\r\n")];
    for bomb in [&endless_head[..], &one_header[..], &many_headers[..]] {
        let mut script = vec![Step::Read, write("HTTP/1.1 200 OK\r\n")];
        script.extend_from_slice(bomb);
        script.push(Step::Hold);
        assert_eq!(outcome_of(script, LONG).await, protocol);
    }
    let interim = Step::Flood(b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec());
    assert_eq!(outcome_of(vec![Step::Read, interim], LONG).await, protocol, "interim answers");
    for garbage in ["SSH-2.0-OpenSSH_9.2\r\n", "\x15\x03\x01\0\x02\x02\x16", "200 OK\r\n\r\n"] {
        let script = vec![Step::Read, write(garbage), Step::Hold];
        assert_eq!(outcome_of(script, LONG).await, protocol, "{garbage:?}");
    }
}

#[tokio::test]
async fn interim_answers_are_passed_over() {
    let interim = write("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n");
    assert_eq!(outcome_of(vec![Step::Read, interim, ok()], LONG).await, DELIVERED);
}

#[tokio::test]
async fn redirects_are_answers_like_others() {
    for status in [301, 302, 303, 307, 308] {
        let (inner, inner_seen) = receiver(vec![vec![Step::Read, ok()]]).await;
        let location = format!(
            "HTTP/1.1 {status} X\r\nlocation: http://127.0.0.1:{inner}/\r\ncontent-length: 0\r\n\r\n"
        );
        assert_eq!(outcome_of(vec![Step::Read, write(&location)], LONG).await, refused(status));
        assert!(inner_seen.requests().is_empty());
    }
}

#[tokio::test]
async fn a_protocol_switch_is_refused_and_its_connection_not_kept() {
    let switch = "HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n";
    let (port, _seen) = receiver(vec![vec![Step::Read, write(switch), Step::Hold]]).await;
    let sender = sender();
    assert_eq!(post(&sender, &url(port), LONG).await.outcome, refused(101));
    assert_eq!(sender.pool().len(), 0);
}

#[tokio::test]
async fn a_connection_that_breaks_before_the_head_is_reset() {
    let reset = unreachable(Unreachable::Reset);
    for script in [
        vec![Step::Reset],
        vec![Step::Read, Step::Reset],
        vec![Step::Read],
        vec![Step::Read, write("HTTP/1.1 200 OK\r\nx:")],
    ] {
        assert_eq!(outcome_of(script, LONG).await, reset);
    }
}

#[tokio::test]
async fn a_port_without_listener_is_a_connect_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let sent = post(&sender(), &url(port), LONG).await;
    assert_eq!(sent.outcome, unreachable(Unreachable::Connect));
}

#[tokio::test]
async fn nothing_is_dialled_when_an_answer_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let resolver = ScriptedResolver::default().with("hooks.test.", &[&["127.0.0.1", "10.0.0.1"]]);
    let sender = sender_with(guard_allowing(&["127.0.0.0/8"], resolver));
    let sent = post(&sender, &format!("http://hooks.test:{port}/"), LONG).await;
    assert_eq!(sent.outcome, AttemptOutcome::Blocked);
    assert!(listener.accept().now_or_never().is_none());
}

#[tokio::test]
async fn retry_after_comes_with_the_refusal() {
    for (value, expected) in [
        ("120", Some(120)),
        ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
        ("Sun, 06 Nov 1994 08:00:00 GMT", None),
        ("-3", None),
    ] {
        let head = format!("HTTP/1.1 503 X\r\nretry-after: {value}\r\ncontent-length: 0\r\n\r\n");
        let retry_after = expected.map(Duration::from_secs);
        let outcome = outcome_of(vec![Step::Read, write(&head)], LONG).await;
        assert_eq!(outcome, AttemptOutcome::Refused { status: 503, retry_after }, "{value}");
    }
}

#[tokio::test]
async fn old_and_long_idle_connections_are_not_used_again() {
    let (port, _seen) =
        receiver(vec![vec![Step::Read, Step::Write(OK.to_vec()), Step::Hold]; 3]).await;
    let sender = sender();
    let target = sender.guard().check_url(&url(port)).unwrap();
    let pool = sender.pool();
    post(&sender, &url(port), LONG).await;
    assert!(pool.take(target.origin(), Instant::now() + IDLE_TIMEOUT).is_none());
    assert_eq!(pool.len(), 0);

    post(&sender, &url(port), LONG).await;
    let connection = pool.take(target.origin(), Instant::now()).unwrap();
    pool.put(target.origin(), connection, Instant::now() + MAX_AGE);
    assert_eq!(pool.len(), 0);

    post(&sender, &url(port), LONG).await;
    pool.sweep(Instant::now());
    assert_eq!(pool.len(), 1);
    pool.sweep(Instant::now() + IDLE_TIMEOUT);
    assert_eq!(pool.len(), 0);
}
