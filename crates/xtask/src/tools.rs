//! Programs that `check` needs beyond the Rust toolchain, at the versions it was tried with.

mod helm;

pub(crate) use helm::{checkov, helm, kubernetes_validate};

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{answer, show};
use crate::step::{self, Tally, Verdict};
use crate::workspace::Workspace;

/// What to do about a missing one.
pub(crate) const HOW_TO_INSTALL: &str = "run `cargo xtask tools`";

/// The protobuf linter, from the Python package index: one binary, no build.
const BUF_VERSION: &str = "1.75.0";

/// What the Python examples need, from the same index.
const PYTHON_PACKAGES: [&str; 2] = ["grpcio==1.85.3", "grpcio-tools==1.85.1"];

/// Built from source by cargo, in a few minutes.
const CARGO_DENY_VERSION: &str = "0.20.2";

/// buf as `tools` installed it, else any on `PATH`.
pub(crate) fn buf(workspace: &Workspace) -> Option<PathBuf> {
    [environment(workspace).join("bin/buf"), "buf".into()].into_iter().find(answers)
}

/// cargo-deny, wherever cargo would find it too.
pub(crate) fn cargo_deny() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let installed = home.map(|home| home.join("bin/cargo-deny"));
    [Some("cargo-deny".into()), installed].into_iter().flatten().find(answers)
}

/// Installs whatever is missing; true when nothing failed.
pub(crate) fn install(workspace: &Workspace) -> anyhow::Result<bool> {
    let mut tally = Tally::default();
    step::run(&mut tally, "cargo-deny", || match cargo_deny() {
        Some(found) => Ok(Verdict::Passed(found.display().to_string())),
        None => install_cargo_deny(workspace),
    });
    step::run(&mut tally, "buf", || match buf(workspace) {
        Some(found) => Ok(Verdict::Passed(found.display().to_string())),
        None => install_buf(workspace),
    });
    // After buf, which makes the environment anew.
    step::run(&mut tally, "grpcio", || install_grpcio(workspace));
    step::run(&mut tally, "helm", || helm::install_helm(workspace));
    step::run(&mut tally, "kubernetes-validate", || helm::install_validate(workspace));
    step::run(&mut tally, "checkov", || helm::install_checkov(workspace));
    println!("{tally}");
    Ok(tally.failed == 0)
}

fn install_cargo_deny(workspace: &Workspace) -> anyhow::Result<Verdict> {
    let arguments = ["install", "--locked", "cargo-deny", "--version", CARGO_DENY_VERSION];
    let installed = show(workspace.cargo().args(arguments))?;
    Ok(verdict(installed, "cargo install cargo-deny failed"))
}

fn install_buf(workspace: &Workspace) -> anyhow::Result<Verdict> {
    let environment = environment(workspace);
    if !make_environment(&environment)? {
        return Ok(no_environment());
    }
    let installed = pip_install(&environment, &[&format!("buf-bin=={BUF_VERSION}")])?;
    Ok(verdict(installed, "pip install buf-bin failed"))
}

/// For the scenario that runs the example in Python.
fn install_grpcio(workspace: &Workspace) -> anyhow::Result<Verdict> {
    let environment = environment(workspace);
    let mut look = Command::new(environment.join("bin/python3"));
    if answer(look.args(["-c", "import grpc, grpc_tools; print(grpc.__version__)"])).is_some() {
        return Ok(Verdict::passed());
    }
    if !environment.join("bin/pip").exists() && !make_environment(&environment)? {
        return Ok(no_environment());
    }
    let installed = pip_install(&environment, &PYTHON_PACKAGES)?;
    Ok(verdict(installed, "pip install grpcio failed"))
}

fn make_environment(directory: &Path) -> anyhow::Result<bool> {
    // Debian ships Python without venv.
    Ok(create_environment(directory)?
        || (apt_install(&["python3-venv"])? && create_environment(directory)?))
}

fn no_environment() -> Verdict {
    Verdict::Failed("python3 -m venv failed: install python3 with venv".into())
}

fn pip_install(environment: &Path, packages: &[&str]) -> anyhow::Result<bool> {
    show(
        Command::new(environment.join("bin/pip"))
            .args(["install", "--quiet", "--disable-pip-version-check"])
            .args(packages),
    )
}

fn verdict(success: bool, failure: &str) -> Verdict {
    if success { Verdict::passed() } else { Verdict::Failed(failure.into()) }
}

/// Below `target`: `cargo clean` removes it, and nothing outside the repository changes.
fn environment(workspace: &Workspace) -> PathBuf {
    workspace.target_directory.join("tools/venv")
}

fn create_environment(directory: &Path) -> anyhow::Result<bool> {
    if answer(Command::new("python3").arg("--version")).is_none() {
        return Ok(false);
    }
    show(Command::new("python3").args(["-m", "venv", "--clear"]).arg(directory))
}

/// Installs Debian packages where that can be done without asking: as root, with apt.
pub(crate) fn apt_install(packages: &[&str]) -> anyhow::Result<bool> {
    if !is_root() || answer(Command::new("apt-get").arg("--version")).is_none() {
        return Ok(false);
    }
    let apt = |arguments: &[&str]| {
        show(
            Command::new("apt-get")
                .arg("-qq")
                .args(arguments)
                .env("DEBIAN_FRONTEND", "noninteractive")
                // Standard output of `test` ends with its counts; apt's chatter goes elsewhere.
                .stdout(std::io::stderr()),
        )
    };
    let mut install = vec!["install", "-y", "--no-install-recommends"];
    install.extend(packages);
    Ok(apt(&["update"])? && apt(&install)?)
}

fn is_root() -> bool {
    answer(Command::new("id").arg("-u")).is_some_and(|id| id == "0")
}

fn answers(program: &PathBuf) -> bool {
    answer(Command::new(program).arg("--version")).is_some()
}
