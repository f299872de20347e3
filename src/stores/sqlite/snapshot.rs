//! Several queries that see the same state of the file.

use flowstone_model::ports::StoreError;
use rusqlite::Connection;

use super::failure::failed;

/// A transaction of statements that only read, or nothing within another transaction.
pub(super) struct Snapshot<'a>(Option<&'a Connection>);

impl Snapshot<'_> {
    /// Begins a transaction, which ends when the snapshot is dropped.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn begin(db: &Connection) -> Result<Snapshot<'_>, StoreError> {
        if !db.is_autocommit() {
            return Ok(Snapshot(None));
        }
        let begun = db
            .prepare_cached("BEGIN")
            .and_then(|mut sql| sql.execute([]));
        begun.map_err(failed)?;
        Ok(Snapshot(Some(db)))
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        let Some(db) = self.0 else {
            return;
        };
        // There is nothing to write, so that it can only fail where SQLite has ended the transaction itself.
        let _ = db
            .prepare_cached("COMMIT")
            .and_then(|mut sql| sql.execute([]));
    }
}
