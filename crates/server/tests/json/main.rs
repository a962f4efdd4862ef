//! The API's port as curl, a browser and an orchestrator meet it.
#![expect(clippy::unwrap_used, reason = "helpers of tests: a failure is a failed test")]

mod browser;
mod calls;
mod errors;
mod grpc;
mod server;
