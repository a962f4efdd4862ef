//! What tests of several crates share: a database, a clock, a network that misbehaves on demand.
//!
//! ```text
//!  postgres   a migrated database of its own for every test
//!  clock      a clock moved by hand
//!  receiver   an HTTP receiver that follows a script and remembers every byte
//!  raw        a receiver that answers with any bytes at all, in any rhythm
//!  proxy      a TCP link that can be frozen, cut and healed
//!  process    a child process with its log and its signals
//!  python     a Python that speaks gRPC, where there is one
//!  ledger     what was acknowledged against what arrived
//! ```
//!
//! Nothing here sleeps to let something happen: waiting is on a level, with a deadline.

pub mod clock;
pub mod ledger;
pub mod postgres;
pub mod process;
pub mod proxy;
pub mod python;
pub mod raw;
pub mod receiver;
