//! The delivery engine: from a due delivery to a settled one.
//!
//! ```text
//!  commit ──hand-off──► ┌────────────┐ ──start──► attempt tasks ──HTTP──► receivers
//!                       │ dispatcher │ ◄──done────────┘
//!  queue ──claim──────► │  (lanes)   │ ──results──► settle writer ──► queue
//!  leases ────────────► └────────────┘ ◄──settled───────┘
//! ```
//! One task owns every lane and decides everything; the others do the waiting. So no lane is locked,
//! and what the engine does is a function of the order of its inputs.

mod attempt;
mod claims;
mod dispatcher;
mod input;
mod lane;
mod leases;
mod limits;
mod settle;

pub(crate) use attempt::Attempter;
pub(crate) use dispatcher::{Dispatcher, DispatcherParts};
pub(crate) use input::{Due, Handoff, Input};
pub(crate) use leases::LeaseKeeper;
pub use limits::EngineSettings;
pub(crate) use limits::LISTEN_RETRY;
pub(crate) use settle::{SettleQueue, SettleWriter};
