//! The contract of `ConfigStore` and `ConfigSource`, held by both backends.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests: a failure is a failed test"
)]

mod api_tokens;
mod audit;
mod cancelled;
#[path = "../common/mod.rs"]
mod common;
mod denials;
mod faults;
mod fixture;
mod followers;
mod health;
mod key_usage;
mod keys;
mod names;
mod nodes;
mod poison;
mod policy_versions;
mod pull_endpoints;
mod quotas;
mod references;
mod requests;
mod sealed;
mod source_states;
mod sources;
mod tombstones;
mod versions;
