//! Generations that nobody executes: their run is in quarantine, because the server ended several times while it executed it.
//!
//! Such a generation is shown as failed, with what releases it, and so is one that waits for it. It holds nothing up: its session takes
//! further generations, and its records can be deleted. Once somebody releases the run, the generation is what it was.

use std::collections::HashSet;

use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{RunPages, RunQuery, RunRow, RunStatus};
use flowstone_engine::{Engine, EngineError};

use super::{ids, lineage};

/// The code of the error of such a generation.
pub const CODE: &str = "QUARANTINED";
/// Number of runs that are read at a time.
const PAGE: usize = 500;
/// The most runs below a generation that are looked at.
const MOST: usize = 1_000;
/// The states of a run that is not over.
pub const STATUSES: [RunStatus; 4] = [
    RunStatus::FailedCompensating,
    RunStatus::Queued,
    RunStatus::Running,
    RunStatus::Waiting,
];

/// A run in quarantine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    pub run: RunId,
    reason: String,
}

impl Stuck {
    /// Returns the message of a generation that cannot continue.
    pub fn message(&self, generation: &RunId) -> String {
        let (run, reason) = (&self.run, &self.reason);
        let what = match self.run == *generation {
            true => "the generation is in quarantine".to_owned(),
            false => format!(
                "the generation waits for `{}`, which is in quarantine",
                ids::generation(run)
            ),
        };
        format!(
            "{what}: {reason}; `flowstone runs resume {run}` executes it again, `flowstone runs cancel {run} --force` ends it"
        )
    }
}

/// Returns the run in quarantine for which a generation cannot continue: its own, or one that it waits for while none below it is executed.
///
/// # Errors
/// When the store cannot be read.
pub async fn of(engine: &Engine, row: &RunRow) -> Result<Option<Stuck>, EngineError> {
    if row.status.is_final() {
        return Ok(None);
    }
    if let Some(reason) = row.quarantine.clone() {
        let run = row.id.clone();
        return Ok(Some(Stuck { run, reason }));
    }
    match row.status {
        RunStatus::Waiting => below(engine, &row.id).await,
        _ => Ok(None),
    }
}

/// Returns a run in quarantine below another, if none below it is executed.
async fn below(engine: &Engine, run: &RunId) -> Result<Option<Stuck>, EngineError> {
    let mut found = None;
    let mut open = vec![run.clone()];
    let mut count = 0;
    while let Some(run) = open.pop().filter(|_| count < MOST) {
        for child in lineage::children(engine, &run).await? {
            count += 1;
            match (child.quarantine, child.status) {
                (_, status) if status.is_final() => {}
                (Some(reason), _) => {
                    let run = child.id;
                    found = found.or(Some(Stuck { run, reason }));
                }
                (None, RunStatus::Waiting) => open.push(child.id),
                (None, _) => return Ok(None),
            }
        }
    }
    Ok(found)
}

/// Returns the runs in quarantine, and those that wait for one and not for an answer.
///
/// # Errors
/// When the store cannot be read.
pub async fn all(
    engine: &Engine,
    answered: &HashSet<RunId>,
) -> Result<HashSet<RunId>, EngineError> {
    let mut stuck = HashSet::new();
    let mut pages = RunPages::new(RunQuery {
        statuses: STATUSES.to_vec(),
        limit: PAGE,
        ..RunQuery::default()
    });
    while let Some(found) = pages.next(&*engine.stores().runs).await? {
        for run in found.into_iter().filter(|run| run.quarantine.is_some()) {
            let mut above = Some(run.id);
            while let Some(run) = above.take().filter(|run| !stuck.contains(run)) {
                let row = engine.run(&run).await?;
                let is_asking = answered.contains(&run) && row.quarantine.is_none();
                if is_asking || of(engine, &row).await?.is_none() {
                    break;
                }
                above = row.parent.map(|it| it.run);
                stuck.insert(run);
            }
        }
    }
    Ok(stuck)
}
