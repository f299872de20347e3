//! `flowstone waits`: lists and answers the waits of runs. One file per group of subcommands.

mod answer;
mod list;
mod render;
mod show;

use super::args::{Waits, WaitsCommand};
use super::exit::Exit;
use super::{App, output};
pub(super) use list::page;
pub use list::{list_signals, list_table};
pub use render::how_to_answer;
pub(super) use show::describe as report_page;
pub use show::print_wait;
pub(super) use show::shown_details;

/// Performs the command.
pub fn run(args: &Waits, app: &dyn App) -> Exit {
    let (done, as_json) = match &args.command {
        WaitsCommand::Approve(args) => (answer::approve(args, app), args.answer.show.json),
        WaitsCommand::Cancel(args) => (answer::cancel(args, app), args.answer.show.json),
        WaitsCommand::Complete(args) => (answer::complete(args, app), args.answer.show.json),
        WaitsCommand::Event(args) => (answer::event(args, app), args.answer.show.json),
        WaitsCommand::List(args) => (list::run(args, app), args.json),
        WaitsCommand::Reject(args) => (answer::reject(args, app), args.answer.show.json),
        WaitsCommand::Show(args) => (show::run(args, app), args.json),
        WaitsCommand::Signal(args) => (answer::signal(args, app), args.answer.show.json),
    };
    done.unwrap_or_else(|report| {
        output::failure(&report, as_json);
        Exit::Failed
    })
}
