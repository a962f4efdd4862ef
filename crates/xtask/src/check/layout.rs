//! Rules about files that no compiler knows.

use crate::check::source::SourceFile;
use crate::step::Verdict;
use crate::workspace::{Package, Workspace};

/// A name that says "anything" attracts anything.
const REFUSED_NAMES: [&str; 6] = ["util", "utils", "helper", "helpers", "manager", "managers"];

/// Crates that may start tasks and read clocks: `runtime` because that is its work, the others
/// because they do not ship.
const MAY_SPAWN_AND_TELL_TIME: [&str; 6] = [
    "turnbuckle-runtime",
    "turnbuckle-testkit",
    "turnbuckle-tests",
    "turnbuckle-bench",
    "turnbuckle-pg-harness",
    "turnbuckle-xtask",
];

/// A task outside the supervisor may die unseen.
const BARE_SPAWNS: [&str; 3] = ["tokio::spawn(", "tokio::task::spawn(", "Handle::current().spawn("];

/// The one place that starts a task for whoever waits for it: a transaction has to be begun wholly
/// even when that one goes away, and how the task ends is told to the one who waits.
const MAY_SPAWN_AND_AWAIT: &str = "crates/store/src/immediate.rs";

pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<Verdict> {
    let mut complaints = Vec::new();
    for package in &workspace.packages {
        for file in SourceFile::of(package)? {
            let shown = workspace.shown(&file.path);
            let found = name_complaint(&file)
                .into_iter()
                .chain(opening_complaint(package, &file))
                .chain(code_complaints(package, &file));
            complaints.extend(found.map(|complaint| format!("{shown}{complaint}")));
        }
    }
    Ok(Verdict::from_complaints(&complaints))
}

fn name_complaint(file: &SourceFile) -> Option<String> {
    let stem = file.path.file_stem()?.to_str()?;
    let refused = stem.split('_').find(|word| REFUSED_NAMES.contains(word))?;
    Some(format!(": call it by what it does, not `{refused}`"))
}

fn opening_complaint(package: &Package, file: &SourceFile) -> Option<String> {
    let is_root = package.targets.iter().any(|target| {
        target.src_path == file.path
            && target.kind.iter().any(|kind| matches!(kind.as_str(), "lib" | "bin" | "test"))
    });
    (is_root && !file.text.starts_with("//!"))
        .then(|| ": a crate opens with `//!` and says what it is".to_owned())
}

fn code_complaints(package: &Package, file: &SourceFile) -> Vec<String> {
    if MAY_SPAWN_AND_TELL_TIME.contains(&package.name.as_str()) || file.is_test() {
        return Vec::new();
    }
    let imports_std_instant = imports_std_instant(&file.text);
    let awaits = file.path.ends_with(MAY_SPAWN_AND_AWAIT);
    file.product_lines()
        .filter(|(_, code)| !(awaits && code.contains(BARE_SPAWNS[0])))
        .filter_map(|(number, code)| {
            let what = code_complaint(code, imports_std_instant)?;
            Some(format!(":{number}: {what}"))
        })
        .collect()
}

fn code_complaint(code: &str, imports_std_instant: bool) -> Option<&'static str> {
    if BARE_SPAWNS.iter().any(|spawn| code.contains(spawn)) {
        return Some("tasks are started by runtime's supervisor");
    }
    if code.contains("SystemTime::now") {
        return Some("the wall clock is read through domain's Clock");
    }
    let std_instant = code.contains("std::time::Instant::now")
        || (imports_std_instant && code.contains("Instant::now"));
    // tokio's Instant stays allowed: tests can pause it.
    std_instant.then_some("use tokio's Instant, which tests can pause")
}

fn imports_std_instant(text: &str) -> bool {
    text.split("use std::").skip(1).any(|rest| {
        let import = rest.split(';').next().unwrap_or_default();
        import.contains("time::") && import.contains("Instant")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::source::sample;

    fn package(name: &str) -> Package {
        let json = serde_json::json!({
            "name": name,
            "manifest_path": "/w/x/Cargo.toml",
            "dependencies": [],
            "targets": [{ "kind": ["lib"], "src_path": "/w/x/src/lib.rs" }],
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_bare_spawn_is_refused_outside_runtime_and_tests() {
        let text = "fn f() {\n    tokio::spawn(g());\n}\n";
        let file = sample("/w/x/src/lane.rs", text);
        let complaints = code_complaints(&package("turnbuckle-delivery"), &file);
        assert_eq!(complaints, [":2: tasks are started by runtime's supervisor"]);
        assert!(code_complaints(&package("turnbuckle-runtime"), &file).is_empty());
        let test = sample("/w/x/tests/lane.rs", text);
        assert!(code_complaints(&package("turnbuckle-delivery"), &test).is_empty());
    }

    #[test]
    fn the_one_task_that_is_awaited_may_be_started() {
        let text = "fn f() {\n    tokio::spawn(g());\n    SystemTime::now();\n}\n";
        let store = package("turnbuckle-store");
        let other = sample("/w/crates/store/src/error.rs", text);
        assert_eq!(code_complaints(&store, &other).len(), 2);
        let one = sample("/w/crates/store/src/immediate.rs", text);
        assert_eq!(code_complaints(&store, &one).len(), 1);
    }

    #[test]
    fn only_the_instant_of_the_standard_library_is_refused() {
        let plane = package("turnbuckle-delivery");
        let std = sample("a.rs", "use std::time::{Duration, Instant};\nlet t = Instant::now();");
        let tokio =
            sample("a.rs", "use std::time::Duration;\nuse tokio::time::Instant;\nInstant::now();");
        assert_eq!(code_complaints(&plane, &std).len(), 1);
        assert!(code_complaints(&plane, &tokio).is_empty());
    }

    #[test]
    fn a_name_that_says_anything_is_refused() {
        assert!(name_complaint(&sample("src/string_utils.rs", "")).is_some());
        assert!(name_complaint(&sample("src/utility_rate.rs", "")).is_none());
    }

    #[test]
    fn a_crate_root_says_what_the_crate_is() {
        let package = package("turnbuckle-domain");
        assert!(opening_complaint(&package, &sample("/w/x/src/lib.rs", "mod a;")).is_some());
        assert!(opening_complaint(&package, &sample("/w/x/src/lib.rs", "//! Nouns.")).is_none());
        assert!(opening_complaint(&package, &sample("/w/x/src/a.rs", "mod b;")).is_none());
    }
}
