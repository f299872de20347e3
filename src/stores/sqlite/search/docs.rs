//! The texts of the index: storing, reading and removing them. Changes must run in a transaction.

use flowstone_model::codec::digest_bytes;
use flowstone_model::ports::{SearchDoc, SearchTarget, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::Value as Json;

use super::super::failure::failed;

/// Number of documents that are removed in one transaction when all are removed.
const PART: i64 = 500;

/// Whether a document may still change without a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    No,
    Open,
}

pub(crate) fn versions(
    db: &Connection,
    target: SearchTarget,
) -> Result<Vec<(String, String)>, StoreError> {
    let mut sql = db
        .prepare_cached("SELECT id, version FROM search_doc WHERE target = ?1 ORDER BY id")
        .map_err(failed)?;
    let rows = sql
        .query_map([target.name()], |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(failed)?;
    rows.collect::<rusqlite::Result<_>>().map_err(failed)
}

pub(crate) fn put(
    db: &Connection,
    target: SearchTarget,
    doc: &SearchDoc,
    ends: Ends,
) -> Result<(), StoreError> {
    remove(db, target, &doc.id)?;
    let hash = digest_bytes(embedded_text(&doc.title, &doc.tags, &doc.body).as_bytes());
    db.prepare_cached(
        "INSERT INTO search_doc (target, id, version, is_open, title, tags, body, facts, hash, embedded)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,
                 (SELECT num FROM search_embedding
                  WHERE hash = ?9 AND model = (SELECT value FROM search_mark WHERE name = 'model')))",
    )
    .and_then(|mut sql| {
        sql.execute(params![
            target.name(),
            doc.id,
            doc.version,
            ends == Ends::Open,
            doc.title,
            doc.tags,
            doc.body,
            facts_text(&doc.facts),
            hash
        ])
    })
    .map_err(failed)?;
    Ok(())
}

/// Stores documents of a target, each in place of the one with its id, and removes others.
pub(crate) fn replace(
    db: &Connection,
    target: SearchTarget,
    docs: &[SearchDoc],
    gone: &[String],
) -> Result<(), StoreError> {
    gone.iter().try_for_each(|id| remove(db, target, id))?;
    docs.iter()
        .try_for_each(|doc| put(db, target, doc, Ends::No))
}

/// Returns the text from which vectors are computed.
pub(crate) fn embedded_text(title: &str, tags: &str, body: &str) -> String {
    let parts = [title, tags, body];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

fn facts_text(facts: &[(String, String)]) -> String {
    let facts = facts
        .iter()
        .map(|(key, value)| (key.clone(), Json::String(value.clone())));
    Json::Object(facts.collect()).to_string()
}

/// Reads stored facts.
pub(crate) fn facts(text: &str) -> Vec<(String, String)> {
    match serde_json::from_str(text) {
        Ok(Json::Object(facts)) => facts
            .into_iter()
            .filter_map(|(key, value)| Some((key, value.as_str()?.to_owned())))
            .collect(),
        _ => Vec::new(),
    }
}

pub(crate) fn remove(db: &Connection, target: SearchTarget, id: &str) -> Result<(), StoreError> {
    db.prepare_cached("DELETE FROM search_doc WHERE target = ?1 AND id = ?2")
        .and_then(|mut sql| sql.execute([target.name(), id]))
        .map_err(failed)?;
    Ok(())
}

pub(crate) fn find(
    db: &Connection,
    target: SearchTarget,
    id: &str,
) -> Result<Option<SearchDoc>, StoreError> {
    db.prepare_cached(
        "SELECT id, version, title, tags, body, facts FROM search_doc WHERE target = ?1 AND id = ?2",
    )
    .and_then(|mut sql| sql.query_row([target.name(), id], doc).optional())
    .map_err(failed)
}

fn doc(row: &Row<'_>) -> rusqlite::Result<SearchDoc> {
    Ok(SearchDoc {
        id: row.get(0)?,
        version: row.get(1)?,
        title: row.get(2)?,
        tags: row.get(3)?,
        body: row.get(4)?,
        facts: facts(&row.get::<_, String>(5)?),
    })
}

/// Marks the resource with a name, if it exists, for indexing again.
pub(crate) fn redo(db: &Connection, uri: &str) -> Result<u64, StoreError> {
    remove(db, SearchTarget::Resources, uri)?;
    db.prepare_cached("INSERT OR IGNORE INTO search_todo SELECT uri FROM resource WHERE uri = ?1")
        .and_then(|mut sql| sql.execute([uri]))
        .map_err(failed)?;
    db.prepare_cached("SELECT count(*) FROM search_todo WHERE uri = ?1")
        .and_then(|mut sql| sql.query_row([uri], |row| row.get::<_, i64>(0)))
        .map(|count| count.unsigned_abs())
        .map_err(failed)
}

/// Removes some documents; tells whether there may be more.
pub(crate) fn clear_part(db: &Connection) -> Result<bool, StoreError> {
    let removed = db
        .prepare_cached(
            "DELETE FROM search_doc WHERE num IN (SELECT num FROM search_doc ORDER BY num LIMIT ?1)",
        )
        .and_then(|mut sql| sql.execute([PART]))
        .map_err(failed)?;
    Ok(removed as i64 == PART)
}

/// Deletes the full-text tables, even damaged ones, and creates them again.
pub(crate) fn redo_all(db: &Connection) -> Result<u64, StoreError> {
    for target in SearchTarget::EVERY {
        let name = target.name();
        db.execute_batch(&format!(
            "INSERT INTO search_{name} (search_{name}) VALUES ('rebuild')"
        ))
        .map_err(failed)?;
    }
    db.execute_batch(
        "DELETE FROM search_doc;
         UPDATE search_mark SET value = 0 WHERE name = 'runs';
         INSERT OR IGNORE INTO search_todo SELECT uri FROM resource;",
    )
    .map_err(failed)?;
    db.query_row(
        "SELECT (SELECT count(*) FROM search_todo) + (SELECT count(*) FROM run)",
        [],
        |row| row.get::<_, i64>(0),
    )
    .map(i64::unsigned_abs)
    .map_err(failed)
}
