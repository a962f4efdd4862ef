//! File sizes. Function sizes are clippy's (`too_many_lines`).

use crate::check::source::SourceFile;
use crate::step::Verdict;
use crate::workspace::Workspace;

/// Nobody reads a longer file in one go; a longer one is several modules.
const HARD_LIMIT: usize = 600;

/// What 95 of 100 files should stay under: reported, not enforced, so that it is seen in time.
const GOAL: usize = 400;

pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<Verdict> {
    let sizes = SourceFile::all(workspace)?
        .into_iter()
        .map(|file| (file.text.lines().count(), workspace.shown(&file.path)))
        .collect();
    Ok(judge(sizes))
}

fn judge(mut sizes: Vec<(usize, String)>) -> Verdict {
    sizes.sort();
    let too_long: Vec<String> = sizes
        .iter()
        .filter(|(lines, _)| *lines > HARD_LIMIT)
        .map(|(lines, path)| format!("{path}: {lines} lines, at most {HARD_LIMIT}"))
        .collect();
    if !too_long.is_empty() {
        return Verdict::from_complaints(&too_long);
    }
    let (Some((longest, path)), Some((p95, _))) =
        (sizes.last(), sizes.get((sizes.len() * 95 / 100).min(sizes.len().saturating_sub(1))))
    else {
        return Verdict::Failed("there is no Rust file".into());
    };
    let against_goal = if *p95 > GOAL { "over" } else { "within" };
    Verdict::Passed(format!(
        "{} files, 95 % up to {p95} lines ({against_goal} the goal of {GOAL}), longest {longest} ({path})",
        sizes.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_over_the_hard_limit_is_named() {
        let verdict = judge(vec![(10, "a.rs".into()), (HARD_LIMIT + 1, "b.rs".into())]);
        assert_eq!(verdict, Verdict::Failed("b.rs: 601 lines, at most 600".into()));
    }

    #[test]
    fn a_file_at_the_hard_limit_passes() {
        let Verdict::Passed(note) = judge(vec![(HARD_LIMIT, "a.rs".into())]) else {
            panic!("600 lines are allowed")
        };
        assert!(note.contains("over the goal"), "{note}");
    }
}
