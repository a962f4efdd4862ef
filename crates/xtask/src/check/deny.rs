//! Licences, banned and duplicate crates, sources, and known vulnerabilities.

use crate::process::{capture, judge};
use crate::step::Verdict;
use crate::tools;
use crate::workspace::Workspace;

pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<Verdict> {
    let Some(deny) = tools::cargo_deny() else {
        return Ok(missing());
    };
    judge(
        workspace
            .command(deny)
            .args(["--log-level", "error", "check"])
            .args(["licenses", "bans", "sources"]),
    )
}

pub(crate) fn advisories(workspace: &Workspace) -> anyhow::Result<Verdict> {
    let Some(deny) = tools::cargo_deny() else {
        return Ok(missing());
    };
    let (fetched, text) = capture(workspace.command(&deny).args(["fetch", "db"]))?;
    if !fetched {
        let reason = text.lines().find(|line| line.contains("failed")).unwrap_or_default();
        // The tool's log lines begin with a time and a level.
        let reason = reason.rsplit_once("] ").map_or(reason, |(_, message)| message);
        return Ok(Verdict::Skipped(format!("the advisory database cannot be fetched: {reason}")));
    }
    judge(workspace.command(deny).args(["--log-level", "error", "check", "advisories"]))
}

fn missing() -> Verdict {
    Verdict::Skipped(format!("cargo-deny is missing: {}", tools::HOW_TO_INSTALL))
}
