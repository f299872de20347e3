//! Counts of runs, waits and jobs, and of the commits of this process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use flowstone_model::ports::{
    CommitCounts, Counts, JobStatus, RunStatus, StoreError, WaitKind, count_one,
};
use rusqlite::{Connection, Row};

use super::failure::failed;

/// What the writing thread counts, and those who hand changes over.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    commits: Arc<Mutex<CommitCounts>>,
    queued: Arc<AtomicU64>,
}

impl Tally {
    /// Counts a commit.
    pub(super) fn committed(&self, took: Duration) {
        let mut commits = self.commits.lock().unwrap_or_else(PoisonError::into_inner);
        commits.add(took);
    }

    /// Notes that a change waits for its transaction.
    pub(super) fn queue(&self) {
        self.queued.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a change waits no longer.
    pub(super) fn take(&self) {
        self.queued.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn snapshot(&self) -> CommitCounts {
        let commits = self.commits.lock().unwrap_or_else(PoisonError::into_inner);
        CommitCounts {
            queued: self.queued.load(Ordering::Relaxed),
            ..commits.clone()
        }
    }
}

pub(super) fn counts(db: &Connection, commits: CommitCounts) -> Result<Counts, StoreError> {
    Ok(Counts {
        runs: runs(db)?,
        waits: waits(db)?,
        jobs: jobs(db)?,
        commits,
    })
}

fn runs(db: &Connection) -> Result<Vec<(RunStatus, u64)>, StoreError> {
    let sql = "SELECT status, count(*) FROM run WHERE ended_ms IS NULL GROUP BY status";
    let rows = read(db, sql, |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
    })?;
    let known = rows.into_iter().filter_map(|(name, count)| {
        let status = RunStatus::from_name(&name).filter(|status| !status.is_final())?;
        Some((status, count.unsigned_abs()))
    });
    Ok(known.collect())
}

fn waits(db: &Connection) -> Result<Vec<(WaitKind, u64)>, StoreError> {
    let sql = "SELECT key, webhook IS NOT NULL, event IS NOT NULL, details FROM wait WHERE state = 'open'";
    let kinds = read(db, sql, |row| {
        let (key, details) = (row.get::<_, String>(0)?, row.get::<_, String>(3)?);
        Ok(WaitKind::of(&key, (row.get(1)?, row.get(2)?), &details))
    })?;
    let mut counts = Vec::new();
    for kind in kinds {
        count_one(&mut counts, kind);
    }
    Ok(counts)
}

fn jobs(db: &Connection) -> Result<Vec<(String, JobStatus, u64)>, StoreError> {
    let sql = "SELECT type, status, count(*) FROM job GROUP BY type, status";
    let rows = read(db, sql, |row| {
        let status: String = row.get(1)?;
        Ok((row.get::<_, String>(0)?, status, row.get::<_, i64>(2)?))
    })?;
    let known = rows.into_iter().filter_map(|(kind, status, count)| {
        Some((kind, JobStatus::from_name(&status)?, count.unsigned_abs()))
    });
    Ok(known.collect())
}

fn read<T>(
    db: &Connection,
    sql: &str,
    of: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, StoreError> {
    let mut sql = db.prepare_cached(sql).map_err(failed)?;
    let rows = sql.query_map([], of).map_err(failed)?;
    rows.collect::<rusqlite::Result<Vec<T>>>().map_err(failed)
}
