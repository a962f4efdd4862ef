//! testkit

pub mod clock;
pub mod postgres;
pub mod receiver;
