//! The state of schedules: when each is due next, and the outcome of its last run.

use flowstone_model::ids::RunId;
use flowstone_model::ports::{PlanChange, ScheduleRow, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::failure::failed;
use super::runs;

/// The tables of this part.
pub(super) const SCHEMA: &str = "
CREATE TABLE schedule (
    flow TEXT NOT NULL,
    id TEXT NOT NULL,
    timing TEXT NOT NULL,
    program TEXT NOT NULL,
    file TEXT NOT NULL,
    next_ms INTEGER,
    last_ms INTEGER,
    last_run TEXT,
    note TEXT,
    updated_ms INTEGER NOT NULL,
    PRIMARY KEY (flow, id)
) WITHOUT ROWID;
";

const COLUMNS: &str = "flow, id, timing, program, file, next_ms, last_ms, last_run, note";

/// Returns all schedules, by flow and id.
pub(super) fn list(db: &Connection) -> Result<Vec<ScheduleRow>, StoreError> {
    let mut sql = db
        .prepare_cached(&format!("SELECT {COLUMNS} FROM schedule ORDER BY flow, id"))
        .map_err(failed)?;
    let rows = sql.query_map([], schedule_row).map_err(failed)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)
}

fn schedule_row(row: &Row<'_>) -> rusqlite::Result<ScheduleRow> {
    Ok(ScheduleRow {
        flow: row.get(0)?,
        id: row.get(1)?,
        timing: row.get(2)?,
        program: row.get(3)?,
        file: row.get(4)?,
        next_ms: row.get(5)?,
        last_ms: row.get(6)?,
        last_run: row.get::<_, Option<String>>(7)?.map(RunId::from_text),
        note: row.get(8)?,
    })
}

/// Writes a row if it is still as the caller saw it. Tells whether it was.
pub(super) fn plan(db: &Connection, change: &PlanChange) -> Result<bool, StoreError> {
    let row = &change.row;
    let found = db
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM schedule WHERE flow = ?1 AND id = ?2"
        ))
        .and_then(|mut sql| sql.query_row([&row.flow, &row.id], schedule_row).optional())
        .map_err(failed)?;
    if found != change.seen {
        return Ok(false);
    }
    if let Some(program) = &change.program {
        runs::keep_program(db, program, change.now_ms)?;
    }
    db.prepare_cached(
        "INSERT INTO schedule (flow, id, timing, program, file, next_ms, last_ms, last_run, note, updated_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
         ON CONFLICT (flow, id) DO UPDATE SET
             timing = excluded.timing, program = excluded.program, file = excluded.file,
             next_ms = excluded.next_ms, last_ms = excluded.last_ms, last_run = excluded.last_run,
             note = excluded.note, updated_ms = excluded.updated_ms",
    )
    .and_then(|mut sql| {
        sql.execute(params![
            row.flow,
            row.id,
            row.timing,
            row.program,
            row.file,
            row.next_ms,
            row.last_ms,
            row.last_run.as_ref().map(RunId::as_str),
            row.note,
            change.now_ms
        ])
    })
    .map_err(failed)?;
    Ok(true)
}
