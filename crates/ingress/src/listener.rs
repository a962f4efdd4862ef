//! Connections: bounded in number, in the size of a head, and in the time for it.

use crate::{
    connections::{Connections, Place},
    pipeline::Pipeline,
    unread::Unread,
};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use metrics::counter;
use std::{convert::Infallible, io, net::IpAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use turnbuckle_domain::source_limits;
use turnbuckle_runtime::tls::{TlsAcceptor, handshake};

/// Bytes of a head, with its request line; sources set their own bound below it.
const HEAD_BYTES: usize = source_limits::HEADER_BYTES_MAX as usize + 16 * 1024;
/// Time for a head, and for an idle connection to send one: a slow one holds a connection.
const HEAD_TIMEOUT: Duration = source_limits::READ_TIMEOUT_DEFAULT;
/// Pause after an accept that failed, such as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Answers until the token is cancelled; then what is under way ends.
///
/// # Errors
/// Never; a listener that fails is tried again.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
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
        let Some(place) = connections.take(peer.ip(), pipeline.proxies.has(peer.ip())) else {
            counter!("turnbuckle_ingress_connections_refused_total").increment(1);
            continue;
        };
        // Answers are small: they must not wait for more. One that fails costs milliseconds.
        drop(stream.set_nodelay(true));
        let (pipeline, stop, tls) = (Arc::clone(&pipeline), stop.clone(), tls.clone());
        tasks.spawn(async move {
            let Some(tls) = tls else {
                return converse(stream, peer.ip(), &place, pipeline, stop).await;
            };
            // A silent peer makes way here too: it has said nothing yet.
            let shaken = tokio::select! {
                shaken = handshake(&tls, stream) => shaken,
                () = place.is_needed() => None,
                () = stop.cancelled() => None,
            };
            if let Some(stream) = shaken {
                Box::pin(converse(stream, peer.ip(), &place, pipeline, stop)).await;
            }
        });
    }
    drop(listener);
    tasks.close();
    tasks.wait().await;
    Ok(())
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    peer: IpAddr,
    place: &Arc<Place>,
    pipeline: Arc<Pipeline>,
    stop: CancellationToken,
) {
    let service = service_fn(move |request| {
        let (pipeline, place) = (Arc::clone(&pipeline), Arc::clone(place));
        async move {
            place.speaks();
            let answer = Box::pin(pipeline.answer(request, peer)).await;
            place.falls_silent();
            Ok::<_, Infallible>(answer)
        }
    });
    let headers = usize::try_from(source_limits::HEADERS_MAX).unwrap_or(usize::MAX);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_headers(headers)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(Unread::new(stream)), service);
    let mut connection = Box::pin(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = place.is_needed() => return,
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
