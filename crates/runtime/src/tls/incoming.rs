//! Connections of a listener after their handshakes.

use super::TlsAcceptor;
use metrics::counter;
use std::{io, sync::Arc, time::Duration};
use tokio::{
    net::TcpStream,
    sync::{Semaphore, mpsc},
    time::{sleep, timeout},
};
use tokio_rustls::server::TlsStream;
use tokio_stream::{Stream, StreamExt as _, wrappers::ReceiverStream};
use tokio_util::sync::CancellationToken;

/// Longest handshake: three round trips to the other side of the world, and retransmissions.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Handshakes under way at once: whoever opens connections and says nothing fills these and no more.
/// The next ones wait in the listener's backlog, for at most [`HANDSHAKE_MAX`].
const HANDSHAKES_MAX: usize = 1_024;
/// Connections made that the server has not yet taken.
const READY_MAX: usize = 64;
/// Pause after an accept that failed, such as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts until the token is cancelled, and gives what has shaken hands. A handshake that fails or is
/// slow is nobody else's matter.
pub fn incoming(
    accepted: impl Stream<Item = io::Result<TcpStream>> + Send + Unpin + 'static,
    acceptor: TlsAcceptor,
    stop: CancellationToken,
) -> ReceiverStream<io::Result<TlsStream<TcpStream>>> {
    let (ready, connections) = mpsc::channel(READY_MAX);
    tokio::spawn(async move {
        // Dropping it closes the listener.
        stop.run_until_cancelled(accept(accepted, acceptor, ready)).await;
    });
    ReceiverStream::new(connections)
}

async fn accept(
    mut accepted: impl Stream<Item = io::Result<TcpStream>> + Send + Unpin,
    acceptor: TlsAcceptor,
    ready: mpsc::Sender<io::Result<TlsStream<TcpStream>>>,
) {
    let places = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let stream = match accepted.next().await {
            None => return,
            Some(Ok(stream)) => stream,
            Some(Err(error)) => {
                tracing::debug!(%error, "a connection was not accepted");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (acceptor, ready) = (acceptor.clone(), ready.clone());
        tokio::spawn(async move {
            let shaken = handshake(&acceptor, stream).await;
            drop(place);
            if let Some(stream) = shaken {
                // Nobody takes it: the server is stopping.
                drop(ready.send(Ok(stream)).await);
            }
        });
    }
}

/// Shakes hands with one peer, within ten seconds. None when it does not come to that.
pub async fn handshake(acceptor: &TlsAcceptor, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
    // Answers are small: they must not wait for more.
    drop(stream.set_nodelay(true));
    match timeout(HANDSHAKE_MAX, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => Some(stream),
        // Scanners talk nonsense: nothing for an operator but a number.
        Ok(Err(_)) | Err(_) => {
            counter!("turnbuckle_tls_handshake_failures_total").increment(1);
            None
        }
    }
}
