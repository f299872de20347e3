//! Runs that end the processes that execute them.
//!
//! Which of several runs ended a process cannot be known, so that counts against each that the process executed at
//! the time. A run that has got on since the last time is counted from the beginning.

use flowstone_model::ids::RunId;
use flowstone_model::ports::StoreError;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::failure::failed;
use super::journal::number_range;
use super::owner::Owner;

/// Frees what a process holds that is gone, and counts that against the runs that it executed. Returns how many were
/// freed.
pub(super) fn free(
    db: &Connection,
    (owner, crashes): (&Owner, u32),
    holder: &str,
    now_ms: i64,
) -> Result<usize, StoreError> {
    for run in owner.executed(holder) {
        count(db, (&run, holder), crashes, now_ms)?;
    }
    let freed = db
        .prepare_cached(
            "UPDATE run SET lease_owner = NULL WHERE lease_owner IS NOT NULL AND lease_owner = ?1",
        )
        .and_then(|mut sql| sql.execute([holder]))
        .map_err(failed)?;
    owner.forget(holder);
    Ok(freed)
}

/// Counts one end of a process against a run that it executed. A run that only waited did nothing.
fn count(
    db: &Connection,
    (run, holder): (&RunId, &str),
    crashes: u32,
    now_ms: i64,
) -> Result<(), StoreError> {
    let found = db
        .prepare_cached(
            "SELECT num, pass, crashes, crash_mark FROM run
             WHERE id = ?1 AND lease_owner = ?2 AND ended_ms IS NULL AND status <> 'queued'
               AND (status <> 'waiting' OR due_ms <= ?3 OR cancel IS NOT NULL
                    OR EXISTS (SELECT 1 FROM wait WHERE wait.run = run.num AND wait.state = 'completed'))",
        )
        .and_then(|mut sql| {
            sql.query_row(params![run.as_str(), holder, now_ms], |row| {
                Ok((
                    row.get::<_, i64>(0)?,
                    row.get::<_, i64>(1)?,
                    row.get::<_, u32>(2)?,
                    row.get::<_, Option<i64>>(3)?,
                ))
            })
            .optional()
        })
        .map_err(failed)?;
    let Some((num, pass, before, mark_before)) = found else {
        return Ok(());
    };
    let mark = progress(db, num, pass)?;
    let count = match mark_before == Some(mark) {
        true => before.saturating_add(1),
        false => 1,
    };
    let reason = (count >= crashes).then(|| {
        let times = if count == 1 { "time" } else { "times in a row" };
        format!("the process that executed it ended {count} {times} without progress of the run")
    });
    db.prepare_cached(
        "UPDATE run SET crashes = ?2, crash_mark = ?3, quarantine = ?4, held = max(held, ?4 IS NOT NULL)
         WHERE num = ?1",
    )
    .and_then(|mut sql| sql.execute(params![num, count, mark, reason]))
    .map_err(failed)?;
    Ok(())
}

/// Returns a number that changes whenever a run gets on. Beginning a step again is not progress.
fn progress(db: &Connection, num: i64, pass: i64) -> Result<i64, StoreError> {
    let (first, last) = number_range(num);
    let entries: i64 = db
        .prepare_cached(
            "SELECT count(*) FROM journal WHERE id BETWEEN ?1 AND ?2 AND kind NOT IN ('begin', 'intent')",
        )
        .and_then(|mut sql| sql.query_row([first, last], |row| row.get(0)))
        .map_err(failed)?;
    Ok((pass << 32) | entries)
}

/// Returns why a run is in quarantine.
pub(super) fn reason(db: &Connection, run: &RunId) -> Result<Option<String>, StoreError> {
    db.prepare_cached("SELECT quarantine FROM run WHERE id = ?1")
        .and_then(|mut sql| sql.query_row([run.as_str()], |row| row.get(0)).optional())
        .map(Option::flatten)
        .map_err(failed)
}

/// Lets a run out of quarantine, and counts from zero.
pub(super) fn end(db: &Connection, run: &RunId) -> Result<(), StoreError> {
    db.prepare_cached(
        "UPDATE run SET crashes = 0, crash_mark = NULL, quarantine = NULL WHERE id = ?1 AND crashes > 0",
    )
    .and_then(|mut sql| sql.execute([run.as_str()]))
    .map_err(failed)?;
    Ok(())
}
