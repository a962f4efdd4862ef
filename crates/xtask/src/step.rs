//! A step of `check` and the line it prints.

use std::fmt;
use std::time::Instant;

/// How a step ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Fine; the text, if any, is a figure worth a line.
    Passed(String),
    /// Not fine; the text says everything the reader needs.
    Failed(String),
    /// Could not be run, with the reason.
    Skipped(String),
}

impl Verdict {
    pub(crate) fn passed() -> Self {
        Self::Passed(String::new())
    }

    /// Passed when there is nothing to complain about.
    pub(crate) fn from_complaints(complaints: &[String]) -> Self {
        if complaints.is_empty() { Self::passed() } else { Self::Failed(complaints.join("\n")) }
    }
}

/// The counts of the last line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    fn count(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Passed(_) => self.passed += 1,
            Verdict::Failed(_) => self.failed += 1,
            Verdict::Skipped(_) => self.skipped += 1,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// Runs one step, prints its line (and what it has to say), and counts it. A step that could not
/// even be started has failed.
pub(crate) fn run(tally: &mut Tally, name: &str, step: impl FnOnce() -> anyhow::Result<Verdict>) {
    let start = Instant::now();
    let verdict = step().unwrap_or_else(|error| Verdict::Failed(format!("{error:#}")));
    tally.count(&verdict);
    let seconds = start.elapsed().as_secs_f64();
    match &verdict {
        Verdict::Passed(note) if note.is_empty() => println!("ok       {name:<12} {seconds:6.1} s"),
        Verdict::Passed(note) => println!("ok       {name:<12} {seconds:6.1} s  {note}"),
        Verdict::Failed(why) => println!("FAILED   {name:<12} {seconds:6.1} s\n{}", indent(why)),
        Verdict::Skipped(why) => println!("SKIPPED  {name:<12} {seconds:6.1} s  {why}"),
    }
}

fn indent(text: &str) -> String {
    text.trim_end().lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verdict_is_counted_once_and_an_error_is_a_failure() {
        let mut tally = Tally::default();
        run(&mut tally, "a", || Ok(Verdict::passed()));
        run(&mut tally, "b", || Ok(Verdict::Skipped("no network".into())));
        run(&mut tally, "c", || anyhow::bail!("no such program"));
        assert_eq!(tally.to_string(), "1 passed, 1 failed, 1 skipped");
    }
}
