//! The body of an answer: read in bounds, and only because the connection is worth keeping.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::time::{Instant, timeout_at};

/// What was read.
pub(super) struct AnswerBody {
    /// The body's beginning, at most the cap.
    pub(super) excerpt: Bytes,
    /// Whether that is all of it, so that the connection can carry another request.
    pub(super) is_complete: bool,
}

/// Reads at most `cap` bytes before `deadline`. What goes wrong here changes nothing: the receiver
/// decided with the status.
pub(super) async fn read(mut body: Incoming, cap: usize, deadline: Instant) -> AnswerBody {
    if body.is_end_stream() {
        return AnswerBody { excerpt: Bytes::new(), is_complete: true };
    }
    let mut excerpt = Excerpt { first: Bytes::new(), joined: BytesMut::new(), cap };
    let reading = excerpt.fill(&mut body);
    let is_complete = timeout_at(deadline, reading).await.unwrap_or(false);
    AnswerBody { excerpt: excerpt.into_bytes(), is_complete }
}

/// A body in one frame, as most are, is not copied.
struct Excerpt {
    first: Bytes,
    joined: BytesMut,
    cap: usize,
}

impl Excerpt {
    /// True when the body ended within the cap.
    async fn fill(&mut self, body: &mut Incoming) -> bool {
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return false };
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if !self.take(data) {
                return false;
            }
        }
        true
    }

    /// False when the data passes the cap.
    fn take(&mut self, mut data: Bytes) -> bool {
        let room = self.cap - self.first.len().max(self.joined.len());
        let fits = data.len() <= room;
        data.truncate(room);
        if self.first.is_empty() && self.joined.is_empty() {
            self.first = data;
        } else {
            let first = std::mem::take(&mut self.first);
            self.joined.extend_from_slice(&first);
            self.joined.extend_from_slice(&data);
        }
        fits
    }

    fn into_bytes(self) -> Bytes {
        if self.joined.is_empty() { self.first } else { self.joined.freeze() }
    }
}
