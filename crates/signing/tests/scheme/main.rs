//! The declarative scheme, judged by requests that others published and by requests that an
//! attacker would send.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod certificates;
mod custom;
mod forgeries;
mod handshakes;
mod hostile;
mod mutations;
mod own;
mod presets;
mod sample;
mod signed;
mod tokens;
mod vectors;
