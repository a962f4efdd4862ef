//! The table of values in the chart's README, made from the comments of `values.yaml`.

use std::fmt::Write as _;

use anyhow::{Context, bail};
use serde_json::Value;

use super::CHART;
use crate::step::Verdict;
use crate::workspace::Workspace;

const BEGIN: &str = "<!-- values: made by `cargo xtask helm-readme` -->\n";
const END: &str = "<!-- end of values -->\n";
/// Begins the description of a value.
const MARK: &str = "# -- ";

pub(super) fn check(workspace: &Workspace) -> anyhow::Result<Verdict> {
    let (written, wanted) = texts(workspace)?;
    Ok(match written == wanted {
        true => Verdict::passed(),
        false => Verdict::Failed("the README is behind: run `cargo xtask helm-readme`".into()),
    })
}

pub(super) fn write(workspace: &Workspace) -> anyhow::Result<bool> {
    let (_, wanted) = texts(workspace)?;
    std::fs::write(workspace.root.join(CHART).join("README.md"), wanted)?;
    Ok(true)
}

/// The README as it is and as it should be.
fn texts(workspace: &Workspace) -> anyhow::Result<(String, String)> {
    let chart = workspace.root.join(CHART);
    let values = std::fs::read_to_string(chart.join("values.yaml"))?;
    let readme = std::fs::read_to_string(chart.join("README.md"))?;
    let (head, rest) = readme.split_once(BEGIN).context("README.md has no place for the values")?;
    let (_, tail) = rest.split_once(END).context("README.md: the values do not end")?;
    let wanted = format!("{head}{BEGIN}{}{END}{tail}", table(&values)?);
    Ok((readme, wanted))
}

fn table(values: &str) -> anyhow::Result<String> {
    let tree: Value = serde_norway::from_str(values).context("values.yaml")?;
    let mut table = "| value | default | meaning |\n|---|---|---|\n".to_owned();
    for row in rows(values)? {
        let pointer = format!("/{}", row.path.replace('.', "/"));
        let default = tree.pointer(&pointer).with_context(|| format!("{} is lost", row.path))?;
        let text = row.text.replace('|', "\\|");
        writeln!(table, "| `{}` | `{default}` | {text} |", row.path)?;
    }
    Ok(table)
}

struct Row {
    path: String,
    text: String,
}

/// Every value with a description. A leaf without one is an error: nobody should have to guess.
fn rows(values: &str) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut path: Vec<&str> = Vec::new();
    let mut text = String::new();
    // Lines of a value that has its description already.
    let mut inside: Option<usize> = None;
    for line in values.lines() {
        let content = line.trim_start();
        let depth = (line.len() - content.len()) / 2;
        if let Some(described) = content.strip_prefix(MARK) {
            described.clone_into(&mut text);
            inside = None;
        } else if let Some(more) = content.strip_prefix("# ").filter(|_| !text.is_empty()) {
            write!(text, " {more}")?;
        } else if let Some((key, value)) = content.split_once(':').filter(|_| {
            let is_entry = !content.starts_with(['#', '-']);
            is_entry && inside.is_none_or(|at| depth <= at)
        }) {
            inside = None;
            path.truncate(depth);
            path.push(key);
            if !text.is_empty() {
                rows.push(Row { path: path.join("."), text: std::mem::take(&mut text) });
                inside = Some(depth);
            } else if !value.trim().is_empty() {
                bail!("values.yaml: {} has no description ({MARK}…)", path.join("."));
            }
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_described_by_the_lines_above_it() {
        let values = "a:\n  # -- First\n  # line.\n  b: 1\n# -- Whole.\nc:\n  d: {e: f}\n";
        let table = table(values).unwrap();
        assert!(table.contains("| `a.b` | `1` | First line. |"), "{table}");
        assert!(table.contains(r#"| `c` | `{"d":{"e":"f"}}` | Whole. |"#), "{table}");
        assert!(!table.contains("c.d"), "{table}");
    }

    #[test]
    fn a_value_without_description_is_refused() {
        assert!(table("a: 1\n").is_err());
    }
}
