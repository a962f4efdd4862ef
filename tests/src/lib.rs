//! The harness of the black-box scenarios: the real binary on a store of its own, driven over gRPC
//! and loopback HTTP, and nothing else.
//!
//! ```text
//!  Home (directory, database) ──► Server (child process) ◄── Client, Scene (gRPC)
//!        outlives restarts              │    ◄── http::get (admin, ingress)
//!                                       └──► Receiver (what was delivered)
//! ```
//!
//! A scenario waits for a state with [`eventually`], never for a time.

pub mod apart;
pub mod home;
pub mod http;
pub mod load;
pub mod puller;
pub mod scene;
pub mod sender;
pub mod server;
pub mod wait;

pub use apart::Apart;
pub use home::{Home, StoreKind};
pub use load::Load;
pub use puller::Puller;
pub use scene::{Scene, http_endpoint};
pub use server::Server;
pub use wait::{PATIENCE, eventually};
