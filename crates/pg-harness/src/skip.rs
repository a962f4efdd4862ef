//! Saying that a test is skipped, where people and where xtask will see it.

use std::fs::OpenOptions;
use std::io::Write;

use crate::SKIP_LOG_VARIABLE;

/// Says on standard error that the calling test is skipped, and records it for `cargo xtask test`,
/// which would otherwise count the test as passed.
pub fn report(reason: &str, remedy: &str) {
    let test = test_name();
    say(&format!("SKIPPED ({reason}): {test}\n{remedy}"));
    let Some(log) = std::env::var_os(SKIP_LOG_VARIABLE) else {
        return;
    };
    let line = format!("{}\t{test}\t{}\t{reason}\n", program_name(), std::process::id());
    // One short write in append mode: lines of parallel tests do not mix.
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = written {
        say(&format!("the skip could not be recorded: {error}"));
    }
}

#[expect(clippy::print_stderr, reason = "the test harness captures standard error per test")]
fn say(text: &str) {
    eprintln!("{text}");
}

/// The test harness names the thread after the test.
fn test_name() -> String {
    std::env::var("NEXTEST_TEST_NAME")
        .ok()
        .or_else(|| std::thread::current().name().map(str::to_owned))
        .unwrap_or_else(|| "unnamed test".to_owned())
}

/// Test programs carry a hash at the end of their name, which says nothing.
fn program_name() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("test");
    stem.rsplit_once('-').map_or(stem, |(name, _hash)| name).to_owned()
}
