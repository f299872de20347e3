//! `flowstone resources workflow`: lists the resources that a run or one of its steps created.

use flowstone_engine::SystemClock;
use flowstone_engine::ports::{Clock as _, ResourceQuery};

use super::{ask_engine, list};
use crate::cli::args::{ResourcesOutput, ResourcesWorkflow, WorkflowCommand};
use crate::cli::exit::Exit;
use crate::cli::report::Report;
use crate::cli::{App, Open};

/// Maximum number of resources listed; there are no further pages.
const LIMIT: usize = 1000;

/// Returns the output options of the command.
pub fn output_of(args: &ResourcesWorkflow) -> &ResourcesOutput {
    match &args.command {
        WorkflowCommand::List(args) => &args.output,
        WorkflowCommand::Step(args) => &args.output,
    }
}

/// Performs the command.
pub(super) fn run(args: &ResourcesWorkflow, app: &dyn App) -> Result<Exit, Report> {
    let (run, step) = match &args.command {
        WorkflowCommand::List(args) => (&args.run, None),
        WorkflowCommand::Step(args) => (&args.run, Some(args.step.clone())),
    };
    let page = ask_engine(app, output_of(args), Open::Existing, async |engine| {
        let query = ResourceQuery {
            run: Some(engine.find_run(run).await?.id.to_string()),
            step,
            limit: LIMIT,
            now_ms: SystemClock.now_ms(),
            ..ResourceQuery::default()
        };
        Ok(engine.stores().resources.list(query).await?)
    })?;
    list::tell(list::page_json(&page), output_of(args).json);
    Ok(Exit::Completed)
}
