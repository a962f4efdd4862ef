//! The gRPC services. A handler has three lines: decode, use case, encode.

pub(crate) mod api_token;
pub(crate) mod audit;
pub(crate) mod configuration;
pub(crate) mod endpoint;
pub(crate) mod event_type;
pub(crate) mod event_type_version;
pub(crate) mod key_ring;
pub(crate) mod key_status;
pub(crate) mod keyring;
pub(crate) mod node;
pub(crate) mod receipt;
pub(crate) mod retry_policy;
pub(crate) mod source;
pub(crate) mod subscription;
pub(crate) mod tenant;

use crate::{
    Dependencies,
    by::{By, Call},
    convert::{
        change::ChangeRequest,
        repeat::{Repeatable, both, request_key},
    },
};
use tonic::{Request, Status};
use turnbuckle_domain::{Caller, Error};
use turnbuckle_runtime::grpc::{caller, status};

/// Who calls, and what they ask for.
fn decode<M, C>(
    request: Request<M>,
    convert: impl FnOnce(M) -> Result<C, Error>,
) -> Result<(Caller, C), Status> {
    let caller = caller(&request).map_err(refuse)?;
    let command = convert(request.into_inner()).map_err(refuse)?;
    Ok((caller, command))
}

/// Where callers put their id of a request.
const REQUEST_ID: &str = "x-request-id";

/// Who asks for a change and what for; `method` is the service and the method that was called.
fn decode_change<M: ChangeRequest, C>(
    on: &Dependencies,
    method: (&str, &str),
    request: Request<M>,
    convert: impl FnOnce(M) -> Result<C, Error>,
) -> Result<(By, C), Status> {
    let caller = caller(&request).map_err(refuse)?;
    let (call, message) = call(method, request);
    let command = convert(message).map_err(refuse)?;
    Ok((on.by(caller, call), command))
}

/// The same for a change that makes one thing however often it is asked for.
fn decode_once<M: ChangeRequest + Repeatable, C>(
    on: &Dependencies,
    method: (&str, &str),
    request: Request<M>,
    convert: impl FnOnce(M) -> Result<C, Error>,
) -> Result<(By, C), Status> {
    let caller = caller(&request).map_err(refuse)?;
    let (mut call, message) = call(method, request);
    let key = request_key(&message, &caller);
    let (key, command) = both(key, convert(message)).map_err(refuse)?;
    call.request = key;
    Ok((on.by(caller, call), command))
}

fn call<M: ChangeRequest>((service, method): (&str, &str), request: Request<M>) -> (Call, M) {
    let request_id = request.metadata().get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let request_id = request_id.map(str::to_owned);
    let message = request.into_inner();
    let call = Call {
        method: format!("{service}/{method}"),
        request_id,
        reason: message.reason().to_owned(),
        validate_only: message.validate_only(),
        request: None,
    };
    (call, message)
}

fn refuse(error: Error) -> Status {
    status(&error)
}
