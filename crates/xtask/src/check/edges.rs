//! Which crate may depend on which: the architecture, as a table.
//!
//! Only normal and build dependencies count. Tests may reach across (the testkit exists for that).

use crate::step::Verdict;
use crate::workspace::{Package, Workspace};

const PREFIX: &str = "turnbuckle-";

/// Crate → crates of ours it may use, all without prefix.
const ALLOWED: [(&str, &[&str]); 18] = [
    ("domain", &[]),
    ("signing", &[]),
    ("schema", &[]),
    ("proto", &[]),
    ("migrations", &[]),
    ("pg-harness", &[]),
    ("store", &["domain", "migrations"]),
    ("runtime", &["domain"]),
    // Both ends of the stream that brings configuration to nodes: what is sent, and the port that
    // planes read from. Planes know the port only, except for the one that serves the stream.
    ("config-stream", &["client", "domain", "proto", "runtime"]),
    ("control-plane", &CONTROL_PLANE),
    ("delivery", &SCHEMA_PLANE),
    ("ingress", &PLANE),
    ("client", &["proto", "signing"]),
    ("server", &SERVER),
    ("testkit", &["domain", "signing", "pg-harness"]),
    ("xtask", &["pg-harness"]),
    ("bench", &["client", "pg-harness", "proto", "signing", "testkit"]),
    ("tests", &["domain", "signing", "proto", "client", "testkit"]),
];

/// A plane gets ports, never another plane and never the store behind them.
const PLANE: [&str; 4] = ["domain", "proto", "runtime", "signing"];

/// Planes that also check schemas, or payloads against them.
const SCHEMA_PLANE: [&str; 5] = ["domain", "proto", "runtime", "schema", "signing"];

/// The plane that serves the stream of configuration.
const CONTROL_PLANE: [&str; 6] =
    ["config-stream", "domain", "proto", "runtime", "schema", "signing"];

/// The binary wires everything that ships.
const SERVER: [&str; 12] = [
    "config-stream",
    "domain",
    "signing",
    "schema",
    "proto",
    "migrations",
    "store",
    "runtime",
    "control-plane",
    "delivery",
    "ingress",
    "client",
];

/// Crates that speak SQL, and who may name them.
const SQL: [&str; 3] = ["sea-orm", "sqlx", "rusqlite"];
const MAY_SPEAK_SQL: [&str; 2] = ["store", "migrations"];
/// It makes and drops databases, which no ORM is needed for.
const MAY_USE_SQLX: &str = "testkit";

/// Crates that speak to a network, and who must not know them.
const TRANSPORT: [&str; 3] = ["tonic", "axum", "hyper"];
const NO_TRANSPORT: [&str; 5] = ["domain", "signing", "schema", "store", "migrations"];

pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<Verdict> {
    let complaints: Vec<String> = workspace.packages.iter().flat_map(complaints_about).collect();
    Ok(Verdict::from_complaints(&complaints))
}

fn complaints_about(package: &Package) -> Vec<String> {
    let name = package.name.strip_prefix(PREFIX).unwrap_or(&package.name);
    let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
        return vec![format!("{name}: no rule says what it may depend on; add one to edges.rs")];
    };
    package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind.as_deref() != Some("dev"))
        .filter_map(|dependency| objection(name, allowed, &dependency.name))
        .collect()
}

fn objection(name: &str, allowed: &[&str], dependency: &str) -> Option<String> {
    if let Some(ours) = dependency.strip_prefix(PREFIX) {
        let refused = !allowed.contains(&ours);
        return refused.then(|| format!("{name} must not depend on {ours}"));
    }
    let sqlx_of_testkit = name == MAY_USE_SQLX && dependency == "sqlx";
    if is_one_of(dependency, &SQL) && !MAY_SPEAK_SQL.contains(&name) && !sqlx_of_testkit {
        return Some(format!("{name} must not speak SQL ({dependency}): only the store does"));
    }
    if is_one_of(dependency, &TRANSPORT) && NO_TRANSPORT.contains(&name) {
        return Some(format!("{name} must not know a transport ({dependency})"));
    }
    None
}

/// `tonic` stands for `tonic-types` and its other companions too.
fn is_one_of(dependency: &str, families: &[&str]) -> bool {
    families.iter().any(|family| {
        dependency.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(package: &str, dependencies: &[(&str, Option<&str>)]) -> Vec<String> {
        let dependencies: Vec<_> = dependencies
            .iter()
            .map(|(name, kind)| serde_json::json!({ "name": name, "kind": kind }))
            .collect();
        let metadata = serde_json::json!({
            "workspace_root": "/w",
            "target_directory": "/w/target",
            "packages": [{
                "name": package,
                "manifest_path": "/w/x/Cargo.toml",
                "dependencies": dependencies,
                "targets": [],
            }],
        });
        let workspace = Workspace::parse(metadata.to_string().as_bytes()).unwrap();
        workspace.packages.iter().flat_map(complaints_about).collect()
    }

    #[test]
    fn a_plane_may_not_use_the_store_or_another_plane() {
        let complaints = verdict(
            "turnbuckle-delivery",
            &[
                ("turnbuckle-domain", None),
                ("turnbuckle-store", None),
                ("turnbuckle-ingress", Some("build")),
            ],
        );
        assert_eq!(
            complaints,
            ["delivery must not depend on store", "delivery must not depend on ingress"]
        );
    }

    #[test]
    fn dev_dependencies_may_cross_the_line() {
        let dependencies = [("turnbuckle-testkit", Some("dev")), ("sqlx", Some("dev"))];
        assert!(verdict("turnbuckle-domain", &dependencies).is_empty());
        assert_eq!(verdict("turnbuckle-server", &[("turnbuckle-testkit", None)]).len(), 1);
    }

    #[test]
    fn only_the_store_and_the_migrations_speak_sql_and_testkit_may_use_sqlx() {
        assert!(verdict("turnbuckle-store", &[("sea-orm", None), ("rusqlite", None)]).is_empty());
        assert!(verdict("turnbuckle-migrations", &[("sea-orm-migration", None)]).is_empty());
        assert!(verdict("turnbuckle-testkit", &[("sqlx", None)]).is_empty());
        assert_eq!(verdict("turnbuckle-testkit", &[("sea-orm", None)]).len(), 1);
        assert_eq!(verdict("turnbuckle-server", &[("sea-orm", None)]).len(), 1);
    }

    #[test]
    fn companions_of_a_transport_are_refused_and_lookalikes_are_not() {
        assert_eq!(verdict("turnbuckle-store", &[("tonic-types", None)]).len(), 1);
        assert!(verdict("turnbuckle-signing", &[("hyperlocal", None)]).is_empty());
    }

    #[test]
    fn a_crate_without_a_rule_is_refused() {
        assert_eq!(verdict("turnbuckle-extras", &[]).len(), 1);
    }

    #[test]
    fn the_planes_do_not_see_each_other_in_the_table() {
        let planes = ["control-plane", "delivery", "ingress", "store"];
        assert!(PLANE.iter().chain(&SCHEMA_PLANE).all(|allowed| !planes.contains(allowed)));
    }
}
