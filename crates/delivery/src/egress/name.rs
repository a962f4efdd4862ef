//! Which host names may be asked for.

use super::policy::PolicyError;

/// Longest name and label the DNS can carry.
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// Last labels that never name a public host. `localhost` is judged apart.
const SPECIAL_SUFFIXES: [&str; 11] = [
    "local",
    "localdomain",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "svc",
    "onion",
    "consul",
];

/// Special although its last label is not.
const SPECIAL_DOMAINS: [&str; 1] = ["home.arpa"];

/// A name the operator opened: itself, or with a leading dot every name below it. Its addresses
/// still need to be public or in the allow list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedName(String);

impl AllowedName {
    /// Parses `receiver`, `hooks.svc.cluster.local` or `.svc.cluster.local`.
    ///
    /// # Errors
    /// When it is not a host name.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let name = text.trim().to_ascii_lowercase();
        if is_well_formed(name.strip_prefix('.').unwrap_or(&name)) {
            Ok(Self(name))
        } else {
            Err(PolicyError::Name(text.to_owned()))
        }
    }

    pub(super) fn covers(&self, name: &str) -> bool {
        if self.0.starts_with('.') { name.ends_with(&self.0) } else { name == self.0 }
    }
}

/// What a well-formed name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameKind {
    /// `localhost` or below: always this machine, never asked of a resolver.
    Localhost,
    /// Single-label or special: resolved by search lists, multicast or the cluster.
    Special,
    /// Everything else.
    Public,
}

/// Letters, digits, hyphens and underscores in labels of the right size. Expects lower case
/// without the trailing dot, as the URL parser gives it.
pub(super) fn is_well_formed(name: &str) -> bool {
    name.len() <= MAX_NAME
        && name.split('.').all(|label| {
            (1..=MAX_LABEL).contains(&label.len())
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        })
}

pub(super) fn kind(name: &str) -> NameKind {
    let Some((parents, last)) = name.rsplit_once('.') else {
        return if name == "localhost" { NameKind::Localhost } else { NameKind::Special };
    };
    if last == "localhost" {
        return NameKind::Localhost;
    }
    let parent = parents.rsplit_once('.').map_or(parents, |(_, parent)| parent);
    let is_special = SPECIAL_SUFFIXES.contains(&last)
        || SPECIAL_DOMAINS.iter().any(|domain| domain.split_once('.') == Some((parent, last)));
    if is_special { NameKind::Special } else { NameKind::Public }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fall_into_their_kinds() {
        for (name, expected) in [
            ("localhost", NameKind::Localhost),
            ("a.b.localhost", NameKind::Localhost),
            ("notlocalhost", NameKind::Special),
            ("postgres", NameKind::Special),
            ("db.default.svc", NameKind::Special),
            ("x.home.arpa", NameKind::Special),
            ("home.arpa", NameKind::Special),
            ("arpa.example", NameKind::Public),
            ("local.example.com", NameKind::Public),
        ] {
            assert_eq!(kind(name), expected, "{name}");
        }
    }

    #[test]
    fn names_too_long_for_the_dns_are_not_well_formed() {
        assert!(is_well_formed(&format!("{}.com", "a".repeat(63))));
        assert!(!is_well_formed(&format!("{}.com", "a".repeat(64))));
        assert!(is_well_formed(&["a"; 64].join(".")));
        assert!(!is_well_formed(&"a.".repeat(1000)));
        assert!(!is_well_formed(""));
    }

    #[test]
    fn an_allowed_name_covers_itself_or_what_is_below_its_dot() {
        let exact = AllowedName::parse("Receiver").unwrap();
        assert!(exact.covers("receiver") && !exact.covers("x.receiver"));
        let below = AllowedName::parse(".svc.cluster.local").unwrap();
        assert!(below.covers("a.b.svc.cluster.local") && !below.covers("svc.cluster.local"));
        assert!(!below.covers("evilsvc.cluster.local"));
        for wrong in ["", ".", "a..b", "a b", "http://x"] {
            assert!(AllowedName::parse(wrong).is_err(), "{wrong}");
        }
    }
}
