//! From a JSON body to the one message of a gRPC request.

use super::refusal::{clip, too_large, with_field, with_reason};
use bytes::{BufMut as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Frame, SizeHint};
use prost::Message as _;
use prost_reflect::{DeserializeOptions, DynamicMessage, MessageDescriptor};
use serde_path_to_error::{Deserializer, Track};
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};
use tonic::{Code, Status, body::Body};

/// Most bytes of a JSON body. The largest gRPC message is 5 MiB, most of it payload; in base64 that
/// is 6.7 MiB. What a service takes beyond this is decided by its own limit, on the message.
pub(super) const JSON_MAX: usize = 7 * 1024 * 1024;

/// Most values in one body: a batch of 1,000 events has about 12,000. Each takes far more memory
/// than the three bytes that it takes to send one.
const VALUES_MAX: usize = 100_000;

/// Length of what precedes a gRPC message: a flag, and the message's length.
pub(super) const PREFIX: usize = 5;

/// What a library says of a field it does not know, up to the name.
const UNKNOWN_FIELD: &str = "unrecognized field name '";

type Framing = Pin<Box<dyn Future<Output = Result<Bytes, Status>> + Send>>;

/// The body of a gRPC request, made of a JSON body when it is first polled. That is in the service,
/// after the caller has been let through, so nobody else makes us read or parse anything.
pub(super) struct Transcoded(Option<Framing>);

impl Transcoded {
    pub(super) fn new(json: Body, input: MessageDescriptor) -> Self {
        Self(Some(Box::pin(async move { frame(&read(json).await?, &input) })))
    }
}

impl hyper::body::Body for Transcoded {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some(pending) = self.0.as_mut() else {
            return Poll::Ready(None);
        };
        let framed = ready!(pending.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(Some(framed.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

async fn read(json: Body) -> Result<Bytes, Status> {
    match Limited::new(json, JSON_MAX).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large(JSON_MAX as u64)),
        Err(_) => Err(Status::aborted("the request ended before its body did")),
    }
}

fn frame(json: &[u8], input: &MessageDescriptor) -> Result<Bytes, Status> {
    let message = parse(json, input)?;
    let length = message.encoded_len();
    // Protobuf is never much larger than its JSON, so this always fits.
    let prefix = u32::try_from(length).map_err(|_| too_large(JSON_MAX as u64))?;
    let mut framed = BytesMut::with_capacity(PREFIX + length);
    framed.put_u8(0);
    framed.put_u32(prefix);
    framed.put_slice(&message.encode_to_vec());
    Ok(framed.freeze())
}

/// Reads a message in proto3 JSON. Unknown fields are faults: a misspelt one must not be ignored.
fn parse(json: &[u8], input: &MessageDescriptor) -> Result<DynamicMessage, Status> {
    if values(json) > VALUES_MAX {
        let message = format!("the request has more than {VALUES_MAX} values: split it");
        return Err(with_reason(Code::OutOfRange, message, super::refusal::TOO_LARGE));
    }
    let mut source = serde_json::Deserializer::from_slice(json);
    let mut track = Track::new();
    let tracked = Deserializer::new(&mut source, &mut track);
    let options = DeserializeOptions::new().deny_unknown_fields(true);
    DynamicMessage::deserialize_with_options(input.clone(), tracked, &options)
        .and_then(|message| source.end().map(|()| message))
        .map_err(|error| fault(&error, &track.path().to_string(), input))
}

fn fault(error: &serde_json::Error, path: &str, input: &MessageDescriptor) -> Status {
    let text = clip(&error.to_string());
    if !error.is_data() {
        return with_reason(
            Code::InvalidArgument,
            format!("the body is not valid JSON: {text}"),
            "INVALID_JSON",
        );
    }
    let field = field(path, &text);
    let of = input.full_name();
    let message = match field.as_str() {
        "" => format!("the body is not a {of}: {text}"),
        field => format!("{field} is not as {of} has it: {text}"),
    };
    with_field(message, "INVALID_REQUEST", &field)
}

/// Where the fault is, in the caller's own spelling. A field that is not known has no path of its
/// own, only its message's.
fn field(path: &str, text: &str) -> String {
    let path = if path == "." { "" } else { path };
    let unknown = text.strip_prefix(UNKNOWN_FIELD).and_then(|rest| rest.split('\'').next());
    match (path, unknown) {
        (path, None) => path.to_owned(),
        ("", Some(unknown)) => unknown.to_owned(),
        // The tracker may already have taken the key into the path.
        (path, Some(unknown)) if path == unknown || path.ends_with(&format!(".{unknown}")) => {
            path.to_owned()
        }
        (path, Some(unknown)) => format!("{path}.{unknown}"),
    }
}

/// How many values there are, at most: separators and openings outside of strings. Text that is no
/// JSON gets some number, and is refused by the parser.
fn values(json: &[u8]) -> usize {
    let (mut count, mut in_string, mut escaped) = (0, false, false);
    for byte in json {
        match (byte, in_string) {
            (_, true) if escaped => escaped = false,
            (b'\\', true) => escaped = true,
            (b'"', _) => in_string = !in_string,
            (b',' | b'[' | b'{', false) => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests;
