//! Names of blobs that nothing mentions, found by searching every text of the database.

use std::collections::HashSet;

use flowstone_model::ports::StoreError;
use flowstone_model::resource::uris_in;
use rusqlite::{Connection, params};

use super::super::failure::failed;
use super::mentions::{self, Searched};

/// The prefix of resource names.
const BEGIN: &str = "res://";

/// Returns the names that were created before a time and that no row of any other table mentions. Uploaded files stay
/// until they are removed explicitly.
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
    let places = Searched {
        begin: BEGIN,
        without: &["resource"],
    };
    mentions::remove_mentioned(db, &places, &mut found, &|text, found| {
        for uri in uris_in(text) {
            found.remove(uri);
        }
    })?;
    let mut found: Vec<String> = found.into_iter().collect();
    found.sort_unstable();
    Ok(found)
}

/// Removes names, except those mentioned by a run that was added since the search.
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
