//! Between domain types and gRPC: errors, times, the caller.

mod status;
mod time;

pub use status::{ERROR_DOMAIN, status};
pub use time::{duration, from_duration, from_timestamp, timestamp, timestamp_opt};

use turnbuckle_domain::{Caller, Error};

/// Who sent the request, as the authentication layer found out.
///
/// # Errors
/// [`Error::Internal`] when the layer did not run: a fault of the wiring, and no way in.
pub fn caller<T>(request: &tonic::Request<T>) -> Result<Caller, Error> {
    let found = request.extensions().get::<Caller>().cloned();
    found.ok_or_else(|| Error::internal("a request came past the authentication layer"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnbuckle_domain::Role;

    #[test]
    fn a_request_without_a_caller_goes_nowhere() {
        let mut request = tonic::Request::new(());
        assert!(matches!(caller(&request), Err(Error::Internal { .. })));
        let alice = Caller {
            issuer: String::new(),
            subject: "alice".to_owned(),
            role: Role::Viewer,
            tenant: None,
        };
        request.extensions_mut().insert(alice.clone());
        assert_eq!(caller(&request).unwrap(), alice);
    }
}
