//! Connections: bounded in number, in the size of a head, and in the time for it.

use crate::{limits::block_of, pipeline::Pipeline};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use metrics::{counter, gauge};
use std::{
    collections::HashMap,
    convert::Infallible,
    io,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use turnbuckle_domain::source_limits;

/// Connections at once: each may hold a head in memory. Past it a new one is closed.
const CONNECTIONS_MAX: usize = 8_192;
/// Bytes of a head, with its request line; sources set their own bound below it.
const HEAD_BYTES: usize = source_limits::HEADER_BYTES_MAX as usize + 16 * 1024;
/// Time for a head, and for an idle connection to send one: a slow one holds a connection.
const HEAD_TIMEOUT: Duration = source_limits::READ_TIMEOUT_DEFAULT;
/// Pause after an accept that failed, such as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Connections by address.
#[derive(Default)]
struct Connections(Mutex<HashMap<IpAddr, usize>>);

/// One connection's place. Dropping it makes room.
struct Place {
    connections: Arc<Connections>,
    address: IpAddr,
}

/// Answers until the token is cancelled; then what is under way ends.
///
/// # Errors
/// Never; a listener that fails is tried again.
pub(crate) async fn serve(
    listener: TcpListener,
    pipeline: Arc<Pipeline>,
    stop: CancellationToken,
) -> io::Result<()> {
    let connections = Arc::new(Connections::default());
    let tasks = TaskTracker::new();
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "a connection was not accepted");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Some(place) = connections.take(block_of(peer.ip())) else {
            counter!("turnbuckle_ingress_connections_refused_total").increment(1);
            continue;
        };
        let (pipeline, stop) = (Arc::clone(&pipeline), stop.clone());
        tasks.spawn(async move {
            converse(stream, peer.ip(), pipeline, stop).await;
            drop(place);
        });
    }
    drop(listener);
    tasks.close();
    tasks.wait().await;
    Ok(())
}

async fn converse(
    stream: TcpStream,
    peer: IpAddr,
    pipeline: Arc<Pipeline>,
    stop: CancellationToken,
) {
    // Answers are small: they must not wait for more. One that fails costs milliseconds.
    drop(stream.set_nodelay(true));
    let service = service_fn(move |request| {
        let pipeline = Arc::clone(&pipeline);
        async move { Ok::<_, Infallible>(Box::pin(pipeline.answer(request, peer)).await) }
    });
    let headers = usize::try_from(source_limits::HEADERS_MAX).unwrap_or(usize::MAX);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_headers(headers)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = Box::pin(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    // Senders go away and scanners talk nonsense: nothing for an operator.
    if let Err(error) = ended {
        tracing::trace!(%error, "a connection ended");
    }
}

impl Connections {
    /// A place, where there is one: one address takes at most half of them.
    fn take(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let each = usize::try_from(source_limits::ADDRESS_CONNECTIONS_MAX).unwrap_or(usize::MAX);
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = gauge_total(&open);
        let own = open.get(&address).copied().unwrap_or(0);
        if all >= CONNECTIONS_MAX || own >= each {
            return None;
        }
        open.insert(address, own + 1);
        gauge!("turnbuckle_ingress_connections").set((all + 1) as f64);
        Some(Place { connections: Arc::clone(self), address })
    }
}

fn gauge_total(open: &HashMap<IpAddr, usize>) -> usize {
    open.values().sum()
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.connections.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = open.get_mut(&self.address) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.address);
            }
        }
        gauge!("turnbuckle_ingress_connections").set(gauge_total(&open) as f64);
    }
}
