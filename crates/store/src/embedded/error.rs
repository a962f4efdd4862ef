//! Errors of the embedded store's own driver and files, sorted like those of the other backend.

use rusqlite::ErrorCode;
use turnbuckle_domain::StoreError;

/// Sorts an error of a statement made with rusqlite.
pub(crate) fn sqlite_error(error: rusqlite::Error) -> StoreError {
    let passing = matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
        )
    );
    if passing { StoreError::Unavailable(error.into()) } else { StoreError::Internal(error.into()) }
}

/// An error of the file system around the database.
pub(crate) fn io_error(error: std::io::Error) -> StoreError {
    StoreError::Internal(error.into())
}
