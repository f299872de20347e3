//! Slots, limits and the queue as rows. The rules are [`flowstone_model::rules::admission`] and
//! [`flowstone_model::rules::queue`].
//!
//! Each query has an index of its own, so that none depends on the number of finished runs.

use flowstone_model::ids::RunId;
use flowstone_model::ports::{
    Admission, Entry, Event, NewRun, OnNewVersion, QueuePlace, RateRule, RunStatus, StartRules,
    StoreError,
};
use flowstone_model::rules::admission::{self, Caller, Replaced, Versions};
use flowstone_model::rules::queue::{
    self as rules, Head, LimitView, Limited, Occupant, SlotRows, Withdrawn,
};
use flowstone_model::rules::rows::QueueRows;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::failure::failed;
use super::owner::Owner;
use super::{feed, journal, runs};

/// The additions of format 2. `is_next`: the run has its slot, or needs none, and waits only for its limit. `apart`:
/// runs of other versions do not count. `admitted_ms`: when the run began, for rates.
pub(super) const FORMAT_2: &str = "
ALTER TABLE run ADD COLUMN slot TEXT;
ALTER TABLE run ADD COLUMN apart INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN is_next INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN limit_name TEXT;
ALTER TABLE run ADD COLUMN limit_runs INTEGER;
ALTER TABLE run ADD COLUMN rate_max INTEGER;
ALTER TABLE run ADD COLUMN rate_ms INTEGER;
ALTER TABLE run ADD COLUMN admitted_ms INTEGER;
CREATE INDEX run_queue ON run (slot, program, priority DESC, num) WHERE status = 'queued' AND slot IS NOT NULL;
CREATE INDEX run_slot_next ON run (slot, program) WHERE status = 'queued' AND is_next = 1 AND slot IS NOT NULL;
CREATE INDEX run_limit_next ON run (limit_name, priority DESC, num) WHERE status = 'queued' AND is_next = 1;
CREATE INDEX run_limit_due ON run (limit_name, due_ms) WHERE status = 'queued' AND due_ms IS NOT NULL;
CREATE INDEX run_slot_live ON run (slot, program) WHERE slot IS NOT NULL AND status <> 'queued' AND ended_ms IS NULL;
CREATE INDEX run_limit_live ON run (limit_name)
    WHERE limit_name IS NOT NULL AND status <> 'queued' AND ended_ms IS NULL;
CREATE INDEX run_rate ON run (limit_name, admitted_ms DESC) WHERE limit_name IS NOT NULL AND admitted_ms IS NOT NULL;
";

/// The rows of the database, inside a transaction.
pub(super) struct Sql<'a> {
    pub db: &'a Connection,
    /// The process that adds runs.
    owner: Option<&'a Owner>,
}

impl<'a> Sql<'a> {
    pub(super) fn new(db: &'a Connection) -> Sql<'a> {
        Sql { db, owner: None }
    }

    /// Returns the rows for a process that adds runs.
    pub(super) fn of(db: &'a Connection, owner: &'a Owner) -> Sql<'a> {
        Sql {
            db,
            owner: Some(owner),
        }
    }
}

/// Adds a run with its initial journal, and decides whether it starts.
pub(super) fn admit(
    db: &Connection,
    owner: &Owner,
    run: &NewRun,
    rules: &StartRules,
    entries: &[Entry],
) -> Result<Admission, StoreError> {
    let mut rows = Sql::of(db, owner);
    let admission = admission::admit(&mut rows, run, rules)?;
    if entries.is_empty() {
        return Ok(admission);
    }
    if let Admission::Admitted { run, .. } = &admission
        && let Some(number) = runs::number(db, run)?
    {
        journal::extend(db, number, entries)?;
    }
    Ok(admission)
}

/// Returns when [`rules::promote`] must be called next.
pub(super) fn next_ms(db: &Connection) -> Result<Option<i64>, StoreError> {
    db.prepare_cached(
        "SELECT min(due_ms) FROM run INDEXED BY run_limit_due WHERE status = 'queued' AND due_ms IS NOT NULL",
    )
    .and_then(|mut sql| sql.query_row([], |row| row.get(0)))
    .map_err(failed)
}

/// Tells whether [`rules::promote`] has a limit to look at.
pub(super) fn has_due_limit(db: &Connection, now_ms: i64) -> Result<bool, StoreError> {
    Ok(!Sql::new(db).due_limits(now_ms)?.is_empty())
}

impl QueueRows for Sql<'_> {
    fn by_external_id(&mut self, run: &NewRun) -> Result<Option<RunId>, StoreError> {
        runs::by_external_id(self.db, run)
    }

    fn insert(&mut self, run: &NewRun, status: RunStatus) -> Result<RunId, StoreError> {
        runs::insert(self.db, self.owner, run, status)
    }

    fn write_rules(&mut self, run: &RunId, rules: &StartRules) -> Result<i64, StoreError> {
        let (slot, limit) = (rules.slot.as_ref(), rules.limit.as_ref());
        let rate = limit.and_then(|limit| limit.rate);
        self.db
            .prepare_cached(
                "UPDATE run SET slot = ?2, apart = ?3, limit_name = ?4, limit_runs = ?5, rate_max = ?6, rate_ms = ?7
                 WHERE id = ?1 RETURNING num",
            )
            .and_then(|mut sql| {
                sql.query_row(
                    params![
                        run.as_str(),
                        slot.map(|slot| slot.name.as_str()),
                        slot.is_some_and(|slot| slot.on_new_version == OnNewVersion::Coexist),
                        limit.map(|limit| limit.name.as_str()),
                        limit.and_then(|limit| limit.concurrency),
                        rate.map(|rate| rate.max),
                        rate.map(|rate| rate.per_ms),
                    ],
                    |row| row.get(0),
                )
            })
            .map_err(failed)
    }

    fn caller(&mut self, run: &RunId) -> Result<Option<Caller>, StoreError> {
        let caller = |row: &Row<'_>| {
            Ok(Caller {
                slot: row.get(0)?,
                program: row.get(1)?,
                limit: row.get(2)?,
                parent: row.get::<_, Option<String>>(3)?.map(RunId::from_text),
                is_over: row.get(4)?,
            })
        };
        self.db
            .prepare_cached(
                "SELECT slot, program, limit_name, parent, ended_ms IS NOT NULL FROM run WHERE id = ?1",
            )
            .and_then(|mut sql| sql.query_row([run.as_str()], caller).optional())
            .map_err(failed)
    }

    fn slot(&mut self, slot: &str) -> Result<SlotRows, StoreError> {
        Ok(SlotRows {
            live: live(self.db, slot)?,
            heads: heads(self.db, slot)?,
        })
    }

    fn cancel_live(
        &mut self,
        replaced: &Replaced<'_>,
        now_ms: i64,
    ) -> Result<Vec<RunId>, StoreError> {
        let is_other = replaced.versions == Versions::Other;
        let asked: Vec<i64> = column(
            self.db,
            "UPDATE run INDEXED BY run_slot_live SET cancel = ?4, updated_ms = ?5
             WHERE slot = ?1 AND status <> 'queued' AND ended_ms IS NULL AND cancel IS NULL AND (program <> ?2) = ?3
             RETURNING num",
            params![replaced.slot, replaced.program, is_other, replaced.reason, now_ms],
        )?;
        let cancelling = Event::cancelling(&replaced.reason, now_ms);
        for num in &asked {
            feed::add(self.db, *num, &cancelling)?;
        }
        asked.into_iter().map(|num| self.id_of(num)).collect()
    }

    fn queued(&mut self, slot: &str, program: &str, except: i64) -> Result<Vec<RunId>, StoreError> {
        ids(
            self.db,
            "SELECT id FROM run INDEXED BY run_queue
             WHERE status = 'queued' AND slot = ?1 AND program = ?2 AND num <> ?3",
            params![slot, program, except],
        )
    }

    fn cancel_queued(
        &mut self,
        run: &RunId,
        reason: &str,
        now_ms: i64,
    ) -> Result<Option<Withdrawn>, StoreError> {
        let withdrawn = |row: &Row<'_>| {
            Ok(Withdrawn {
                num: row.get(0)?,
                limit: row.get(1)?,
                has_parent: row.get(2)?,
            })
        };
        let status = RunStatus::Cancelled.name();
        let found = self
            .db
            .prepare_cached(
                "UPDATE run SET status = ?4, cancel = coalesce(cancel, ?2), is_next = 0, due_ms = NULL,
                                updated_ms = ?3, ended_ms = ?3
                 WHERE id = ?1 AND status = 'queued' RETURNING num, limit_name, parent IS NOT NULL",
            )
            .and_then(|mut sql| {
                let values = params![run.as_str(), reason, now_ms, status];
                sql.query_row(values, withdrawn).optional()
            })
            .map_err(failed)?;
        if let Some(withdrawn) = &found {
            let cancelled = Event::ended(RunStatus::Cancelled, now_ms);
            feed::add_some(self.db, withdrawn.num, cancelled)?;
        }
        Ok(found)
    }

    fn needs(&mut self, num: i64) -> Result<(Option<String>, Option<String>), StoreError> {
        self.db
            .prepare_cached("SELECT slot, limit_name FROM run WHERE num = ?1")
            .and_then(|mut sql| sql.query_row([num], |row| Ok((row.get(0)?, row.get(1)?))))
            .map_err(failed)
    }

    fn clear_next(&mut self, slot: &str) -> Result<Vec<Option<String>>, StoreError> {
        column(
            self.db,
            "UPDATE run INDEXED BY run_slot_next SET is_next = 0, due_ms = NULL
             WHERE slot = ?1 AND status = 'queued' AND is_next = 1 RETURNING limit_name",
            [slot],
        )
    }

    fn set_next(&mut self, num: i64) -> Result<(), StoreError> {
        execute(self.db, "UPDATE run SET is_next = 1 WHERE num = ?1", [num])
    }

    fn start(&mut self, num: i64, now_ms: i64) -> Result<(), StoreError> {
        execute(
            self.db,
            "UPDATE run SET status = 'running', is_next = 0, due_ms = NULL, admitted_ms = ?2, updated_ms = ?2
             WHERE num = ?1",
            [num, now_ms],
        )
    }

    fn first_in_limit(&mut self, limit: &str) -> Result<Option<Limited>, StoreError> {
        let limited = |row: &Row<'_>| {
            let rate: (Option<u32>, Option<i64>) = (row.get(2)?, row.get(3)?);
            Ok(Limited {
                num: row.get(0)?,
                runs: row.get(1)?,
                rate: rate
                    .0
                    .zip(rate.1)
                    .map(|(max, per_ms)| RateRule { max, per_ms }),
            })
        };
        self.db
            .prepare_cached(
                "SELECT num, limit_runs, rate_max, rate_ms FROM run INDEXED BY run_limit_next
                 WHERE status = 'queued' AND is_next = 1 AND limit_name = ?1
                 ORDER BY priority DESC, num LIMIT 1",
            )
            .and_then(|mut sql| sql.query_row([limit], limited).optional())
            .map_err(failed)
    }

    fn live_in_limit(&mut self, limit: &str, most: u32) -> Result<u32, StoreError> {
        self.db
            .prepare_cached(
                "SELECT count(*) FROM (SELECT 1 FROM run INDEXED BY run_limit_live
                                       WHERE limit_name = ?1 AND status <> 'queued' AND ended_ms IS NULL LIMIT ?2)",
            )
            .and_then(|mut sql| sql.query_row(params![limit, most], |row| row.get(0)))
            .map_err(failed)
    }

    fn cap_starts(&mut self, limit: &str, now_ms: i64) -> Result<(), StoreError> {
        execute(
            self.db,
            "UPDATE run INDEXED BY run_rate SET admitted_ms = ?2 WHERE limit_name = ?1 AND admitted_ms > ?2",
            params![limit, now_ms],
        )
    }

    fn earlier_start(&mut self, limit: &str, nth: u32) -> Result<Option<i64>, StoreError> {
        self.db
            .prepare_cached(
                "SELECT admitted_ms FROM run INDEXED BY run_rate WHERE limit_name = ?1 AND admitted_ms IS NOT NULL
                 ORDER BY admitted_ms DESC LIMIT 1 OFFSET ?2",
            )
            .and_then(|mut sql| {
                let before = i64::from(nth) - 1;
                sql.query_row(params![limit, before], |row| row.get(0))
                    .optional()
            })
            .map_err(failed)
    }

    fn clear_due(&mut self, limit: &str) -> Result<(), StoreError> {
        execute(
            self.db,
            "UPDATE run INDEXED BY run_limit_due SET due_ms = NULL
             WHERE limit_name = ?1 AND status = 'queued' AND due_ms IS NOT NULL",
            [limit],
        )
    }

    fn set_due(&mut self, num: i64, due_ms: i64) -> Result<(), StoreError> {
        execute(
            self.db,
            "UPDATE run SET due_ms = ?2 WHERE num = ?1",
            [num, due_ms],
        )
    }

    fn due_limits(&mut self, now_ms: i64) -> Result<Vec<String>, StoreError> {
        column(
            self.db,
            "SELECT DISTINCT limit_name FROM run INDEXED BY run_limit_due
             WHERE status = 'queued' AND due_ms IS NOT NULL AND due_ms <= ?1 AND limit_name IS NOT NULL",
            [now_ms],
        )
    }

    fn id_of(&mut self, num: i64) -> Result<RunId, StoreError> {
        self.db
            .prepare_cached("SELECT id FROM run WHERE num = ?1")
            .and_then(|mut sql| sql.query_row([num], |row| row.get::<_, String>(0)))
            .map(RunId::from_text)
            .map_err(failed)
    }
}

/// Returns a live run of each version in a slot. Each version is found in the index with one step.
fn live(db: &Connection, slot: &str) -> Result<Vec<Occupant>, StoreError> {
    let occupant = |row: &Row<'_>| {
        Ok(Occupant {
            program: row.get(0)?,
            run: RunId::from_text(row.get::<_, String>(1)?),
        })
    };
    each_version(
        db,
        "SELECT program, id FROM run INDEXED BY run_slot_live
         WHERE slot = ?1 AND status <> 'queued' AND ended_ms IS NULL AND program > ?2
         ORDER BY program, num LIMIT 1",
        slot,
        occupant,
        |occupant| &occupant.program,
    )
}

/// Returns the first queued run of each version in a slot.
fn heads(db: &Connection, slot: &str) -> Result<Vec<Head>, StoreError> {
    let head = |row: &Row<'_>| {
        Ok(Head {
            program: row.get(0)?,
            run: RunId::from_text(row.get::<_, String>(1)?),
            num: row.get(2)?,
            priority: row.get(3)?,
            apart: row.get(4)?,
            limit: row.get(5)?,
        })
    };
    each_version(
        db,
        "SELECT program, id, num, priority, apart, limit_name FROM run INDEXED BY run_queue
         WHERE status = 'queued' AND slot = ?1 AND program > ?2
         ORDER BY program, priority DESC, num LIMIT 1",
        slot,
        head,
        |head| &head.program,
    )
}

/// Queries the first row of each version in a slot. There are few versions, however many runs there are.
fn each_version<T>(
    db: &Connection,
    sql: &str,
    slot: &str,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    program: impl Fn(&T) -> &str,
) -> Result<Vec<T>, StoreError> {
    let mut sql = db.prepare_cached(sql).map_err(failed)?;
    let mut found: Vec<T> = Vec::new();
    loop {
        let after = found.last().map_or("", &program);
        let next = sql.query_row([slot, after], &read).optional();
        match next.map_err(failed)? {
            Some(row) => found.push(row),
            None => return Ok(found),
        }
    }
}

/// Returns the place of a queued run.
pub(super) fn place(db: &Connection, run: &RunId) -> Result<Option<QueuePlace>, StoreError> {
    let found = db
        .prepare_cached(
            "SELECT slot, program, apart, priority, num, limit_name, due_ms, is_next, limit_runs FROM run
             WHERE id = ?1 AND status = 'queued'",
        )
        .and_then(|mut sql| sql.query_row([run.as_str()], Queued::read).optional())
        .map_err(failed)?;
    found.map(|queued| queued.place(db)).transpose()
}

/// A queued run, for display.
struct Queued {
    slot: Option<String>,
    program: String,
    apart: bool,
    priority: i64,
    num: i64,
    limit: Option<String>,
    due_ms: Option<i64>,
    is_next: bool,
    runs: Option<u32>,
}

impl Queued {
    fn read(row: &Row<'_>) -> rusqlite::Result<Queued> {
        Ok(Queued {
            slot: row.get(0)?,
            program: row.get(1)?,
            apart: row.get(2)?,
            priority: row.get(3)?,
            num: row.get(4)?,
            limit: row.get(5)?,
            due_ms: row.get(6)?,
            is_next: row.get(7)?,
            runs: row.get(8)?,
        })
    }

    fn place(&self, db: &Connection) -> Result<QueuePlace, StoreError> {
        if !self.is_next {
            return self.place_before_slot(db);
        }
        let live = ids(
            db,
            "SELECT id FROM run INDEXED BY run_limit_live
             WHERE limit_name = ?1 AND status <> 'queued' AND ended_ms IS NULL ORDER BY num",
            [&self.limit],
        )?;
        let ahead: u32 = db
            .prepare_cached(
                "SELECT count(*) FROM run INDEXED BY run_limit_next
                 WHERE status = 'queued' AND is_next = 1 AND limit_name = ?1
                   AND (priority > ?2 OR (priority = ?2 AND num < ?3))",
            )
            .and_then(|mut sql| {
                sql.query_row(params![self.limit, self.priority, self.num], |row| {
                    row.get(0)
                })
            })
            .map_err(failed)?;
        Ok(rules::place_before_limit(LimitView {
            runs: self.runs,
            due_ms: self.due_ms,
            live,
            ahead,
        }))
    }

    fn place_before_slot(&self, db: &Connection) -> Result<QueuePlace, StoreError> {
        let behind = ids(
            db,
            "SELECT id FROM run INDEXED BY run_slot_live
             WHERE slot = ?1 AND status <> 'queued' AND ended_ms IS NULL AND (?2 = 0 OR program = ?3)
             UNION ALL
             SELECT id FROM run INDEXED BY run_slot_next
             WHERE slot = ?1 AND status = 'queued' AND is_next = 1 AND (?2 = 0 OR program = ?3)",
            params![self.slot, self.apart, self.program],
        )?;
        let ahead: u32 = db
            .prepare_cached(
                "SELECT count(*) FROM run INDEXED BY run_queue
                 WHERE status = 'queued' AND slot = ?1 AND (?2 = 0 OR program = ?3)
                   AND (priority > ?4 OR (priority = ?4 AND num < ?5))",
            )
            .and_then(|mut sql| {
                sql.query_row(
                    params![self.slot, self.apart, self.program, self.priority, self.num],
                    |row| row.get(0),
                )
            })
            .map_err(failed)?;
        Ok(rules::place_before_slot(behind, ahead))
    }
}

fn ids(
    db: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
) -> Result<Vec<RunId>, StoreError> {
    let ids: Vec<String> = column(db, sql, params)?;
    Ok(ids.into_iter().map(RunId::from_text).collect())
}

/// Returns the first column of all rows.
fn column<T: rusqlite::types::FromSql>(
    db: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
) -> Result<Vec<T>, StoreError> {
    let mut sql = db.prepare_cached(sql).map_err(failed)?;
    let rows = sql.query_map(params, |row| row.get(0)).map_err(failed)?;
    rows.collect::<rusqlite::Result<Vec<T>>>().map_err(failed)
}

/// Executes a statement that returns no rows.
pub(super) fn execute(
    db: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
) -> Result<(), StoreError> {
    db.prepare_cached(sql)
        .and_then(|mut sql| sql.execute(params))
        .map(drop)
        .map_err(failed)
}
