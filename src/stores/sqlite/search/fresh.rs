//! Updates the index with runs and resources, in parts; each part is a transaction.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use flowstone_model::blob::BlobHash;
use flowstone_model::ports::{Refreshed, RunStatus, SearchDoc, SearchTarget, StoreError};
use flowstone_model::resource::{PREFIX, SearchEntry};
use flowstone_model::sealed::split;
use flowstone_model::search::{TEXT_MAX, cut, may_be_text, start_of};
use rusqlite::{Connection, Row, params};

use super::super::failure::failed;
use super::super::{Sqlite, blob, resource};
use super::docs::{self, Ends};

/// Maximum number of documents that are stored in one transaction.
const PART: usize = 200;
/// Maximum number of bytes of a run's input, and of its result, that are indexed.
const VALUE_MAX: usize = 8 << 10;

pub(super) async fn refresh(store: &Sqlite, most: usize) -> Result<Refreshed, StoreError> {
    let mut done = Refreshed {
        indexed: tables(store).await?,
        left: 0,
    };
    loop {
        let limit = PART.min(most.saturating_sub(done.indexed as usize));
        if limit == 0 {
            done.left = store.read_aside(left).await?;
            return Ok(done);
        }
        let count = some_resources(store, limit).await?;
        if count == 0 {
            break;
        }
        done.indexed += count;
    }
    loop {
        let limit = PART.min(most.saturating_sub(done.indexed as usize));
        if limit == 0 {
            done.left = store.read_aside(left).await?;
            return Ok(done);
        }
        let count = some_runs(store, limit).await?;
        if count == 0 {
            return Ok(done);
        }
        done.indexed += count;
    }
}

/// Returns the number of documents that are out of date.
fn left(db: &Connection) -> Result<u64, StoreError> {
    db.query_row(
        "SELECT (SELECT count(*) FROM search_todo)
              + (SELECT count(*) FROM run WHERE num > (SELECT value FROM search_mark WHERE name = 'runs'))",
        [],
        |row| row.get::<_, i64>(0),
    )
    .map(i64::unsigned_abs)
    .map_err(failed)
}

/// A resource to be indexed.
struct Todo {
    uri: String,
    /// The row of the registry; `None` if the resource is gone.
    found: Option<Registered>,
}

/// A resource in the registry.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Registered {
    pub hash: String,
    pub size: i64,
    pub filename: Option<String>,
    pub content_type: Option<String>,
    /// The search entry, as it is stored.
    pub search: Option<String>,
    pub folder: Option<String>,
    /// The kind of resource. Blobs and files have contents; trees and changesets are found by their search text.
    pub kind: String,
}

const REGISTERED: &str =
    "resource.hash, resource.size, resource.filename, resource.content_type, resource.search,
                          resource.folder, resource.kind, resource.gone";

fn registered(row: &Row<'_>, from: usize) -> rusqlite::Result<Option<Registered>> {
    let (hash, gone): (Option<String>, Option<String>) = (row.get(from)?, row.get(from + 7)?);
    let Some(hash) = hash.filter(|_| gone.is_none()) else {
        return Ok(None);
    };
    Ok(Some(Registered {
        hash,
        size: row.get(from + 1)?,
        filename: row.get(from + 2)?,
        content_type: row.get(from + 3)?,
        search: row.get(from + 4)?,
        folder: row.get(from + 5)?,
        kind: row.get(from + 6)?,
    }))
}

async fn some_resources(store: &Sqlite, limit: usize) -> Result<u64, StoreError> {
    let folder = store.blobs.clone();
    let read = store.read_aside(move |db| {
        let todo = todo(db, limit)?;
        let read = todo.into_iter().map(|todo| {
            let doc = todo.found.as_ref().map(|found| {
                let entry = found.search.as_deref().and_then(resource::search_of);
                let entry = entry.unwrap_or_default();
                let contents = || start(&folder, &found.hash, found.size);
                resource_doc(&todo.uri, found, entry, contents)
            });
            (todo, doc)
        });
        Ok(read.collect::<Vec<_>>())
    });
    let read = read.await?;
    if read.is_empty() {
        return Ok(0);
    }
    let count = read.len() as u64;
    let put = move |db: &Connection| {
        for (todo, doc) in &read {
            put_resource(db, todo, doc.as_ref())?;
        }
        Ok(())
    };
    store.writer.submit(put).await?;
    Ok(count)
}

fn todo(db: &Connection, limit: usize) -> Result<Vec<Todo>, StoreError> {
    let mut sql = db
        .prepare_cached(&format!(
            "SELECT todo.uri, {REGISTERED} FROM search_todo AS todo LEFT JOIN resource USING (uri)
             ORDER BY todo.uri LIMIT ?1"
        ))
        .map_err(failed)?;
    let rows = sql
        .query_map([limit as i64], |row| {
            Ok(Todo {
                uri: row.get(0)?,
                found: registered(row, 1)?,
            })
        })
        .map_err(failed)?;
    rows.collect::<rusqlite::Result<_>>().map_err(failed)
}

/// Stores the document of a resource, unless the resource has changed in the meantime: then it stays on the list.
fn put_resource(db: &Connection, todo: &Todo, doc: Option<&SearchDoc>) -> Result<(), StoreError> {
    let now = db
        .prepare_cached(&format!("SELECT {REGISTERED} FROM resource WHERE uri = ?1"))
        .and_then(|mut sql| {
            let mut rows = sql.query([&todo.uri])?;
            match rows.next()? {
                Some(row) => registered(row, 0),
                None => Ok(None),
            }
        })
        .map_err(failed)?;
    if now != todo.found {
        return Ok(());
    }
    match doc {
        Some(doc) => docs::put(db, SearchTarget::Resources, doc, Ends::No)?,
        None => docs::remove(db, SearchTarget::Resources, &todo.uri)?,
    }
    db.prepare_cached("DELETE FROM search_todo WHERE uri = ?1")
        .and_then(|mut sql| sql.execute([&todo.uri]))
        .map_err(failed)?;
    Ok(())
}

/// Returns the document of a resource. `contents` reads the start of its text.
pub(crate) fn resource_doc(
    uri: &str,
    found: &Registered,
    entry: SearchEntry,
    contents: impl FnOnce() -> Option<String>,
) -> SearchDoc {
    let mut facts = vec![
        ("kind".to_owned(), found.kind.clone()),
        ("size-bytes".to_owned(), found.size.to_string()),
    ];
    let state = [
        ("content-type", &found.content_type),
        ("filename", &found.filename),
        ("folder", &found.folder),
        ("source-label", &entry.source_label),
    ];
    for (key, value) in state {
        facts.extend(value.clone().map(|value| (key.to_owned(), value)));
    }
    if !entry.tags.is_empty() {
        facts.push(("tags".to_owned(), entry.tags.join(", ")));
    }
    facts.sort();
    let has_contents = matches!(&*found.kind, "blob" | "file") && !entry.without_contents;
    let contents = (has_contents && may_be_text(found.content_type.as_deref()))
        .then(contents)
        .flatten();
    let body = [entry.text, contents].into_iter().flatten();
    let body: Vec<String> = body.map(|text| cut(&text, TEXT_MAX).to_owned()).collect();
    let tags = entry.tags.into_iter().chain(entry.source_label);
    let tags: Vec<String> = tags.chain(found.folder.clone()).collect();
    let last = uri.rsplit('/').next().unwrap_or(uri);
    SearchDoc {
        id: uri.to_owned(),
        version: found.hash.clone(),
        title: found.filename.clone().unwrap_or_else(|| last.to_owned()),
        tags: tags.join(" "),
        body: body.join("\n"),
        facts,
    }
}

/// Returns the start of a blob, if it is text. A blob without a file is found by its name only.
fn start(folder: &Path, hash: &str, size: i64) -> Option<String> {
    let path = blob::place(folder, &BlobHash(hash.to_owned())).ok()?;
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(TEXT_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .ok()?;
    let whole = usize::try_from(size).unwrap_or(usize::MAX);
    let text = start_of(&bytes, TEXT_MAX.min(whole))?.0;
    Some(text)
}

/// Indexes new runs, and runs that were not over and have changed.
async fn some_runs(store: &Sqlite, limit: usize) -> Result<u64, StoreError> {
    let (runs, mark) = store.read_aside(move |db| runs(db, limit)).await?;
    if runs.is_empty() {
        return Ok(0);
    }
    let count = runs.len() as u64;
    let put = move |db: &Connection| {
        for (doc, ends) in &runs {
            // A run that was removed in the meantime is not added again.
            let is_there = db
                .prepare_cached("SELECT 1 FROM run WHERE id = ?1")
                .and_then(|mut sql| sql.exists([&doc.id]))
                .map_err(failed)?;
            if is_there {
                docs::put(db, SearchTarget::Runs, doc, *ends)?;
            }
        }
        db.prepare_cached(
            "UPDATE search_mark SET value = max(value, ?1) WHERE name = 'runs'
               AND EXISTS (SELECT 1 FROM run WHERE num >= ?1)",
        )
        .and_then(|mut sql| sql.execute([mark]))
        .map_err(failed)?;
        Ok(())
    };
    store.writer.submit(put).await?;
    Ok(count)
}

const RUN: &str =
    "run.num, run.id, run.flow, run.status, run.input, run.result, run.error, run.updated_ms,
                   run.external_id, run.invocation, run.key, run.started_by, run.created_ms";

/// Returns the next runs to index, and the highest number among them.
fn runs(db: &Connection, limit: usize) -> Result<(Vec<(SearchDoc, Ends)>, i64), StoreError> {
    let sql = format!(
        "SELECT {RUN} FROM run WHERE num > (SELECT value FROM search_mark WHERE name = 'runs')
         ORDER BY num LIMIT ?1"
    );
    let changed = format!(
        "SELECT {RUN} FROM search_doc AS doc JOIN run ON run.id = doc.id
         WHERE doc.is_open = 1 AND doc.target = 'runs' AND doc.version <> run.updated_ms || ' ' || run.status
         ORDER BY doc.num LIMIT ?1"
    );
    let mut found = Vec::new();
    let mut mark = 0;
    for sql in [sql, changed] {
        let mut sql = db.prepare_cached(&sql).map_err(failed)?;
        let left = limit.saturating_sub(found.len());
        let mut rows = sql.query(params![left as i64]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let num: i64 = row.get(0).map_err(failed)?;
            mark = mark.max(num);
            found.push(run(row).map_err(failed)?);
        }
    }
    Ok((found, mark))
}

fn run(row: &Row<'_>) -> rusqlite::Result<(SearchDoc, Ends)> {
    let text = |idx: usize| row.get::<_, Option<String>>(idx);
    let status: String = row.get(3)?;
    let mut tags = Vec::new();
    for idx in 8..=11 {
        tags.extend(text(idx)?);
    }
    let input: String = row.get(4)?;
    Ok(run_doc(&RunTexts {
        id: row.get(1)?,
        flow: row.get(2)?,
        status: RunStatus::from_name(&status).unwrap_or(RunStatus::Failed),
        updated_ms: row.get(7)?,
        tags,
        body: [text(6)?, Some(split(&input).shown.to_owned()), text(5)?],
    }))
}

/// The texts by which a run is found.
pub(crate) struct RunTexts {
    pub id: String,
    pub flow: String,
    pub status: RunStatus,
    pub updated_ms: i64,
    /// External id, invocation, key, and origin of the start.
    pub tags: Vec<String>,
    /// Error, input and result.
    pub body: [Option<String>; 3],
}

/// Returns the document of a run, and whether the run may still change it.
pub(crate) fn run_doc(run: &RunTexts) -> (SearchDoc, Ends) {
    let status = run.status.name();
    let ends = match run.status.is_final() {
        true => Ends::No,
        false => Ends::Open,
    };
    let mut tags = vec![run.flow.clone(), status.to_owned(), run.id.clone()];
    tags.extend(run.tags.iter().cloned());
    let body = run.body.iter().flatten();
    let body: Vec<&str> = body.map(|text| cut(text, VALUE_MAX)).collect();
    let facts = [("flow", &*run.flow), ("status", status)];
    let doc = SearchDoc {
        version: format!("{} {status}", run.updated_ms),
        title: run.flow.clone(),
        tags: tags.join(" "),
        body: body.join("\n"),
        facts: facts
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect(),
        id: run.id.clone(),
    };
    (doc, ends)
}

/// Prefix of the ids of tables among the documents.
const TABLES: &str = "result/table/";

/// Indexes tables whose columns have changed, and removes those that are gone. Only their names are indexed.
async fn tables(store: &Sqlite) -> Result<u64, StoreError> {
    let (changed, gone) = store.read_aside(changed_tables).await?;
    if changed.is_empty() && gone.is_empty() {
        return Ok(0);
    }
    let count = changed.len() as u64;
    let put = move |db: &Connection| {
        for id in &gone {
            docs::remove(db, SearchTarget::Resources, id)?;
        }
        changed
            .iter()
            .try_for_each(|doc| docs::put(db, SearchTarget::Resources, doc, Ends::No))
    };
    store.writer.submit(put).await?;
    Ok(count)
}

pub(crate) fn changed_tables(db: &Connection) -> Result<(Vec<SearchDoc>, Vec<String>), StoreError> {
    let mut sql = db
        .prepare_cached(
            "SELECT id, name, (SELECT group_concat(name, ' ') FROM
                 (SELECT name FROM table_column WHERE table_id = table_registry.id ORDER BY idx)),
                 (SELECT version FROM search_doc WHERE target = 'resources' AND search_doc.id = ?1 || table_registry.id)
             FROM table_registry ORDER BY id",
        )
        .map_err(failed)?;
    let start = format!("{PREFIX}{TABLES}");
    let mut rows = sql.query([&start]).map_err(failed)?;
    let (mut changed, mut names) = (Vec::new(), HashSet::new());
    while let Some(row) = rows.next().map_err(failed)? {
        let id: i64 = row.get(0).map_err(failed)?;
        let name: String = row.get(1).map_err(failed)?;
        let columns: Option<String> = row.get(2).map_err(failed)?;
        let known: Option<String> = row.get(3).map_err(failed)?;
        let columns = columns.unwrap_or_default();
        let version = format!("{name} {columns}");
        let id = format!("{start}{id}");
        names.insert(id.clone());
        if known.as_ref() != Some(&version) {
            changed.push(SearchDoc {
                id,
                version,
                title: name,
                tags: "table".to_owned(),
                body: columns,
                facts: vec![("kind".to_owned(), "table".to_owned())],
            });
        }
    }
    let mut sql = db
        .prepare_cached(
            "SELECT id FROM search_doc WHERE target = 'resources' AND id >= ?1 AND id < ?2",
        )
        .map_err(failed)?;
    // The character after `/` is `0`.
    let end = format!("{PREFIX}{}0", TABLES.trim_end_matches('/'));
    let rows = sql
        .query_map([&start, &end], |row| row.get::<_, String>(0))
        .map_err(failed)?;
    let mut gone = Vec::new();
    for id in rows {
        let id = id.map_err(failed)?;
        if !names.contains(&id) {
            gone.push(id);
        }
    }
    Ok((changed, gone))
}
