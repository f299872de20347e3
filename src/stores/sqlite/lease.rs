//! Leases and quarantine as rows. The rules are [`flowstone_model::rules::lease`].

use flowstone_model::ids::RunId;
use flowstone_model::ports::{Event, StoreError};
use flowstone_model::rules::lease::{Counted, Crashes, Holder, LeaseRows, progress};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::failure::failed;
use super::feed;
use super::journal::number_range;
use super::owner::Owner;
use super::queue::execute;

/// The leases in the database, from the point of view of a process.
pub(super) struct Leases<'a> {
    pub db: &'a Connection,
    pub owner: &'a Owner,
}

impl LeaseRows for Leases<'_> {
    fn holder(&mut self, run: &RunId) -> Result<Option<Holder>, StoreError> {
        let found: Option<Option<String>> = self
            .db
            .prepare_cached("SELECT lease_owner FROM run WHERE id = ?1")
            .and_then(|mut sql| sql.query_row([run.as_str()], |row| row.get(0)).optional())
            .map_err(failed)?;
        Ok(found.map(|process| match process {
            None => Holder::Nobody,
            Some(process) if process == self.owner.id() => Holder::This,
            Some(process) if self.owner.is_alive(&process) => Holder::Living(process),
            Some(process) => Holder::Ended(process),
        }))
    }

    fn take(&mut self, run: &RunId, now_ms: i64) -> Result<i64, StoreError> {
        let (epoch, num) = self
            .db
            .prepare_cached(
                "UPDATE run SET lease_owner = ?2, lease_epoch = lease_epoch + 1, updated_ms = ?3, held = 0,
                                setback = NULL, again_ms = NULL
                 WHERE id = ?1 RETURNING lease_epoch, num",
            )
            .and_then(|mut sql| {
                let values = params![run.as_str(), self.owner.id(), now_ms];
                sql.query_row(values, |row| Ok((row.get(0)?, row.get(1)?)))
            })
            .map_err(failed)?;
        feed::taken(self.db, num, now_ms)?;
        Ok(epoch)
    }

    fn quarantine(&mut self, run: &RunId) -> Result<Option<String>, StoreError> {
        self.db
            .prepare_cached("SELECT quarantine FROM run WHERE id = ?1")
            .and_then(|mut sql| sql.query_row([run.as_str()], |row| row.get(0)).optional())
            .map(Option::flatten)
            .map_err(failed)
    }

    fn end_quarantine(&mut self, run: &RunId) -> Result<(), StoreError> {
        execute(
            self.db,
            "UPDATE run SET crashes = 0, crash_mark = NULL, quarantine = NULL WHERE id = ?1 AND crashes > 0",
            [run.as_str()],
        )
    }

    fn executed_by(&mut self, process: &str) -> Vec<RunId> {
        self.owner.executed(process)
    }

    fn crashes(
        &mut self,
        run: &RunId,
        process: &str,
        now_ms: i64,
    ) -> Result<Option<Crashes>, StoreError> {
        // A run that only waited was not active.
        let found = self
            .db
            .prepare_cached(
                "SELECT num, pass, crashes, crash_mark FROM run
                 WHERE id = ?1 AND lease_owner = ?2 AND ended_ms IS NULL AND status <> 'queued'
                   AND (status <> 'waiting' OR due_ms <= ?3 OR (cancel IS NOT NULL AND unwinding = 0)
                        OR EXISTS (SELECT 1 FROM wait WHERE wait.run = run.num AND wait.state = 'completed'))",
            )
            .and_then(|mut sql| {
                sql.query_row(params![run.as_str(), process, now_ms], |row| {
                    let pass: i64 = row.get(1)?;
                    let crashes = Crashes {
                        num: row.get(0)?,
                        count: row.get(2)?,
                        mark: row.get(3)?,
                        progress: 0,
                    };
                    Ok((pass, crashes))
                })
                .optional()
            })
            .map_err(failed)?;
        let Some((pass, crashes)) = found else {
            return Ok(None);
        };
        let (first, last) = number_range(crashes.num);
        let entries: i64 = self
            .db
            .prepare_cached(
                "SELECT count(*) FROM journal WHERE id BETWEEN ?1 AND ?2 AND kind NOT IN ('begin', 'event', 'intent')",
            )
            .and_then(|mut sql| sql.query_row([first, last], |row| row.get(0)))
            .map_err(failed)?;
        Ok(Some(Crashes {
            progress: progress(pass, entries),
            ..crashes
        }))
    }

    fn set_crashes(&mut self, num: i64, counted: &Counted) -> Result<(), StoreError> {
        execute(
            self.db,
            "UPDATE run SET crashes = ?2, crash_mark = ?3, quarantine = ?4, held = max(held, ?4 IS NOT NULL)
             WHERE num = ?1",
            params![num, counted.count, counted.mark, counted.quarantine],
        )
    }

    fn note(&mut self, num: i64, event: Event) -> Result<(), StoreError> {
        feed::add_with_above(self.db, num, "", Some(event))
    }

    fn free_all(&mut self, process: &str) -> Result<usize, StoreError> {
        self.db
            .prepare_cached(
                "UPDATE run SET lease_owner = NULL WHERE lease_owner IS NOT NULL AND lease_owner = ?1",
            )
            .and_then(|mut sql| sql.execute([process]))
            .map_err(failed)
    }

    fn forget(&mut self, process: &str) {
        self.owner.forget(process);
    }
}
