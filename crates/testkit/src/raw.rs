//! A receiver that answers with any bytes at all: what no HTTP library would send.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// A piece of an answer, and the pause before it.
#[derive(Clone, Debug)]
pub struct Piece {
    pause: Duration,
    bytes: Vec<u8>,
}

impl Piece {
    /// Bytes that are sent at once.
    #[must_use]
    pub fn now(bytes: impl Into<Vec<u8>>) -> Self {
        Self { pause: Duration::ZERO, bytes: bytes.into() }
    }

    /// Each byte by itself, with a pause before it.
    #[must_use]
    pub fn drip(bytes: &[u8], pause: Duration) -> Vec<Self> {
        bytes.iter().map(|byte| Self { pause, bytes: vec![*byte] }).collect()
    }
}

/// A running receiver; dropping it closes every connection.
#[derive(Debug)]
pub struct RawReceiver {
    address: SocketAddr,
    count: watch::Receiver<u64>,
    _stop: DropGuard,
}

impl RawReceiver {
    /// Reads one request on each connection, sends the pieces and closes.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(pieces: Vec<Piece>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (counter, count) = watch::channel(0);
        let (counter, pieces) = (Arc::new(counter), Arc::new(pieces));
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move {
            while let Some(accepted) = stopped.run_until_cancelled(listener.accept()).await {
                let Ok((stream, _)) = accepted else { continue };
                let (counter, pieces) = (Arc::clone(&counter), Arc::clone(&pieces));
                let stopped = stopped.clone();
                tokio::spawn(async move {
                    // The peer may give up; that is its right.
                    drop(stopped.run_until_cancelled(serve(stream, &counter, &pieces)).await);
                });
            }
        });
        Ok(Self { address, count, _stop: stop.drop_guard() })
    }

    /// The URL of a path such as `/hooks`.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Requests so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        *self.count.borrow()
    }
}

async fn serve(
    mut stream: TcpStream,
    counter: &watch::Sender<u64>,
    pieces: &[Piece],
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    read_request(&mut stream).await?;
    counter.send_modify(|count| *count += 1);
    for piece in pieces {
        if !piece.pause.is_zero() {
            tokio::time::sleep(piece.pause).await;
        }
        stream.write_all(&piece.bytes).await?;
    }
    stream.shutdown().await
}

/// Reads a request with a `content-length`, as every delivery has one.
async fn read_request(stream: &mut TcpStream) -> io::Result<()> {
    let mut request = Vec::new();
    let mut wanted = usize::MAX;
    while request.len() < wanted {
        if stream.read_buf(&mut request).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let text = String::from_utf8_lossy(&request);
        let Some((head, _)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.to_ascii_lowercase().lines().find_map(|line| {
            line.strip_prefix("content-length:").and_then(|length| length.trim().parse().ok())
        });
        wanted = head.len() + 4 + length.unwrap_or(0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn any_bytes_are_sent_as_they_are() {
        let pieces = [vec![Piece::now(*b"HT\0")], Piece::drip(b"\xff!", Duration::from_millis(1))];
        let receiver = RawReceiver::start(pieces.concat()).await.unwrap();
        let mut stream = TcpStream::connect(receiver.address).await.unwrap();
        stream.write_all(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}").await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, b"HT\0\xff!");
        assert_eq!(receiver.count(), 1);
    }
}
