//! What the layers make of files. The environment is left to scenarios: it belongs to the process.

use super::{SettingsFile, reference};
use crate::serve::ServeArgs;
use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use std::ffi::OsString;

#[derive(Parser)]
#[command(name = "turnbuckle")]
struct Root {
    #[command(subcommand)]
    command: Sub,
}

#[derive(clap::Subcommand)]
enum Sub {
    Serve(Box<ServeArgs>),
    #[command(subcommand)]
    Config(super::ConfigVerb),
}

fn parse(file: &str, flags: &[&str]) -> anyhow::Result<ServeArgs> {
    let words = ["turnbuckle", "serve"].iter().chain(flags).map(OsString::from);
    let words: Vec<OsString> = words.collect();
    let command = SettingsFile::parse(file)?.under(Root::command(), &words)?;
    let root = Root::from_arg_matches(&command.try_get_matches_from(words)?)?;
    match root.command {
        Sub::Serve(args) => Ok(*args),
        Sub::Config(_) => anyhow::bail!("not serve"),
    }
}

fn faults(file: &str) -> String {
    parse(file, &[]).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn a_file_is_above_defaults_and_below_flags() {
    let file = "lease: 20s\ngrace: 1m\nroles: [delivery, ingress]\ndev: true\nmax_endpoints: 7\n";
    let args = parse(file, &["--grace", "2m"]).unwrap();
    assert_eq!((args.lease.0.as_secs(), args.grace.0.as_secs()), (20, 120));
    assert_eq!((args.roles.len(), args.dev, args.quotas.max_endpoints), (2, true, 7));
    let plain = parse("", &[]).unwrap();
    assert_eq!((plain.lease.0.as_secs(), plain.dev), (15, false));
    assert_eq!(parse("dev: false", &[]).unwrap().dev, plain.dev);
    assert!(parse("dev: false", &["--dev"]).unwrap().dev);
}

#[test]
fn every_fault_is_told_at_once() {
    let text = faults(
        "leese: 20s\nlease: [1s, 2s]\ngrace: soon\nroles: everything\ndev: maybe\n\
         api_listen: {port: 1}\ndedup_window: 1s\n",
    );
    for part in [
        "7 settings",
        "leese: there is no such setting",
        "lease: takes one value",
        "grace: \"soon\" is no duration",
        "roles: invalid value 'everything'",
        "control-plane",
        "dev: is true or false",
        "api_listen: write one value, or a list",
        "--dedup-window is between",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

#[test]
fn what_is_no_mapping_is_refused() {
    for file in ["- a", "just text", "1", "a: 1\na: 2", "{"] {
        assert!(!faults(file).is_empty(), "{file:?} is taken");
    }
}

#[test]
fn a_faulty_secret_is_not_repeated() {
    let text = faults("database_url: [\"postgres://me:hidden@db\", b]\nlease: x");
    assert!(text.contains("database_url") && !text.contains("hidden"), "{text}");
}

#[test]
fn the_reference_in_the_docs_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
    let docs = std::fs::read_to_string(path).unwrap();
    let table = reference::table(&Root::command());
    assert!(
        docs.contains(&table),
        "docs/settings.md is behind: replace its table with what `turnbuckle config reference` prints"
    );
}

#[test]
fn verbs_here_and_verbs_that_a_server_answers_are_one_noun() {
    let root = Root::command();
    let noun = root.find_subcommand("config").unwrap();
    for verb in ["check", "print", "reference", "status", "wait"] {
        assert!(noun.find_subcommand(verb).is_some(), "config {verb}");
    }
}

#[test]
fn only_commands_that_take_settings_get_them() {
    let faulty = |line: &str| {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        SettingsFile::parse("leaze: 1s").unwrap().under(Root::command(), &words).is_err()
    };
    for line in
        ["x serve", "x serve --lease 1s --nonsense", "x config check --dev", "x config print"]
    {
        assert!(faulty(line), "{line}");
    }
    // A name of a resource, an option's value, and commands of other purposes.
    for line in ["x config wait serve", "x config status", "x config reference", "x"] {
        assert!(!faulty(line), "{line}");
    }
}
