//! Finds the unfinished run that a repeated start command resumes instead of starting a second one.

use crate::engine::{Engine, StartOptions};
use crate::error::EngineError;
use crate::flow::{LoadedFlow, activated, coerce_input};
use crate::ports::{RunFilter, RunRow, RunStatus};

/// The states of a run that the command which started it can resume: everything before its end, except failed
/// compensations, which a person must check first.
const OPEN: [RunStatus; 3] = [RunStatus::Queued, RunStatus::Running, RunStatus::Waiting];

impl Engine {
    /// Returns the newest unfinished run that was started by hand with the same flow text, invocation, input and
    /// bindings, and that no process executes. Runs on hold, runs that are being cancelled and child runs do not count.
    /// One in quarantine does: executing it is refused.
    ///
    /// # Errors
    /// When the input does not fit the flow's contract, or the store cannot be read.
    pub async fn earlier_run(
        &self,
        loaded: &LoadedFlow,
        options: &StartOptions,
    ) -> Result<Option<RunRow>, EngineError> {
        let place = self.start_place(loaded, options)?;
        let invocation = options.invocation.as_deref();
        let input = coerce_input(&loaded.flow, invocation, &options.input)?;
        let input = activated(&loaded.flow, &place.settings, input)?;
        let filter = RunFilter {
            statuses: OPEN.to_vec(),
            flow: Some(place.name),
            begun_with: Some((
                loaded.program.hash.clone(),
                self.stored_input((&loaded.flow, invocation), &input, &[])?,
            )),
            ..RunFilter::default()
        };
        let runs = self.services.stores.runs.list(filter).await?;
        let started_by = options.started_by.as_deref().unwrap_or("manual");
        let bindings = place.bindings.encode();
        Ok(runs.into_iter().find(|run| {
            let is_held = run.held && run.quarantine.is_none();
            let is_free = !run.executing && !is_held && run.cancel_requested.is_none();
            is_free
                && run.parent.is_none()
                && run.started_by == started_by
                && run.invocation == options.invocation
                && run.bindings == bindings
        }))
    }
}
