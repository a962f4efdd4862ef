//! `cargo xtask check`: everything that can be judged without running the product.

mod budgets;
mod deny;
mod edges;
mod layout;
mod proto;
mod source;

use anyhow::bail;

use crate::helm;
use crate::process::judge;
use crate::step::{self, Tally, Verdict};
use crate::workspace::Workspace;

type Step = (&'static str, fn(&Workspace) -> anyhow::Result<Verdict>);

/// Cheap steps first: their complaints are the ones worth seeing early.
const STEPS: [Step; 12] = [
    ("fmt", fmt),
    ("layout", layout::check),
    ("budgets", budgets::check),
    ("edges", edges::check),
    ("buf-lint", proto::lint),
    ("buf-format", proto::format),
    ("buf-breaking", proto::breaking),
    ("deny", deny::check),
    ("advisories", deny::advisories),
    ("clippy", clippy),
    ("doc", doc),
    ("lockfile", lockfile),
];

/// Runs all steps, or the one named; true when none failed.
pub(crate) fn run(workspace: &Workspace, only: Option<&str>) -> anyhow::Result<bool> {
    let chosen: Vec<&Step> = STEPS
        .iter()
        .chain(&helm::STEPS)
        .filter(|(name, _)| only.is_none_or(|only| only == *name))
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = STEPS.iter().chain(&helm::STEPS).map(|(name, _)| *name).collect();
        bail!("no such step; there are: {}", names.join(", "));
    }
    let mut tally = Tally::default();
    for (name, step) in chosen {
        step::run(&mut tally, name, || step(workspace));
    }
    println!("{tally}");
    Ok(tally.failed == 0)
}

fn fmt(workspace: &Workspace) -> anyhow::Result<Verdict> {
    judge(workspace.cargo().args(["fmt", "--all", "--check", "--", "--color=never"]))
}

fn clippy(workspace: &Workspace) -> anyhow::Result<Verdict> {
    judge(workspace.cargo().args([
        "clippy",
        "--quiet",
        "--keep-going",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))
}

fn doc(workspace: &Workspace) -> anyhow::Result<Verdict> {
    judge(
        workspace
            .cargo()
            .args(["doc", "--quiet", "--workspace", "--no-deps"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

/// The lock file must already say what the manifests say.
fn lockfile(workspace: &Workspace) -> anyhow::Result<Verdict> {
    judge(workspace.cargo().args(["metadata", "--format-version=1", "--locked", "--quiet"]))
}
