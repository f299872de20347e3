//! Names of blobs that nothing mentions: looked for in every text of the database.

use std::collections::HashSet;

use flowstone_engine::archive::uris_in;
use flowstone_engine::ports::StoreError;
use rusqlite::{Connection, params};

use super::super::failure::failed;
use super::super::payload;

/// What a name begins with.
const BEGIN: &str = "res://";

/// Returns the names that were made before a moment and that no row of any other table mentions. Files that somebody
/// uploaded stay until somebody removes them.
pub(super) fn unmentioned(db: &Connection, before_ms: i64) -> Result<Vec<String>, StoreError> {
    let mut found: HashSet<String> = HashSet::new();
    {
        let mut sql = db
            .prepare_cached("SELECT uri FROM resource WHERE created_ms < ?1 AND (kind <> 'file' OR gone IS NOT NULL)")
            .map_err(failed)?;
        let rows = sql
            .query_map([before_ms], |row| row.get(0))
            .map_err(failed)?;
        for uri in rows {
            found.insert(uri.map_err(failed)?);
        }
    }
    for (table, column) in texts(db)? {
        if found.is_empty() {
            break;
        }
        strike_out(db, &table, &column, &mut found)?;
    }
    if !found.is_empty() {
        strike_out_pieces(db, &mut found)?;
    }
    let mut found: Vec<String> = found.into_iter().collect();
    found.sort_unstable();
    Ok(found)
}

/// Returns every column that may hold text. What is only indexed is mentioned elsewhere.
fn texts(db: &Connection) -> Result<Vec<(String, String)>, StoreError> {
    let mut sql = db
        .prepare_cached(
            "SELECT tables.name, columns.name
             FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
             WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
               AND tables.name NOT LIKE 'search\\_%' ESCAPE '\\' AND tables.name <> 'resource'
               AND columns.type NOT IN ('INTEGER', 'REAL')
             ORDER BY 1, 2",
        )
        .map_err(failed)?;
    let rows = sql
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(failed)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)
}

fn strike_out(
    db: &Connection,
    table: &str,
    column: &str,
    found: &mut HashSet<String>,
) -> Result<(), StoreError> {
    let mut sql = db
        .prepare(&format!(
            "SELECT CAST(\"{column}\" AS TEXT) FROM \"{table}\" WHERE instr(\"{column}\", ?1) > 0"
        ))
        .map_err(failed)?;
    let mut rows = sql.query([BEGIN]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let text: String = row.get(0).map_err(failed)?;
        for uri in uris_in(&text) {
            found.remove(uri);
        }
    }
    Ok(())
}

/// A name may be cut in two where a large text is cut into pieces.
fn strike_out_pieces(db: &Connection, found: &mut HashSet<String>) -> Result<(), StoreError> {
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
        for uri in uris_in(&text) {
            found.remove(uri);
        }
    }
    Ok(())
}

/// Removes names, except those that a run mentions which was added since they were looked for.
pub(super) fn remove(db: &Connection, uris: &[String], since_ms: i64) -> Result<u64, StoreError> {
    let mut sql = db
        .prepare_cached(
            "DELETE FROM resource WHERE uri = ?1
               AND NOT EXISTS (SELECT 1 FROM run WHERE created_ms >= ?2 AND instr(input, ?1) > 0)",
        )
        .map_err(failed)?;
    let mut count = 0;
    for uri in uris {
        count += sql.execute(params![uri, since_ms]).map_err(failed)? as u64;
    }
    Ok(count)
}
