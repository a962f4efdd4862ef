//! A receiver that writes raw bytes by script, and the sender under test.

use crate::{
    egress::{
        EgressGuard,
        tests::{ScriptedResolver, guard_allowing},
    },
    http::{HttpSender, OutgoingRequest, SenderLimits, Sent},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::interval,
};
use tokio_util::task::TaskTracker;
use turnbuckle_domain::{Clock, Timestamp};

/// For attempts that are meant to run out of time.
pub(super) const SHORT: Duration = Duration::from_millis(200);
/// For all others.
pub(super) const LONG: Duration = Duration::from_secs(20);

pub(super) const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// What the receiver does next on a connection. At the end of its script it closes.
#[derive(Clone)]
pub(super) enum Step {
    /// Read one whole request and remember it.
    Read,
    /// Write these bytes.
    Write(Vec<u8>),
    /// Write them again and again, until the other side is gone.
    Flood(Vec<u8>),
    /// One byte every few milliseconds, again and again, until the other side is gone.
    Drip(Vec<u8>),
    /// Read until the other side closes.
    Hold,
    /// Close with a reset.
    Reset,
}

pub(super) fn write(text: &str) -> Step {
    Step::Write(text.as_bytes().to_vec())
}

pub(super) fn ok() -> Step {
    Step::Write(OK.to_vec())
}

/// What was seen, shared with the receiver's tasks.
#[derive(Default)]
pub(super) struct Seen {
    /// Requests with the number of their connection, from 0.
    requests: Mutex<Vec<(usize, Vec<u8>)>>,
    written: Mutex<usize>,
    connections: TaskTracker,
}

impl Seen {
    pub(super) fn requests(&self) -> Vec<(usize, String)> {
        let text = |(number, bytes): &(usize, Vec<u8>)| {
            (*number, String::from_utf8_lossy(bytes).into_owned())
        };
        self.requests.lock().unwrap().iter().map(text).collect()
    }

    /// Waits for the ends of all connections, then tells how many bytes were written.
    pub(super) async fn written_at_the_end(&self) -> usize {
        self.connections.close();
        self.connections.wait().await;
        *self.written.lock().unwrap()
    }
}

/// Runs one script per connection, in the order they come.
pub(super) async fn receiver(scripts: Vec<Vec<Step>>) -> (u16, Arc<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Arc::new(Seen::default());
    let shared = Arc::clone(&seen);
    tokio::spawn(async move {
        for (number, script) in scripts.into_iter().enumerate() {
            let (stream, _) = listener.accept().await.unwrap();
            let seen = Arc::clone(&shared);
            let tasks = shared.connections.clone();
            tasks.spawn(async move { run(stream, number, script, &seen).await });
        }
        // Listening ends with the last script: an unplanned connection is refused.
    });
    (port, seen)
}

async fn run(mut stream: TcpStream, number: usize, script: Vec<Step>, seen: &Seen) {
    for step in script {
        match step {
            Step::Reset => {
                stream.set_zero_linger().unwrap();
                return;
            }
            step => perform(&mut stream, number, step, seen).await,
        }
    }
}

pub(super) async fn perform<S>(stream: &mut S, number: usize, step: Step, seen: &Seen)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    match step {
        Step::Read => {
            let request = read_request(stream).await;
            seen.requests.lock().unwrap().push((number, request));
        }
        Step::Write(bytes) => {
            stream.write_all(&bytes).await.unwrap();
            stream.flush().await.unwrap();
        }
        Step::Flood(bytes) => {
            while stream.write_all(&bytes).await.is_ok() {
                *seen.written.lock().unwrap() += bytes.len();
            }
        }
        Step::Drip(bytes) => {
            let mut pace = interval(Duration::from_millis(5));
            for byte in bytes.into_iter().cycle() {
                pace.tick().await;
                if stream.write_all(&[byte]).await.is_err() {
                    return;
                }
            }
        }
        Step::Hold => drop(stream.read_to_end(&mut Vec::new()).await),
        Step::Reset => unreachable!("handled where the socket is known"),
    }
}

async fn read_request<S: AsyncRead + Unpin>(stream: &mut S) -> Vec<u8> {
    let mut request = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer).await {
            Ok(read) if read > 0 => request.extend_from_slice(&buffer[..read]),
            _ => return request,
        }
        let text = String::from_utf8_lossy(&request);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |length| length.parse().unwrap());
            if body.len() >= length {
                return request;
            }
        }
    }
}

struct FixedClock;

impl Clock for FixedClock {
    /// Sun, 06 Nov 1994 08:49:37 GMT.
    fn now(&self) -> Timestamp {
        Timestamp::EPOCH + Duration::from_secs(784_111_777)
    }
}

/// A sender that may reach this machine.
pub(super) fn sender() -> HttpSender {
    sender_with(guard_allowing(&["127.0.0.0/8"], ScriptedResolver::default()))
}

pub(super) fn sender_with(guard: EgressGuard) -> HttpSender {
    let limits = SenderLimits::default();
    HttpSender::new(Arc::new(guard), limits, TaskTracker::new(), Arc::new(FixedClock))
}

/// Posts `hello` with a header.
pub(super) async fn post(sender: &HttpSender, url: &str, timeout: Duration) -> Sent {
    let target = Arc::new(sender.guard().check_url(url).unwrap());
    let mut headers = HeaderMap::new();
    headers.insert("webhook-id", HeaderValue::from_static("evt_1"));
    let body = Bytes::from_static(b"hello");
    let is_current = &|| true;
    let request = OutgoingRequest { target: &target, headers, body, timeout, is_current };
    sender.send(request).await.unwrap()
}

pub(super) fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}/hook?x=1")
}
