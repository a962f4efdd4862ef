//! The layer below environment and flags.

use super::settings;
use crate::serve::ServeArgs;
use anyhow::Context as _;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches as _, builder::Resettable};
use serde_norway::Value;
use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

/// Largest file: some hundred settings with long lists.
const BYTES_MAX: u64 = 256 * 1024;
/// Names the file when `--config` does not.
const VARIABLE: &str = "TURNBUCKLE_CONFIG";
/// Commands that take settings.
const TAKERS: [&[&str]; 3] = [&["serve"], &["config", "check"], &["config", "print"]];

/// A settings file. `Debug` shows names only: a database URL has a password.
#[derive(Default)]
pub struct SettingsFile {
    values: BTreeMap<String, Vec<String>>,
    faults: Vec<String>,
}

impl std::fmt::Debug for SettingsFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SettingsFile").field("names", &self.values.keys()).finish_non_exhaustive()
    }
}

impl SettingsFile {
    /// Reads the file that the command line or the environment names, if this command takes settings.
    ///
    /// # Errors
    /// When it cannot be read or is no YAML mapping.
    pub fn of(root: &Command, arguments: &[OsString]) -> anyhow::Result<Self> {
        if !takes_settings(root, arguments) {
            return Ok(Self::default());
        }
        let named = named(arguments).or_else(|| std::env::var_os(VARIABLE).map(PathBuf::from));
        match named.filter(|path| !path.as_os_str().is_empty()) {
            Some(path) => Self::read(&path),
            None => Ok(Self::default()),
        }
    }

    fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let metadata = std::fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
        anyhow::ensure!(metadata.len() <= BYTES_MAX, "{shown} has more than {BYTES_MAX} bytes");
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        Self::parse(&text).with_context(|| format!("{shown} cannot be used"))
    }

    /// Takes a YAML mapping of settings; an empty text has none.
    ///
    /// # Errors
    /// When it is no YAML mapping with texts as names. Wrong values are told later, with all others.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let mapping = match serde_norway::from_str(text)? {
            Value::Null => return Ok(Self::default()),
            Value::Mapping(mapping) => mapping,
            _ => anyhow::bail!("it is no mapping; write lines such as `lease: 15s`"),
        };
        let mut file = Self::default();
        for (name, value) in mapping {
            let Value::String(name) = name else { anyhow::bail!("a name is no text") };
            match texts(&value) {
                Some(values) => drop(file.values.insert(name, values)),
                None => file.faults.push(format!("{name}: write one value, or a list of values")),
            }
        }
        Ok(file)
    }

    /// The command line with this file below it.
    ///
    /// # Errors
    /// Everything that is wrong with the file, with variables of the environment, and with the settings
    /// together.
    pub fn under(mut self, root: Command, arguments: &[OsString]) -> anyhow::Result<Command> {
        if !takes_settings(&root, arguments) {
            return Ok(root);
        }
        let mut faults = std::mem::take(&mut self.faults);
        let (known, wrong_variables) = self.examine(&root, &mut faults);
        let command = TAKERS.iter().fold(root, |root, path| {
            change(root, path, &|arg| layered(arg, &known, &wrong_variables))
        });
        if faults.is_empty() {
            return Ok(command);
        }
        // What can be judged without the faulty ones is told along with them.
        faults.extend(relations(command, arguments));
        let count = faults.len();
        let noun = if count == 1 { "setting cannot" } else { "settings cannot" };
        anyhow::bail!("{count} {noun} be used:\n  {}", faults.join("\n  "))
    }

    /// Values of the file that can be used, and variables that cannot.
    fn examine(
        &self,
        root: &Command,
        faults: &mut Vec<String>,
    ) -> (BTreeMap<String, Vec<String>>, Vec<String>) {
        let mut known = BTreeMap::new();
        let mut wrong_variables = Vec::new();
        for (name, values) in &self.values {
            let arg = settings(root).find(|arg| arg.get_id() == name);
            let fault = match arg {
                None => Some(format!(
                    "{name}: there is no such setting; `turnbuckle config reference` shows all"
                )),
                Some(arg) => fault(arg, values).map(|text| format!("{name}: {text}")),
            };
            match fault {
                Some(fault) => faults.push(fault),
                None => drop(known.insert(name.clone(), values.clone())),
            }
        }
        for arg in settings(root) {
            let Some(variable) = arg.get_env().and_then(|name| name.to_str()) else { continue };
            let Ok(value) = std::env::var(variable) else { continue };
            if let Some(text) = fault(arg, &[value]) {
                faults.push(format!("{variable}: {text}"));
                wrong_variables.push(arg.get_id().to_string());
            }
        }
        (known, wrong_variables)
    }
}

/// What is wrong with values of one setting, taken alone.
fn fault(arg: &Arg, values: &[String]) -> Option<String> {
    let takes_many = arg.get_value_delimiter().is_some();
    if values.len() > 1 && !takes_many {
        return Some("takes one value, not a list".to_owned());
    }
    let is_flag = matches!(arg.get_action(), ArgAction::SetTrue);
    if is_flag && !values.iter().all(|value| ["true", "false"].contains(&value.as_str())) {
        return Some("is true or false".to_owned());
    }
    let alone = arg.clone().env(Resettable::Reset).default_values(values.to_vec());
    let error = Command::new("settings").arg(alone).try_get_matches_from(["settings"]).err()?;
    let is_secret = arg.is_hide_env_values_set();
    let reason = std::error::Error::source(&error).map(ToString::to_string);
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    match reason {
        _ if is_secret => Some("cannot be used".to_owned()),
        Some(reason) => Some(reason),
        None => {
            let more = text.lines().map(str::trim).find(|line| line.starts_with("[possible"));
            Some(format!("{line} {}", more.unwrap_or_default()).trim_end().to_owned())
        }
    }
}

/// The option with the file's value as its default, and without a variable that cannot be read.
fn layered(arg: Arg, known: &BTreeMap<String, Vec<String>>, wrong: &[String]) -> Arg {
    let id = arg.get_id().to_string();
    let arg = match known.get(&id) {
        Some(values) => arg.default_values(values.clone()),
        None => arg,
    };
    if wrong.contains(&id) { arg.env(Resettable::Reset) } else { arg }
}

/// What `ServeArgs::check` says about the settings together.
fn relations(command: Command, arguments: &[OsString]) -> Vec<String> {
    let Ok(matches) = command.try_get_matches_from(arguments) else { return Vec::new() };
    let mut taken: &ArgMatches = &matches;
    while let Some((_, inner)) = taken.subcommand() {
        taken = inner;
    }
    let checked = ServeArgs::from_arg_matches(taken).map(|args| args.check());
    match checked {
        Ok(Err(error)) => error.to_string().split("; ").map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// Changes every option of a nested command.
fn change(command: Command, path: &[&str], with: &dyn Fn(Arg) -> Arg) -> Command {
    match path.split_first() {
        Some((name, rest)) => command.mut_subcommand(*name, |inner| change(inner, rest, with)),
        None => command.mut_args(with),
    }
}

/// Whether the command takes settings, whatever else is wrong with the line. A resource may be called
/// `serve`, so the words alone do not tell.
fn takes_settings(root: &Command, arguments: &[OsString]) -> bool {
    let lenient = root.clone().ignore_errors(true).try_get_matches_from(arguments);
    let Ok(matches) = lenient else { return false };
    let (mut path, mut taken) = (Vec::new(), &matches);
    while let Some((name, inner)) = taken.subcommand() {
        path.push(name);
        taken = inner;
    }
    TAKERS.contains(&path.as_slice())
}

/// The file after `--config`.
fn named(arguments: &[OsString]) -> Option<PathBuf> {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if word == "--config" {
            return words.next().map(PathBuf::from);
        }
        if let Some(path) = word.to_str().and_then(|word| word.strip_prefix("--config=")) {
            return Some(path.into());
        }
    }
    None
}

/// Scalars as they would stand on the command line.
fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Sequence(items) => items.iter().map(scalar).collect(),
        value => Some(vec![scalar(value)?]),
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(value) => Some(value.to_string()),
        _ => None,
    }
}
