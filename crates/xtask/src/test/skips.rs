//! Tests that skipped themselves.
//!
//! A runner counts such a test as passed and hides what it printed, so the testkit also appends a
//! line to a file that we name: program, test, process and reason, separated by tabs.

use std::collections::BTreeMap;
use std::path::Path;

/// Reason → names of the tests that gave it.
pub(crate) type Skips = BTreeMap<String, Vec<String>>;

/// Reads the file; a missing one means that nothing was skipped.
pub(crate) fn read(path: &Path) -> Skips {
    parse(&std::fs::read_to_string(path).unwrap_or_default())
}

fn parse(text: &str) -> Skips {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    // A test that asks for two databases says so twice.
    lines.dedup();
    let mut skips = Skips::new();
    for line in lines {
        let mut fields = line.splitn(4, '\t');
        let mut next = || fields.next().unwrap_or_default();
        let (program, test, _process, reason) = (next(), next(), next(), next());
        skips.entry(reason.to_owned()).or_default().push(format!("{program} {test}"));
    }
    skips
}

/// How many tests skipped themselves.
pub(crate) fn count(skips: &Skips) -> u64 {
    skips.values().map(|tests| tests.len() as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_counted_once_however_often_it_says_so() {
        let text = "store\ta\t1\tno Postgres\nstore\ta\t1\tno Postgres\nstore\tb\t1\tno Postgres\n";
        let skips = parse(text);
        assert_eq!(count(&skips), 2);
        assert_eq!(skips["no Postgres"], ["store a", "store b"]);
    }
}
