//! `turnbuckle`: one binary for every role, and the command line for all of them.

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser};
use std::{ffi::OsString, process::ExitCode};
use turnbuckle_server::{cli, demo, init, keys, probe, serve, settings};

/// Events, deliveries and requests are many small short-lived allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Couples systems by webhooks, in both directions; no event is lost or takes effect twice.
#[derive(Parser)]
#[command(name = "turnbuckle", version, max_term_width = 100)]
struct Arguments {
    #[command(flatten)]
    global: cli::GlobalArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show the main job end to end, on a temporary store, with nothing to install.
    Demo(demo::DemoArgs),
    /// Run a server.
    Serve(Box<serve::ServeArgs>),
    /// Make the secret files of an installation: keyring, token key, first tokens. Keeps what is there.
    Init(init::InitArgs),
    /// Ask an HTTP address of a server once; fails unless the answer is 2xx.
    Probe(probe::ProbeArgs),
    /// Bring a Postgres database to this program's schema.
    Migrate(keys::MigrateArgs),
    /// Key-encryption keys for secrets at rest.
    #[command(subcommand)]
    Keyring(keys::KeyringVerb),
    /// Bearer tokens signed with the server's own key, without a server: for the first steps and for
    /// emergencies. See also api-token.
    #[command(subcommand)]
    Token(keys::TokenVerb),
    /// Settings of a server, and the way of the configuration to the nodes.
    #[command(subcommand, after_long_help = cli::EXIT_CODES)]
    Config(settings::ConfigVerb),
    /// Print a completion script for a shell.
    Completion(cli::CompletionArgs),
    #[command(flatten)]
    Remote(cli::Command),
}

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let root = Arguments::command();
    let file = settings::SettingsFile::of(&root, &words);
    let command = match file.and_then(|file| file.under(root, &words)) {
        Ok(command) => command,
        Err(error) => return cli::report(&error),
    };
    let matches = command.get_matches_from(words);
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return cli::report(&error.into()),
    };
    let outcome = runtime.block_on(run(arguments, matches));
    match outcome {
        Ok(code) => code,
        Err(error) => cli::report(&error),
    }
}

async fn run(arguments: Arguments, matches: ArgMatches) -> anyhow::Result<ExitCode> {
    match arguments.command {
        Command::Demo(args) => return demo::run(args, serve::start_for_demo).await,
        Command::Serve(args) => serve::run(*args).await?,
        Command::Init(args) => init::init(&args)?,
        Command::Probe(args) => probe::probe(args).await?,
        Command::Migrate(args) => keys::migrate(args).await?,
        Command::Keyring(verb) => keys::keyring(verb, &arguments.global).await?,
        Command::Token(verb) => keys::token(verb)?,
        Command::Config(verb) => {
            settings::run(verb, &arguments.global, &Arguments::command(), &matches).await?;
        }
        Command::Completion(args) => args.run(Arguments::command())?,
        Command::Remote(command) => cli::run(command, &arguments.global).await?,
    }
    Ok(ExitCode::SUCCESS)
}
