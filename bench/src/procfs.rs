//! CPU time and memory of processes, from `/proc`.

use anyhow::Context as _;
use std::fs;

/// Unit of the times in `/proc/<pid>/stat`: Linux shows every program 100 a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// The fields of `/proc/<pid>/stat` that are of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    own_ticks: u64,
    reaped_ticks: u64,
}

impl Stat {
    fn read(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        // The second field is a name in parentheses that may hold anything, even parentheses.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            parent: u32::try_from(number(1)?).ok()?,
            own_ticks: number(11)? + number(12)?,
            reaped_ticks: number(13)? + number(14)?,
        })
    }
}

/// CPU seconds of one process so far.
pub(crate) fn cpu_seconds(pid: u32) -> anyhow::Result<f64> {
    let stat = Stat::read(pid).with_context(|| format!("process {pid} is gone"))?;
    Ok(seconds(stat.own_ticks))
}

/// CPU seconds of a process and its children, living and ended. Grows monotonically: a child that
/// ends moves from one sum to the other.
pub(crate) fn family_cpu_seconds(parent: u32) -> anyhow::Result<f64> {
    let stat = Stat::read(parent).with_context(|| format!("process {parent} is gone"))?;
    let living: u64 = processes()?
        .filter_map(Stat::read)
        .filter(|child| child.parent == parent)
        .map(|child| child.own_ticks)
        .sum();
    Ok(seconds(stat.own_ticks + stat.reaped_ticks + living))
}

/// The parent of a process, when it runs the same program.
pub(crate) fn parent_of_same_program(pid: u32) -> Option<u32> {
    let parent = Stat::read(pid)?.parent;
    let program = |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    (program(pid)? == program(parent)?).then_some(parent)
}

/// Most memory a process ever held, in MB.
pub(crate) fn peak_rss_mb(pid: u32) -> anyhow::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))
        .with_context(|| format!("process {pid} is gone"))?;
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_ascii_whitespace().next()?.parse::<f64>().ok());
    Ok(kilobytes.context("the kernel does not tell VmHWM")? / 1024.0)
}

fn processes() -> anyhow::Result<impl Iterator<Item = u32>> {
    let entries = fs::read_dir("/proc").context("this needs Linux' /proc")?;
    Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()))
}

#[expect(clippy::cast_precision_loss, reason = "2^52 ticks are a million years")]
fn seconds(ticks: u64) -> f64 {
    ticks as f64 / TICKS_PER_SECOND
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_parentheses_does_not_shift_the_fields() {
        let line = "42 (a) (b)) S 7 42 42 0 -1 4194304 1 2 3 4 150 50 30 20 20 0 9 0 123";
        let expected = Stat { parent: 7, own_ticks: 200, reaped_ticks: 50 };
        assert_eq!(Stat::parse(line), Some(expected));
    }

    #[test]
    fn this_process_has_memory_and_a_missing_one_is_an_error() {
        assert!(peak_rss_mb(std::process::id()).unwrap() > 0.5);
        assert!(cpu_seconds(std::process::id()).is_ok());
        assert!(cpu_seconds(u32::MAX).is_err());
    }
}
