//! `flowstone runs cancel`: cancels or terminates a run.

use flowstone_engine::ids::RunId;
use flowstone_engine::{CancelOutcome, Engine, EngineError};
use flowstone_fronts::tree::write_ended;
use serde_json::json;

use super::ask;
use crate::cli::args::RunsCancel;
use crate::cli::exit::Exit;
use crate::cli::report::Report;
use crate::cli::{App, output};

/// Cancels the run.
pub(super) fn run(args: &RunsCancel, app: &dyn App) -> Result<Exit, Report> {
    let reason = args
        .reason
        .as_deref()
        .unwrap_or("cancelled on the command line");
    let (run, outcome) = ask(app, &args.home, async |engine| {
        cancel_one(engine, args, reason).await
    })?;
    let words = match outcome {
        None => "terminated",
        Some(CancelOutcome::Cancelled) => "cancelled",
        Some(CancelOutcome::Unwinding) => "being cancelled; its cleanup waits",
        Some(CancelOutcome::Requested) => "cancellation requested; another process executes it",
    };
    if args.json {
        output::json(&json!({"ok": true, "run": run.as_str(), "status": words}));
    } else {
        output::note(&format!("run {run} is {words}"));
    }
    Ok(Exit::Completed)
}

async fn cancel_one(
    engine: &Engine,
    args: &RunsCancel,
    reason: &str,
) -> Result<(RunId, Option<CancelOutcome>), EngineError> {
    let run = engine.find_run(&args.id).await?.id;
    let observer = std::rc::Rc::new(flowstone_engine::observer::NoObserver);
    let outcome = match args.force {
        true => engine
            .terminate(&run, reason, observer)
            .await
            .map(|()| None)?,
        false => Some(engine.cancel(&run, reason, observer).await?),
    };
    // The run has ended even if its document cannot be written. Who drives it next learns why.
    if let Err(error) = write_ended(engine, &run).await {
        tracing::warn!(%run, %error, "the document of the run is not written");
    }
    Ok((run, outcome))
}
