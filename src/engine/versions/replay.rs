//! Evaluates a run again from its journal alone, and compares the result with the recorded one.

use super::{check_journal, conflict};
use crate::archive::Archive;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::execute::{Difference, DryRunEnd, Resolution, dry_run};
use crate::ids::RunId;
use crate::outcome::decode_failure;
use crate::ports::{Entry, Program, RunRow, RunStatus};

/// A replay that reached the recorded end.
#[derive(Debug, Clone)]
pub struct Replayed {
    pub row: RunRow,
    /// Number of steps answered from the journal.
    pub answered: usize,
    /// The current position of an unfinished run: the paths of its next steps.
    pub at: Vec<String>,
}

impl Engine {
    /// Replays a run from its journal. Nothing is performed, nothing is written.
    ///
    /// # Errors
    /// When its requests or its end differ, or its journal was removed.
    pub async fn replay(&self, run: &RunId) -> Result<Replayed, EngineError> {
        let row = self.run_row(run).await?;
        check_journal(&row)?;
        let program = self.program_of(&row).await?;
        let entries = self.services.stores.journal.load(&row.id).await?;
        self.replay_from(row, program, entries).await
    }

    /// Replays the runs of an exported file, the main one first.
    ///
    /// # Errors
    /// The same as for [`Engine::replay`].
    pub async fn replay_archive(&self, archive: &Archive) -> Result<Vec<Replayed>, EngineError> {
        let mut replayed = Vec::new();
        for run in &archive.runs {
            check_journal(&run.row)?;
            let program = archive
                .program(run)
                .ok_or_else(|| EngineError::BadProgram {
                    run: run.row.id.to_string(),
                    detail: "it is not in the file".to_owned(),
                })?;
            let (row, entries) = (run.row.clone(), run.entries.clone());
            replayed.push(self.replay_from(row, program.clone(), entries).await?);
        }
        Ok(replayed)
    }

    async fn replay_from(
        &self,
        row: RunRow,
        program: Program,
        entries: Vec<Entry>,
    ) -> Result<Replayed, EngineError> {
        if program.engine_abi != crate::flow::ENGINE_ABI {
            return Err(EngineError::OtherAbi {
                run: row.id.to_string(),
                found: program.engine_abi,
                known: crate::flow::ENGINE_ABI,
            });
        }
        let script = self.script(&row, program, entries)?;
        let dry_run_report = dry_run(self, script).await?;
        let diverged = |met: Difference| EngineError::Diverged {
            run: row.id.to_string(),
            path: met.path,
            recorded: met.recorded.unwrap_or_else(|| "nothing".to_owned()),
            requested: met.requested.unwrap_or_else(|| "nothing".to_owned()),
            place: met.place.map(Box::new),
        };
        let is_unwound = matches!(
            row.status,
            RunStatus::Cancelled | RunStatus::Terminated | RunStatus::TimedOut
        );
        if let (Some(met), false) = (conflict(&dry_run_report), is_unwound) {
            return Err(diverged(met));
        }
        let recorded = match row.status {
            RunStatus::Completed => row.result.clone(),
            RunStatus::Failed => row.error.as_deref().map(failure_message),
            _ => None,
        };
        let now = match &dry_run_report.end {
            DryRunEnd::Value(text) => text.clone(),
            DryRunEnd::Error(text) => failure_message(text),
            DryRunEnd::Open => format!("nothing: it stops at {}", dry_run_report.next.join(", ")),
        };
        match recorded {
            Some(recorded) if recorded != now => Err(diverged(Difference {
                path: "the end".to_owned(),
                recorded: Some(recorded),
                requested: Some(now),
                place: None,
                answer: Resolution::Stopped,
            })),
            _ => Ok(Replayed {
                answered: dry_run_report.answered,
                at: dry_run_report.next,
                row,
            }),
        }
    }
}

fn failure_message(text: &str) -> String {
    match decode_failure(text) {
        Some(failure) => format!("failed: {}", failure.exception.text()),
        None => format!("failed: {text}"),
    }
}
