//! Cancels the runs of `memory://` handles whose process has ended: nobody can name them any more, and their waits would stay
//! open.

use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{RunQuery, RunStatus};
use flowstone_engine::{Engine, EngineError};

use super::handle;

/// What the inputs of these runs contain: the handle.
const SCHEME: &str = "memory://";

/// Cancels the runs of ended processes, and returns them.
///
/// # Errors
/// When the store cannot be read or written.
pub async fn cancel_abandoned(engine: &Engine) -> Result<Vec<RunId>, EngineError> {
    let query = RunQuery {
        statuses: vec![RunStatus::Queued, RunStatus::Running, RunStatus::Waiting],
        text: Some(SCHEME.to_owned()),
        ..RunQuery::default()
    };
    let mut cancelled = Vec::new();
    for run in engine.summaries(query).await? {
        let name = run.external_id.as_deref().unwrap_or_default();
        let Some(process) = process_of(engine, name).await? else {
            continue;
        };
        if engine.stores().upkeep.is_alive(&process) || run.is_cancel_requested {
            continue;
        }
        let reason = "the process of its memory:// handle has ended";
        match engine.request_cancel(&run.id, reason).await {
            Ok(()) => cancelled.push(run.id),
            Err(error @ EngineError::Store(_)) => return Err(error),
            // The run has ended in the meantime, or needs a person.
            Err(_) => {}
        }
    }
    Ok(cancelled)
}

/// Returns the process of the handle of a run with a name, also if the run follows one that was reset after its end.
async fn process_of(engine: &Engine, name: &str) -> Result<Option<String>, EngineError> {
    if let Some(first) = handle::first_of(name) {
        return match engine.run(&RunId::from_text(first)).await {
            Ok(first) => Ok(handle::process_of(
                first.external_id.as_deref().unwrap_or_default(),
            )),
            Err(EngineError::NoSuchRun { .. }) => Ok(None),
            Err(error) => Err(error),
        };
    }
    Ok(handle::process_of(name))
}
