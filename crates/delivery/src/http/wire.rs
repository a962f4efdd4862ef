//! The byte stream under a connection, with a meter on what the receiver sends.

use crate::egress::Stream;
use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Most bytes read for one answer. Head, body and read-ahead have their own, smaller bounds; this
/// one ends what they do not count: interim answers without end, chunk framing around single bytes.
const MAX_ANSWER_BYTES: usize = 256 * 1024;

/// The receiver sends more than any answer we read.
#[derive(Debug, thiserror::Error)]
#[error("the answer is too long")]
pub(super) struct AnswerTooLong;

/// Bytes received since the last request began. A count, nothing hangs on its order.
#[derive(Debug, Clone, Default)]
pub(super) struct Meter(Arc<AtomicUsize>);

impl Meter {
    pub(super) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    pub(super) fn received(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: usize) -> usize {
        self.0.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes)
    }
}

/// A guarded stream with its meter.
pub(super) struct Wire {
    stream: Stream,
    meter: Meter,
}

impl Wire {
    pub(super) const fn new(stream: Stream, meter: Meter) -> Self {
        Self { stream, meter }
    }

    fn stream(self: Pin<&mut Self>) -> Pin<&mut Stream> {
        Pin::new(&mut self.get_mut().stream)
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = self.as_mut().stream().poll_read(context, buffer);
        if self.meter.add(buffer.filled().len() - before) > MAX_ANSWER_BYTES {
            return Poll::Ready(Err(io::Error::other(AnswerTooLong)));
        }
        polled
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
