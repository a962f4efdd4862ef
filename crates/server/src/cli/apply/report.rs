//! What an application did, for people and programs.

use super::diff::Change;
use crate::cli::output::{Format, Output};
use serde::Serialize;

/// What became of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Action {
    Created,
    Changed,
    Unchanged,
    Deleted,
}

/// A resource, and what became of it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Outcome {
    pub(super) name: String,
    pub(super) action: Action,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) changes: Vec<Change>,
}

impl Outcome {
    fn sign(&self) -> char {
        match self.action {
            Action::Created => '+',
            Action::Changed => '~',
            Action::Unchanged => '=',
            Action::Deleted => '-',
        }
    }
}

/// Shows the outcomes, and sums them up.
pub(super) fn show(output: &mut Output, outcomes: &[Outcome], dry_run: bool) -> anyhow::Result<()> {
    let text = match output.format() {
        Format::Table => lines(outcomes),
        Format::Json => format!("{}\n", serde_json::to_string_pretty(outcomes)?),
        Format::Yaml => serde_norway::to_string(outcomes)?,
        Format::Name => {
            let differing = outcomes.iter().filter(|outcome| outcome.action != Action::Unchanged);
            differing.map(|outcome| format!("{}\n", outcome.name)).collect()
        }
    };
    output.raw(text.as_bytes())?;
    let count = |action| outcomes.iter().filter(|outcome| outcome.action == action).count();
    output.note(&format!(
        "{} created, {} changed, {} unchanged, {} deleted",
        count(Action::Created),
        count(Action::Changed),
        count(Action::Unchanged),
        count(Action::Deleted)
    ))?;
    output.note_dry_run(dry_run)
}

fn lines(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        text.push_str(&format!("{} {}\n", outcome.sign(), outcome.name));
        for change in &outcome.changes {
            text.push_str(&format!("    {change}\n"));
        }
    }
    crate::cli::error::printable(&text)
}
