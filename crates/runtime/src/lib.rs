//! Process plumbing: what every role of the binary needs to start, be watched, and stop.
//!
//! ```text
//!   main ─► telemetry ─► keyring, token key ─► Supervisor ──┬─► admin: /healthz /readyz /metrics
//!                                              ▲   │        ├─► gRPC: AuthLayer ─► plane's services
//!                         SIGTERM, SIGINT ─────┘   │        └─► workers
//!                                                  └─► all tasks end in order, or are cut off
//! ```
//!
//! Helpers at the edge of the planes live here too, so that all planes answer alike: [`grpc`] maps
//! errors and times, [`page`] makes page tokens, [`auth`] knows the callers.
//!
//! # Invariants
//! - No task ends unseen: a critical one stops the process, which then says why.
//! - Key files are private to their owner and never overwritten; key material is in no Debug text,
//!   error or log (I7).
//! - A sealed secret opens only in the row it was sealed for.
//! - No API method can be called unless its proto says which permission it takes.
//! - Causes of internal errors go to the log, once, and never to a client.
//! - Only [`SystemClock`] reads the wall clock.

pub mod admin;
pub mod auth;
mod clock;
pub mod grpc;
pub mod keyring;
pub mod page;
mod random;
mod secret_file;
pub mod supervisor;
pub mod telemetry;
mod text;
pub mod tls;

pub use clock::SystemClock;
pub use keyring::Keyring;
pub use random::{RandomnessError, os_random};
pub use secret_file::SecretFileError;
pub use supervisor::Supervisor;
