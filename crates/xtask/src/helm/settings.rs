//! The settings files that the chart renders, read by the server itself.

use anyhow::Context;

use super::render::{Case, Rendered, name};
use super::{KUBERNETES, missing};
use crate::process::capture;
use crate::step::Verdict;
use crate::tools;
use crate::workspace::Workspace;

/// The settings file in a ConfigMap.
const FILE: &str = "turnbuckle.yaml";

pub(super) fn check(workspace: &Workspace) -> anyhow::Result<Verdict> {
    let Some(helm) = tools::helm(workspace) else { return Ok(missing("helm")) };
    let built = workspace
        .cargo()
        .args(["build", "--quiet", "--package", "turnbuckle-server"])
        .status()
        .context("cannot run cargo build")?;
    if !built.success() {
        return Ok(Verdict::Failed("the server does not build".into()));
    }
    let server = workspace.target_directory.join("debug/turnbuckle");
    let scratch = tempfile::tempdir()?;
    let mut complaints = Vec::new();
    let mut files = 0;
    for case in Case::all(workspace)? {
        let rendered = Rendered::new(workspace, &helm, &case, KUBERNETES[0])?;
        for map in rendered.of("ConfigMap") {
            let Some(text) = map["data"][FILE].as_str() else { continue };
            let file = scratch.path().join(format!("{}-{}.yaml", case.name, name(map)));
            std::fs::write(&file, text)?;
            let mut command = workspace.command(&server);
            command.args(["config", "check", "--config"]).arg(&file);
            // As the pod has it; never dialled.
            command.env("TURNBUCKLE_DATABASE_URL", "postgres://turnbuckle@database/turnbuckle");
            let (success, text) = capture(&mut command)?;
            files += 1;
            if !success {
                complaints.push(format!("{}, {}: {text}", case.name, name(map)));
            }
        }
    }
    Ok(match complaints.is_empty() {
        true => Verdict::Passed(format!("{files} files")),
        false => Verdict::from_complaints(&complaints),
    })
}
