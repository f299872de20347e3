//! Journals as rows, and the batches that change them.
//!
//! A row's number combines its run and its place in the run, so that a journal is contiguous in the file and is read in
//! order without an index.

use flowstone_model::ids::RunId;
use flowstone_model::ports::{
    Batch, Change, Entry, EntryKind, Event, Receipt, StoreError, StoreOp,
};
use flowstone_model::rules::{answers, jobs as rules, run_tree};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::failure::failed;
use super::feed::{self, Span};
use super::queue::Sql as Rows;
use super::{blob, changeset, kv, payload, runs, table, waits};

/// The tables of this part.
pub(super) const SCHEMA: &str = "
CREATE TABLE journal (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    path TEXT NOT NULL,
    what TEXT NOT NULL,
    digest TEXT NOT NULL,
    request TEXT,
    payload TEXT,
    blob TEXT,
    at_ms INTEGER NOT NULL
);
CREATE TABLE payload (
    hash TEXT PRIMARY KEY,
    text TEXT NOT NULL
) WITHOUT ROWID;
";

/// Maximum size of an inline payload in bytes; larger ones are stored apart, equal ones once.
const INLINE_BYTES: usize = 8 << 10;
/// Bits of a row's number for its place in the run.
pub(super) const PLACE_BITS: u32 = 32;

/// Returns the first and the last number that a row of a run's journal may have.
pub(super) fn number_range(run: i64) -> (i64, i64) {
    let start = run << PLACE_BITS;
    (start, start + (1 << PLACE_BITS) - 1)
}

/// Tells whether a batch only adds entries to the journal of its run.
pub(super) fn is_plain(batch: &Batch) -> bool {
    let is_entry = |change: &Change| matches!(change, Change::Append(_) | Change::Perform { .. });
    batch.changes.iter().all(is_entry)
}

/// Makes a batch of changes. Must run in a transaction. Returns the entries at its end that have no position in the
/// project yet: all entries if the batch [`is_plain`], otherwise none.
pub(super) fn apply(db: &Connection, batch: &Batch) -> Result<(Receipt, Option<Span>), StoreError> {
    let mut receipt = Receipt::default();
    if batch.changes.is_empty() {
        return Ok((receipt, None));
    }
    let run = fence(db, batch)?;
    let mut place = None;
    let mut span: Option<Span> = None;
    for change in &batch.changes {
        match change {
            Change::Append(entry) => append(db, run, (&mut place, &mut span), entry)?,
            Change::Perform { op, entry } => {
                let result = perform(db, op, batch.now_ms)?;
                let entry = Entry {
                    payload: result.clone(),
                    ..entry.clone()
                };
                append(db, run, (&mut place, &mut span), &entry)?;
                receipt.results.push(result);
            }
            other => {
                // Events come after the entries before them.
                span.take()
                    .map_or(Ok(()), |span| feed::add_span(db, span))?;
                place = None;
                make(db, (run, batch), other)?;
            }
        }
    }
    if !is_plain(batch) {
        span.take()
            .map_or(Ok(()), |span| feed::add_span(db, span))?;
    }
    Ok((receipt, span))
}

/// Makes any change except adding an entry.
fn make(db: &Connection, (run, batch): (i64, &Batch), change: &Change) -> Result<(), StoreError> {
    match change {
        Change::Append(_) | Change::Perform { .. } => Ok(()),
        Change::Update(update) => runs::update(db, run, update, batch.now_ms),
        Change::OpenWait(wait) => waits::open(db, run, wait, batch.now_ms),
        Change::CloseWait { path, seen } => waits::close(db, run, path, *seen, batch.now_ms),
        Change::CloseWaits => waits::close_all(db, run),
        Change::CloseWaitsOf { path } => {
            let mut keys = waits::close_of(db, run, path)?.into_iter();
            keys.try_for_each(|key| {
                rules::give_up(&mut Rows::new(db), &batch.run, &key, batch.now_ms)
            })
        }
        Change::Unwind => runs::unwind(db, run),
        Change::CloseChildren { only } => {
            run_tree::close_children(&mut Rows::new(db), &batch.run, only.as_ref(), batch.now_ms)
        }
        Change::Signal {
            key,
            dedup,
            payload,
        } => {
            let signal = run_tree::signal(key, dedup, payload.clone(), batch.now_ms);
            answers::complete(&mut Rows::new(db), &signal).map(drop)
        }
        Change::Restart { input, seed } => restart(db, run, input, *seed, batch.now_ms),
    }
}

/// Returns the number of the run, if the sender still holds its lease.
fn fence(db: &Connection, batch: &Batch) -> Result<i64, StoreError> {
    let found = db
        .prepare_cached("SELECT num, lease_epoch FROM run WHERE id = ?1")
        .and_then(|mut sql| {
            sql.query_row([batch.run.as_str()], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
            })
            .optional()
        })
        .map_err(failed)?;
    match found {
        Some((run, epoch)) if epoch == batch.epoch => Ok(run),
        _ => Err(StoreError::LeaseLost {
            run: batch.run.to_string(),
        }),
    }
}

fn perform(db: &Connection, op: &StoreOp, now_ms: i64) -> Result<String, StoreError> {
    match op {
        StoreOp::Kv(op) => kv::apply(db, op, now_ms),
        StoreOp::Table(op) => table::apply(db, op, now_ms),
        StoreOp::Blob(op) => blob::apply(db, op, now_ms),
        StoreOp::Changeset(op) => changeset::apply(db, op, now_ms),
        StoreOp::Job(op) => rules::submit(&mut Rows::new(db), op, now_ms),
    }
}

/// Adds a row. `place` is the end of the run's journal, once it is known; `span` has the entries without a position.
fn append(
    db: &Connection,
    run: i64,
    (place, span): (&mut Option<i64>, &mut Option<Span>),
    entry: &Entry,
) -> Result<(), StoreError> {
    let id = match *place {
        Some(last) => last + 1,
        None => end(db, run)? + 1,
    };
    *place = Some(id);
    let added = Span::entry(id);
    if !span.as_mut().is_some_and(|span| span.extend(added)) {
        *span = Some(added);
    }
    let (payload, kept) = match entry.payload.len() > INLINE_BYTES {
        true => (None, Some(payload::keep(db, &entry.payload)?)),
        false => (Some(entry.payload.as_str()), None),
    };
    db.prepare_cached(
        "INSERT INTO journal (id, kind, path, what, digest, request, payload, blob, at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )
    .and_then(|mut sql| {
        sql.execute(params![
            id,
            entry.kind.name(),
            entry.path,
            entry.what,
            entry.digest,
            entry.request,
            payload,
            kept,
            entry.at_ms
        ])
    })
    .map_err(failed)?;
    Ok(())
}

/// Removes the current pass of a run and begins the next one.
fn restart(
    db: &Connection,
    run: i64,
    input: &str,
    seed: u64,
    now_ms: i64,
) -> Result<(), StoreError> {
    // The event comes first: it continues the numbering of the run's rows.
    let pass = runs::restart(db, run, input, seed, now_ms)?;
    feed::add(db, run, &Event::continued(pass, now_ms))?;
    let last = end(db, run)?;
    db.prepare_cached("DELETE FROM journal WHERE id >= ?1 AND id < ?2")
        .and_then(|mut sql| sql.execute([run << PLACE_BITS, last]))
        .map_err(failed)?;
    waits::forget(db, run)
}

/// Adds entries to the journal of a run.
pub(super) fn extend(db: &Connection, run: i64, entries: &[Entry]) -> Result<(), StoreError> {
    let (mut place, mut span) = (None, None);
    for entry in entries {
        append(db, run, (&mut place, &mut span), entry)?;
    }
    span.map_or(Ok(()), |span| feed::add_span(db, span))
}

/// Returns the number of the last row of a run.
pub(super) fn end(db: &Connection, run: i64) -> Result<i64, StoreError> {
    let start = run << PLACE_BITS;
    db.prepare_cached("SELECT coalesce(max(id), ?1) FROM journal WHERE id BETWEEN ?1 AND ?2")
        .and_then(|mut sql| sql.query_row([start, start + (1 << PLACE_BITS) - 1], |row| row.get(0)))
        .map_err(failed)
}

/// Returns the journal of a run, in order.
pub(super) fn load(db: &Connection, run: &RunId) -> Result<Vec<Entry>, StoreError> {
    let Some(run) = runs::number(db, run)? else {
        return Ok(Vec::new());
    };
    let start = run << PLACE_BITS;
    let mut sql = db
        .prepare_cached(&format!(
            "{} AND journal.id BETWEEN ?1 AND ?2 ORDER BY journal.id",
            entries()
        ))
        .map_err(failed)?;
    let mut rows = sql
        .query([start, start + (1 << PLACE_BITS) - 1])
        .map_err(failed)?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        entries.push(entry(db, row).map_err(failed)??);
    }
    Ok(entries)
}

/// Returns the entries after a place, with the place of each.
pub(super) fn load_after(
    db: &Connection,
    run: &RunId,
    place: i64,
    limit: usize,
) -> Result<Vec<(i64, Entry)>, StoreError> {
    let Some(run) = runs::number(db, run)? else {
        return Ok(Vec::new());
    };
    let start = run << PLACE_BITS;
    let end = start + (1 << PLACE_BITS) - 1;
    let after = start.saturating_add(place.max(0)).min(end);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut sql = db
        .prepare_cached(&format!(
            "{} AND journal.id > ?1 AND journal.id <= ?2 ORDER BY journal.id LIMIT ?3",
            entries()
        ))
        .map_err(failed)?;
    let mut rows = sql.query([after, end, limit]).map_err(failed)?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        let id: i64 = row.get(7).map_err(failed)?;
        entries.push((id - start, entry(db, row).map_err(failed)??));
    }
    Ok(entries)
}

/// The columns that [`entry`] reads.
pub(super) const COLUMNS: &str =
    "journal.kind, journal.path, journal.what, journal.digest, journal.request,
     coalesce(journal.payload, payload.text), journal.at_ms, journal.id, payload.parts";

/// Returns a query for entries, without the events between them.
fn entries() -> String {
    format!(
        "SELECT {COLUMNS} FROM journal LEFT JOIN payload ON payload.hash = journal.blob
         WHERE journal.kind <> '{}'",
        Event::STORED_KIND
    )
}

/// Reads an entry.
pub(super) fn entry(
    db: &Connection,
    row: &rusqlite::Row<'_>,
) -> rusqlite::Result<Result<Entry, StoreError>> {
    let damaged = |detail: String| StoreError::Damaged {
        path: String::new(),
        detail,
    };
    let kind = row.get_ref(0)?.as_str()?;
    let Some(kind) = EntryKind::from_name(kind) else {
        return Ok(Err(damaged(format!(
            "unknown kind of journal entry `{kind}`"
        ))));
    };
    let payload = match (
        row.get::<_, Option<String>>(5)?,
        row.get::<_, Option<Vec<u8>>>(8)?,
    ) {
        (_, Some(parts)) => match payload::assemble(db, &parts) {
            Ok(payload) => payload,
            Err(error) => return Ok(Err(error)),
        },
        (Some(payload), None) => payload,
        (None, None) => return Ok(Err(damaged("a payload is missing".to_owned()))),
    };
    Ok(Ok(Entry {
        kind,
        path: row.get(1)?,
        what: row.get(2)?,
        digest: row.get(3)?,
        request: row.get(4)?,
        payload,
        at_ms: row.get(6)?,
    }))
}
