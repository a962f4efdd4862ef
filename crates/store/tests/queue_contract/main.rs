//! The contract of `EventLog`, `DeliveryQueue` and `History`, held by both backends.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests: a failure is a failed test"
)]

mod append;
mod channels;
mod claim;
#[path = "../common/mod.rs"]
mod common;
mod fixture;
mod history;
mod late;
mod leases;
mod model;
mod open;
mod order;
mod order_faults;
mod order_plans;
mod partitions;
mod plans;
mod pull;
mod receipts;
mod replays;
mod settle;
mod verbs;
mod windows;
