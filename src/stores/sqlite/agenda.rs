//! The agenda: runs that can continue. Each kind of them has an index of its own, so finished and waiting runs cost
//! nothing, however many there are. The queries name their indexes, because without statistics SQLite prefers the index
//! over all statuses.

use flowstone_model::ids::RunId;
use flowstone_model::ports::{Setback, StoreError, Taken};
use flowstone_model::rules::agenda::{Candidate, choose};
use flowstone_model::rules::{jobs, lease, queue as rules};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::failure::failed;
use super::feed;
use super::lease::Leases;
use super::owner::{Alive, Owner};
use super::queue::{self, Sql as Rows};
use super::runs;

/// The indexes of this part. Their conditions are repeated literally in the queries.
pub(super) const SCHEMA: &str = "
ALTER TABLE run ADD COLUMN setback TEXT;
ALTER TABLE run ADD COLUMN again_ms INTEGER;
UPDATE run SET ended_ms = updated_ms WHERE ended_ms IS NULL AND status IN ('cancelled', 'completed', 'failed');
CREATE INDEX run_free ON run (priority DESC, num) WHERE status = 'running' AND lease_owner IS NULL;
CREATE INDEX run_lease ON run (lease_owner) WHERE lease_owner IS NOT NULL;
CREATE INDEX run_cancel ON run (num) WHERE cancel IS NOT NULL AND ended_ms IS NULL;
CREATE INDEX run_setback ON run (again_ms) WHERE setback IS NOT NULL;
";

/// Queries for the numbers and priorities of runs; `?1` is the current time, `?2` the maximum number of runs.
const READY: &[&str] = &[
    "SELECT num, priority FROM run INDEXED BY run_free
     WHERE status = 'running' AND lease_owner IS NULL
       AND held = 0 AND program <> 'interactive' AND (setback IS NULL OR again_ms <= ?1)
     ORDER BY priority DESC, num LIMIT ?2",
    "SELECT num, priority FROM run INDEXED BY run_due
     WHERE due_ms IS NOT NULL AND due_ms <= ?1
       AND status = 'waiting' AND held = 0 AND lease_owner IS NULL AND (setback IS NULL OR again_ms <= ?1)
     ORDER BY due_ms LIMIT ?2",
    "SELECT run.num, run.priority FROM wait INDEXED BY wait_answered CROSS JOIN run ON run.num = wait.run
     WHERE wait.state = 'completed'
       AND run.status = 'waiting' AND run.held = 0 AND run.lease_owner IS NULL AND (run.setback IS NULL OR run.again_ms <= ?1)
     LIMIT ?2",
    "SELECT num, priority FROM run INDEXED BY run_cancel
     WHERE cancel IS NOT NULL AND unwinding = 0 AND ended_ms IS NULL
       AND status IN ('running', 'waiting') AND lease_owner IS NULL AND held = 0
       AND program <> 'interactive'
       AND (setback IS NULL OR again_ms <= ?1)
     LIMIT ?2",
];
/// Maximum number of runs of each kind that are compared, so that priorities are respected among them.
const COMPARED_MAX: usize = 1024;

/// Tells whether [`take`] would change anything: a run can continue, a limit admits a run again, or a job has expired.
pub(super) fn is_due(db: &Connection, now_ms: i64) -> Result<bool, StoreError> {
    for query in READY {
        let mut sql = db.prepare_cached(query).map_err(failed)?;
        if sql.exists([now_ms, 1]).map_err(failed)? {
            return Ok(true);
        }
    }
    Ok(queue::has_due_limit(db, now_ms)? || super::jobs::has_due(db, now_ms)?)
}

/// Takes the leases of runs that can continue.
pub(super) fn take(
    db: &Connection,
    owner: &Owner,
    now_ms: i64,
    limit: usize,
) -> Result<Vec<Taken>, StoreError> {
    rules::promote(&mut Rows::new(db), now_ms)?;
    jobs::expire(&mut Rows::new(db), now_ms)?;
    let mut found: Vec<Candidate> = Vec::new();
    let compared = i64::try_from(limit.max(COMPARED_MAX)).unwrap_or(i64::MAX);
    for query in READY {
        let mut sql = db.prepare_cached(query).map_err(failed)?;
        let rows = sql
            .query_map([now_ms, compared], |row| {
                Ok(Candidate {
                    num: row.get(0)?,
                    priority: row.get(1)?,
                })
            })
            .map_err(failed)?;
        for row in rows {
            found.push(row.map_err(failed)?);
        }
    }
    let chosen = choose(found, limit).into_iter();
    chosen.map(|run| take_one(db, owner, run, now_ms)).collect()
}

fn take_one(db: &Connection, owner: &Owner, run: i64, now_ms: i64) -> Result<Taken, StoreError> {
    let row = db
        .prepare_cached(&format!("SELECT {} FROM run WHERE num = ?1", runs::COLUMNS))
        .and_then(|mut sql| sql.query_row([run], |row| runs::run_row(row, &Alive::new(owner))))
        .map_err(failed)?;
    let epoch = db
        .prepare_cached(
            "UPDATE run SET lease_owner = ?2, lease_epoch = lease_epoch + 1, updated_ms = ?3,
                            setback = NULL, again_ms = NULL
             WHERE num = ?1 RETURNING lease_epoch",
        )
        .and_then(|mut sql| sql.query_row(params![run, owner.id(), now_ms], |row| row.get(0)))
        .map_err(failed)?;
    feed::taken(db, run, now_ms)?;
    Ok(Taken { row, epoch })
}

/// Returns when the next timer of a run that no process executes is due.
pub(super) fn next_ms(db: &Connection) -> Result<Option<i64>, StoreError> {
    let ask = |sql: &str| {
        db.prepare_cached(sql)
            .and_then(|mut sql| sql.query_row([], |row| row.get::<_, i64>(0)).optional())
            .map_err(failed)
    };
    let due = ask("SELECT due_ms FROM run INDEXED BY run_due
         WHERE due_ms IS NOT NULL AND status = 'waiting' AND held = 0 AND lease_owner IS NULL AND setback IS NULL
         ORDER BY due_ms LIMIT 1")?;
    let again = ask(
        "SELECT again_ms FROM run INDEXED BY run_setback WHERE setback IS NOT NULL ORDER BY again_ms LIMIT 1",
    )?;
    let turn = queue::next_ms(db)?;
    let job = super::jobs::next_ms(db)?;
    Ok([due, again, turn, job].into_iter().flatten().min())
}

/// Returns the processes that hold leases and have ended. Each is found in the index with one step.
pub(super) fn gone(db: &Connection, owner: &Owner) -> Result<Vec<String>, StoreError> {
    let mut sql = db
        .prepare_cached(
            "SELECT min(lease_owner) FROM run WHERE lease_owner IS NOT NULL AND lease_owner > ?1",
        )
        .map_err(failed)?;
    let mut gone = Vec::new();
    let mut last = String::new();
    while let Some(next) = sql
        .query_row([&last], |row| row.get::<_, Option<String>>(0))
        .map_err(failed)?
    {
        if !owner.is_alive(&next) {
            gone.push(next.clone());
        }
        last = next;
    }
    Ok(gone)
}

/// Frees the leases of processes that have ended, and counts their ends against the runs that they executed.
pub(super) fn free(
    db: &Connection,
    (owner, crashes): (&Owner, u32),
    gone: &[String],
    now_ms: i64,
) -> Result<usize, StoreError> {
    let mut leases = Leases { db, owner };
    let freed = gone
        .iter()
        .map(|process| lease::free(&mut leases, process, crashes, now_ms));
    freed.sum()
}

/// Gives a lease back, with the reason and the time until which no worker takes the run.
pub(super) fn set_aside(
    db: &Connection,
    run: &RunId,
    epoch: i64,
    setback: &Setback,
) -> Result<(), StoreError> {
    db.prepare_cached(
        "UPDATE run SET lease_owner = NULL, setback = ?3, again_ms = ?4
         WHERE id = ?1 AND lease_epoch = ?2 AND ended_ms IS NULL",
    )
    .and_then(|mut sql| {
        sql.execute(params![
            run.as_str(),
            epoch,
            setback.reason,
            setback.again_ms
        ])
    })
    .map_err(failed)?;
    runs::release(db, run, epoch)
}

/// Ends the delay of runs that could not be executed.
pub(super) fn forget_setbacks(db: &Connection) -> Result<usize, StoreError> {
    db.prepare_cached("UPDATE run SET again_ms = 0 WHERE setback IS NOT NULL")
        .and_then(|mut sql| sql.execute([]))
        .map_err(failed)
}
