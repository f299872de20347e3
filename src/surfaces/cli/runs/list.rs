//! `flowstone runs list`: runs in a table.

use flowstone_engine::ports::{Clock, RunFilter, SystemClock};
use serde_json::json;

use super::{row_json, status_words};
use crate::cli::args::RunsList;
use crate::cli::exit::Exit;
use crate::cli::home::Project;
use crate::cli::outcome::of_engine_error;
use crate::cli::report::Report;
use crate::cli::runtime::Runtime;
use crate::cli::table::{ago, table};
use crate::cli::{App, Open, output};

/// Lists the runs.
pub(super) fn run(args: &RunsList, app: &dyn App) -> Result<Exit, Report> {
    let project = Project::find(&args.home);
    let filter = RunFilter {
        statuses: args.status.iter().copied().collect(),
        limit: args.limit,
        ..RunFilter::default()
    };
    let runs = Runtime::start()?.block_on(async {
        if !project.home.is_dir() {
            return Ok(Vec::new());
        }
        let engine = app.open(&project, Open::Existing)?;
        let runs = engine.list_runs(filter).await;
        runs.map_err(|error| of_engine_error(&error))
    })?;
    if args.json {
        let runs: Vec<_> = runs.iter().map(row_json).collect();
        output::json(&json!({"ok": true, "runs": runs}));
    } else if runs.is_empty() {
        output::note("no runs");
    } else {
        let now_ms = SystemClock.now_ms();
        let rows = runs.iter().map(|run| {
            vec![
                run.id.to_string(),
                run.flow.clone(),
                status_words(run),
                ago(now_ms, run.created_ms),
                ago(now_ms, run.updated_ms),
            ]
        });
        output::data(&table(
            &["run", "flow", "status", "started", "changed"],
            rows,
        ));
    }
    Ok(Exit::Completed)
}
