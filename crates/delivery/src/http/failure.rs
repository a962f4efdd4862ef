//! What an error of the HTTP library means for the attempt.

use super::wire::AnswerTooLong;
use std::{error::Error, io};
use tokio_rustls::rustls;
use turnbuckle_domain::{AttemptOutcome, Phase, Unreachable};

/// No head came back.
#[derive(Debug)]
pub(super) enum Failure {
    /// Not in time.
    TimedOut,
    /// Never, and not a byte of an answer either: on a connection that lay idle this means that
    /// the receiver had closed it.
    Unanswered(Unreachable),
    /// Something came, but not an answer.
    Broken(Unreachable),
}

impl Failure {
    pub(super) fn new(error: &hyper::Error, received: usize) -> Self {
        let cause = cause(error);
        // A cancelled request was never written, whatever arrived in the meantime.
        let is_unanswered = error.is_canceled() || (received == 0 && cause == Unreachable::Reset);
        if is_unanswered { Self::Unanswered(cause) } else { Self::Broken(cause) }
    }
}

impl From<Failure> for AttemptOutcome {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::TimedOut => Self::TimedOut { phase: Phase::FirstByte },
            Failure::Unanswered(cause) | Failure::Broken(cause) => Self::Unreachable { cause },
        }
    }
}

fn cause(error: &hyper::Error) -> Unreachable {
    if error.is_parse() {
        return Unreachable::Protocol;
    }
    let mut source = error.source();
    while let Some(layer) = source {
        if let Some(inner) = layer.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            if inner.is::<AnswerTooLong>() {
                return Unreachable::Protocol;
            }
            // In TLS 1.3 a refusal can come after our side of the handshake is done.
            if inner.is::<rustls::Error>() {
                return Unreachable::Tls;
            }
        }
        source = layer.source();
    }
    Unreachable::Reset
}
