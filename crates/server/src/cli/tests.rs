use super::*;
use clap::{CommandFactory as _, Parser};

#[derive(Debug, Parser)]
#[command(name = "turnbuckle")]
struct Root {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    command: Command,
}

fn parse(line: &str) -> Result<Root, clap::Error> {
    Root::try_parse_from(line.split(' '))
}

#[test]
fn the_command_line_is_consistent() {
    Root::command().debug_assert();
}

#[test]
fn every_noun_has_its_verbs() {
    for (noun, verbs) in [
        ("tenant", "create get list update delete"),
        ("event-type", "create get list update delete version"),
        ("endpoint", "create get list update delete enable disable"),
        ("subscription", "create get list update delete"),
        ("retry-policy", "create get list update delete"),
        ("key", "status stage activate rotate rollback revoke"),
        ("source", "create get list update delete rotate-path presets"),
        ("event", "publish get list"),
        ("delivery", "list get attempts retry cancel"),
        ("receipt", "list get"),
        ("api-token", "create get list update revoke"),
        ("audit", "list export verify"),
        ("node", "list get accept"),
        ("replay", "create get list pause resume cancel"),
    ] {
        let root = Root::command();
        let noun = root.find_subcommand(noun).unwrap();
        for verb in verbs.split(' ') {
            assert!(noun.find_subcommand(verb).is_some(), "{} {verb}", noun.get_name());
        }
    }
}

#[test]
fn global_options_may_follow_the_verb() {
    let root = parse("turnbuckle endpoint list --tenant acme -o json --timeout 500ms").unwrap();
    assert_eq!(root.global.tenant, "acme");
    assert_eq!(root.global.output, Format::Json);
    assert_eq!(root.global.timeout.0, std::time::Duration::from_millis(500));
}

#[test]
fn help_names_the_exit_codes() {
    let help = parse("turnbuckle tenant --help").unwrap_err().to_string();
    assert!(help.contains("Exit codes:"), "{help}");
}

#[test]
fn a_token_is_not_in_debug_text() {
    let root = parse("turnbuckle tenant list --token very-secret").unwrap();
    assert!(!format!("{root:?}").contains("very-secret"));
}

#[test]
fn wrong_usage_is_exit_code_2_as_documented() {
    for line in [
        "turnbuckle tenant create",
        "turnbuckle endpoint create --url",
        "turnbuckle key revoke orders key1",
        "turnbuckle event publish --type order.paid",
        "turnbuckle delivery list --state odd",
        "turnbuckle tenant list --token a --token-file b",
        "turnbuckle endpoint create x --url https://a.test --upsert --secret-file f",
        "turnbuckle audit verify --anchor 12",
        "turnbuckle source create shop --preset github --secret-file f --generate-secret",
        "turnbuckle source create shop --preset github --scheme-file f",
        "turnbuckle key rotate",
        "turnbuckle key status orders --source shop",
        "turnbuckle api-token create ci",
    ] {
        assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
    }
}
