//! Answers. Whatever was wrong with a signature, a time or a path: the same words.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use std::time::Duration;
use turnbuckle_domain::{AnswerBody, Answers, DuplicateAnswer, Timestamp};
use turnbuckle_runtime::grpc::timestamp;
use turnbuckle_signing::scheme::HandshakeReply;

pub(crate) type Answer = Response<Full<Bytes>>;

/// How long a sender is asked to wait before it tries again.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Why a request is not taken, as its sender is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Problem {
    /// 400
    Malformed,
    /// 401: bad path, signature, time or method. Without a body: some senders check that it has none.
    Unauthorized,
    /// 408
    TooSlow,
    /// 413
    TooLarge,
    /// 415
    Unsupported,
    /// 422
    UnknownVersion,
    /// 431
    HeadersTooLarge,
    /// 503: also what comes too often. Senders exist that give up on any 4xx, 429 among them, and none
    /// that gives up on a 503.
    Unavailable,
}

impl Problem {
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::Malformed => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unsupported => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::UnknownVersion => StatusCode::UNPROCESSABLE_ENTITY,
            Self::HeadersTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Its RFC 9457 body: the status in words, and nothing that helps a stranger.
    const fn body(self) -> &'static str {
        match self {
            Self::Malformed => r#"{"type":"about:blank","title":"Bad Request","status":400}"#,
            Self::Unauthorized => "",
            Self::TooSlow => r#"{"type":"about:blank","title":"Request Timeout","status":408}"#,
            Self::TooLarge => r#"{"type":"about:blank","title":"Content Too Large","status":413}"#,
            Self::Unsupported => {
                r#"{"type":"about:blank","title":"Unsupported Media Type","status":415}"#
            }
            Self::UnknownVersion => {
                r#"{"type":"about:blank","title":"Unprocessable Content","status":422}"#
            }
            Self::HeadersTooLarge => {
                r#"{"type":"about:blank","title":"Request Header Fields Too Large","status":431}"#
            }
            Self::Unavailable => {
                r#"{"type":"about:blank","title":"Service Unavailable","status":503}"#
            }
        }
    }

    /// The answer.
    pub(crate) fn answer(self) -> Answer {
        let mut answer = match self.body() {
            "" => empty(self.status()),
            body => with(self.status(), "application/problem+json", body),
        };
        if self == Self::Unavailable {
            answer.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER.as_secs().into());
        }
        answer
    }

    /// The answer to a request that was not read to its end: the connection cannot carry another.
    pub(crate) fn last_answer(self) -> Answer {
        let mut answer = self.answer();
        answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        answer
    }
}

/// All is well.
pub(crate) fn accepted(answers: &Answers) -> Answer {
    let status = StatusCode::from_u16(answers.accepted).unwrap_or(StatusCode::ACCEPTED);
    if status == StatusCode::NO_CONTENT || answers.body == AnswerBody::None {
        return empty(status);
    }
    with(status, "application/json", r#"{"status":"accepted"}"#)
}

/// It was here before.
pub(crate) fn duplicate(answers: &Answers, first: Option<Timestamp>) -> Answer {
    let status = match answers.duplicate {
        DuplicateAnswer::Conflict => StatusCode::CONFLICT,
        DuplicateAnswer::Ok if answers.accepted == StatusCode::NO_CONTENT.as_u16() => {
            return empty(StatusCode::NO_CONTENT);
        }
        DuplicateAnswer::Ok => StatusCode::OK,
    };
    if answers.body == AnswerBody::None {
        return empty(status);
    }
    let mut body = serde_json::json!({ "status": "duplicate" });
    if let Some(first) = first {
        body["first_processed_at"] = timestamp(first).to_string().into();
    }
    with(status, "application/json", body.to_string())
}

/// The answer to a question. What does not fit into HTTP is left out; the scheme's rules see to it that
/// nothing is.
pub(crate) fn handshake(reply: HandshakeReply) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(reply.body)));
    *answer.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK);
    for (name, value) in reply.headers {
        let pair = (HeaderName::try_from(name), HeaderValue::try_from(value));
        if let (Ok(name), Ok(value)) = pair {
            answer.headers_mut().insert(name, value);
        }
    }
    answer
}

/// What was asked for is done.
pub(crate) fn asked() -> Answer {
    empty(StatusCode::OK)
}

fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = status;
    answer
}

fn with(status: StatusCode, media_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::body::Body as _;

    #[test]
    fn bodies_say_their_status_and_waiting_is_told() {
        for problem in [
            Problem::Malformed,
            Problem::TooSlow,
            Problem::TooLarge,
            Problem::Unsupported,
            Problem::UnknownVersion,
            Problem::HeadersTooLarge,
            Problem::Unavailable,
        ] {
            let body: serde_json::Value = serde_json::from_str(problem.body()).unwrap();
            let status = problem.status().as_u16();
            assert_eq!(body["status"], status);
            let waits = problem.answer().headers().contains_key(header::RETRY_AFTER);
            assert_eq!(waits, status == 503, "{status}");
        }
        // As Xero wants it.
        let answer = Problem::Unauthorized.answer();
        assert_eq!(answer.body().size_hint().exact(), Some(0));
        assert!(answer.headers().is_empty());
    }

    #[test]
    fn a_repeat_is_answered_as_the_source_says() {
        let status = |accepted, duplicate| {
            let answers = Answers { accepted, duplicate, ..Answers::default() };
            super::duplicate(&answers, Some(Timestamp::EPOCH)).status().as_u16()
        };
        assert_eq!(status(202, DuplicateAnswer::Ok), 200);
        assert_eq!(status(204, DuplicateAnswer::Ok), 204);
        assert_eq!(status(202, DuplicateAnswer::Conflict), 409);
        assert_eq!(status(204, DuplicateAnswer::Conflict), 409);
    }
    #[test]
    fn a_source_can_be_answered_without_words() {
        let answers = Answers { accepted: 200, body: AnswerBody::None, ..Answers::default() };
        for answer in [accepted(&answers), super::duplicate(&answers, Some(Timestamp::EPOCH))] {
            assert_eq!(answer.status(), StatusCode::OK);
            assert_eq!(answer.body().size_hint().exact(), Some(0));
            assert!(answer.headers().is_empty());
        }
    }
}
