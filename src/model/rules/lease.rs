//! Leases: which process executes a run, and when a run that ends its processes is put in quarantine.
//!
//! If a process that executed several runs ends, it is unknown which run ended it, so its end counts against each of
//! them. The count of a run begins again when the run has made progress. The feed of the run has an event for each end.

use crate::ids::RunId;
use crate::ports::{Claim, ClaimBy, Event, RunRow, RunStatus, StoreError};

/// The process that holds a run's lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    Nobody,
    /// This process, which asks.
    This,
    /// Another process, which is alive.
    Living(String),
    /// A process that has ended.
    Ended(String),
}

/// Rows of runs with their leases.
pub trait LeaseRows {
    /// Returns the holder of a run's lease; `None` if the run does not exist.
    fn holder(&mut self, run: &RunId) -> Result<Option<Holder>, StoreError>;

    /// Gives the run's lease to this process, and returns its epoch. A run on hold is released.
    fn take(&mut self, run: &RunId, now_ms: i64) -> Result<i64, StoreError>;

    /// Returns the reason for which a run is in quarantine.
    fn quarantine(&mut self, run: &RunId) -> Result<Option<String>, StoreError>;

    /// Takes a run out of quarantine and sets its count to zero.
    fn end_quarantine(&mut self, run: &RunId) -> Result<(), StoreError>;

    /// Returns the runs that a process executed when it ended.
    fn executed_by(&mut self, process: &str) -> Vec<RunId>;

    /// Returns the crashes of a run that a process held, if the run was active when the process ended.
    fn crashes(
        &mut self,
        run: &RunId,
        process: &str,
        now_ms: i64,
    ) -> Result<Option<Crashes>, StoreError>;

    fn set_crashes(&mut self, num: i64, counted: &Counted) -> Result<(), StoreError>;

    /// Adds an event to the feed of a run.
    fn note(&mut self, num: i64, event: Event) -> Result<(), StoreError>;

    /// Frees all leases of a process, and returns their number.
    fn free_all(&mut self, process: &str) -> Result<usize, StoreError>;

    /// Forgets a process that has ended.
    fn forget(&mut self, process: &str);
}

/// The crashes of a run: ends of processes that executed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crashes {
    pub num: i64,
    /// Number of consecutive crashes at the same progress.
    pub count: u32,
    /// The progress of the run at the last crash.
    pub mark: Option<i64>,
    /// The progress of the run now, as [`progress`] returns it.
    pub progress: i64,
}

/// A crash that was counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    pub count: u32,
    pub mark: i64,
    /// The reason for which the run is in quarantine now.
    pub quarantine: Option<String>,
}

/// Returns a number that changes whenever a run makes progress. `entries`: the entries of its journal, without those
/// that only begin a step.
pub fn progress(pass: i64, entries: i64) -> i64 {
    (pass << 32) | entries
}

/// Returns the pass of a [`progress`].
fn pass_of(progress: i64) -> i64 {
    progress >> 32
}

/// Counts one more crash. `most`: the number at which a run is put in quarantine.
pub fn count(crashes: &Crashes, most: u32) -> Counted {
    let count = match crashes.mark == Some(crashes.progress) {
        true => crashes.count.saturating_add(1),
        false => 1,
    };
    let quarantine = (count >= most).then(|| {
        let times = if count == 1 { "time" } else { "times in a row" };
        format!("the process that executed it ended {count} {times} without progress of the run")
    });
    Counted {
        count,
        mark: crashes.progress,
        quarantine,
    }
}

/// Takes the lease of a run for this process. Must run in one transaction.
///
/// # Errors
/// When the store fails.
pub fn claim<R: LeaseRows>(
    rows: &mut R,
    (run, by): (&RunId, ClaimBy),
    most_crashes: u32,
    now_ms: i64,
) -> Result<Claim, StoreError> {
    match rows.holder(run)? {
        None => return Ok(Claim::Missing),
        Some(Holder::Nobody | Holder::This) => {}
        Some(Holder::Living(process)) => {
            let owner = process_name(&process);
            return Ok(Claim::Held { owner });
        }
        Some(Holder::Ended(process)) => {
            free(rows, &process, most_crashes, now_ms)?;
        }
    }
    match by {
        ClaimBy::Search => {
            if let Some(reason) = rows.quarantine(run)? {
                return Ok(Claim::Quarantined { reason });
            }
        }
        ClaimBy::Name => rows.end_quarantine(run)?,
    }
    let epoch = rows.take(run, now_ms)?;
    Ok(Claim::Taken { epoch })
}

/// Frees the leases of a process that has ended, and counts its end against the runs that it executed. Returns the
/// number of leases.
///
/// # Errors
/// When the store fails.
pub fn free<R: LeaseRows>(
    rows: &mut R,
    process: &str,
    most_crashes: u32,
    now_ms: i64,
) -> Result<usize, StoreError> {
    for run in rows.executed_by(process) {
        if let Some(crashes) = rows.crashes(&run, process, now_ms)? {
            rows.set_crashes(crashes.num, &count(&crashes, most_crashes))?;
            let pass = pass_of(crashes.progress);
            rows.note(crashes.num, Event::orphaned(pass, now_ms))?;
        }
    }
    let freed = rows.free_all(process)?;
    rows.forget(process);
    Ok(freed)
}

/// Returns the name of a process for people: the number at the end of its id.
fn process_name(process: &str) -> String {
    match process.rsplit_once('-') {
        Some((_, number)) => format!("process {number}"),
        None => process.to_owned(),
    }
}

/// Returns the epoch after a lease was given back. A queued run wrote nothing under its lease, and counts as not begun.
pub fn epoch_after_release(epoch: i64, status: RunStatus) -> i64 {
    epoch - i64::from(status == RunStatus::Queued)
}

/// Checks that a run may get another program: it has the program that the caller saw, is not over, and no other process
/// executes it.
///
/// # Errors
/// [`StoreError::Rejected`] with kind `conflict` otherwise.
pub fn check_adoption(
    run: &RunId,
    row: Option<&RunRow>,
    holder: &Holder,
    seen: &str,
) -> Result<(), StoreError> {
    let is_as_seen = row.is_some_and(|row| row.program == seen && !row.status.is_final());
    match holder {
        Holder::Nobody | Holder::This | Holder::Ended(_) if is_as_seen => Ok(()),
        Holder::Nobody | Holder::This | Holder::Ended(_) | Holder::Living(_) => {
            Err(StoreError::Rejected {
                code: "E0574",
                kind: "conflict",
                message: format!("the run {run} has changed in the meantime"),
                hint: None,
            })
        }
    }
}

#[cfg(test)]
mod tests;
