//! Settings of a server: defaults, then a file, then the environment, then flags.
//!
//! ```text
//!  turnbuckle.yaml ─┐ names = flags with underscores
//!  TURNBUCKLE_…  ───┼─► the one list of `serve`'s options ─► ServeArgs ─► check()
//!  --flags       ───┘
//! ```
//! There is one list of settings, the options of `turnbuckle serve`: a new option is a setting of the file and
//! of the environment without more. Faults of all layers are told at once.

mod file;
mod print;
mod reference;
#[cfg(test)]
mod tests;

pub use file::SettingsFile;

use crate::{
    cli::{self, GlobalArgs},
    serve::ServeArgs,
};
use clap::{ArgMatches, Command};

/// Verbs on settings and on the way of the configuration.
#[derive(Clone, clap::Subcommand)]
pub enum ConfigVerb {
    /// Check the settings that a server would start with, from file, environment and flags, and tell
    /// every fault at once. Opens nothing and asks nobody.
    Check(Box<ServeArgs>),
    /// Show the settings that a server would start with, and where each comes from. Without secrets.
    Print(Box<ServeArgs>),
    /// Show every setting: flag, environment variable, default, meaning. As a Markdown table.
    Reference,
    /// Verbs that a server answers.
    #[command(flatten)]
    Remote(cli::ConfigVerb),
}

/// Runs one verb. `root` is the whole command line, `matches` what was made of it.
///
/// # Errors
/// When a setting is at fault, or the server refuses.
pub async fn run(
    verb: ConfigVerb,
    global: &GlobalArgs,
    root: &Command,
    matches: &ArgMatches,
) -> anyhow::Result<()> {
    match verb {
        ConfigVerb::Check(args) => {
            args.check()?;
            print::line("the settings can be used")
        }
        ConfigVerb::Print(_) => print::settings(root, matches),
        ConfigVerb::Reference => print::text(&reference::table(root)),
        ConfigVerb::Remote(verb) => cli::run_config(verb, global).await,
    }
}

/// The options of `turnbuckle serve` that are settings, in their order.
fn settings(root: &Command) -> impl Iterator<Item = &clap::Arg> {
    let serve = root.find_subcommand("serve");
    let arguments = serve.into_iter().flat_map(Command::get_arguments);
    // The file cannot name itself, and how the command line talks to a server is no setting of one.
    let others = ["config", "help", "version"];
    arguments.filter(move |arg| {
        !arg.is_global_set() && !others.iter().any(|other| arg.get_id() == other)
    })
}
