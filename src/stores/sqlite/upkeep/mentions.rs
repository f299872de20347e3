//! Searches every text of the database for names: what is mentioned nowhere may be removed.

use std::collections::HashSet;

use flowstone_model::ports::StoreError;
use rusqlite::Connection;

use super::super::failure::failed;
use super::super::payload;

/// The texts to search.
pub(super) struct Searched<'a> {
    /// A text without this string mentions nothing.
    pub begin: &'a str,
    /// Tables that are not searched.
    pub without: &'a [&'a str],
}

/// Removes the names that a text mentions.
pub(super) type RemoveNames<'a> = &'a dyn Fn(&str, &mut HashSet<String>);

/// Removes from `found` the names that a row of any table mentions. Index tables are skipped: their texts are in other
/// tables.
pub(super) fn remove_mentioned(
    db: &Connection,
    places: &Searched<'_>,
    found: &mut HashSet<String>,
    remove_names: RemoveNames<'_>,
) -> Result<(), StoreError> {
    for (table, column) in texts(db)? {
        if found.is_empty() {
            return Ok(());
        }
        if places.without.contains(&table.as_str()) {
            continue;
        }
        let mut sql = db
            .prepare(&format!(
                "SELECT CAST(\"{column}\" AS TEXT) FROM \"{table}\" WHERE instr(\"{column}\", ?1) > 0"
            ))
            .map_err(failed)?;
        let mut rows = sql.query([places.begin]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let text: String = row.get(0).map_err(failed)?;
            remove_names(&text, found);
        }
    }
    remove_mentioned_in_pieces(db, found, remove_names)
}

/// Returns every column that may hold text.
fn texts(db: &Connection) -> Result<Vec<(String, String)>, StoreError> {
    let mut sql = db
        .prepare_cached(
            "SELECT tables.name, columns.name
             FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
             WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
               AND tables.name NOT LIKE 'search\\_%' ESCAPE '\\'
               AND columns.type NOT IN ('INTEGER', 'REAL')
             ORDER BY 1, 2",
        )
        .map_err(failed)?;
    let rows = sql
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(failed)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)
}

/// Searches large texts as a whole: a name may be split between two pieces.
fn remove_mentioned_in_pieces(
    db: &Connection,
    found: &mut HashSet<String>,
    remove_names: RemoveNames<'_>,
) -> Result<(), StoreError> {
    if found.is_empty() {
        return Ok(());
    }
    let mut sql = db
        .prepare_cached("SELECT parts FROM payload WHERE parts IS NOT NULL")
        .map_err(failed)?;
    let mut rows = sql.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let parts: Vec<u8> = row.get(0).map_err(failed)?;
        let text = payload::assemble(db, &parts)?;
        if found.is_empty() {
            break;
        }
        remove_names(&text, found);
    }
    Ok(())
}
