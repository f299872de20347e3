//! Import and export of CSV files.
//!
//! A file is staged first, outside of the thread that writes: copied into the blobs as UTF-8, split, and the types of
//! its columns inferred. The change that imports it then only reads the copy, which keeps the transaction short.

mod cell;
mod export;
mod import;
mod split;
mod stage;

use std::path::PathBuf;

use flowstone_model::blob::BlobHash;
use flowstone_model::ports::StoreError;
use rusqlite::Connection;

use self::split::SplitError;
use super::super::blob;
use super::super::failure::{rejected, with_hint};
use crate::edn::MapText;

pub(in crate::sqlite) use export::export;
pub(super) use import::import;
pub(in crate::sqlite) use stage::stage;

/// A row that does not fit.
pub(super) struct BadRow {
    pub line: u64,
    pub column: Option<String>,
    pub reason: String,
}

impl BadRow {
    fn width(line: u64, found: usize, expected: usize) -> BadRow {
        BadRow {
            line,
            column: None,
            reason: format!("it has {}, and should have {expected}", fields(found)),
        }
    }

    fn torn(line: u64, field: usize) -> BadRow {
        BadRow {
            line,
            column: None,
            reason: format!("there is text after the closing quote of field {field}"),
        }
    }

    fn error(&self) -> StoreError {
        let column = self
            .column
            .as_ref()
            .map_or_else(String::new, |column| format!(", column `{column}`"));
        let message = format!(
            "line {}{column} of the CSV text: {}",
            self.line, self.reason
        );
        with_hint(
            rejected("E0642", "invalid", message),
            "correct the file, or leave such rows out with `:on-bad-row :skip`, or `:collect` to have them listed",
        )
    }

    fn edn(&self) -> String {
        let map = MapText::new().raw("line", &self.line.to_string());
        let map = match &self.column {
            Some(column) => map.text("column", column),
            None => map,
        };
        map.text("reason", &self.reason).finish()
    }
}

fn fields(count: usize) -> String {
    match count {
        1 => "1 field".to_owned(),
        count => format!("{count} fields"),
    }
}

fn unreadable(error: SplitError) -> StoreError {
    match error {
        SplitError::Io(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            let error = rejected("E0641", "invalid", error.to_string());
            with_hint(
                error,
                "name the encoding that it has, as in `:encoding \"latin1\"`",
            )
        }
        SplitError::Io(error) => StoreError::Unreachable {
            path: "the CSV text".to_owned(),
            detail: error.to_string(),
        },
        SplitError::Unclosed { line, field } => {
            let message = format!(
                "line {line} of the CSV text, field {field}: a quote is opened here and never closed"
            );
            with_hint(
                rejected("E0643", "invalid", message),
                "close it, or double it if it is part of the text",
            )
        }
        SplitError::TooLarge { line, field } => {
            let message = format!(
                "line {line} of the CSV text, field {field}: it is larger than {} MB",
                split::MAX_FIELD >> 20
            );
            with_hint(
                rejected("E0643", "too-large", message),
                "a quote or the end of a line may be missing, or the delimiter is a different one",
            )
        }
    }
}

/// Returns the path of a blob, beside the database.
fn place_of(db: &Connection, hash: &BlobHash) -> Result<PathBuf, StoreError> {
    let home = db.path().map(PathBuf::from);
    let folder = home
        .as_deref()
        .and_then(|path| path.parent())
        .map(|folder| folder.join(super::super::BLOBS))
        .ok_or_else(|| StoreError::Internal("the database has no folder".to_owned()))?;
    blob::place(&folder, hash)
}
