//! The `turnbuckle` binary as a library: roles, command line, demo.
//!
//! ```text
//!  main ─► serve ─┬─ store (embedded or Postgres)
//!                 ├─ control plane ─┐
//!                 ├─ delivery plane ┼─► one gRPC listener, behind authentication
//!                 ├─ ingress ───────► HTTP listener
//!                 └─ admin ─────────► health, readiness, metrics
//!  main ─► cli ─► gRPC client of a running server
//!  main ─► demo ─► serve on a temporary store, receivers, checks
//! ```
//!
//! # Invariants
//! - Wiring only: no decision about events, deliveries or keys is made here.
//! - Everything is checked before a port is bound, and every port is bound before anything is sent.
//! - Outside `--dev` no call is anonymous, and no secret is stored without a keyring.

pub mod cli;

pub mod demo;
pub mod init;
pub mod keys;
pub mod probe;
pub mod secrets;
pub mod serve;
pub mod settings;
