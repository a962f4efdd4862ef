//! Field masks: which fields an update means.

use prost_types::FieldMask;
use std::collections::BTreeSet;
use turnbuckle_domain::Violations;

/// Where the mask stands in requests.
const FIELD: &str = "update_mask";

/// All fields a caller can change.
const EVERYTHING: &str = "*";

/// Paths of every resource that are the server's: named or not, they are not changed.
const OUTPUT_ONLY: [&str; 8] =
    ["name", "uid", "create_time", "update_time", "etag", "revision", "delete_time", "purge_time"];

/// Enough of a bad path to recognise it, and no more.
const SHOWN_CHARS: usize = 70;

/// What a resource's mask may hold.
pub(super) struct Fields<'a> {
    /// Paths that can be changed, each with whether the request sets it.
    pub(super) changeable: &'a [(&'static str, bool)],
    /// Further paths that are the server's.
    pub(super) output_only: &'a [&'static str],
    /// Paths that are fixed once created.
    pub(super) fixed: &'a [&'static str],
}

/// The paths an update means.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mask(BTreeSet<&'static str>);

impl Mask {
    /// Reads a mask. Without one the fields that are set are meant; `*` means all.
    pub(super) fn read(
        mask: Option<FieldMask>,
        fields: &Fields<'_>,
        violations: &mut Violations,
    ) -> Self {
        let paths = mask.map(|mask| mask.paths).unwrap_or_default();
        if paths.is_empty() {
            let set = fields.changeable.iter().filter(|(_, set)| *set);
            return Self(set.map(|(path, _)| *path).collect());
        }
        if paths.iter().any(|path| path == EVERYTHING) {
            if paths.len() > 1 {
                violations.add(FIELD, "has * among other paths; use * alone");
            }
            return Self(fields.changeable.iter().map(|(path, _)| *path).collect());
        }
        let mut meant = BTreeSet::new();
        for path in &paths {
            match fields.changeable.iter().find(|(known, _)| known == path) {
                Some((known, _)) => drop(meant.insert(*known)),
                None => fields.judge_other(path, violations),
            }
        }
        Self(meant)
    }

    /// Whether the path is meant.
    pub(super) fn has(&self, path: &str) -> bool {
        self.0.contains(path)
    }
}

impl Fields<'_> {
    fn judge_other(&self, path: &str, violations: &mut Violations) {
        if OUTPUT_ONLY.contains(&path) || self.output_only.contains(&path) {
            return;
        }
        let shown: String = path.chars().take(SHOWN_CHARS).collect();
        if self.fixed.contains(&path) {
            violations.add(FIELD, format!("has {shown:?}, which is fixed once created"));
            return;
        }
        let allowed: Vec<&str> = self.changeable.iter().map(|(path, _)| *path).collect();
        violations.add(FIELD, format!("has {shown:?}; use {}, or *", allowed.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: Fields<'_> = Fields {
        changeable: &[
            ("display_name", true),
            ("labels", false),
            ("http", false),
            ("http.url", true),
        ],
        output_only: &["state"],
        fixed: &["endpoint"],
    };

    fn read(paths: &[&str]) -> (Mask, String) {
        let mut violations = Violations::new();
        let mask = FieldMask { paths: paths.iter().map(|path| (*path).to_owned()).collect() };
        let mask = Mask::read(Some(mask), &FIELDS, &mut violations);
        let text =
            if violations.is_empty() { String::new() } else { violations.into_error().to_string() };
        (mask, text)
    }

    #[test]
    fn a_missing_mask_means_the_fields_that_are_set() {
        let mut violations = Violations::new();
        let missing = Mask::read(None, &FIELDS, &mut violations);
        assert_eq!(missing, Mask(BTreeSet::from(["display_name", "http.url"])));
        assert_eq!(read(&[]), (missing, String::new()));
        assert!(violations.is_empty());
    }

    #[test]
    fn a_named_path_is_meant_whether_set_or_not() {
        assert_eq!(read(&["labels", "labels"]), (Mask(BTreeSet::from(["labels"])), String::new()));
    }

    #[test]
    fn a_star_means_everything_and_stands_alone() {
        let (mask, text) = read(&["*"]);
        assert!(["display_name", "labels", "http", "http.url"].iter().all(|path| mask.has(path)));
        assert_eq!(text, "");
        assert!(read(&["*", "labels"]).1.contains("use * alone"));
    }

    #[test]
    fn output_only_paths_are_ignored() {
        for path in ["name", "uid", "etag", "revision", "create_time", "update_time", "state"] {
            assert_eq!(read(&[path]), (Mask(BTreeSet::new()), String::new()), "{path}");
        }
    }

    #[test]
    fn unknown_and_fixed_paths_are_refused_all_at_once() {
        let (_, text) = read(&["labels", "displayName", "endpoint", "http.host"]);
        assert!(text.contains("\"displayName\"; use display_name, labels, http, http.url, or *"));
        assert!(text.contains("\"endpoint\", which is fixed once created"), "{text}");
        assert!(text.contains("\"http.host\""), "{text}");
    }
}
