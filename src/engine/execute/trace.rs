//! The activity of a run as log lines, in the span of the run.

use tracing::{Instrument, Span, debug, debug_span, info};

use crate::error::EngineError;
use crate::ids::RunId;
use crate::observer::{RunEvent, StepNote};
use crate::outcome::RunOutcome;

/// Returns the span of a run. A child's span is inside its parent's if the parent's process executes it.
pub(crate) fn span(run: &RunId) -> Span {
    debug_span!(target: "flowstone::run", "run", id = %run)
}

/// Returns the span of a request for a step.
pub(super) fn step(path: &str, kind: &'static str) -> Span {
    debug_span!(target: "flowstone::step", "step", %path, kind)
}

/// Returns the span of an attempt at a step.
pub(super) fn attempt(number: u32) -> Span {
    debug_span!(target: "flowstone::step", "attempt", number)
}

/// Executes a run in its span, and logs its end.
pub(crate) async fn in_span(
    run: &RunId,
    work: impl Future<Output = Result<RunOutcome, EngineError>>,
) -> Result<RunOutcome, EngineError> {
    let logged = async {
        let outcome = work.await;
        match &outcome {
            Ok(outcome) => debug!(target: "flowstone::run", outcome = name(outcome), "ended"),
            Err(error) => debug!(target: "flowstone::run", %error, "stopped"),
        }
        outcome
    };
    logged.instrument(span(run)).await
}

fn name(outcome: &RunOutcome) -> &'static str {
    match outcome {
        RunOutcome::Completed(_) => "completed",
        RunOutcome::Failed(_) => "failed",
        RunOutcome::Waiting { .. } => "waiting",
        RunOutcome::Cancelled { status, .. } => status.name(),
        RunOutcome::Stuck { .. } => "failed-compensating",
        RunOutcome::Queued { .. } => "queued",
        RunOutcome::Interrupted => "interrupted",
    }
}

/// Logs an event of a run.
pub(super) fn event(event: &RunEvent) {
    match event {
        RunEvent::Started { flow, replayed } => {
            debug!(target: "flowstone::run", flow, replayed, "started");
        }
        RunEvent::StepStarted(step) => note(step, "started"),
        RunEvent::StepFinished { step, millis, .. } => {
            let StepNote {
                path,
                kind,
                attempt,
                ..
            } = step;
            debug!(target: "flowstone::step", kind, %path, attempt, ms = millis, "finished");
        }
        RunEvent::StepFailed {
            step,
            millis,
            code,
            message,
        } => {
            let StepNote {
                path,
                kind,
                attempt,
                ..
            } = step;
            debug!(target: "flowstone::step", kind, %path, attempt, ms = millis, code, message, "failed");
        }
        RunEvent::StepRetrying { step, message, .. } => {
            let StepNote {
                path,
                kind,
                attempt,
                ..
            } = step;
            debug!(target: "flowstone::step", kind, %path, attempt, message, "is tried again");
        }
        RunEvent::StepSleeping { step, .. } => note(step, "sleeps"),
        RunEvent::StepWaiting { step, .. } => note(step, "waits"),
        RunEvent::Log { level, message, .. } => {
            info!(target: "flowstone::flow", flow_level = level, text = message, "log");
        }
        RunEvent::Emitted { name, .. } => {
            info!(target: "flowstone::flow", name, "event");
        }
        RunEvent::Branches { .. }
        | RunEvent::BranchesEnded { .. }
        | RunEvent::Printed { .. }
        | RunEvent::Queued { .. }
        | RunEvent::StepProgress { .. } => {}
    }
}

fn note(step: &StepNote, what: &'static str) {
    let StepNote {
        path,
        kind,
        attempt,
        ..
    } = step;
    debug!(target: "flowstone::step", kind, %path, attempt, "{what}");
}
