//! The door that runs begin through: slots, limits and the queue before them.
//!
//! A queued run first waits for its slot. Who is the next of a slot keeps it free for itself and waits for its
//! limit, if it has one. So things are taken in one order, and each end of a run looks at two heads of queues,
//! however long these are. What is taken is read from the rows of live runs.

use flowstone_model::ids::RunId;
use flowstone_model::ports::{
    Admission, Entry, LimitRule, NewRun, OnConflict, OnNewVersion, QueuePlace, QueueReason,
    RunStatus, SlotRule, StartDecision, StartRules, StoreError,
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::failure::failed;
use super::owner::Owner;
use super::{family, journal, runs};

/// What the second format adds. `is_next`: the run has its slot, or needs none, and waits for its limit only.
/// `apart`: runs of other versions do not count. `admitted_ms`: when it began, for rates.
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

/// More live runs than these are not named to who waits for them.
const NAMED: usize = 8;

/// Adds a run and decides whether it begins.
pub(super) fn admit(
    db: &Connection,
    owner: &Owner,
    run: &NewRun,
    rules: &StartRules,
) -> Result<Admission, StoreError> {
    if let Some(found) = runs::by_external_id(db, run)? {
        return Ok(admitted(found, StartDecision::Deduped, Vec::new()));
    }
    if rules.slot.is_none() && rules.limit.is_none() {
        let id = runs::insert(db, owner, run, RunStatus::Running)?;
        return Ok(admitted(id, StartDecision::Started, Vec::new()));
    }
    if let Some(caller) = caller_in_the_way(db, run, rules)? {
        return Ok(Admission::WaitsForCaller { caller });
    }
    let others = match &rules.slot {
        Some(slot) => Others::of(db, slot, run)?,
        None => Others::default(),
    };
    let conflict = rules.slot.as_ref().map(|slot| slot.on_conflict);
    if let (Some(OnConflict::Reject), Some(by)) = (conflict, &others.same) {
        return Ok(Admission::Taken { by: by.clone() });
    }
    let id = runs::insert(db, owner, run, RunStatus::Queued)?;
    let num = write_rules(db, &id, rules)?;
    let replaced = match &rules.slot {
        Some(slot) => replace(db, slot, run, num)?,
        None => Vec::new(),
    };
    let mut door = Door::at(db, run.now_ms);
    match &rules.slot {
        Some(slot) => door.settle_slot(&slot.name)?,
        None => {
            door.make_next(num)?;
            door.settle_limit(rules.limit.as_ref().map(|limit| limit.name.as_str()))?;
        }
    }
    let policy = rules.slot.as_ref().map(|slot| slot.on_new_version);
    let has_other = others.other.is_some();
    let decision = match (door.started.contains(&num), policy) {
        (true, Some(OnNewVersion::Coexist)) if has_other => StartDecision::Coexisted,
        (true, _) => StartDecision::Started,
        (false, Some(OnNewVersion::Drain)) if has_other => StartDecision::Blocked,
        (false, _) => StartDecision::Queued,
    };
    Ok(admitted(id, decision, replaced))
}

/// As [`admit`], of a run that begins with a journal.
pub(super) fn admit_with(
    db: &Connection,
    owner: &Owner,
    run: &NewRun,
    rules: &StartRules,
    entries: &[Entry],
) -> Result<Admission, StoreError> {
    let admission = admit(db, owner, run, rules)?;
    if let Admission::Admitted { run, .. } = &admission
        && let Some(number) = runs::number(db, run)?
    {
        journal::extend(db, number, entries)?;
    }
    Ok(admission)
}

fn admitted(run: RunId, decision: StartDecision, replaced: Vec<RunId>) -> Admission {
    Admission::Admitted {
        run,
        decision,
        replaced,
    }
}

/// Starts whatever waits for a moment that has come.
pub(super) fn promote(db: &Connection, now_ms: i64) -> Result<Vec<RunId>, StoreError> {
    let due: Vec<String> = column(
        db,
        "SELECT DISTINCT limit_name FROM run INDEXED BY run_limit_due
         WHERE status = 'queued' AND due_ms IS NOT NULL AND due_ms <= ?1 AND limit_name IS NOT NULL",
        [now_ms],
    )?;
    let mut door = Door::at(db, now_ms);
    for limit in &due {
        door.settle_limit(Some(limit))?;
    }
    let mut runs = Vec::new();
    for num in door.started {
        runs.extend(ids(db, "SELECT id FROM run WHERE num = ?1", [num])?);
    }
    Ok(runs)
}

/// Returns when [`promote`] is to be called next.
pub(super) fn next_ms(db: &Connection) -> Result<Option<i64>, StoreError> {
    db.prepare_cached(
        "SELECT min(due_ms) FROM run INDEXED BY run_limit_due WHERE status = 'queued' AND due_ms IS NOT NULL",
    )
    .and_then(|mut sql| sql.query_row([], |row| row.get(0)))
    .map_err(failed)
}

/// Gives on what a run had that is over. Belongs to the transaction that ends it.
pub(super) fn ended(db: &Connection, num: i64, now_ms: i64) -> Result<(), StoreError> {
    let (slot, limit): (Option<String>, Option<String>) = db
        .prepare_cached("SELECT slot, limit_name FROM run WHERE num = ?1")
        .and_then(|mut sql| sql.query_row([num], |row| Ok((row.get(0)?, row.get(1)?))))
        .map_err(failed)?;
    let mut door = Door::at(db, now_ms);
    if let Some(slot) = slot {
        door.settle_slot(&slot)?;
    }
    door.settle_limit(limit.as_deref())
}

/// Cancels a run that has not begun: nobody needs to drive it for that. Tells whether it was one.
pub(super) fn withdraw(
    db: &Connection,
    run: &RunId,
    reason: &str,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let cancelled = cancel_queued(db, run, reason, now_ms)?;
    if let Some((num, _)) = cancelled {
        ended(db, num, now_ms)?;
    }
    Ok(cancelled.is_some())
}

/// Returns what a queued run waits for.
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

/// A queued run, to be shown.
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
        let is_full = self.runs.is_some_and(|runs| live.len() >= runs as usize);
        Ok(QueuePlace {
            waits_for: if is_full {
                QueueReason::Limit
            } else {
                QueueReason::Rate
            },
            position: ahead + 1,
            behind: if is_full { named(live) } else { Vec::new() },
            due_ms: self.due_ms,
        })
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
        Ok(QueuePlace {
            waits_for: QueueReason::Slot,
            position: ahead + 1,
            behind: named(behind),
            due_ms: None,
        })
    }
}

fn named(mut runs: Vec<RunId>) -> Vec<RunId> {
    runs.truncate(NAMED);
    runs
}

/// The runs of a slot that a new one meets there, live or queued.
#[derive(Default)]
struct Others {
    /// One that it has to wait for, if its policy about versions does not decide otherwise.
    same: Option<RunId>,
    /// One of another version.
    other: Option<RunId>,
}

impl Others {
    fn of(db: &Connection, slot: &SlotRule, run: &NewRun) -> Result<Others, StoreError> {
        let mut others = Others::default();
        let mut note = |program: String, id: String| {
            let found = match program == run.program.hash {
                true => &mut others.same,
                false => &mut others.other,
            };
            found.get_or_insert(RunId::from_text(id));
        };
        let mut sql = db
            .prepare_cached(
                "SELECT program, id FROM run INDEXED BY run_slot_live
                 WHERE slot = ?1 AND status <> 'queued' AND ended_ms IS NULL",
            )
            .map_err(failed)?;
        let mut rows = sql.query([&slot.name]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            note(row.get(0).map_err(failed)?, row.get(1).map_err(failed)?);
        }
        for head in Door::at(db, run.now_ms).heads(&slot.name)? {
            note(head.program, head.id);
        }
        Ok(others)
    }
}

/// Finds a run among those that called this one, each by the next, that it would have to wait for.
fn caller_in_the_way(
    db: &Connection,
    run: &NewRun,
    rules: &StartRules,
) -> Result<Option<RunId>, StoreError> {
    let mut above = run.parent.as_ref().map(|parent| parent.run.clone());
    let mut in_limit = 0;
    while let Some(id) = above {
        let found: Option<Above> = db
            .prepare_cached(
                "SELECT slot, program, limit_name, parent, ended_ms IS NOT NULL FROM run WHERE id = ?1",
            )
            .and_then(|mut sql| sql.query_row([id.as_str()], Above::read).optional())
            .map_err(failed)?;
        let Some(caller) = found else {
            return Ok(None);
        };
        let in_slot = rules.slot.as_ref().is_some_and(|slot| {
            let is_apart = slot.on_new_version == OnNewVersion::Coexist;
            caller.slot.as_ref() == Some(&slot.name)
                && (!is_apart || caller.program == run.program.hash)
        });
        let limit = rules.limit.as_ref();
        let counts = |limit: &&LimitRule| caller.limit.as_ref() == Some(&limit.name);
        in_limit += u32::from(!caller.is_over && limit.filter(counts).is_some());
        let is_full = limit.is_some_and(|limit| limit.concurrency.is_some_and(|n| in_limit >= n));
        if !caller.is_over && (in_slot || is_full) {
            return Ok(Some(id));
        }
        above = caller.parent.map(RunId::from_text);
    }
    Ok(None)
}

/// A run that called another.
struct Above {
    slot: Option<String>,
    program: String,
    limit: Option<String>,
    parent: Option<String>,
    is_over: bool,
}

impl Above {
    fn read(row: &Row<'_>) -> rusqlite::Result<Above> {
        Ok(Above {
            slot: row.get(0)?,
            program: row.get(1)?,
            limit: row.get(2)?,
            parent: row.get(3)?,
            is_over: row.get(4)?,
        })
    }
}

/// Writes down what a run has to pass, and returns its number.
fn write_rules(db: &Connection, run: &RunId, rules: &StartRules) -> Result<i64, StoreError> {
    let (slot, limit) = (rules.slot.as_ref(), rules.limit.as_ref());
    let rate = limit.and_then(|limit| limit.rate);
    db.prepare_cached(
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

/// Cancels, or has cancelled, what a new run takes the place of.
fn replace(
    db: &Connection,
    slot: &SlotRule,
    run: &NewRun,
    num: i64,
) -> Result<Vec<RunId>, StoreError> {
    let mut replaced = Vec::new();
    if slot.on_new_version == OnNewVersion::Supersede {
        let reason = format!("superseded by run {}, of a newer version", run.id);
        replaced.extend(cancel_all(db, slot, run, (num, true), &reason)?);
    }
    if slot.on_conflict == OnConflict::CancelRunning {
        let reason = format!("replaced by run {}", run.id);
        replaced.extend(cancel_all(db, slot, run, (num, false), &reason)?);
    }
    Ok(replaced)
}

/// Cancels what is in a slot beside a run: of other versions, or of its own.
fn cancel_all(
    db: &Connection,
    slot: &SlotRule,
    run: &NewRun,
    (num, is_other): (i64, bool),
    reason: &str,
) -> Result<Vec<RunId>, StoreError> {
    let mut replaced = ids(
        db,
        "UPDATE run INDEXED BY run_slot_live SET cancel = ?4, updated_ms = ?5
         WHERE slot = ?1 AND status <> 'queued' AND ended_ms IS NULL AND cancel IS NULL AND (program <> ?2) = ?3
         RETURNING id",
        params![slot.name, run.program.hash, is_other, reason, run.now_ms],
    )?;
    let mut door = Door::at(db, run.now_ms);
    let mut limits: Vec<String> = Vec::new();
    for head in door.heads(&slot.name)? {
        if (head.program != run.program.hash) != is_other {
            continue;
        }
        let queued = ids(
            db,
            "SELECT id FROM run INDEXED BY run_queue
             WHERE status = 'queued' AND slot = ?1 AND program = ?2 AND num <> ?3",
            params![slot.name, head.program, num],
        )?;
        for id in queued {
            // The slot is settled once, by who asks for this.
            let (_, limit) = cancel_queued(db, &id, reason, run.now_ms)?.unwrap_or_default();
            limits.extend(limit.filter(|limit| !limits.contains(limit)));
            replaced.push(id);
        }
    }
    for limit in &limits {
        door.settle_limit(Some(limit))?;
    }
    Ok(replaced)
}

/// Ends a run that has not begun. Returns its number and its limit, if it was one.
fn cancel_queued(
    db: &Connection,
    run: &RunId,
    reason: &str,
    now_ms: i64,
) -> Result<Option<(i64, Option<String>)>, StoreError> {
    let status = RunStatus::Cancelled.name();
    let ended: Option<(i64, Option<String>, Option<String>)> = db
        .prepare_cached(
            "UPDATE run SET status = ?4, cancel = coalesce(cancel, ?2), is_next = 0, due_ms = NULL,
                            updated_ms = ?3, ended_ms = ?3
             WHERE id = ?1 AND status = 'queued' RETURNING num, limit_name, parent",
        )
        .and_then(|mut sql| {
            sql.query_row(params![run.as_str(), reason, now_ms, status], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .optional()
        })
        .map_err(failed)?;
    let Some((num, limit, parent)) = ended else {
        return Ok(None);
    };
    if parent.is_some() {
        family::tell_parent(db, run.as_str(), status, now_ms)?;
    }
    Ok(Some((num, limit)))
}

/// Lets runs in, at one moment.
struct Door<'a> {
    db: &'a Connection,
    now_ms: i64,
    /// The numbers of those that began.
    started: Vec<i64>,
}

/// The first in a slot's queue, of one version.
struct Head {
    program: String,
    id: String,
    num: i64,
    priority: i64,
    apart: bool,
    limit: Option<String>,
}

impl<'a> Door<'a> {
    fn at(db: &'a Connection, now_ms: i64) -> Door<'a> {
        Door {
            db,
            now_ms,
            started: Vec::new(),
        }
    }

    /// Finds who is the next in a slot, and starts it if nothing else holds it back. Who was the next and has not
    /// begun is looked at anew: somebody more urgent may have come.
    fn settle_slot(&mut self, slot: &str) -> Result<(), StoreError> {
        let mut limits: Vec<Option<String>> = column(
            self.db,
            "UPDATE run INDEXED BY run_slot_next SET is_next = 0, due_ms = NULL
             WHERE slot = ?1 AND status = 'queued' AND is_next = 1 RETURNING limit_name",
            [slot],
        )?;
        let mut heads = self.heads(slot)?;
        heads.sort_by_key(|head| (std::cmp::Reverse(head.priority), head.num));
        for head in heads {
            if self.is_taken(slot, &head)? {
                continue;
            }
            match head.limit {
                None => self.start(head.num)?,
                Some(limit) => {
                    self.make_next(head.num)?;
                    limits.push(Some(limit));
                }
            }
        }
        limits.sort_unstable();
        limits.dedup();
        for limit in limits {
            self.settle_limit(limit.as_deref())?;
        }
        Ok(())
    }

    /// Returns the first of each version; there are few versions, however many runs.
    fn heads(&self, slot: &str) -> Result<Vec<Head>, StoreError> {
        let mut sql = self
            .db
            .prepare_cached(
                "SELECT program, id, num, priority, apart, limit_name FROM run INDEXED BY run_queue
                 WHERE status = 'queued' AND slot = ?1 AND program > ?2
                 ORDER BY program, priority DESC, num LIMIT 1",
            )
            .map_err(failed)?;
        let mut heads: Vec<Head> = Vec::new();
        loop {
            let after = heads.last().map_or("", |head| &head.program);
            let head = sql
                .query_row([slot, after], |row| {
                    Ok(Head {
                        program: row.get(0)?,
                        id: row.get(1)?,
                        num: row.get(2)?,
                        priority: row.get(3)?,
                        apart: row.get(4)?,
                        limit: row.get(5)?,
                    })
                })
                .optional()
                .map_err(failed)?;
            match head {
                Some(head) => heads.push(head),
                None => return Ok(heads),
            }
        }
    }

    /// Tells whether somebody has the slot, or keeps it free for itself.
    fn is_taken(&self, slot: &str, head: &Head) -> Result<bool, StoreError> {
        self.db
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM run INDEXED BY run_slot_live
                                WHERE slot = ?1 AND status <> 'queued' AND ended_ms IS NULL
                                  AND (?2 = 0 OR program = ?3))
                     OR EXISTS (SELECT 1 FROM run INDEXED BY run_slot_next
                                WHERE slot = ?1 AND status = 'queued' AND is_next = 1
                                  AND (?2 = 0 OR program = ?3))",
            )
            .and_then(|mut sql| {
                sql.query_row(params![slot, head.apart, head.program], |row| row.get(0))
            })
            .map_err(failed)
    }

    fn make_next(&self, num: i64) -> Result<(), StoreError> {
        self.db
            .prepare_cached("UPDATE run SET is_next = 1 WHERE num = ?1")
            .and_then(|mut sql| sql.execute([num]))
            .map_err(failed)?;
        Ok(())
    }

    /// Starts as many as a limit lets through, and notes when the next may come.
    fn settle_limit(&mut self, limit: Option<&str>) -> Result<(), StoreError> {
        let Some(limit) = limit else {
            return Ok(());
        };
        self.db
            .prepare_cached(
                "UPDATE run INDEXED BY run_limit_due SET due_ms = NULL
                 WHERE limit_name = ?1 AND status = 'queued' AND due_ms IS NOT NULL",
            )
            .and_then(|mut sql| sql.execute([limit]))
            .map_err(failed)?;
        while let Some(waiting) = self.first_in_limit(limit)? {
            if waiting.is_full(self.db, limit)? {
                return Ok(());
            }
            if let Some(due_ms) = waiting.rate_due(self.db, limit, self.now_ms)? {
                self.db
                    .prepare_cached("UPDATE run SET due_ms = ?2 WHERE num = ?1")
                    .and_then(|mut sql| sql.execute([waiting.num, due_ms]))
                    .map_err(failed)?;
                return Ok(());
            }
            self.start(waiting.num)?;
        }
        Ok(())
    }

    fn first_in_limit(&self, limit: &str) -> Result<Option<Limited>, StoreError> {
        self.db
            .prepare_cached(
                "SELECT num, limit_runs, rate_max, rate_ms FROM run INDEXED BY run_limit_next
                 WHERE status = 'queued' AND is_next = 1 AND limit_name = ?1
                 ORDER BY priority DESC, num LIMIT 1",
            )
            .and_then(|mut sql| {
                sql.query_row([limit], |row| {
                    let rate: (Option<u32>, Option<i64>) = (row.get(2)?, row.get(3)?);
                    Ok(Limited {
                        num: row.get(0)?,
                        runs: row.get(1)?,
                        rate: rate.0.zip(rate.1),
                    })
                })
                .optional()
            })
            .map_err(failed)
    }

    fn start(&mut self, num: i64) -> Result<(), StoreError> {
        self.db
            .prepare_cached(
                "UPDATE run SET status = 'running', is_next = 0, due_ms = NULL, admitted_ms = ?2, updated_ms = ?2
                 WHERE num = ?1",
            )
            .and_then(|mut sql| sql.execute([num, self.now_ms]))
            .map_err(failed)?;
        self.started.push(num);
        Ok(())
    }
}

/// The first that waits for a limit, with what it allows.
struct Limited {
    num: i64,
    runs: Option<u32>,
    /// So many starts, in so many milliseconds.
    rate: Option<(u32, i64)>,
}

impl Limited {
    fn is_full(&self, db: &Connection, limit: &str) -> Result<bool, StoreError> {
        let Some(runs) = self.runs else {
            return Ok(false);
        };
        let live: u32 = db
            .prepare_cached(
                "SELECT count(*) FROM (SELECT 1 FROM run INDEXED BY run_limit_live
                                       WHERE limit_name = ?1 AND status <> 'queued' AND ended_ms IS NULL LIMIT ?2)",
            )
            .and_then(|mut sql| sql.query_row(params![limit, runs], |row| row.get(0)))
            .map_err(failed)?;
        Ok(live >= runs)
    }

    /// Returns when the rate allows another start, unless that is now.
    fn rate_due(
        &self,
        db: &Connection,
        limit: &str,
        now_ms: i64,
    ) -> Result<Option<i64>, StoreError> {
        let Some((max, per_ms)) = self.rate else {
            return Ok(None);
        };
        // A clock that was set back must not hold back starts for longer than a rate's own time.
        db.prepare_cached(
            "UPDATE run INDEXED BY run_rate SET admitted_ms = ?2 WHERE limit_name = ?1 AND admitted_ms > ?2",
        )
        .and_then(|mut sql| sql.execute(params![limit, now_ms]))
        .map_err(failed)?;
        let earlier: Option<i64> = db
            .prepare_cached(
                "SELECT admitted_ms FROM run INDEXED BY run_rate WHERE limit_name = ?1 AND admitted_ms IS NOT NULL
                 ORDER BY admitted_ms DESC LIMIT 1 OFFSET ?2",
            )
            .and_then(|mut sql| {
                sql.query_row(params![limit, max - 1], |row| row.get(0))
                    .optional()
            })
            .map_err(failed)?;
        let due_ms = earlier.map(|earlier| earlier.saturating_add(per_ms));
        Ok(due_ms.filter(|due| *due > now_ms))
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
