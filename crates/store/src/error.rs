//! Driver errors, sorted into "try again" and "a bug", by code and never by text.

use sea_orm::{DbErr, RuntimeErr};
use std::{borrow::Cow, error::Error as StdError};
use turnbuckle_domain::StoreError;

type Cause = Box<dyn StdError + Send + Sync>;

/// SQLSTATE codes that pass by themselves. Two characters name a class, five a single code.
mod sqlstate {
    /// The connection broke or could not be made.
    const CONNECTION: &str = "08";
    /// Rolled back by a conflict: serialization failure, dead-lock.
    const ROLLED_BACK: &str = "40";
    /// Disk, memory or connections are used up.
    const RESOURCES: &str = "53";
    /// An operator's doing: shut-down, start-up, statement timeout.
    const OPERATOR: &str = "57";
    /// A lock timeout.
    const LOCK_NOT_AVAILABLE: &str = "55P03";
    /// The server ended a transaction that was idle.
    const IDLE_IN_TRANSACTION: &str = "25P03";
    /// We reached a standby: a fail-over is under way.
    const READ_ONLY: &str = "25006";
    /// The storage of the server failed.
    const IO: &str = "58030";

    pub(super) fn passes(code: &str) -> bool {
        [CONNECTION, ROLLED_BACK, RESOURCES, OPERATOR].iter().any(|class| code.starts_with(class))
            || [LOCK_NOT_AVAILABLE, IDLE_IN_TRANSACTION, READ_ONLY, IO].contains(&code)
    }
}

/// SQLite result codes that pass by themselves.
mod sqlite {
    /// An extended code holds its primary code in the lowest byte.
    const PRIMARY: i32 = 0xff;
    /// Another connection writes, for longer than the busy timeout.
    const BUSY: i32 = 5;
    /// Another statement of the same process holds the table.
    const LOCKED: i32 = 6;
    /// The disk is full.
    const FULL: i32 = 13;

    pub(super) fn passes(code: &str) -> bool {
        code.parse::<i32>().is_ok_and(|code| matches!(code & PRIMARY, BUSY | LOCKED | FULL))
    }
}

/// A SQLSTATE has five characters, an extended SQLite code at most four digits.
const SQLSTATE_LENGTH: usize = 5;

/// What a database says about a failed statement, without its detail and hint: those quote rows, and
/// rows hold URLs and headers that may be credentials (I7).
#[derive(Debug, thiserror::Error)]
#[error("{message} (code {code}, table {table}, constraint {constraint})")]
struct Failure {
    code: String,
    message: String,
    table: String,
    constraint: String,
}

/// Sorts an error of a statement made with sqlx.
pub(crate) fn sqlx_error(error: sqlx::Error) -> StoreError {
    let passes = passes(&error);
    sort(passes, failure(&error).unwrap_or_else(|| error.into()))
}

/// Sorts an error of a statement made with sea-orm.
pub(crate) fn store_error(error: DbErr) -> StoreError {
    let (passes, failure) = match driver_error(&error) {
        Some(inner) => (passes(inner), failure(inner)),
        None => (matches!(error, DbErr::ConnectionAcquire(_) | DbErr::Conn(_)), None),
    };
    sort(passes, failure.unwrap_or_else(|| error.into()))
}

/// Whether a unique index refused a row.
pub(crate) fn is_unique_violation(error: &DbErr) -> bool {
    // sqlx decides by SQLSTATE 23505, and by SQLite's extended codes 1555 and 2067.
    matches!(
        driver_error(error),
        Some(sqlx::Error::Database(database)) if database.is_unique_violation()
    )
}

fn sort(passes: bool, cause: Cause) -> StoreError {
    if passes { StoreError::Unavailable(cause) } else { StoreError::Internal(cause) }
}

fn driver_error(error: &DbErr) -> Option<&sqlx::Error> {
    match error {
        DbErr::Conn(RuntimeErr::SqlxError(inner))
        | DbErr::Exec(RuntimeErr::SqlxError(inner))
        | DbErr::Query(RuntimeErr::SqlxError(inner)) => Some(inner),
        _ => None,
    }
}

fn passes(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        // A peer that closes in the middle of a message, as a proxy before a lost server does.
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(database) => database.code().is_some_and(|code| code_passes(&code)),
        _ => false,
    }
}

fn code_passes(code: &str) -> bool {
    if code.len() == SQLSTATE_LENGTH { sqlstate::passes(code) } else { sqlite::passes(code) }
}

fn failure(error: &sqlx::Error) -> Option<Cause> {
    let sqlx::Error::Database(database) = error else {
        return None;
    };
    Some(Box::new(Failure {
        code: database.code().map(Cow::into_owned).unwrap_or_default(),
        message: database.message().to_owned(),
        table: database.table().unwrap_or("-").to_owned(),
        constraint: database.constraint().unwrap_or("-").to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_pass_by_themselves_are_told_from_bugs() {
        for code in ["08006", "40001", "40P01", "53300", "57P01", "57014", "55P03", "25006"] {
            assert!(code_passes(code), "{code}");
        }
        // Busy, busy with a stale snapshot, locked, full.
        for code in ["5", "517", "262", "13"] {
            assert!(code_passes(code), "{code}");
        }
        for code in ["23505", "23514", "42P01", "22P02", "2067", "1555", "275", ""] {
            assert!(!code_passes(code), "{code}");
        }
    }

    #[test]
    fn a_lost_connection_is_unavailable_and_a_wrong_column_is_a_bug() {
        let lost = sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into());
        assert!(matches!(sqlx_error(lost), StoreError::Unavailable(_)));
        assert!(matches!(sqlx_error(sqlx::Error::PoolTimedOut), StoreError::Unavailable(_)));
        let closed = sqlx::Error::Protocol("unexpected response from SSLRequest: 0x00".into());
        assert!(matches!(sqlx_error(closed), StoreError::Unavailable(_)));
        let wrong = sqlx::Error::ColumnNotFound("url".into());
        assert!(matches!(sqlx_error(wrong), StoreError::Internal(_)));
        let wrong = DbErr::Type("not a number".into());
        assert!(matches!(store_error(wrong), StoreError::Internal(_)));
    }
}
