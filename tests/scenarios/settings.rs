//! Settings in layers, as the binary sees them: file, environment, flags; and what is told of them.

use std::{fs, process::Output};
use turnbuckle_tests::home::program;

/// What `turnbuckle config VERB` says with this file, these variables and these flags.
fn config(
    verb: &str,
    file: &str,
    environment: &[(&str, &str)],
    flags: &[&str],
) -> anyhow::Result<Output> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("turnbuckle.yaml");
    fs::write(&path, file)?;
    let mut command = program()?;
    command.args(["config", verb, "--config"]).arg(&path).args(flags);
    command.envs(environment.iter().copied());
    Ok(command.output()?)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_environment_is_above_the_file_and_below_flags() -> anyhow::Result<()> {
    let file = "lease: 20s\ngrace: 1m\nkey_usage_interval: 2m\n";
    let environment = [("TURNBUCKLE_GRACE", "2m"), ("TURNBUCKLE_KEY_USAGE_INTERVAL", "3m")];
    let printed = config("print", file, &environment, &["--key-usage-interval", "4m"])?;
    let printed = text(&printed.stdout);
    for line in [
        "lease: \"20s\"  # file",
        "grace: \"2m\"  # environment",
        "key_usage_interval: \"4m\"  # flag",
        "dedup_window: \"7d\"  # default",
    ] {
        assert!(printed.contains(line), "{line:?} is not in\n{printed}");
    }
    Ok(())
}

#[test]
fn a_password_is_printed_by_no_verb_from_no_layer() -> anyhow::Result<()> {
    let url = "postgres://me:hid%20den@db.example/t?sslpassword=also-hidden";
    let file = format!("database_url: {url}\n");
    let layers = [
        config("print", &file, &[], &[])?,
        config("print", "", &[("TURNBUCKLE_DATABASE_URL", url)], &[])?,
        config("print", "", &[], &["--database-url", url])?,
        config("check", &format!("{file}lease: soon\n"), &[], &[])?,
        config("check", "lease: soon\n", &[("TURNBUCKLE_DATABASE_URL", url)], &[])?,
    ];
    for output in layers {
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(!said.contains("hid%20den") && !said.contains("also-hidden"), "{said}");
    }
    Ok(())
}

#[test]
fn faults_of_a_file_are_told_at_once_before_anything_is_opened() -> anyhow::Result<()> {
    let checked = config("check", "leaze: 20s\nlease: soon\nroles: [delivery, nope]\n", &[], &[])?;
    let said = text(&checked.stderr);
    assert!(!checked.status.success());
    for part in ["3 settings", "leaze", "turnbuckle config reference", "lease", "nope"] {
        assert!(said.contains(part), "{part:?} is not in\n{said}");
    }
    Ok(())
}
