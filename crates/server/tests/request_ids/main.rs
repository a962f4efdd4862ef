//! Request ids, deleted resources and quotas over gRPC, with a clock that is moved by hand.
#![expect(clippy::unwrap_used, reason = "helpers of tests: a failure is a failed test")]

mod api;
mod audited;
mod deleted;
mod lists;
mod preview;
mod repeats;
mod revoked;
mod sources;
mod tokens;
mod versions;
