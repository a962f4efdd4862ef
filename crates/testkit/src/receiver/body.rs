//! A response body that can drip.

use super::script;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::time::{Instant, Sleep, sleep};

/// Sends the scripted number of bytes, chunk by chunk.
pub(super) struct ScriptedBody {
    left: u64,
    script: script::Body,
    pause: Option<Pin<Box<Sleep>>>,
}

impl ScriptedBody {
    pub(super) fn new(script: script::Body) -> Self {
        let pause = (!script.pause.is_zero()).then(|| Box::pin(sleep(script.pause)));
        Self { left: script.total, script, pause }
    }
}

impl Body for ScriptedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        if this.left == 0 {
            return Poll::Ready(None);
        }
        if let Some(pause) = &mut this.pause {
            ready!(pause.as_mut().poll(context));
            pause.as_mut().reset(Instant::now() + this.script.pause);
        }
        let size = usize::try_from(this.left).unwrap_or(usize::MAX).min(this.script.chunk);
        this.left -= size as u64;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b'.'; size])))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
