//! `cargo xtask test`: every test, on one throw-away Postgres.

mod postgres;
mod skips;
mod summary;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context;
use turnbuckle_pg_harness::{DATABASE_URL_VARIABLE, SKIP_LOG_VARIABLE};

use crate::process::{answer, show};
use crate::step::Tally;
use crate::test::postgres::Server;
use crate::test::skips::Skips;
use crate::workspace::Workspace;

/// Where the black-box scenarios find the product.
const BINARY_VARIABLE: &str = "TURNBUCKLE_BIN";

/// Runs everything; true when nothing failed.
pub(crate) fn run(workspace: &Workspace, filters: &[String]) -> anyhow::Result<bool> {
    let (mut tally, skips) = run_all(workspace, filters).unwrap_or_else(|error| {
        println!("FAILED: {error:#}");
        (Tally { failed: 1, ..Tally::default() }, Skips::new())
    });
    let skipped = skips::count(&skips);
    tally.passed = tally.passed.saturating_sub(skipped);
    tally.skipped += skipped;
    for (reason, tests) in &skips {
        println!("SKIPPED {} tests: {reason}", tests.len());
        for test in tests {
            println!("    {test}");
        }
    }
    println!("{tally}");
    Ok(tally.failed == 0)
}

fn run_all(workspace: &Workspace, filters: &[String]) -> anyhow::Result<(Tally, Skips)> {
    // The scenarios drive the binary as it ships, without what test code switches on in crates.
    if !show(workspace.cargo().args(["build", "--package", "turnbuckle-server"]))? {
        println!("FAILED: the server does not build");
        return Ok((Tally { failed: 1, ..Tally::default() }, Skips::new()));
    }
    let server = Server::obtain()?;
    let directory = tempfile::tempdir()?;
    let skip_log = directory.path().join("skipped");
    let prepare = |command: &mut Command| {
        command
            .env(BINARY_VARIABLE, workspace.target_directory.join("debug/turnbuckle"))
            .env(SKIP_LOG_VARIABLE, &skip_log);
        if let Some(url) = server.url() {
            command.env(DATABASE_URL_VARIABLE, url);
        }
    };

    let mut tally = Tally::default();
    let mut tests = runner(workspace);
    if !chooses_package(filters) {
        tests.arg("--workspace");
    }
    prepare(tests.args(filters));
    tally.add(count(&mut tests, "the tests")?);
    if filters.is_empty() {
        let mut examples = workspace.cargo();
        prepare(examples.args(["test", "--workspace", "--doc", "--no-fail-fast"]));
        tally.add(count(&mut examples, "the doc tests")?);
    } else {
        println!("doc tests left out: there is a filter");
    }
    Ok((tally, skips::read(Path::new(&skip_log))))
}

/// cargo-nextest where it is installed: it runs the tests of all crates side by side.
fn runner(workspace: &Workspace) -> Command {
    let mut cargo = workspace.cargo();
    if answer(workspace.cargo().args(["nextest", "--version"])).is_some() {
        cargo.args(["nextest", "run", "--no-fail-fast", "--no-tests=pass"]);
    } else {
        println!("cargo-nextest is not installed: using cargo test");
        cargo.args(["test", "--tests", "--no-fail-fast"]);
    }
    cargo
}

/// Cargo lets `--workspace` win over `--package`, which would build everything for one crate.
fn chooses_package(filters: &[String]) -> bool {
    filters.iter().any(|filter| filter.starts_with("-p") || filter.starts_with("--package"))
}

/// Runs a test command, shows its output as it comes, and adds up its summaries.
fn count(command: &mut Command, what: &str) -> anyhow::Result<Tally> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {what}"))?;
    let errors = child.stderr.take().map(|pipe| std::thread::spawn(|| pass_on(pipe)));
    let mut tally = child.stdout.take().map(pass_on).unwrap_or_default();
    // Nextest writes its summary to standard error, the standard harness to standard output.
    if let Some(from_errors) = errors.and_then(|thread| thread.join().ok()) {
        tally.add(from_errors);
    }
    let status = child.wait()?;
    if !status.success() && tally.failed == 0 {
        println!("FAILED: {what} did not run to their end ({status})");
        tally.failed = 1;
    }
    Ok(tally)
}

fn pass_on(pipe: impl Read) -> Tally {
    let mut tally = Tally::default();
    let mut lines = BufReader::new(pipe).split(b'\n');
    while let Some(Ok(line)) = lines.next() {
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        if let Some(counts) = summary::read(&line) {
            tally.add(counts);
        }
    }
    tally
}
