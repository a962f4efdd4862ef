//! What cargo knows about this workspace.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde::Deserialize;

/// The workspace: its members and where things lie.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    pub(crate) packages: Vec<Package>,
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
    pub(crate) target_directory: PathBuf,
}

/// One member.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
}

/// One line of a manifest's dependency tables.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `null` for a normal one, else `dev` or `build`.
    pub(crate) kind: Option<String>,
}

/// One thing cargo builds from a package.
#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) kind: Vec<String>,
    pub(crate) src_path: PathBuf,
}

impl Workspace {
    /// Asks cargo.
    pub(crate) fn load() -> anyhow::Result<Self> {
        let output = Command::new(cargo())
            .args(["metadata", "--format-version=1", "--no-deps"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .context("cannot run cargo metadata")?;
        if !output.status.success() {
            bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
        }
        Self::parse(&output.stdout)
    }

    pub(crate) fn parse(json: &[u8]) -> anyhow::Result<Self> {
        serde_json::from_slice(json).context("cargo metadata has an unexpected form")
    }

    /// `cargo`, to be run at the root.
    pub(crate) fn cargo(&self) -> Command {
        self.command(cargo())
    }

    /// Any program, to be run at the root.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        command
    }

    /// `path` as it reads in a message.
    pub(crate) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }
}

impl Package {
    /// The directory of the manifest.
    pub(crate) fn directory(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(&self.manifest_path)
    }
}

/// The cargo that runs us, so that a chosen toolchain stays chosen.
fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
