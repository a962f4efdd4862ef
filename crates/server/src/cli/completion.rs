//! Shell completion.

use clap_complete::Shell;
use std::io::{self, Write as _};

/// Prints a completion script for a shell.
#[derive(Clone, Debug, clap::Args)]
pub struct CompletionArgs {
    /// Which shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

impl CompletionArgs {
    /// Writes the script for the whole command line, given its root, to stdout.
    ///
    /// # Errors
    /// When stdout cannot be written; a closed pipe is no error.
    pub fn run(&self, mut root: clap::Command) -> anyhow::Result<()> {
        let name = root.get_name().to_owned();
        // Into memory first: the generator panics when its writer fails.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut root, name, &mut script);
        match io::stdout().lock().write_all(&script) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            done => Ok(done?),
        }
    }
}
