//! The feeds of runs and of the project, as rows.
//!
//! An event is a row of its run's journal with a kind of its own, so the number of a row in its run serves both, and
//! journal and feed are one range of the file. The order of all rows of the project is in a table of spans: one row for
//! consecutive rows of a run. Plain entries of a run in the same transaction share a span; see [`Spans`].

use std::collections::HashMap;

use flowstone_model::ids::RunId;
use flowstone_model::ports::{
    Event, EventKind, FeedDetail, FeedItem, FeedPage, FeedRow, ProjectFeedPage, ProjectFeedRow,
    RunStatus, StoreError,
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::failure::failed;
use super::journal::{self, PLACE_BITS, number_range};
use super::queue::execute;
use super::runs;

/// The additions of format 8. `pos`: the position of the span's first row in the project; `first`: the number of that
/// row in the journal. Finished runs of earlier formats get the event of their end.
pub(super) const FORMAT_8: &str = "
CREATE TABLE feed_span (
    pos INTEGER PRIMARY KEY,
    first INTEGER NOT NULL,
    count INTEGER NOT NULL,
    is_event INTEGER NOT NULL
);
INSERT INTO journal (id, kind, path, what, digest, payload, at_ms)
    SELECT coalesce((SELECT max(id) FROM journal WHERE id BETWEEN run.num << 32 AND (run.num << 32) + 4294967295),
                    run.num << 32) + 1,
           'event', '', 'run.' || run.status, '', '{}', run.ended_ms
    FROM run WHERE run.ended_ms IS NOT NULL AND run.pruned_ms IS NULL;
";

/// Maximum number of spans read for one page.
const SPANS: usize = 4096;

/// Adds an event to the journal of a run.
pub(super) fn add(db: &Connection, run: i64, event: &Event) -> Result<(), StoreError> {
    let id = journal::end(db, run)? + 1;
    insert(db, id, event)?;
    add_span(db, Span::event(id))
}

/// Adds an event, if there is one.
pub(super) fn add_some(db: &Connection, run: i64, event: Option<Event>) -> Result<(), StoreError> {
    event.map_or(Ok(()), |event| add(db, run, &event))
}

/// Adds an event of the run, or of its wait with a key, to the journal of the run and to those of the runs that wait for it.
/// A run that is to check a deadline does so when a wait below ends, because the time of the wait does not count for it.
pub(super) fn add_with_above(
    db: &Connection,
    run: i64,
    key: &str,
    event: Option<Event>,
) -> Result<(), StoreError> {
    let Some(event) = event else {
        return Ok(());
    };
    add(db, run, &event)?;
    let (child, mut parent) = db
        .prepare_cached("SELECT id, parent FROM run WHERE num = ?1")
        .and_then(|mut sql| {
            sql.query_row([run], |row| {
                let id = RunId::from_text(row.get::<_, String>(0)?);
                Ok((id, row.get::<_, Option<String>>(1)?))
            })
        })
        .map_err(failed)?;
    while let Some(id) = parent {
        let found = db
            .prepare_cached(
                "SELECT num, parent, lease_owner IS NOT NULL FROM run WHERE id = ?1 AND ended_ms IS NULL",
            )
            .and_then(|mut sql| {
                sql.query_row([id], |row| {
                    let above: Option<String> = row.get(1)?;
                    Ok((row.get::<_, i64>(0)?, above, row.get::<_, bool>(2)?))
                })
                .optional()
            })
            .map_err(failed)?;
        let Some((num, above, is_leased)) = found else {
            return Ok(());
        };
        // The process that ended with the called run executed this one, too.
        let is_own = event.kind == EventKind::RunOrphaned && is_leased;
        if let Some(event) = event.above(&child, key).filter(|_| !is_own) {
            add(db, num, &event)?;
        }
        if matches!(
            event.kind,
            EventKind::WaitAnswered | EventKind::WaitTimedOut
        ) {
            execute(
                db,
                "UPDATE run SET due_ms = ?2 WHERE num = ?1 AND status = 'waiting' AND due_ms > ?2",
                params![num, event.at_ms],
            )?;
        }
        parent = above;
    }
    Ok(())
}

/// Adds an event with a given number in the journal.
fn insert(db: &Connection, id: i64, event: &Event) -> Result<(), StoreError> {
    execute(
        db,
        "INSERT INTO journal (id, kind, path, what, digest, payload, at_ms) VALUES (?1, 'event', ?2, ?3, '', ?4, ?5)",
        params![id, event.path, event.kind.name(), event.data, event.at_ms],
    )
}

/// Records that a process took the lease of a run that is neither queued nor over.
pub(super) fn taken(db: &Connection, run: i64, now_ms: i64) -> Result<(), StoreError> {
    let found = db
        .prepare_cached("SELECT status, pass, lease_epoch FROM run WHERE num = ?1")
        .and_then(|mut sql| {
            sql.query_row([run], |row| {
                let status: String = row.get(0)?;
                Ok((status, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
            })
        })
        .map_err(failed)?;
    let (status, pass, epoch) = found;
    let status = RunStatus::from_name(&status).unwrap_or(RunStatus::Failed);
    if status == RunStatus::Queued || status.is_final() {
        return Ok(());
    }
    let is_first = pass == 0 && (epoch == 1 || !has_started(db, run)?);
    add(db, run, &Event::taken(is_first, pass, now_ms))
}

/// Tells whether a run in its first pass was executed before.
fn has_started(db: &Connection, run: i64) -> Result<bool, StoreError> {
    let (first, last) = number_range(run);
    db.prepare_cached(
        "SELECT 1 FROM journal WHERE id BETWEEN ?1 AND ?2 AND kind = 'event'
           AND what IN ('run.started', 'run.resumed') LIMIT 1",
    )
    .and_then(|mut sql| sql.exists([first, last]))
    .map_err(failed)
}

/// Consecutive rows of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    first: i64,
    count: i64,
    is_event: bool,
}

impl Span {
    fn event(id: i64) -> Span {
        Span {
            first: id,
            count: 1,
            is_event: true,
        }
    }

    /// Returns the span of one entry.
    pub(super) fn entry(id: i64) -> Span {
        Span {
            first: id,
            count: 1,
            is_event: false,
        }
    }

    /// Appends a later span if it follows without a gap. Tells whether it does.
    pub(super) fn extend(&mut self, next: Span) -> bool {
        let follows = self.is_event == next.is_event && self.first + self.count == next.first;
        if follows {
            self.count += next.count;
        }
        follows
    }

    pub(super) fn run(self) -> i64 {
        self.first >> PLACE_BITS
    }
}

/// Assigns the next positions of the project to a span.
pub(super) fn add_span(db: &Connection, span: Span) -> Result<(), StoreError> {
    execute(
        db,
        "INSERT INTO feed_span (pos, first, count, is_event)
         VALUES (coalesce((SELECT pos + count FROM feed_span ORDER BY pos DESC LIMIT 1), 1), ?1, ?2, ?3)",
        params![span.first, span.count, span.is_event],
    )
}

/// Spans of entries that a transaction has added and that have no position yet. The order between entries of different
/// runs is not guaranteed, so each run has one span, until something other than entries is written: then all spans get
/// their positions first.
#[derive(Debug, Default)]
pub(super) struct Spans {
    spans: Vec<Span>,
    by_run: HashMap<i64, usize>,
}

impl Spans {
    pub(super) fn add(&mut self, span: Span) {
        if self.spans.last_mut().is_some_and(|last| last.extend(span)) {
            return;
        }
        if let Some(at) = self.by_run.get(&span.run())
            && self.spans[*at].extend(span)
        {
            return;
        }
        self.by_run.insert(span.run(), self.spans.len());
        self.spans.push(span);
    }

    /// Assigns positions to all spans.
    pub(super) fn write(&mut self, db: &Connection) -> Result<(), StoreError> {
        self.by_run.clear();
        self.spans.drain(..).try_for_each(|span| add_span(db, span))
    }
}

/// Returns rows of a run after a number.
pub(super) fn read(
    db: &Connection,
    run: &RunId,
    after: i64,
    limit: usize,
) -> Result<Option<FeedPage>, StoreError> {
    let Some(num) = runs::number(db, run)? else {
        return Ok(None);
    };
    let (start, end) = number_range(num);
    let after = start.saturating_add(after.max(0)).min(end);
    // A single statement, so that rows and status are from the same time.
    let mut sql = db
        .prepare_cached(&format!(
            "SELECT {}, run.status, run.pass, run.pruned_ms IS NOT NULL
             FROM run LEFT JOIN journal ON journal.id > ?2 AND journal.id <= ?3
                      LEFT JOIN payload ON payload.hash = journal.blob
             WHERE run.num = ?1 ORDER BY journal.id LIMIT ?4",
            journal::COLUMNS
        ))
        .map_err(failed)?;
    let mut rows = sql
        .query(params![num, after, end, limited(limit)])
        .map_err(failed)?;
    let mut page: Option<FeedPage> = None;
    while let Some(row) = rows.next().map_err(failed)? {
        let page = match &mut page {
            Some(page) => page,
            None => page.insert(page_of(row).map_err(failed)?),
        };
        if let Some(id) = row.get::<_, Option<i64>>(7).map_err(failed)? {
            let item = item(db, row)?;
            page.rows.push(FeedRow {
                seq: id - start,
                item,
            });
        }
    }
    Ok(page)
}

fn limited(limit: usize) -> i64 {
    i64::try_from(limit.max(1)).unwrap_or(i64::MAX)
}

fn page_of(row: &Row<'_>) -> rusqlite::Result<FeedPage> {
    let status: String = row.get(9)?;
    Ok(FeedPage {
        status: RunStatus::from_name(&status).unwrap_or(RunStatus::Failed),
        pass: row.get(10)?,
        is_pruned: row.get(11)?,
        rows: Vec::new(),
    })
}

fn item(db: &Connection, row: &Row<'_>) -> Result<FeedItem, StoreError> {
    let kind: String = row.get(0).map_err(failed)?;
    if kind != Event::STORED_KIND {
        return journal::entry(db, row)
            .map_err(failed)?
            .map(FeedItem::Entry);
    }
    let text = |at: usize| row.get::<_, String>(at).map_err(failed);
    let at_ms = row.get(6).map_err(failed)?;
    Event::stored(&text(2)?, text(1)?, text(5)?, at_ms).map(FeedItem::Event)
}

/// Returns the position of the last row.
pub(super) fn last_position(db: &Connection) -> Result<i64, StoreError> {
    db.prepare_cached("SELECT pos + count - 1 FROM feed_span ORDER BY pos DESC LIMIT 1")
        .and_then(|mut sql| sql.query_row([], |row| row.get(0)).optional())
        .map(Option::unwrap_or_default)
        .map_err(failed)
}

/// Returns rows of all runs after a position.
pub(super) fn project(
    db: &Connection,
    after: i64,
    limit: usize,
    detail: FeedDetail,
) -> Result<ProjectFeedPage, StoreError> {
    let mut page = ProjectFeedPage {
        rows: Vec::new(),
        next: after,
    };
    for (pos, span) in spans_after(db, after)? {
        if page.rows.len() >= limit {
            break;
        }
        // The rows of a span that were not returned before, up to the limit.
        let skipped = (after + 1 - pos).max(0);
        let room = i64::try_from(limit - page.rows.len()).unwrap_or(i64::MAX);
        let count = (span.count - skipped).min(room);
        if count <= 0 {
            continue;
        }
        let first = span.first + skipped;
        if span.is_event || detail == FeedDetail::Steps {
            rows_of(db, (first, count), pos + skipped, &mut page.rows)?;
        }
        page.next = match span.is_event || detail == FeedDetail::Steps {
            true => pos + skipped + count - 1,
            false => pos + span.count - 1,
        };
    }
    Ok(page)
}

/// Returns the spans that end after a position.
fn spans_after(db: &Connection, after: i64) -> Result<Vec<(i64, Span)>, StoreError> {
    let mut sql = db
        .prepare_cached(
            "SELECT pos, first, count, is_event FROM feed_span
             WHERE pos >= coalesce((SELECT max(pos) FROM feed_span WHERE pos <= ?1 + 1), 0)
             ORDER BY pos LIMIT ?2",
        )
        .map_err(failed)?;
    let rows = sql
        .query_map(params![after, limited(SPANS)], |row| {
            let span = Span {
                first: row.get(1)?,
                count: row.get(2)?,
                is_event: row.get(3)?,
            };
            Ok((row.get::<_, i64>(0)?, span))
        })
        .map_err(failed)?;
    let mut spans = rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)?;
    spans.retain(|(pos, span)| pos + span.count > after + 1);
    Ok(spans)
}

/// Adds the rows of a span that still exist.
fn rows_of(
    db: &Connection,
    (first, count): (i64, i64),
    pos: i64,
    found: &mut Vec<ProjectFeedRow>,
) -> Result<(), StoreError> {
    let mut sql = db
        .prepare_cached(&format!(
            "SELECT {}, run.id, run.flow, run.pass
             FROM journal CROSS JOIN run ON run.num = journal.id >> {PLACE_BITS}
                          LEFT JOIN payload ON payload.hash = journal.blob
             WHERE journal.id BETWEEN ?1 AND ?2 ORDER BY journal.id",
            journal::COLUMNS
        ))
        .map_err(failed)?;
    let mut rows = sql.query([first, first + count - 1]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let id: i64 = row.get(7).map_err(failed)?;
        found.push(ProjectFeedRow {
            position: pos + id - first,
            run: RunId::from_text(row.get::<_, String>(9).map_err(failed)?),
            flow: row.get(10).map_err(failed)?,
            pass: row.get(11).map_err(failed)?,
            row: FeedRow {
                seq: id & ((1 << PLACE_BITS) - 1),
                item: item(db, row)?,
            },
        });
    }
    Ok(())
}

/// Removes spans after a position whose rows are gone, a few at a time. Returns the position to continue after. The
/// last span stays: positions never decrease.
pub(super) fn sweep(db: &Connection, after: i64, most: i64) -> Result<Option<i64>, StoreError> {
    let end: Option<i64> = db
        .prepare_cached(
            "SELECT max(pos) FROM (SELECT pos FROM feed_span
                                   WHERE pos > ?1 AND pos < (SELECT max(pos) FROM feed_span)
                                   ORDER BY pos LIMIT ?2)",
        )
        .and_then(|mut sql| sql.query_row([after, most], |row| row.get(0)))
        .map_err(failed)?;
    let Some(end) = end else {
        return Ok(None);
    };
    execute(
        db,
        "DELETE FROM feed_span WHERE pos > ?1 AND pos <= ?2
           AND NOT EXISTS (SELECT 1 FROM journal WHERE id BETWEEN first AND first + count - 1)",
        [after, end],
    )?;
    Ok(Some(end))
}

/// Returns the numbers of the runs that have rows after a position, each once, and the last position.
pub(super) fn runs_after(db: &Connection, after: i64) -> Result<(Vec<i64>, i64), StoreError> {
    let mut sql = db
        .prepare_cached("SELECT first, pos + count - 1 FROM feed_span WHERE pos > ?1 ORDER BY pos")
        .map_err(failed)?;
    let mut rows = sql.query([after]).map_err(failed)?;
    let (mut runs, mut last) = (Vec::new(), after);
    while let Some(row) = rows.next().map_err(failed)? {
        runs.push(row.get::<_, i64>(0).map_err(failed)? >> PLACE_BITS);
        last = row.get(1).map_err(failed)?;
    }
    runs.sort_unstable();
    runs.dedup();
    Ok((runs, last))
}
