//! The key-value store. Expired keys count as missing at once, and are removed when others are written.

use flowstone_model::kv::{KvEntry, KvOp};
use flowstone_model::ports::StoreError;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::failure::failed;
use crate::kv::{self, Change};

/// The tables of this part.
pub const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS kv (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    metadata TEXT,
    expires_ms INTEGER,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS kv_expires ON kv (expires_ms) WHERE expires_ms IS NOT NULL;
";

/// Makes a change and returns its result as EDN text. Must run in a transaction.
///
/// # Errors
/// [`StoreError::Rejected`] when the operation is invalid: then nothing is changed.
pub fn apply(db: &Connection, op: &KvOp, now_ms: i64) -> Result<String, StoreError> {
    sweep(db, now_ms)?;
    let found = entry(db, kv::key(op), now_ms)?;
    let (change, answer) = kv::change(op, found, now_ms)?;
    match change {
        Change::None => {}
        Change::Put(entry) => store(db, kv::key(op), &entry, now_ms)?,
        Change::Remove => remove(db, kv::key(op))?,
    }
    Ok(answer)
}

/// Returns the value under a key, as EDN text.
///
/// # Errors
/// When the database cannot be read.
pub fn get(db: &Connection, key: &str, now_ms: i64) -> Result<Option<String>, StoreError> {
    Ok(entry(db, key, now_ms)?.map(|entry| entry.value))
}

/// Returns the entry of a key: its value, metadata and expiry.
///
/// # Errors
/// When the database cannot be read.
pub fn entry(db: &Connection, key: &str, now_ms: i64) -> Result<Option<KvEntry>, StoreError> {
    db.prepare_cached(
        "SELECT value, metadata, expires_ms FROM kv WHERE key = ?1 AND (expires_ms IS NULL OR expires_ms > ?2)",
    )
    .and_then(|mut sql| {
        sql.query_row(params![key, now_ms], |row| {
            Ok(KvEntry {
                value: row.get(0)?,
                metadata: row.get(1)?,
                expires_ms: row.get(2)?,
            })
        })
        .optional()
    })
    .map_err(failed)
}

/// Returns the keys that start with a prefix, sorted.
///
/// # Errors
/// When the database cannot be read.
pub fn list_keys(
    db: &Connection,
    prefix: &str,
    limit: usize,
    now_ms: i64,
) -> Result<Vec<String>, StoreError> {
    // Every character that a key may have sorts before `DEL`.
    let end = format!("{prefix}\u{7f}");
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut sql = db
        .prepare_cached(
            "SELECT key FROM kv WHERE key >= ?1 AND key < ?2 AND (expires_ms IS NULL OR expires_ms > ?3)
             ORDER BY key LIMIT ?4",
        )
        .map_err(failed)?;
    let keys = sql
        .query_map(params![prefix, end, now_ms, limit], |row| row.get(0))
        .map_err(failed)?;
    keys.collect::<Result<_, _>>().map_err(failed)
}

fn sweep(db: &Connection, now_ms: i64) -> Result<(), StoreError> {
    // A query costs a fraction of a statement that may delete, and mostly there is nothing to remove.
    let has_expired = db
        .prepare_cached("SELECT 1 FROM kv INDEXED BY kv_expires WHERE expires_ms <= ?1")
        .and_then(|mut sql| sql.exists([now_ms]))
        .map_err(failed)?;
    if !has_expired {
        return Ok(());
    }
    db.prepare_cached(
        "DELETE FROM kv WHERE key IN (SELECT key FROM kv WHERE expires_ms <= ?1 LIMIT 100)",
    )
    .and_then(|mut sql| sql.execute([now_ms]))
    .map(drop)
    .map_err(failed)
}

/// Stores the entry of a key.
///
/// # Errors
/// When the database cannot be written.
pub(super) fn store(
    db: &Connection,
    key: &str,
    entry: &KvEntry,
    now_ms: i64,
) -> Result<(), StoreError> {
    db.prepare_cached(
        "INSERT INTO kv (key, value, metadata, expires_ms, created_ms, updated_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?5)
         ON CONFLICT (key) DO UPDATE SET value = ?2, metadata = ?3, expires_ms = ?4, updated_ms = ?5",
    )
    .and_then(|mut sql| {
        let KvEntry {
            value,
            metadata,
            expires_ms,
        } = entry;
        sql.execute(params![key, value, metadata, expires_ms, now_ms])
    })
    .map(drop)
    .map_err(failed)
}

fn remove(db: &Connection, key: &str) -> Result<(), StoreError> {
    db.prepare_cached("DELETE FROM kv WHERE key = ?1")
        .and_then(|mut sql| sql.execute([key]))
        .map(drop)
        .map_err(failed)
}
