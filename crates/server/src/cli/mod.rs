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
//! - What creates or changes keys has an id of its own, so a lost answer costs no secret.
//! - A secret is printed only in the answer that makes it.
//! - A closed pipe ends the output quietly.

mod api_token;
mod apply;
mod audit;
mod common;
mod completion;
mod config;
mod deleted;
mod delivery;
mod endpoint;
mod error;
mod event;
mod event_type;
mod event_type_version;
mod global;
mod key;
mod key_status;
mod keyring;
mod names;
mod node;
mod output;
mod preview;
mod pull;
mod receipt;
mod render;
mod replay;
mod resource;
mod retry_policy;
mod source;
mod source_file;
mod source_test;
mod subscription;
mod tenant;
mod values;

pub use completion::CompletionArgs;
pub use config::Verb as ConfigVerb;
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
    /// Keys: those endpoints sign with, and those sources verify with.
    #[command(subcommand, after_long_help = EXIT_CODES)]
    Key(key::Verb),
    /// Sources: third parties that send to our ingress.
    #[command(subcommand, after_long_help = EXIT_CODES)]
    Source(source::Verb),
    /// Events: publish them, and look them up.
    #[command(subcommand, after_long_help = EXIT_CODES)]
    Event(event::Verb),
    /// Deliveries: what became of an event at each endpoint.
    #[command(subcommand, after_long_help = EXIT_CODES)]
    Delivery(delivery::Verb),
    /// Replays: what failed, or was wanted by nobody, is sent again.
    #[command(subcommand, after_long_help = EXIT_CODES)]
    Replay(replay::Verb),
    /// Looks at what waits at a pull endpoint, or takes it.
    #[command(after_long_help = EXIT_CODES)]
    Pull(pull::PullArgs),
    /// Receipts: what the ingress decided about requests of third parties, and why.
    #[command(subcommand, after_long_help = EXIT_CODES)]
    Receipt(receipt::Verb),
    /// API tokens: bearer tokens for CI and outside services, with an end.
    #[command(subcommand, after_long_help = EXIT_CODES)]
    ApiToken(api_token::Verb),
    /// The record of configuration changes: who changed what, and whether it is whole.
    #[command(subcommand, after_long_help = EXIT_CODES)]
    Audit(audit::Verb),
    /// Makes the configuration what files say: YAML documents, kept in git.
    #[command(after_long_help = EXIT_CODES)]
    Apply(apply::ApplyArgs),
    /// Writes a tenant's configuration as documents that `apply` takes.
    #[command(after_long_help = EXIT_CODES)]
    Export(apply::ExportArgs),
    /// Nodes: processes that work by the configuration, and how far they are.
    #[command(subcommand, after_long_help = EXIT_CODES)]
    Node(node::Verb),
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
        Command::Source(verb) => Box::pin(source::run(verb, &mut session)).await,
        Command::Event(verb) => event::run(verb, &mut session).await,
        Command::Delivery(verb) => delivery::run(verb, &mut session).await,
        Command::Replay(verb) => Box::pin(replay::run(verb, &mut session)).await,
        Command::Pull(args) => pull::run(args, &mut session).await,
        Command::Receipt(verb) => receipt::run(verb, &mut session).await,
        Command::ApiToken(verb) => api_token::run(verb, &mut session).await,
        Command::Audit(verb) => audit::run(verb, &mut session).await,
        Command::Apply(args) => apply::apply(args, &mut session).await,
        Command::Export(args) => apply::export(args, &mut session).await,
        Command::Node(verb) => node::run(verb, &mut session).await,
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

/// Runs one command on the way of the configuration.
///
/// # Errors
/// As [`run`].
pub async fn run_config(verb: ConfigVerb, global: &GlobalArgs) -> anyhow::Result<()> {
    let mut session = Session::open(global).await?;
    quietly(config::run(verb, &mut session).await)
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
