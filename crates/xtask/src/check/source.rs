//! The Rust files of the workspace, and which part of them is product code.

use std::path::{Path, PathBuf};

use crate::workspace::{Package, Workspace};

/// Directories that hold no source of ours.
const NOT_OURS: [&str; 2] = ["target", "node_modules"];

/// Where a test module begins; by convention it is the last thing in a file.
const TEST_MODULE: &str = "#[cfg(test)]\nmod tests {";

/// One Rust file.
#[derive(Debug)]
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    /// The path inside its package: the names above it say nothing about the file.
    within: PathBuf,
    pub(crate) text: String,
}

impl SourceFile {
    /// All files of a package, in a stable order.
    pub(crate) fn of(package: &Package) -> anyhow::Result<Vec<Self>> {
        let mut files = Vec::new();
        collect(package.directory(), Path::new(""), &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    /// All files of the workspace.
    pub(crate) fn all(workspace: &Workspace) -> anyhow::Result<Vec<Self>> {
        let mut files = Vec::new();
        for package in &workspace.packages {
            files.extend(Self::of(package)?);
        }
        Ok(files)
    }

    /// Whether the whole file exists only for tests.
    pub(crate) fn is_test(&self) -> bool {
        let is_test_name = |name: &str| matches!(name, "tests" | "benches" | "examples");
        self.within.components().any(|part| part.as_os_str().to_str().is_some_and(is_test_name))
            || self.path.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| {
                is_test_name(stem) || stem.ends_with("_tests") || stem.starts_with("test_")
            })
    }

    /// The numbered lines of product code: no test module, no comments.
    pub(crate) fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let end = self.text.find(TEST_MODULE).unwrap_or(self.text.len());
        self.text[..end].lines().enumerate().map(|(index, line)| {
            let code = line.split("//").next().unwrap_or_default();
            (index + 1, code)
        })
    }
}

fn collect(directory: &Path, within: &Path, files: &mut Vec<SourceFile>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_str().unwrap_or_default();
        if entry.file_type()?.is_dir() {
            if !name.starts_with('.') && !NOT_OURS.contains(&name) {
                collect(&path, &within.join(name), files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(SourceFile {
                text: std::fs::read_to_string(&path)?,
                within: within.join(name),
                path,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) fn sample(path: &str, text: &str) -> SourceFile {
    SourceFile { path: path.into(), within: path.into(), text: text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_the_test_module_are_not_product_code() {
        let file = sample("src/a.rs", "a(); // b()\n#[cfg(test)]\nmod tests {\n c();\n}\n");
        let lines: Vec<_> = file.product_lines().collect();
        assert_eq!(lines, [(1, "a(); ")]);
    }

    #[test]
    fn files_in_test_directories_are_tests() {
        assert!(sample("crates/x/tests/scenario.rs", "").is_test());
        assert!(sample("crates/x/src/lane/tests.rs", "").is_test());
        assert!(!sample("crates/x/src/latest.rs", "").is_test());
    }
}
