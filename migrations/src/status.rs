//! Which schema a database has.

use crate::Migrator;
use sea_orm_migration::{
    prelude::*,
    sea_orm::{DatabaseConnection, EntityTrait as _},
    seaql_migrations,
};
use std::collections::BTreeSet;

/// How the schema of a database compares to what this binary knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaStatus {
    /// Every migration is applied, and no other.
    Current,
    /// Some are missing: this binary cannot run before they are applied.
    Behind {
        /// The missing ones, oldest first.
        pending: Vec<String>,
    },
    /// A newer release has migrated further. A running binary goes on (expand and contract); one that
    /// starts refuses it, since it cannot know what a later migration took away.
    Ahead {
        /// The migrations this binary does not know, oldest first.
        unknown: Vec<String>,
    },
    /// Nothing was ever applied.
    Empty,
}

/// The newest migration this binary knows.
#[must_use]
pub fn expected_version() -> String {
    known().pop().unwrap_or_default()
}

/// Compares a database to this binary. Only reads, so a role without rights on the schema may ask.
///
/// # Errors
/// When the database does not answer.
pub async fn status(db: &DatabaseConnection) -> Result<SchemaStatus, DbErr> {
    Ok(compare(&known(), &applied(db).await?))
}

fn known() -> Vec<String> {
    Migrator::migrations().iter().map(|migration| migration.name().to_owned()).collect()
}

async fn applied(db: &DatabaseConnection) -> Result<Vec<String>, DbErr> {
    let table = Migrator::migration_table_name().to_string();
    if !SchemaManager::new(db).has_table(table).await? {
        return Ok(Vec::new());
    }
    let rows = seaql_migrations::Entity::find().all(db).await?;
    Ok(rows.into_iter().map(|row| row.version).collect())
}

fn compare(known: &[String], applied: &[String]) -> SchemaStatus {
    let missing_from = |have: &[String], wanted: &[String]| -> Vec<String> {
        let have: BTreeSet<&String> = have.iter().collect();
        let missing: BTreeSet<&String> =
            wanted.iter().filter(|version| !have.contains(version)).collect();
        missing.into_iter().cloned().collect()
    };
    if applied.is_empty() {
        return SchemaStatus::Empty;
    }
    let pending = missing_from(applied, known);
    if !pending.is_empty() {
        return SchemaStatus::Behind { pending };
    }
    let unknown = missing_from(known, applied);
    if unknown.is_empty() { SchemaStatus::Current } else { SchemaStatus::Ahead { unknown } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(numbers: &[u8]) -> Vec<String> {
        numbers.iter().map(|number| format!("m{number}")).collect()
    }

    #[test]
    fn a_database_is_compared_by_what_is_missing_on_either_side() {
        let known = names(&[1, 2]);
        for (applied, expected) in [
            (vec![], SchemaStatus::Empty),
            (vec![1, 2], SchemaStatus::Current),
            (vec![1], SchemaStatus::Behind { pending: names(&[2]) }),
            (vec![2, 3, 1], SchemaStatus::Ahead { unknown: names(&[3]) }),
            // What is missing matters more than what is unknown: this binary cannot run.
            (vec![1, 3], SchemaStatus::Behind { pending: names(&[2]) }),
        ] {
            assert_eq!(compare(&known, &names(&applied)), expected, "{applied:?}");
        }
    }

    #[test]
    fn the_expected_version_is_the_newest() {
        let mut sorted = known();
        sorted.sort();
        assert_eq!(sorted, known(), "names sort in the order they are applied");
        assert_eq!(sorted.last(), Some(&expected_version()));
    }
}
