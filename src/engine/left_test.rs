//! Tests whose callers are gone: a process that is about to execute one cancels it first.

use crate::bindings::Bindings;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::ids::RunId;
use crate::ports::RunRow;

/// Why a test is cancelled whose caller is gone or has waited long enough.
pub(crate) const INTERRUPTED: &str = "test_interrupted";

/// Returns the row of a run that is to be executed. A test that would be executed for nobody, after a crash or because its wait
/// was answered, is asked to cancel first. `is_called`: the process runs a test.
pub(crate) async fn row_to_execute(
    engine: &Engine,
    run: &RunId,
    is_called: bool,
) -> Result<RunRow, EngineError> {
    let row = engine.run_row(run).await?;
    let is_test = Bindings::decode(row.bindings.as_deref())?.test.is_some();
    let is_left = is_test && !is_called && row.cancel_requested.is_none();
    if !is_left || row.status.is_final() {
        return Ok(row);
    }
    let runs = &engine.services.stores.runs;
    if let Some(parent) = &row.parent {
        let root = runs.find(&parent.root).await?;
        if root.is_some_and(|root| root.executing) {
            return Ok(row);
        }
    }
    let now_ms = engine.now_ms();
    runs.request_cancel(&row.id, INTERRUPTED, now_ms).await?;
    engine.run_row(&row.id).await
}
