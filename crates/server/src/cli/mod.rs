//! The command line: nouns and verbs over gRPC.
//!
//! ```text
//!  turnbuckle NOUN VERB … ──► Session (client, tenant) ──► call ──► Output: table │ json │ yaml │ name
//!                                                           └────► report(): message, hint, exit code
//! ```
//!
//! # Invariants
//! - stdout carries data only; notes and errors go to stderr.
//! - JSON and YAML are the contract's own proto3 JSON form, made from its descriptors.
//! - A secret is printed only in the answer that makes it.
//! - A closed pipe ends the output quietly.

mod audit;
mod common;
mod completion;
mod delivery;
mod endpoint;
mod error;
mod event;
mod event_type;
mod global;
mod key;
mod key_status;
mod keyring;
mod names;
mod output;
mod render;
mod resource;
mod retry_policy;
mod subscription;
mod tenant;
mod values;

pub use completion::CompletionArgs;
pub use error::{EXIT_CODES, report};
pub use global::GlobalArgs;
pub use keyring::Verb as KeyringVerb;
pub use output::Format;
pub use values::Span;

use global::Session;

/// Commands that talk to a running server.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Command {
    /// Tenants: every other resource belongs to one.
    #[command(subcommand, after_long_help = EXIT_CODES)]
    Tenant(tenant::Verb),
    /// Event types: the catalogue of what a tenant publishes.
    #[command(subcommand, after_long_help = EXIT_CODES)]
    EventType(event_type::Verb),
    /// Endpoints: where events go.
    #[command(subcommand, after_long_help = EXIT_CODES)]
    Endpoint(endpoint::Verb),
    /// Subscriptions: which events an endpoint wants.
    #[command(subcommand, after_long_help = EXIT_CODES)]
    Subscription(subscription::Verb),
    /// Retry policies: when and how often a failed delivery is tried again.
    #[command(subcommand, after_long_help = EXIT_CODES)]
    RetryPolicy(retry_policy::Verb),
    /// Signing keys of endpoints: stage, activate, rotate, roll back, revoke.
    #[command(subcommand, after_long_help = EXIT_CODES)]
    Key(key::Verb),
    /// Events: publish them, and look them up.
    #[command(subcommand, after_long_help = EXIT_CODES)]
    Event(event::Verb),
    /// Deliveries: what became of an event at each endpoint.
    #[command(subcommand, after_long_help = EXIT_CODES)]
    Delivery(delivery::Verb),
    /// The record of configuration changes: who changed what, and whether it is whole.
    #[command(subcommand, after_long_help = EXIT_CODES)]
    Audit(audit::Verb),
}

/// Runs one command. Print a failure, and take the exit code, with [`report`].
///
/// # Errors
/// When the server cannot be reached or refuses the request, or the output cannot be written.
pub async fn run(command: Command, global: &GlobalArgs) -> anyhow::Result<()> {
    let mut session = Session::open(global).await?;
    let done = match command {
        Command::Tenant(verb) => tenant::run(verb, &mut session).await,
        Command::EventType(verb) => event_type::run(verb, &mut session).await,
        Command::Endpoint(verb) => endpoint::run(verb, &mut session).await,
        Command::Subscription(verb) => subscription::run(verb, &mut session).await,
        Command::RetryPolicy(verb) => retry_policy::run(verb, &mut session).await,
        Command::Key(verb) => key::run(verb, &mut session).await,
        Command::Event(verb) => event::run(verb, &mut session).await,
        Command::Delivery(verb) => delivery::run(verb, &mut session).await,
        Command::Audit(verb) => audit::run(verb, &mut session).await,
    };
    quietly(done)
}

/// Runs one command on key-encryption keys.
///
/// # Errors
/// As [`run`].
pub async fn run_keyring(verb: KeyringVerb, global: &GlobalArgs) -> anyhow::Result<()> {
    let mut session = Session::open(global).await?;
    quietly(keyring::run(verb, &mut session).await)
}

/// A closed pipe is no failure: its reader has seen enough.
fn quietly(done: anyhow::Result<()>) -> anyhow::Result<()> {
    match done {
        Err(error) if error::is_closed_pipe(&error) => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests;
