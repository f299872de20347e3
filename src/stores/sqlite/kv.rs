//! The key-value store. Expired keys are missing at once, and removed as others are written.

use flowstone_lang::value::Value;
use flowstone_model::codec::{decode, encode};
use flowstone_model::kv::{KvEntry, KvNumber, KvOp, KvSet, MAX_TTL, key_problem};
use flowstone_model::ports::StoreError;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::edn::MapText;
use super::failure::{failed, rejected, with_hint};

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

/// Makes a change and returns its result as EDN text. To be called inside a transaction.
///
/// # Errors
/// [`StoreError::Rejected`] when the operation is wrong: nothing is changed then.
pub fn apply(db: &Connection, op: &KvOp, now_ms: i64) -> Result<String, StoreError> {
    sweep(db, now_ms)?;
    match op {
        KvOp::Set(set) => put(db, set, now_ms),
        KvOp::Delete { key } => {
            check_key(key)?;
            let deleted = db
                .prepare_cached("DELETE FROM kv WHERE key = ?1")
                .and_then(|mut sql| sql.execute([key]))
                .map_err(failed)?;
            Ok(envelope(key).bool("deleted?", deleted > 0).finish())
        }
        KvOp::Increment { key, by } => increment(db, key, *by, now_ms),
        KvOp::Append {
            key,
            items,
            max_length,
            max_value,
        } => append(db, (key, items), (*max_length, *max_value), now_ms),
    }
}

/// Returns the value under a key, as EDN text.
///
/// # Errors
/// When the database cannot be read.
pub fn get(db: &Connection, key: &str, now_ms: i64) -> Result<Option<String>, StoreError> {
    Ok(entry(db, key, now_ms)?.map(|entry| entry.value))
}

/// Returns what is kept under a key.
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
    db.prepare_cached(
        "DELETE FROM kv WHERE key IN (SELECT key FROM kv WHERE expires_ms <= ?1 LIMIT 100)",
    )
    .and_then(|mut sql| sql.execute([now_ms]))
    .map(drop)
    .map_err(failed)
}

fn put(db: &Connection, set: &KvSet, now_ms: i64) -> Result<String, StoreError> {
    check_key(&set.key)?;
    let there = get(db, &set.key, now_ms)?.is_some();
    if !(there && set.if_not_exists) {
        let expires = set.ttl_seconds.map(|ttl| expiry(ttl, now_ms)).transpose()?;
        check_size(&set.key, ("value", &set.value), set.max_value)?;
        if let Some(metadata) = &set.metadata {
            check_size(&set.key, ("metadata", metadata), set.max_value)?;
        }
        store(
            db,
            (&set.key, &set.value),
            (set.metadata.as_deref(), expires),
            now_ms,
        )?;
    }
    Ok(match &set.answer {
        Some(answer) => answer.clone(),
        None => envelope(&set.key).bool("created?", !there).finish(),
    })
}

fn expiry(ttl: i64, now_ms: i64) -> Result<i64, StoreError> {
    if !(1..=MAX_TTL).contains(&ttl) {
        return Err(rejected(
            "E0612",
            "bad-config",
            format!("`:ttl` is from 1 to {MAX_TTL} seconds, and {ttl} is not"),
        ));
    }
    Ok(now_ms.saturating_add(ttl * 1000))
}

fn increment(db: &Connection, key: &str, by: KvNumber, now_ms: i64) -> Result<String, StoreError> {
    check_key(key)?;
    let before = match get(db, key, now_ms)? {
        Some(text) => stored(key, &text)?,
        None => Value::Int(0),
    };
    let after = match (&before, by) {
        (Value::Int(before), KvNumber::Int(by)) => before.checked_add(by).map(Value::Int),
        (Value::Int(before), KvNumber::Float(by)) => Some(Value::Float(*before as f64 + by)),
        (Value::Float(before), KvNumber::Int(by)) => Some(Value::Float(before + by as f64)),
        (Value::Float(before), KvNumber::Float(by)) => Some(Value::Float(before + by)),
        (other, _) => {
            let message = format!(
                "`{key}` holds {}, which cannot be incremented",
                other.kind()
            );
            let error = rejected("E0611", "conflict", message);
            return Err(with_hint(
                error,
                "set it to a number first, or use another key",
            ));
        }
    };
    let Some(after) = after else {
        let message = format!("incrementing `{key}` goes beyond the largest integer");
        return Err(rejected("E0611", "conflict", message));
    };
    if matches!(after, Value::Float(after) if !after.is_finite()) {
        let message = format!("incrementing `{key}` goes beyond the largest double");
        return Err(rejected("E0611", "conflict", message));
    }
    let (before, after) = (edn(&before)?, edn(&after)?);
    change(db, key, &after, now_ms)?;
    Ok(envelope(key)
        .raw("value", &after)
        .raw("previous", &before)
        .finish())
}

fn append(
    db: &Connection,
    (key, added): (&str, &[String]),
    (max_length, max_value): (usize, usize),
    now_ms: i64,
) -> Result<String, StoreError> {
    check_key(key)?;
    let before = match get(db, key, now_ms)? {
        Some(text) => stored(key, &text)?,
        None => Value::vector([]),
    };
    let Some(before) = before.as_vector() else {
        let message = format!(
            "`{key}` holds {}, and items are appended to a vector",
            before.kind()
        );
        return Err(with_hint(
            rejected("E0611", "conflict", message),
            "set it to a vector first, or use another key",
        ));
    };
    let mut items = before.iter().map(edn).collect::<Result<Vec<_>, _>>()?;
    items.extend_from_slice(added);
    let dropped = items.len().saturating_sub(max_length);
    items.drain(..dropped);
    let after = super::edn::vector(&items);
    check_size(key, ("value", &after), max_value)?;
    change(db, key, &after, now_ms)?;
    Ok(envelope(key)
        .count("count", items.len())
        .count("dropped", dropped)
        .finish())
}

/// Replaces a value; what is beside it stays.
fn change(db: &Connection, key: &str, value: &str, now_ms: i64) -> Result<(), StoreError> {
    let kept = db
        .prepare_cached("SELECT metadata, expires_ms FROM kv WHERE key = ?1 AND (expires_ms IS NULL OR expires_ms > ?2)")
        .and_then(|mut sql| sql.query_row(params![key, now_ms], |row| Ok((row.get(0)?, row.get(1)?))).optional())
        .map_err(failed)?;
    let (metadata, expires): (Option<String>, Option<i64>) = kept.unwrap_or_default();
    store(db, (key, value), (metadata.as_deref(), expires), now_ms)
}

fn store(
    db: &Connection,
    (key, value): (&str, &str),
    (metadata, expires): (Option<&str>, Option<i64>),
    now_ms: i64,
) -> Result<(), StoreError> {
    db.prepare_cached(
        "INSERT INTO kv (key, value, metadata, expires_ms, created_ms, updated_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?5)
         ON CONFLICT (key) DO UPDATE SET value = ?2, metadata = ?3, expires_ms = ?4, updated_ms = ?5",
    )
    .and_then(|mut sql| sql.execute(params![key, value, metadata, expires, now_ms]))
    .map(drop)
    .map_err(failed)
}

fn check_size(key: &str, (what, text): (&str, &str), most: usize) -> Result<(), StoreError> {
    if text.len() <= most {
        return Ok(());
    }
    let message = format!(
        "the {what} for `{key}` has {} bytes, and at most {most} fit",
        text.len()
    );
    let error = rejected("E0613", "too-large", message);
    Err(with_hint(
        error,
        "store it with `:persist {:type :blob}`, and keep the reference here",
    ))
}

fn check_key(key: &str) -> Result<(), StoreError> {
    match key_problem(key) {
        None => Ok(()),
        Some(problem) => Err(rejected("E0610", "bad-config", problem)),
    }
}

/// Reads the value of a key.
fn stored(key: &str, text: &str) -> Result<Value, StoreError> {
    decode(text).map_err(|error| StoreError::unreadable(&format!("the value of `{key}`"), &error))
}

fn envelope(key: &str) -> MapText {
    MapText::new().bool("success", true).text("key", key)
}

fn edn(value: &Value) -> Result<String, StoreError> {
    encode(value).map_err(|error| StoreError::Internal(error.to_string()))
}
