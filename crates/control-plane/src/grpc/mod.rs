//! The gRPC services. A handler has three lines: decode, use case, encode.

pub(crate) mod endpoint;
pub(crate) mod event_type;
pub(crate) mod key_ring;
pub(crate) mod retry_policy;
pub(crate) mod subscription;
pub(crate) mod tenant;

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

fn refuse(error: Error) -> Status {
    status(&error)
}
