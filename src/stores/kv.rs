//! The effect of an operation on the key-value store: a pure function, the same for every store.

use flowstone_lang::value::Value;
use flowstone_model::codec::{decode, encode};
use flowstone_model::kv::{KvEntry, KvNumber, KvOp, KvSet, MAX_TTL, key_problem};
use flowstone_model::ports::StoreError;

use crate::edn as edn_text;
use crate::edn::MapText;
use crate::failure::{rejected, with_hint};

/// The change of a key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    None,
    Put(KvEntry),
    Remove,
}

/// Returns the key of an operation.
pub(crate) fn key(op: &KvOp) -> &str {
    match op {
        KvOp::Set(set) => &set.key,
        KvOp::Delete { key } | KvOp::Increment { key, .. } | KvOp::Append { key, .. } => key,
    }
}

/// Returns the change of an operation, and its result as EDN text. `found`: the entry of the key, unless it has
/// expired.
pub(crate) fn change(
    op: &KvOp,
    found: Option<KvEntry>,
    now_ms: i64,
) -> Result<(Change, String), StoreError> {
    check_key(key(op))?;
    match op {
        KvOp::Set(set) => put(set, found.is_some(), now_ms),
        KvOp::Delete { key } => {
            let answer = envelope(key).bool("deleted?", found.is_some()).finish();
            Ok((Change::Remove, answer))
        }
        KvOp::Increment { key, by } => increment(key, *by, found),
        KvOp::Append {
            key,
            items,
            max_length,
            max_value,
        } => append((key, items), (*max_length, *max_value), found),
    }
}

fn put(set: &KvSet, is_there: bool, now_ms: i64) -> Result<(Change, String), StoreError> {
    let answer = match &set.answer {
        Some(answer) => answer.clone(),
        None => envelope(&set.key).bool("created?", !is_there).finish(),
    };
    if is_there && set.if_not_exists {
        return Ok((Change::None, answer));
    }
    let expires_ms = set.ttl_seconds.map(|ttl| expiry(ttl, now_ms)).transpose()?;
    check_size(&set.key, ("value", &set.value), set.max_value)?;
    if let Some(metadata) = &set.metadata {
        check_size(&set.key, ("metadata", metadata), set.max_value)?;
    }
    let entry = KvEntry {
        value: set.value.clone(),
        metadata: set.metadata.clone(),
        expires_ms,
    };
    Ok((Change::Put(entry), answer))
}

fn expiry(ttl: i64, now_ms: i64) -> Result<i64, StoreError> {
    if !(1..=MAX_TTL).contains(&ttl) {
        return Err(rejected(
            "E0612",
            "bad-config",
            format!("`:ttl` must be from 1 to {MAX_TTL} seconds, got {ttl}"),
        ));
    }
    Ok(now_ms.saturating_add(ttl * 1000))
}

fn increment(
    key: &str,
    by: KvNumber,
    found: Option<KvEntry>,
) -> Result<(Change, String), StoreError> {
    let before = match &found {
        Some(entry) => stored(key, &entry.value)?,
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
    let answer = envelope(key)
        .raw("value", &after)
        .raw("previous", &before)
        .finish();
    Ok((with_value(found, after), answer))
}

fn append(
    (key, added): (&str, &[String]),
    (max_length, max_value): (usize, usize),
    found: Option<KvEntry>,
) -> Result<(Change, String), StoreError> {
    let before = match &found {
        Some(entry) => stored(key, &entry.value)?,
        None => Value::vector([]),
    };
    let Some(before) = before.as_vector() else {
        let message = format!(
            "`{key}` holds {}, but items can only be appended to a vector",
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
    let after = edn_text::vector(&items);
    check_size(key, ("value", &after), max_value)?;
    let answer = envelope(key)
        .count("count", items.len())
        .count("dropped", dropped)
        .finish();
    Ok((with_value(found, after), answer))
}

/// Replaces a value; its metadata and expiry stay.
fn with_value(found: Option<KvEntry>, value: String) -> Change {
    let (metadata, expires_ms) = found.map_or((None, None), |it| (it.metadata, it.expires_ms));
    Change::Put(KvEntry {
        value,
        metadata,
        expires_ms,
    })
}

fn check_size(key: &str, (what, text): (&str, &str), most: usize) -> Result<(), StoreError> {
    if text.len() <= most {
        return Ok(());
    }
    let message = format!(
        "the {what} for `{key}` has {} bytes, but at most {most} are allowed",
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
