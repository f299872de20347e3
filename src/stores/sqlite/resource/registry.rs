//! Rows of the registry: finding, adding and removing them.

use flowstone_model::blob::{BlobHash, BlobRow};
use flowstone_model::ids::RunId;
use flowstone_model::ports::{Gone, ResourceRow, RunStatus, StoreError};
use flowstone_model::resource::{self, ResourceKind, ResourceName, SearchEntry, Tier};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::json;

use super::super::failure::{failed, rejected, with_hint};
use super::super::journal::number_range;
use super::super::payload;
use super::listing;

/// The columns of a [`ResourceRow`], in order.
pub(super) const COLUMNS: &str = "uri, kind, hash, size, filename, content_type, tier, created_ms, expires_ms, run, \
                                  path, bucket, folder, search, gone, gone_ms";

/// Reads a row of [`COLUMNS`]; an expired resource is gone.
pub(super) fn read(row: &Row<'_>, now_ms: i64) -> rusqlite::Result<ResourceRow> {
    let text = |idx: usize| row.get::<_, Option<String>>(idx);
    let expires_ms: Option<i64> = row.get(8)?;
    let gone = match (text(14)?.as_deref(), expires_ms) {
        (Some("deleted"), _) => Some(Gone::Deleted),
        (Some(_), _) => Some(Gone::Expired),
        (None, Some(expires_ms)) if expires_ms <= now_ms => Some(Gone::Expired),
        (None, _) => None,
    };
    let gone_ms: Option<i64> = row.get(15)?;
    Ok(ResourceRow {
        uri: row.get(0)?,
        kind: ResourceKind::from_name(&row.get::<_, String>(1)?).unwrap_or_default(),
        hash: text(2)?.filter(|hash| !hash.is_empty()).map(BlobHash),
        size: row
            .get::<_, Option<i64>>(3)?
            .and_then(|size| u64::try_from(size).ok()),
        name: text(4)?,
        content_type: text(5)?,
        tier: text(6)?
            .and_then(|tier| Tier::from_name(&tier))
            .unwrap_or_default(),
        created_ms: row.get(7)?,
        expires_ms,
        run: text(9)?,
        path: text(10)?,
        bucket: text(11)?,
        folder: text(12)?,
        search: text(13)?.as_deref().and_then(search_of),
        gone: gone.map(|why| (why, gone_ms.or(expires_ms).unwrap_or(0))),
    })
}

pub(in crate::sqlite) fn search_of(text: &str) -> Option<SearchEntry> {
    let json: serde_json::Value = serde_json::from_str(text).ok()?;
    let word = |key: &str| Some(json.get(key)?.as_str()?.to_owned());
    let tags = json.get("tags").and_then(|tags| tags.as_array());
    Some(SearchEntry {
        text: word("text"),
        tags: tags
            .into_iter()
            .flatten()
            .filter_map(|tag| tag.as_str().map(str::to_owned))
            .collect(),
        source_label: word("label"),
        without_contents: json.get("contents").and_then(serde_json::Value::as_bool) == Some(false),
    })
}

fn search_text(entry: &SearchEntry) -> String {
    let mut json = json!({"text": entry.text, "tags": entry.tags, "label": entry.source_label});
    if entry.without_contents {
        json["contents"] = false.into();
    }
    json.to_string()
}

/// Returns the resource that a name refers to, in the registry or elsewhere.
///
/// # Errors
/// When the database cannot be read.
pub fn find(db: &Connection, uri: &str, now_ms: i64) -> Result<Option<ResourceRow>, StoreError> {
    for uri in [uri, &resource::canonical(uri)] {
        if let Some(row) = registered(db, uri, now_ms)? {
            return Ok(Some(row));
        }
    }
    match ResourceName::read(uri) {
        Some(ResourceName::File(id) | ResourceName::Tree(id)) => by_end(db, &id, now_ms),
        Some(name) => listing::elsewhere(db, &name, now_ms),
        None => Ok(None),
    }
}

fn registered(db: &Connection, uri: &str, now_ms: i64) -> Result<Option<ResourceRow>, StoreError> {
    db.prepare_cached(&format!("SELECT {COLUMNS} FROM resource WHERE uri = ?1"))
        .and_then(|mut sql| sql.query_row([uri], |row| read(row, now_ms)).optional())
        .map_err(failed)
}

/// Finds a resource by the id at the end of its name, whatever precedes it.
fn by_end(db: &Connection, id: &str, now_ms: i64) -> Result<Option<ResourceRow>, StoreError> {
    db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM resource
         WHERE kind IN ('file', 'tree') AND substr(uri, -length(?1) - 1) = '/' || ?1
         ORDER BY created_ms DESC LIMIT 1"
    ))
    .and_then(|mut sql| sql.query_row([id], |row| read(row, now_ms)).optional())
    .map_err(failed)
}

/// Returns a registered blob that has not been removed, even if it has expired.
pub(in super::super) fn from_blob(
    db: &Connection,
    uri: &str,
) -> Result<Option<BlobRow>, StoreError> {
    for uri in [uri, &resource::canonical(uri)] {
        let row = registered(db, uri, i64::MIN)?;
        let blob = row.and_then(ResourceRow::into_blob);
        if blob.is_some() {
            return Ok(blob);
        }
    }
    Ok(None)
}

/// Registers a blob; a previous blob with its name is replaced.
///
/// # Errors
/// When the database cannot be written.
pub fn register(db: &Connection, blob: &BlobRow, now_ms: i64) -> Result<(), StoreError> {
    add(db, "REPLACE", blob, now_ms)
}

/// Registers an imported resource; an existing one with its name stays.
///
/// # Errors
/// When the database cannot be written.
pub fn keep(db: &Connection, blob: &BlobRow, now_ms: i64) -> Result<(), StoreError> {
    add(db, "IGNORE", blob, now_ms)
}

fn add(db: &Connection, on_conflict: &str, blob: &BlobRow, now_ms: i64) -> Result<(), StoreError> {
    let size = i64::try_from(blob.size).unwrap_or(i64::MAX);
    db.prepare_cached(&format!(
        "INSERT OR {on_conflict} INTO resource ({COLUMNS})
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, NULL, NULL)"
    ))
    .and_then(|mut sql| {
        sql.execute(params![
            blob.uri,
            blob.kind.name(),
            blob.hash.0,
            size,
            blob.filename,
            blob.content_type,
            blob.tier.name(),
            now_ms,
            blob.expires_ms,
            blob.run,
            blob.path,
            blob.bucket,
            blob.folder,
            blob.search.as_ref().map(search_text),
        ])
    })
    .map_err(failed)?;
    Ok(())
}

/// Removes the resource of a name. The bytes are removed when no other name has them.
///
/// # Errors
/// [`StoreError::Rejected`] for a resource that cannot be removed by its name, such as an output of a run.
pub fn delete(db: &Connection, uri: &str, now_ms: i64) -> Result<bool, StoreError> {
    let Some(row) = find(db, uri, now_ms)? else {
        return Ok(false);
    };
    if row.gone.is_some() {
        return Ok(false);
    }
    let deleted = match (row.kind, &row.hash) {
        (ResourceKind::Kv, _) => db
            .prepare_cached("DELETE FROM kv WHERE key = ?1")
            .and_then(|mut sql| sql.execute([&row.name])),
        (_, Some(_)) => db
            .prepare_cached(
                "UPDATE resource SET gone = 'deleted', gone_ms = ?2, hash = '', search = NULL WHERE uri = ?1",
            )
            .and_then(|mut sql| sql.execute(params![row.uri, now_ms])),
        (kind, None) => return Err(not_removed(uri, kind)),
    };
    deleted.map(|count| count > 0).map_err(failed)
}

/// Refuses to remove a resource that cannot be removed by its name.
pub(crate) fn not_removed(uri: &str, kind: ResourceKind) -> StoreError {
    let message = format!(
        "`{uri}` is a {}, which cannot be removed by its name",
        kind.name()
    );
    let hint = match kind {
        ResourceKind::StepOutput | ResourceKind::FlowOutput => {
            "it is removed with the run's journal, by `flowstone gc`"
        }
        _ => "the step that makes such resources removes them",
    };
    with_hint(rejected("E0617", "unsupported", message), hint)
}

/// Sets the search entry of a registered resource.
///
/// # Errors
/// When the database cannot be written.
pub fn describe(
    db: &Connection,
    uri: &str,
    search: Option<&SearchEntry>,
) -> Result<bool, StoreError> {
    let Some(row) = find(db, uri, i64::MIN)?.filter(|row| row.gone.is_none()) else {
        return Ok(false);
    };
    db.prepare_cached("UPDATE resource SET search = ?2 WHERE uri = ?1")
        .and_then(|mut sql| sql.execute(params![row.uri, search.map(search_text)]))
        .map(|count| count > 0)
        .map_err(failed)
}

/// Returns the runs that are not over and mention a name in their input or journal.
///
/// # Errors
/// When the database cannot be read.
pub fn needed_by(db: &Connection, uri: &str) -> Result<Vec<RunId>, StoreError> {
    let over: Vec<String> = RunStatus::NAMES
        .iter()
        .filter(|(status, _)| status.is_final())
        .map(|(_, name)| format!("'{name}'"))
        .collect();
    let mut sql = db
        .prepare_cached(&format!(
            "SELECT num, id, instr(input, ?1) > 0 FROM run WHERE status NOT IN ({}) ORDER BY id",
            over.join(", ")
        ))
        .map_err(failed)?;
    let mut rows = sql.query([uri]).map_err(failed)?;
    let mut runs = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        let (num, id): (i64, String) = (row.get(0).map_err(failed)?, row.get(1).map_err(failed)?);
        if row.get(2).map_err(failed)? || is_in_journal(db, num, uri)? {
            runs.push(RunId::from_text(id));
        }
    }
    Ok(runs)
}

fn is_in_journal(db: &Connection, run: i64, uri: &str) -> Result<bool, StoreError> {
    let mut sql = db
        .prepare_cached(
            "SELECT instr(coalesce(journal.payload, payload.text, ''), ?3) > 0, payload.parts
             FROM journal LEFT JOIN payload ON payload.hash = journal.blob WHERE journal.id BETWEEN ?1 AND ?2",
        )
        .map_err(failed)?;
    let (first, last) = number_range(run);
    let mut rows = sql.query(params![first, last, uri]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        if row.get(0).map_err(failed)? {
            return Ok(true);
        }
        let parts: Option<Vec<u8>> = row.get(1).map_err(failed)?;
        if let Some(parts) = parts
            && payload::assemble(db, &parts)?.contains(uri)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes the contents of expired resources. Returns their number.
pub(in super::super) fn expire(db: &Connection, now_ms: i64) -> Result<u64, StoreError> {
    db.prepare_cached(
        "UPDATE resource SET gone = 'expired', gone_ms = expires_ms, hash = '', search = NULL
         WHERE expires_ms <= ?1 AND gone IS NULL",
    )
    .and_then(|mut sql| sql.execute([now_ms]))
    .map(|count| count as u64)
    .map_err(failed)
}

/// Counts the expired resources that still have their contents.
pub(in super::super) fn count_expired(db: &Connection, now_ms: i64) -> Result<u64, StoreError> {
    db.prepare_cached("SELECT count(*) FROM resource WHERE expires_ms <= ?1 AND gone IS NULL")
        .and_then(|mut sql| sql.query_row([now_ms], |row| row.get::<_, i64>(0)))
        .map(i64::unsigned_abs)
        .map_err(failed)
}
