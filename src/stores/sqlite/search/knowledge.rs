//! Copies of the index of documents and memories in another database.

use flowstone_model::ports::{SearchTarget, StoreError};
use rusqlite::{Connection, params};

use super::super::copied::{Known, copy_rows};
use super::super::failure::failed;

/// Copies the documents of the target with their vectors. The other database has none. Must run in a transaction of each.
///
/// # Errors
/// When a database cannot be read or written.
pub(crate) fn copy(from: &Connection, to: &Connection) -> Result<(), StoreError> {
    let target = SearchTarget::Knowledge.name();
    let model: String = from
        .query_row(
            "SELECT value FROM search_mark WHERE name = 'model'",
            [],
            |row| row.get(0),
        )
        .map_err(failed)?;
    let marked = "UPDATE search_mark SET value = ?1 WHERE name = 'model'";
    to.execute(marked, params![model]).map_err(failed)?;
    let embedded = "SELECT embedded FROM search_doc WHERE target = ?1";
    let parts = [
        ("search_embedding", format!("num IN ({embedded})")),
        ("search_vector", format!("embedding IN ({embedded})")),
        ("search_doc", "target = ?1".to_owned()),
    ];
    for (table, condition) in &parts {
        copy_rows(from, to, table, (condition, &target), Known::None)?;
    }
    Ok(())
}

/// Tells whether a document has the text with a hash.
///
/// # Errors
/// When the database cannot be read.
pub(crate) fn has_text(db: &Connection, hash: &str) -> Result<bool, StoreError> {
    db.prepare_cached("SELECT 1 FROM search_doc WHERE hash = ?1")
        .and_then(|mut sql| sql.exists([hash]))
        .map_err(failed)
}
