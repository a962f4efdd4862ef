//! The demo's two receivers: they verify, answer by a script, and report every attempt.

use super::ledger::Seen;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::time::Instant;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
use turnbuckle_domain::Clock as _;
use turnbuckle_runtime::SystemClock;
use turnbuckle_signing::{KeyError, Profile, VerifyOptions, VerifyingKey, verify};

/// Largest request read: above the largest event with its envelope.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Characters shown of a signature: enough to tell two apart.
const SIGNATURE_SHOWN: usize = 8;
/// Wait that the flaky receiver asks for, in seconds.
pub(super) const RETRY_AFTER_SECONDS: u32 = 1;

/// How a receiver answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    /// 200, always.
    Healthy,
    /// For each event: 503, 503, 429 with Retry-After, then 200.
    Flaky,
}

impl Script {
    pub(super) const fn answer(self, attempt: i32) -> u16 {
        match (self, attempt) {
            (Self::Flaky, 1 | 2) => 503,
            (Self::Flaky, 3) => 429,
            _ => 200,
        }
    }
}

/// A running receiver; dropping it closes its port.
#[derive(Debug)]
pub(super) struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    _stop: DropGuard,
}

#[derive(Debug)]
struct Shared {
    endpoint: &'static str,
    script: Script,
    keys: Mutex<Vec<(&'static str, VerifyingKey)>>,
    reports: mpsc::Sender<Seen>,
}

impl Receiver {
    pub(super) async fn start(
        endpoint: &'static str,
        script: Script,
        reports: mpsc::Sender<Seen>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { endpoint, script, keys: Mutex::default(), reports });
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        tasks.spawn(accept(listener, shared.clone(), stop.clone(), tasks.clone()));
        Ok(Self { address, shared, _stop: stop.drop_guard() })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/hooks", self.address)
    }

    /// Accepts a key from now on, as a receiver does that was handed a new secret.
    pub(super) fn learn(&self, label: &'static str, secret: &str) -> Result<(), KeyError> {
        let key = VerifyingKey::parse(secret)?;
        self.shared.keys.lock().unwrap_or_else(PoisonError::into_inner).push((label, key));
        Ok(())
    }
}

async fn accept(
    listener: TcpListener,
    shared: Arc<Shared>,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        if let Ok((stream, _)) = accepted {
            tasks.spawn(serve(stream, shared.clone(), stop.clone()));
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>, stop: CancellationToken) {
    // Without it the answer waits for the peer's delayed ACK. A failure only costs latency.
    drop(stream.set_nodelay(true));
    let service = service_fn(|request| receive(request, shared.clone()));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // A broken connection shows as a missing or repeated attempt in the checks.
        _ = connection => {}
        () = stop.cancelled() => {}
    }
}

async fn receive(
    request: Request<Incoming>,
    shared: Arc<Shared>,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    let arrived = Instant::now();
    let (head, body) = request.into_parts();
    let status = match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(body) => shared.judge(arrived, &head.headers, body.to_bytes()).await,
        Err(_) => StatusCode::BAD_REQUEST,
    };
    let mut response = Response::new(Empty::new());
    *response.status_mut() = status;
    if status == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert(http::header::RETRY_AFTER, RETRY_AFTER_SECONDS.into());
    }
    Ok(response)
}

impl Shared {
    async fn judge(&self, arrived: Instant, headers: &HeaderMap, body: Bytes) -> StatusCode {
        let pairs: Vec<(String, Vec<u8>)> = headers
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
            .collect();
        let verified_by = self.verifying_keys(&pairs, &body);
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
        let number = text("turnbuckle-attempt").parse().unwrap_or(0);
        // Verify first, then parse; what does not verify gets the one answer for all of it.
        let status = if verified_by.is_empty() { 401 } else { self.script.answer(number) };
        let seen = Seen {
            endpoint: self.endpoint,
            event_id: event_id(&body).unwrap_or_default(),
            webhook_id: text("webhook-id").to_owned(),
            number,
            status: i32::from(status),
            arrived,
            answered: Instant::now(),
            verified_by,
            signatures: shortened(text("webhook-signature")),
            body,
        };
        // The demo is over when nobody listens any more.
        drop(self.reports.send(seen).await);
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Labels of all keys that verify the request, each tried alone.
    fn verifying_keys(&self, headers: &Vec<(String, Vec<u8>)>, body: &[u8]) -> Vec<&'static str> {
        let options = VerifyOptions::at(SystemClock.now().unix_seconds());
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.iter()
            .filter(|(_, key)| {
                verify(Profile::StandardWebhooks, &[key], headers, body, &options).is_ok()
            })
            .map(|(label, _)| *label)
            .collect()
    }
}

fn event_id(body: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Id {
        event_id: String,
    }
    serde_json::from_slice::<Id>(body).ok().map(|found| found.event_id)
}

/// The first characters of each signature, without its version.
fn shortened(signatures: &str) -> Vec<String> {
    signatures
        .split_ascii_whitespace()
        .map(|entry| {
            let signature = entry.split_once(',').map_or(entry, |(_, signature)| signature);
            signature.chars().take(SIGNATURE_SHOWN).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use turnbuckle_signing::{Message, SignerOptions, SigningKey, sign};

    /// Sends one signed request over a fresh connection and gives the answer's text.
    async fn send(receiver: &Receiver, keys: &[&SigningKey], attempt: i32) -> String {
        let body = br#"{"event_id":"e-1","data":{}}"#;
        let message = Message { id: "e-1", timestamp: SystemClock.now().unix_seconds(), body };
        let signed =
            sign(Profile::StandardWebhooks, keys, &message, &SignerOptions::default()).unwrap();
        let mut request = format!(
            "POST /hooks HTTP/1.1\r\nhost: r\r\nconnection: close\r\ncontent-length: {}\r\n\
             turnbuckle-attempt: {attempt}\r\n",
            body.len()
        );
        for (name, value) in &signed {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut stream = TcpStream::connect(receiver.address).await.unwrap();
        stream.write_all(format!("{request}\r\n").as_bytes()).await.unwrap();
        stream.write_all(body).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn the_flaky_receiver_fails_as_scripted_and_reports_each_attempt() {
        let (reports, mut seen) = mpsc::channel(8);
        let receiver = Receiver::start("flaky", Script::Flaky, reports).await.unwrap();
        let key = SigningKey::generate_hmac(&[7; 32]);
        receiver.learn("old", key.secret_text().expose()).unwrap();
        let mut statuses = Vec::new();
        for attempt in 1..=4 {
            let answer = send(&receiver, &[&key], attempt).await;
            assert_eq!(answer.contains("retry-after: 1\r\n"), attempt == 3);
            let report = seen.recv().await.unwrap();
            assert_eq!((report.number, report.event_id.as_str()), (attempt, "e-1"));
            statuses.push(report.status);
        }
        assert_eq!(statuses, [503, 503, 429, 200]);
    }

    #[tokio::test]
    async fn old_and_new_keys_are_told_apart_and_a_stranger_s_is_refused() {
        let (reports, mut seen) = mpsc::channel(8);
        let receiver = Receiver::start("healthy", Script::Healthy, reports).await.unwrap();
        let (old, new) = (SigningKey::generate_hmac(&[1; 32]), SigningKey::generate_hmac(&[2; 32]));
        receiver.learn("old", old.secret_text().expose()).unwrap();
        receiver.learn("new", new.secret_text().expose()).unwrap();
        send(&receiver, &[&new, &old], 1).await;
        let both = seen.recv().await.unwrap();
        assert_eq!(both.verified_by, ["old", "new"]);
        assert_eq!(both.signatures.len(), 2);
        assert!(both.signatures.iter().all(|shown| shown.len() == SIGNATURE_SHOWN));
        let stranger = SigningKey::generate_hmac(&[3; 32]);
        let answer = send(&receiver, &[&stranger], 1).await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
        assert!(seen.recv().await.unwrap().verified_by.is_empty());
    }
}
