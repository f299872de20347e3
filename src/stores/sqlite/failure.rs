//! Translates errors of SQLite to those of the ports.

use std::path::Path;

use flowstone_model::ports::StoreError;
use rusqlite::{Error, ErrorCode};

pub(super) use crate::failure::{rejected, with_hint};

/// Returns the [`StoreError`] for an error of SQLite.
pub(super) fn failed(error: Error) -> StoreError {
    let path = "of this project".to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy,
        Some(ErrorCode::DiskFull) => StoreError::Full { path },
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Damaged {
            path,
            detail: error.to_string(),
        },
        Some(ErrorCode::NotADatabase) => StoreError::NotADatabase { path },
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly { path },
        // A file beside the database could not be opened, for example because no handle is left.
        Some(ErrorCode::CannotOpen) => StoreError::Unreachable {
            path,
            detail: error.to_string(),
        },
        Some(ErrorCode::SystemIoFailure) => StoreError::Disk {
            path,
            detail: error.to_string(),
        },
        _ => StoreError::Internal(error.to_string()),
    }
}

/// Returns why a database could not be opened. SQLite does not report the reason, so the file is opened to find it.
pub(super) fn unopened(error: &Error, file: &Path) -> StoreError {
    match std::fs::File::open(file) {
        Err(tried) if tried.kind() != std::io::ErrorKind::NotFound => {
            StoreError::of_file(file, &tried)
        }
        _ => StoreError::Unreachable {
            path: file.display().to_string(),
            detail: error.to_string(),
        },
    }
}

/// Adds the path of the file to an error.
pub(super) fn located(error: StoreError, file: &Path) -> StoreError {
    let path = file.display().to_string();
    match error {
        StoreError::Full { .. } => StoreError::Full { path },
        StoreError::Unreachable { detail, .. } => match std::fs::File::open(file) {
            Err(tried) if tried.kind() != std::io::ErrorKind::NotFound => {
                StoreError::of_file(file, &tried)
            }
            _ => StoreError::Unreachable { path, detail },
        },
        StoreError::Damaged { detail, .. } => StoreError::Damaged { path, detail },
        StoreError::NotADatabase { .. } => StoreError::NotADatabase { path },
        StoreError::ReadOnly { .. } => StoreError::ReadOnly { path },
        StoreError::Disk { detail, .. } => StoreError::Disk { path, detail },
        other => other,
    }
}
