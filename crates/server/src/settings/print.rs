//! Settings as a server would start with them.

use anyhow::Context as _;
use clap::{Arg, ArgMatches, Command, parser::ValueSource};
use std::io::{self, Write as _};

/// Stands for what is not shown.
const HIDDEN: &str = "***";

/// One line of data.
pub(super) fn line(text: &str) -> anyhow::Result<()> {
    print(&format!("{text}\n"))
}

/// Text as it is.
pub(super) fn text(text: &str) -> anyhow::Result<()> {
    print(text)
}

fn print(text: &str) -> anyhow::Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => Ok(done?),
    }
}

/// Prints them as a settings file, each with where it comes from.
pub(super) fn settings(root: &Command, matches: &ArgMatches) -> anyhow::Result<()> {
    let mut taken = matches;
    while let Some((_, inner)) = taken.subcommand() {
        taken = inner;
    }
    let inner = root.find_subcommand("config").and_then(|config| config.find_subcommand("print"));
    let inner = inner.context("config print is a command")?;
    print(&shown(root, inner, taken))
}

/// `plain` is the command without a file, `root` its settings: a default that differs is the file's.
fn shown(root: &Command, plain: &Command, matches: &ArgMatches) -> String {
    let mut text = String::new();
    for arg in super::settings(root) {
        let id = arg.get_id().as_str();
        let values: Vec<String> = matches
            .get_raw(id)
            .into_iter()
            .flatten()
            .map(|value| value.to_string_lossy().into_owned())
            .collect();
        let origin = match matches.value_source(id) {
            Some(ValueSource::CommandLine) => "flag",
            Some(ValueSource::EnvVariable) => "environment",
            Some(_) if differs(plain, arg, &values) => "file",
            Some(_) => "default",
            None => continue,
        };
        text.push_str(&format!("{id}: {}  # {origin}\n", value_of(arg, &values)));
    }
    text
}

fn differs(plain: &Command, arg: &Arg, values: &[String]) -> bool {
    let own = plain.get_arguments().find(|own| own.get_id() == arg.get_id());
    let defaults = own.map(Arg::get_default_values).unwrap_or_default();
    let defaults: Vec<String> =
        defaults.iter().map(|value| value.to_string_lossy().into_owned()).collect();
    // A flag has no default of its own: it is off.
    let is_off = defaults.is_empty() && values == ["false"];
    !is_off && defaults.join(",") != values.join(",")
}

/// A YAML value. Secrets in URLs are hidden, other secrets altogether.
fn value_of(arg: &Arg, values: &[String]) -> String {
    let is_secret = arg.is_hide_env_values_set();
    let quoted = values.iter().map(|value| {
        let value = if is_secret { without_secret(value) } else { value.clone() };
        serde_json::Value::String(value).to_string()
    });
    let quoted: Vec<String> = quoted.collect();
    match (arg.get_value_delimiter(), quoted.as_slice()) {
        (None, [one]) => one.clone(),
        _ => format!("[{}]", quoted.join(", ")),
    }
}

/// A URL without its password and its query; anything else is hidden whole.
fn without_secret(value: &str) -> String {
    let Some((scheme, rest)) = value.split_once("://") else { return HIDDEN.to_owned() };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    match rest.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}:{HIDDEN}@{host}")
        }
        None => format!("{scheme}://{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::without_secret;

    #[test]
    fn passwords_do_not_show() {
        for (url, shown) in [
            ("postgres://me:secret@db/name", "postgres://me:***@db/name"),
            ("postgres://me:se@cret@db:5432/name?password=x", "postgres://me:***@db:5432/name"),
            ("postgres://db/name?password=x", "postgres://db/name"),
            ("secret", "***"),
        ] {
            assert_eq!(without_secret(url), shown);
        }
    }
}
