//! Checks and chores of this repository: `cargo xtask check`, `cargo xtask test`,
//! `cargo xtask tools`.
//!
//! `check` and `test` each end with one line, `N passed, N failed, N skipped`. Nothing is skipped
//! in silence: whatever could not be run is named, with the reason, above that line.

#![expect(clippy::print_stdout, reason = "a command-line tool speaks through standard output")]

mod check;
mod helm;
mod process;
mod step;
mod test;
mod tools;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Checks and chores of this repository")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Everything that can be judged without running the product.
    Check {
        /// Run one step only.
        #[arg(long, value_name = "NAME")]
        only: Option<String>,
    },
    /// The steps of `check` about the Helm chart alone.
    CheckHelm,
    /// Write the table of values in the chart's README.
    HelmReadme,
    /// Every test, on one throw-away Postgres.
    Test {
        /// Handed to the test runner, for example a name filter; leaves the doc tests out.
        #[arg(last = true)]
        filters: Vec<String>,
    },
    /// Install what `check` needs beyond the Rust toolchain.
    Tools,
}

fn main() -> ExitCode {
    let result = Workspace::load().and_then(|workspace| match Arguments::parse().chore {
        Chore::Check { only } => check::run(&workspace, only.as_deref()),
        Chore::CheckHelm => helm::run(&workspace),
        Chore::HelmReadme => helm::write_readme(&workspace),
        Chore::Test { filters } => test::run(&workspace, &filters),
        Chore::Tools => tools::install(&workspace),
    });
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
