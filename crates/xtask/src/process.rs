//! Running other programs.

use std::process::Command;

use anyhow::Context;

use crate::step::Verdict;

/// Runs `command` to its end and returns success and everything it printed.
pub(crate) fn capture(command: &mut Command) -> anyhow::Result<(bool, String)> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Ok((output.status.success(), text))
}

/// Runs `command` as a whole step: its exit code is the verdict, its output the explanation.
pub(crate) fn judge(command: &mut Command) -> anyhow::Result<Verdict> {
    let (success, text) = capture(command)?;
    Ok(if success { Verdict::passed() } else { Verdict::Failed(text) })
}

/// Standard output of a command that must succeed, trimmed; `None` when it does not.
pub(crate) fn answer(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}

/// Runs `command` with our own input and output.
pub(crate) fn show(command: &mut Command) -> anyhow::Result<bool> {
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    Ok(status.success())
}
