//! Reading what the test runners say at their end.

use crate::step::Tally;

/// Counts in one line of output, when it is a summary of cargo-nextest or of the standard harness.
pub(crate) fn read(line: &str) -> Option<Tally> {
    let line = without_colours(line);
    nextest(&line).or_else(|| harness(&line))
}

/// `Summary [   1.2s] 9 tests run: 7 passed (1 slow), 1 failed, 1 timed out, 2 skipped`
fn nextest(line: &str) -> Option<Tally> {
    let rest = line.trim_start().strip_prefix("Summary [")?;
    let (_, counts) = rest.split_once(" run: ")?;
    Some(sum(counts.split(", ")))
}

/// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`
fn harness(line: &str) -> Option<Tally> {
    // Nextest repeats the output of a failed test, indented; it has counted that test itself.
    let rest = line.strip_prefix("test result: ")?;
    let (_, counts) = rest.split_once(". ")?;
    Some(sum(counts.split("; ")))
}

fn sum<'a>(counts: impl Iterator<Item = &'a str>) -> Tally {
    let mut tally = Tally::default();
    for count in counts {
        let Some((number, what)) = count.trim().split_once(' ') else {
            continue;
        };
        let Ok(number) = number.parse::<u64>() else {
            continue;
        };
        // Nextest adds remarks: `7 passed (1 slow)`.
        match what.split(" (").next().unwrap_or(what).trim() {
            "passed" => tally.passed += number,
            "failed" | "timed out" | "exec failed" => tally.failed += number,
            "skipped" | "ignored" => tally.skipped += number,
            _ => {}
        }
    }
    tally
}

fn without_colours(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            // A colour is `ESC [ … m`.
            characters.by_ref().find(|end| *end == 'm');
        } else {
            plain.push(character);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(passed: u64, failed: u64, skipped: u64) -> Option<Tally> {
        Some(Tally { passed, failed, skipped })
    }

    #[test]
    fn a_green_nextest_summary_is_read() {
        let line = "     Summary [   0.005s] 3 tests run: 3 passed, 0 skipped";
        assert_eq!(read(line), tally(3, 0, 0));
    }

    #[test]
    fn remarks_time_outs_and_programs_that_do_not_start_are_read() {
        let line = "     Summary [  61.020s] 12 tests run: 8 passed (2 slow, 1 leaky), 2 failed, \
                    1 timed out, 1 exec failed, 4 skipped";
        assert_eq!(read(line), tally(8, 4, 4));
    }

    #[test]
    fn a_run_that_was_cut_short_is_read() {
        let line = "     Summary [   0.1s] 4/9 tests run: 3 passed, 1 failed, 0 skipped";
        assert_eq!(read(line), tally(3, 1, 0));
        assert_eq!(read("     Summary [   0.1s] 1 test run: 1 passed, 0 skipped"), tally(1, 0, 0));
    }

    #[test]
    fn the_standard_harness_is_read() {
        let line = "test result: FAILED. 3 passed; 1 failed; 2 ignored; 0 measured; 5 filtered \
                    out; finished in 0.00s";
        assert_eq!(read(line), tally(3, 1, 2));
    }

    #[test]
    fn colours_do_not_matter() {
        let line = "\u{1b}[32;1m     Summary\u{1b}[0m [   0.1s] \u{1b}[1m2\u{1b}[0m tests run: \
                    \u{1b}[1m2\u{1b}[0m \u{1b}[32;1mpassed\u{1b}[0m, \u{1b}[1m1\u{1b}[0m \
                    \u{1b}[33;1mskipped\u{1b}[0m";
        assert_eq!(read(line), tally(2, 0, 1));
    }

    #[test]
    fn other_lines_are_not_summaries() {
        assert_eq!(read("test result::tests::works ... ok"), None);
        assert_eq!(read("Summary of changes"), None);
        let repeated = "    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured";
        assert_eq!(read(repeated), None, "nextest has counted it");
    }
}
