//! A peer that does not read its answers: it is left after a time.

use std::{
    future::Future as _,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// Longest time in which a peer takes nothing of what is written to it: answers are small, and wait in
/// a buffer for whoever reads at all.
pub(crate) const WRITE_WAIT: Duration = Duration::from_secs(10);

/// A stream whose writes fail when the peer takes nothing for [`WRITE_WAIT`].
pub(crate) struct Unread<S> {
    stream: S,
    until: Option<Pin<Box<Sleep>>>,
}

impl<S> Unread<S> {
    pub(crate) const fn new(stream: S) -> Self {
        Self { stream, until: None }
    }

    fn bounded<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.until = None;
            return written;
        }
        let until = self.until.get_or_insert_with(|| Box::pin(sleep(WRITE_WAIT)));
        ready!(until.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Unread<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Unread<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.bounded(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.bounded(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.bounded(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.bounded(cx, shut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _, duplex},
        time::{Instant, timeout},
    };

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_never_reads_is_left_and_a_slow_one_is_not() {
        let (mut peer, stream) = duplex(64);
        let mut stream = Unread::new(stream);
        let began = Instant::now();
        // Slow, and never silent for the whole time.
        let reading = async {
            let mut taken = [0; 64];
            for _ in 0..10 {
                sleep(WRITE_WAIT * 3 / 4).await;
                peer.read_exact(&mut taken).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(stream.write_all(&[0; 640]), reading);
        assert!(written.is_ok());
        assert!(began.elapsed() > WRITE_WAIT * 5);
        let unread = timeout(WRITE_WAIT * 2, stream.write_all(&[0; 640])).await.unwrap();
        assert_eq!(unread.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
