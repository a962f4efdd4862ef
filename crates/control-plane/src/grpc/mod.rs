//! The gRPC services. A handler has three lines: decode, use case, encode.

pub(crate) mod audit;
pub(crate) mod endpoint;
pub(crate) mod event_type;
pub(crate) mod key_ring;
pub(crate) mod key_status;
pub(crate) mod keyring;
pub(crate) mod retry_policy;
pub(crate) mod subscription;
pub(crate) mod tenant;

use crate::{
    Dependencies,
    by::{By, Call},
    convert::change::ChangeRequest,
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
    (service, method): (&str, &str),
    request: Request<M>,
    convert: impl FnOnce(M) -> Result<C, Error>,
) -> Result<(By, C), Status> {
    let caller = caller(&request).map_err(refuse)?;
    let request_id = request.metadata().get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let mut call = Call {
        method: format!("{service}/{method}"),
        request_id: request_id.map(str::to_owned),
        reason: String::new(),
        validate_only: false,
    };
    let message = request.into_inner();
    call.validate_only = message.validate_only();
    call.reason = message.reason().to_owned();
    let command = convert(message).map_err(refuse)?;
    Ok((on.by(caller, call), command))
}

fn refuse(error: Error) -> Status {
    status(&error)
}
