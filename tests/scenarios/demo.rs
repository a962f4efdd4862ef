//! The demonstration, which is the first thing that many people run.

use anyhow::Context as _;
use std::{
    collections::BTreeMap,
    process::{Output, Stdio},
    time::Duration,
};
use turnbuckle_tests::home::program;

/// Longest time that somebody watches it. It takes three seconds on a machine that does nothing else.
const ATTENTION: Duration = Duration::from_secs(20);

/// Runs it to its end in a directory of its own, which must be as empty after it as before.
async fn demo(options: &[&str]) -> anyhow::Result<Output> {
    let directory = tempfile::tempdir()?;
    let mut command = program()?;
    command.current_dir(directory.path()).arg("demo").args(options).stdin(Stdio::null());
    let running = tokio::process::Command::from(command).kill_on_drop(true).output();
    let output = tokio::time::timeout(ATTENTION, running)
        .await
        .with_context(|| format!("the demo still runs after {ATTENTION:?}"))??;
    let left = std::fs::read_dir(directory.path())?.count();
    anyhow::ensure!(left == 0, "the demo left {left} files in the current directory");
    Ok(output)
}

/// Its standard output, once it has ended well.
fn said(output: &Output) -> anyhow::Result<&str> {
    let errors = String::from_utf8_lossy(&output.stderr);
    let text = std::str::from_utf8(&output.stdout)?;
    anyhow::ensure!(output.status.success(), "{}:\n{text}\n{errors}", output.status);
    Ok(text)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_keeps_every_promise_and_says_so_without_colours() -> anyhow::Result<()> {
    let output = demo(&[]).await?;
    let text = said(&output)?;
    let last = text.lines().last().unwrap_or_default();
    assert!(last.starts_with("All ") && last.ends_with(" promises kept."), "{last:?}");
    assert!(!text.contains('\u{1b}'), "an escape sequence, and nobody's terminal");
    assert!(!output.stderr.contains(&0x1b), "an escape sequence on standard error");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_tells_programs_everything_one_object_a_line() -> anyhow::Result<()> {
    let output = demo(&["--json"]).await?;
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let mut last = serde_json::Value::Null;
    for line in said(&output)?.lines() {
        last = serde_json::from_str(line).with_context(|| format!("no JSON: {line:?}"))?;
        let kind = last["kind"].as_str().with_context(|| format!("no kind: {line}"))?;
        *kinds.entry(kind.to_owned()).or_default() += 1;
        assert!(kind != "check" || last["ok"] == true, "a promise was broken: {line}");
    }
    assert_eq!(last["kind"], "verdict", "the last line is the verdict");
    assert_eq!(last["failed"], 0);
    let checks = kinds.get("check").copied().unwrap_or_default();
    assert!(checks > 0 && last["checks"] == checks, "{checks} checks, but {last}");
    for kind in ["started", "published", "attempt", "latency"] {
        assert!(kinds.contains_key(kind), "no line tells of {kind}: {kinds:?}");
    }
    Ok(())
}
