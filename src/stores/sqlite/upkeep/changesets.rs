//! Changesets that nothing mentions: no kept run, key, table, named resource or stored blob.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use flowstone_model::blob::BlobHash;
use flowstone_model::ports::{Removed, StoreError};
use rusqlite::{Connection, params};

use super::super::blob;
use super::super::failure::failed;
use super::mentions::{self, Searched};

/// The text before the id in a changeset's name, in any workspace.
const BEGIN: &str = "/bundle/changeset/files/";
/// Maximum size of blobs that are searched; larger ones are not texts with references.
const READABLE: i64 = 16 << 20;

/// Returns the ids of changesets that were last written before a time and that nothing mentions.
pub(super) fn unmentioned(
    db: &Connection,
    blobs: &Path,
    before_ms: i64,
) -> Result<Vec<String>, StoreError> {
    let mut found: HashSet<String> = db
        .prepare_cached("SELECT id FROM changeset WHERE updated_ms < ?1")
        .and_then(|mut sql| sql.query_map([before_ms], |row| row.get(0))?.collect())
        .map_err(failed)?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let places = Searched {
        begin: BEGIN,
        without: &["changeset", "changeset_entry"],
    };
    mentions::remove_mentioned(db, &places, &mut found, &remove_names)?;
    remove_mentioned_in_blobs(db, blobs, &mut found)?;
    let mut found: Vec<String> = found.into_iter().collect();
    found.sort_unstable();
    Ok(found)
}

fn remove_names(text: &str, found: &mut HashSet<String>) {
    for (at, begin) in text.match_indices(BEGIN) {
        let rest = &text[at + begin.len()..];
        let end = rest.find(|it: char| !it.is_ascii_alphanumeric() && it != '-' && it != '_');
        found.remove(&rest[..end.unwrap_or(rest.len())]);
    }
}

/// Removes the ids that stored values mention: the database has only the names of these blobs.
fn remove_mentioned_in_blobs(
    db: &Connection,
    blobs: &Path,
    found: &mut HashSet<String>,
) -> Result<(), StoreError> {
    if found.is_empty() {
        return Ok(());
    }
    let mut sql = db
        .prepare_cached(
            "SELECT DISTINCT hash FROM resource WHERE kind <> 'tree' AND gone IS NULL AND size <= ?1",
        )
        .map_err(failed)?;
    let mut rows = sql.query([READABLE]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let place = blob::place(blobs, &BlobHash(row.get(0).map_err(failed)?));
        // A blob without a file mentions nothing.
        let Some(bytes) = place.ok().and_then(|place| fs::read(place).ok()) else {
            continue;
        };
        remove_names(&String::from_utf8_lossy(&bytes), found);
    }
    Ok(())
}

/// Removes changesets, except those that were written since, or that are mentioned by a run that was added since.
/// Returns their number; bytes are not counted.
pub(super) fn remove(
    db: &Connection,
    ids: &[String],
    (before_ms, since_ms): (i64, i64),
) -> Result<Removed, StoreError> {
    let mut find = db
        .prepare_cached(
            "SELECT num FROM changeset WHERE id = ?1 AND updated_ms < ?2
               AND NOT EXISTS (SELECT 1 FROM run WHERE created_ms >= ?3 AND instr(input, ?1) > 0)",
        )
        .map_err(failed)?;
    let mut entries = db
        .prepare_cached("DELETE FROM changeset_entry WHERE changeset = ?1")
        .map_err(failed)?;
    let mut itself = db
        .prepare_cached("DELETE FROM changeset WHERE num = ?1")
        .map_err(failed)?;
    let mut all = Removed::default();
    for id in ids {
        let found = find
            .query_map(params![id, before_ms, since_ms], |row| row.get::<_, i64>(0))
            .and_then(Iterator::collect::<rusqlite::Result<Vec<i64>>>)
            .map_err(failed)?;
        for num in found {
            entries.execute([num]).map_err(failed)?;
            itself.execute([num]).map_err(failed)?;
            all.count += 1;
        }
    }
    Ok(all)
}
