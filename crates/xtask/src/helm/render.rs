//! Cases of the chart, and what helm makes of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Deserialize as _;
use serde_json::Value;

use super::CHART;
use crate::process::capture;
use crate::workspace::Workspace;

/// A file of values in `ci`.
pub(super) struct Case {
    pub(super) name: String,
    files: Vec<String>,
    values: Value,
}

impl Case {
    /// All of them. The one named like an overlay of the chart is rendered with it.
    pub(super) fn all(workspace: &Workspace) -> anyhow::Result<Vec<Self>> {
        let directory = workspace.root.join(CHART).join("ci");
        let mut paths: Vec<PathBuf> = std::fs::read_dir(&directory)?
            .map(|entry| Ok(entry?.path()))
            .collect::<std::io::Result<_>>()?;
        paths.sort();
        let cases: Vec<Self> =
            paths.iter().map(|path| Self::read(workspace, path)).collect::<anyhow::Result<_>>()?;
        if cases.is_empty() {
            bail!("{} has no case", directory.display());
        }
        Ok(cases)
    }

    fn read(workspace: &Workspace, path: &Path) -> anyhow::Result<Self> {
        let name = path.file_stem().unwrap_or_default().display().to_string();
        let text = std::fs::read_to_string(path)?;
        let values = serde_norway::from_str(&text).with_context(|| path.display().to_string())?;
        let overlay = format!("{CHART}/values-{name}.yaml");
        let mut files = Vec::new();
        if workspace.root.join(&overlay).exists() {
            files.push(overlay);
        }
        files.push(workspace.shown(path));
        Ok(Self { name, files, values })
    }

    /// Options that name its files.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.files.iter().flat_map(|file| ["-f", file.as_str()])
    }

    /// Names of Secrets and ConfigMaps that exist before the release.
    pub(super) fn external(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        collect_names(&self.values, &mut names);
        names
    }
}

/// Every text of the values may be such a name: one that is referenced and in neither is a mistake.
fn collect_names(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => drop(names.insert(text.clone())),
        Value::Array(items) => items.iter().for_each(|item| collect_names(item, names)),
        Value::Object(fields) => fields.values().for_each(|field| collect_names(field, names)),
        _ => {}
    }
}

/// What helm made of a case.
pub(super) struct Rendered {
    pub(super) text: String,
    pub(super) objects: Vec<Value>,
}

impl Rendered {
    pub(super) fn new(
        workspace: &Workspace,
        helm: &Path,
        case: &Case,
        kubernetes: &str,
    ) -> anyhow::Result<Self> {
        let mut command = workspace.command(helm);
        command.args(["template", "release", CHART, "--namespace", "hooks", "--kube-version"]);
        let (success, text) = capture(command.arg(kubernetes).args(case.arguments()))?;
        if !success {
            bail!("{}: {text}", case.name);
        }
        let documents = serde_norway::Deserializer::from_str(&text);
        let objects = documents.map(Value::deserialize).collect::<Result<Vec<_>, _>>();
        let objects = objects.with_context(|| format!("{}: no YAML", case.name))?;
        Ok(Self { text, objects: objects.into_iter().filter(|object| !object.is_null()).collect() })
    }

    /// All objects of a kind.
    pub(super) fn of(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(move |object| object["kind"] == kind)
    }
}

/// The name of an object.
pub(super) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or("(no name)")
}
