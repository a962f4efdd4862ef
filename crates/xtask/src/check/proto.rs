//! The contract: lint, format, and no breaking change against what others already have.

use std::path::Path;
use std::process::Command;

use anyhow::bail;

use crate::process::{answer, capture, judge};
use crate::step::Verdict;
use crate::tools;
use crate::workspace::Workspace;

/// The contract's directory, at the root.
const DIRECTORY: &str = "proto";

/// Only message files count: a change of the crate around them is no change of the contract.
const FILES: &str = "proto/*.proto";

pub(crate) fn lint(workspace: &Workspace) -> anyhow::Result<Verdict> {
    with_buf(workspace, |buf| judge(buf.args(["lint", DIRECTORY])))
}

pub(crate) fn format(workspace: &Workspace) -> anyhow::Result<Verdict> {
    with_buf(workspace, |buf| judge(buf.args(["format", "--diff", "--exit-code", DIRECTORY])))
}

pub(crate) fn breaking(workspace: &Workspace) -> anyhow::Result<Verdict> {
    let Some(base) = base_revision(workspace) else {
        return Ok(Verdict::Skipped("there is no earlier version of the contract".into()));
    };
    let earlier = tempfile::tempdir()?;
    extract(workspace, &base, earlier.path())?;
    with_buf(workspace, |buf| {
        let (success, text) = capture(
            buf.args(["breaking", DIRECTORY, "--against"]).arg(earlier.path().join(DIRECTORY)),
        )?;
        let against = format!("against {base}");
        Ok(if success {
            Verdict::Passed(against)
        } else {
            Verdict::Failed(format!("{against}\n{text}"))
        })
    })
}

fn with_buf(
    workspace: &Workspace,
    run: impl FnOnce(&mut Command) -> anyhow::Result<Verdict>,
) -> anyhow::Result<Verdict> {
    match tools::buf(workspace) {
        Some(buf) => run(&mut workspace.command(buf)),
        None => Ok(Verdict::Skipped(format!("buf is missing: {}", tools::HOW_TO_INSTALL))),
    }
}

/// What to compare with: where this branch left the main line, else the newest release, else the
/// commit that last touched the contract. `None` when that holds no contract yet.
fn base_revision(workspace: &Workspace) -> Option<String> {
    let git = |arguments: &[&str]| answer(workspace.command("git").args(arguments));
    let head = git(&["rev-parse", "--short", "HEAD"])?;
    let candidates = [
        git(&["merge-base", "HEAD", "origin/main"])
            .and_then(|commit| git(&["rev-parse", "--short", &commit]))
            .filter(|commit| *commit != head),
        git(&["describe", "--tags", "--abbrev=0"]),
        git(&["log", "-1", "--format=%h", "--", FILES]),
    ];
    candidates.into_iter().flatten().find(|revision| {
        let listed = git(&["ls-tree", "-r", "--name-only", revision, "--", DIRECTORY]);
        listed.is_some_and(|names| names.lines().any(|name| name.ends_with(".proto")))
    })
}

fn extract(workspace: &Workspace, revision: &str, into: &Path) -> anyhow::Result<()> {
    let archive = into.join("contract.tar");
    let steps = [
        workspace
            .command("git")
            .args(["archive", "--format=tar", "--output"])
            .arg(&archive)
            .args([revision, DIRECTORY])
            .output()?,
        Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(into).output()?,
    ];
    for output in steps {
        if !output.status.success() {
            bail!("cannot extract {revision}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
    Ok(())
}
