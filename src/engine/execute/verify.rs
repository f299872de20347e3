//! Replaying a run that has ended: it must make the same requests and have the same end, and nothing is performed.

use std::rc::Rc;

use super::{Ended, ExecuteOptions, Executor, open, unstorable};
use crate::codec;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::ids::RunId;
use crate::observer::NoObserver;
use crate::outcome::decode_failure;
use crate::ports::{RunRow, RunStatus};

pub(crate) async fn verify(engine: &Engine, run: &RunId) -> Result<(), EngineError> {
    let row = engine.run_row(run).await?;
    if !matches!(row.status, RunStatus::Completed | RunStatus::Failed) {
        return Ok(());
    }
    let options = ExecuteOptions::default();
    let mut executor = open(engine, &row, 0, Rc::new(NoObserver), options).await?;
    executor.replay_only = true;
    executor.is_waiting.set(false);
    let end = match executor.evaluate(executor.fiber()).await? {
        Ended::Value(value) => match codec::encode(&value) {
            Ok(text) => executor.scope.redact_edn(text),
            Err(error) => unstorable(&error),
        },
        Ended::Threw(exception) => executor.scope.redact(exception.text().to_owned()),
        Ended::Stopped(stop) => format!("the run was stopped: {stop}"),
        Ended::Interrupted | Ended::Suspended { .. } => "unfinished".to_owned(),
    };
    if row.status == RunStatus::Failed {
        executor.compensate().await?;
    }
    executor.compare_end(&row, end)
}

impl Executor<'_> {
    fn compare_end(&self, row: &RunRow, end: String) -> Result<(), EngineError> {
        let recorded = match row.status {
            RunStatus::Completed => row.result.clone(),
            _ => row
                .error
                .as_deref()
                .and_then(decode_failure)
                .map(|failure| failure.exception.text().to_owned()),
        };
        let recorded = recorded.unwrap_or_default();
        if recorded != end {
            return Err(EngineError::Diverged {
                run: row.id.to_string(),
                path: "the end".to_owned(),
                recorded,
                requested: end,
                place: None,
            });
        }
        if let Some((path, left)) = self.shared.history.borrow().left() {
            return Err(EngineError::Diverged {
                run: row.id.to_string(),
                path: path.to_owned(),
                recorded: format!(":{}", left.what),
                requested: "nothing".to_owned(),
                place: None,
            });
        }
        if self.shared.has_pending() {
            return Err(self.unknown_to_journal("a note", "note", ""));
        }
        Ok(())
    }
}
