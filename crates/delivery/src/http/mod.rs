//! The sender: signed bytes go out as one POST, a typed outcome comes back.
//!
//! HTTP/1.1 on pooled connections of our own. It follows no redirect, keeps no cookie, unpacks
//! nothing, asks no proxy, and reads only as much of an answer as its bounds allow (I10).

mod answer;
mod connection;
mod failure;
mod pool;
mod retry_after;
mod sender;
mod wire;

#[cfg(test)]
mod tests;

pub use self::sender::{HttpSender, OutgoingRequest, SenderLimits, Sent};
