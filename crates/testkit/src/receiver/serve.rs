//! Connections and requests.

use super::{
    Received, State,
    body::ScriptedBody,
    lock,
    script::{Answer, Kind},
};
use http_body_util::BodyExt as _;
use hyper::{
    Request, Response,
    body::Incoming,
    header::{HeaderMap, HeaderName, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use std::{
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::{
    net::{TcpListener, TcpStream},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

pub(super) async fn accept(listener: TcpListener, state: Arc<State>, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        // A peer that left before it was accepted is no reason to stop.
        if let Ok((stream, _)) = accepted {
            let connection = state.connections.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(serve(stream, connection, state.clone(), stop.clone()));
        }
    }
}

async fn serve(stream: TcpStream, number: u64, state: Arc<State>, stop: CancellationToken) {
    // Without it the answer waits for the peer's delayed ACK. A failure only costs latency.
    drop(stream.set_nodelay(true));
    let reset = CancellationToken::new();
    let service = service_fn(|request| answer(request, number, state.clone(), reset.clone()));
    let mut connection =
        http1::Builder::new().half_close(false).serve_connection(TokioIo::new(stream), service);
    let must_reset = tokio::select! {
        // Broken connections are the peer's business, and often what a test wants.
        _ = pin!(&mut connection) => false,
        () = reset.cancelled() => true,
        () = stop.cancelled() => false,
    };
    if must_reset {
        let stream = connection.into_parts().io.into_inner();
        // With zero linger, closing sends RST instead of FIN.
        drop(stream.set_zero_linger());
    }
}

async fn answer(
    request: Request<Incoming>,
    connection: u64,
    state: Arc<State>,
    reset: CancellationToken,
) -> Result<Response<ScriptedBody>, hyper::Error> {
    let (at, unix_micros) = (Instant::now(), unix_micros());
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let headers = header_bytes(&head.headers);
    let (answer, counting_only) = {
        let mut script = lock(&state.script);
        (script.next(head.uri.path(), &headers), script.counting_only())
    };
    let _in_flight = InFlight::enter(&state);
    state.body_bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    state.count.send_modify(|count| {
        if !counting_only {
            lock(&state.received).push(Received {
                sequence: *count,
                connection,
                at,
                unix_micros,
                method: head.method.to_string(),
                path,
                headers,
                body,
                answer: if let Kind::Status(status) = answer.kind { status } else { 0 },
            });
        }
        *count += 1;
    });
    perform(answer, &reset).await
}

async fn perform(
    answer: Answer,
    reset: &CancellationToken,
) -> Result<Response<ScriptedBody>, hyper::Error> {
    if !answer.delay.is_zero() {
        tokio::time::sleep(answer.delay).await;
    }
    let status = match answer.kind {
        Kind::Status(status) => status,
        Kind::Hang => std::future::pending().await,
        Kind::Reset => {
            reset.cancel();
            std::future::pending().await
        }
    };
    let mut response = Response::new(ScriptedBody::new(answer.body));
    // A script with an impossible status or header shows as 599 in the test that wrote it.
    let impossible = http::StatusCode::from_u16(599).unwrap_or_default();
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or(impossible);
    for (name, value) in &answer.headers {
        match (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            (Ok(name), Ok(value)) => {
                response.headers_mut().append(name, value);
            }
            _ => *response.status_mut() = impossible,
        }
    }
    Ok(response)
}

/// Counts a request while it is in work, also when the peer gives up.
struct InFlight<'s>(&'s State);

impl<'s> InFlight<'s> {
    fn enter(state: &'s State) -> Self {
        let now = state.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
        state.most_in_flight.fetch_max(now, Ordering::Relaxed);
        Self(state)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

fn header_bytes(headers: &HeaderMap) -> Vec<(String, Vec<u8>)> {
    headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
        .collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the receiver plays another machine, with its own clock"
)]
fn unix_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
