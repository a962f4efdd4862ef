//! One connection of the receiver.
//!
//! Written by hand: a receiver that costs as much as the server's sender would be half of what is
//! measured.

use super::{
    arrival::{Arrival, Log},
    head,
};
use crate::clock::now_us;
use std::{io, sync::Arc};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Room for the usual request in one read.
const BUFFER_BYTES: usize = 32 * 1024;
/// Above the largest event in its envelope.
const REQUEST_BYTES_MAX: usize = 1024 * 1024;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

pub(super) async fn serve(stream: TcpStream, endpoint: u16, log: Arc<Log>) {
    // A connection may be reset at any time; what it cost shows in the analysis.
    drop(answer_all(stream, endpoint, &log).await);
}

async fn answer_all(mut stream: TcpStream, endpoint: u16, log: &Log) -> io::Result<()> {
    // Without it an answer may wait for the peer's delayed ACK.
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    loop {
        let head = match head::parse(&buffer) {
            Ok(Some(head)) if head.total <= REQUEST_BYTES_MAX => head,
            Ok(None) => match stream.read_buf(&mut buffer).await? {
                0 => return Ok(()),
                _ => continue,
            },
            Ok(Some(_)) | Err(head::Broken) => {
                log.note_broken();
                return Ok(());
            }
        };
        while buffer.len() < head.total {
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        }
        let arrival = Arrival { at_us: now_us(), event: head.event, endpoint };
        if !log.note(arrival) {
            return hang(stream).await;
        }
        stream.write_all(ANSWER).await?;
        buffer.drain(..head.total);
    }
}

/// Says nothing until the peer gives up.
async fn hang(mut stream: TcpStream) -> io::Result<()> {
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    const REQUEST: &[u8] = b"POST / HTTP/1.1\r\nwebhook-id: r-7\r\ncontent-length: 2\r\n\r\n{}";

    async fn connected(log: &Arc<Log>) -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(serve(stream, 0, Arc::clone(log)));
        client
    }

    #[tokio::test]
    async fn two_requests_on_one_connection_are_logged_and_answered() {
        let log = Arc::new(Log::new(0));
        let mut client = connected(&log).await;
        for request in [REQUEST, &REQUEST[..20], &REQUEST[20..]] {
            client.write_all(request).await.unwrap();
        }
        let mut answers = vec![0; ANSWER.len() * 2];
        client.read_exact(&mut answers).await.unwrap();
        assert_eq!(answers, [ANSWER, ANSWER].concat());
        assert_eq!(log.counts().healthy, 2);
    }

    #[tokio::test]
    async fn nonsense_is_counted_and_ends_the_connection() {
        let log = Arc::new(Log::new(0));
        let mut client = connected(&log).await;
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0);
        assert_eq!(log.counts().broken, 1);
    }
}
