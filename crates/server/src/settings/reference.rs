//! The list of all settings, for docs/settings.md.

use super::settings;
use clap::{Arg, Command};

/// Every setting as a Markdown table.
pub(super) fn table(root: &Command) -> String {
    let head = "| setting | flag | environment | default | meaning |\n|---|---|---|---|---|\n";
    settings(root).fold(head.to_owned(), |text, arg| text + &row(arg))
}

fn row(arg: &Arg) -> String {
    let name = arg.get_id().as_str();
    let flag = arg.get_long().unwrap_or_default();
    let variable = arg.get_env().unwrap_or_default().to_string_lossy();
    let defaults: Vec<String> = arg
        .get_default_values()
        .iter()
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .collect();
    let help =
        arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let help = help.replace('\n', " ").replace('|', "\\|");
    format!("| `{name}` | `--{flag}` | `{variable}` | {} | {help} |\n", defaults.join(", "))
}
