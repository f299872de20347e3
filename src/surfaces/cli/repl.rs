//! `flowstone repl`: gathers what the prompt needs, and hands over.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use flowstone_lang::session::Session;
use flowstone_lang::value::Signal;
use flowstone_lang::vm::Host;

use super::App;
use super::args::Repl;
use super::eval::describe;
use super::exit::Exit;
use super::home::Project;
use super::interrupt::Interrupt;
use super::output;
use super::program::{Grants, ProgramHost};
use super::report::Report;
use super::stack;

/// What a prompt gets.
pub struct Prompt {
    pub project: Project,
    /// The world of the session, without steps.
    pub host: Box<dyn Host>,
    pub native_stack_limit: usize,
    /// Where the history is kept.
    pub history: Option<PathBuf>,
    pub colored: bool,
    /// Shows what went wrong.
    pub complain: Box<dyn Fn(&Session, &Signal)>,
    /// Makes Ctrl-C meant for the evaluation to come.
    pub begin: Box<dyn Fn()>,
}

/// Talks until the input ends.
pub fn run(args: &Repl, app: &dyn App) -> Exit {
    let grants = Grants {
        files: args.allow_files,
        paths: args.paths.clone(),
        ..Grants::default()
    };
    let interrupt = Interrupt::listen();
    let project = Project::find(&args.home);
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let prompt = Prompt {
        host: Box::new(ProgramHost::interactive(grants, interrupt.clone())),
        native_stack_limit: stack::limit(),
        history: is_terminal.then(|| history(&project)).flatten(),
        project,
        colored: output::shows_color(),
        complain: Box::new(|session, signal| output::failure(&describe(session, signal).0, false)),
        begin: Box::new(move || interrupt.clear()),
    };
    match app.repl(prompt) {
        Ok(true) => Exit::Completed,
        Ok(false) => Exit::Failed,
        Err(report) => {
            output::failure(&report, false);
            Exit::Failed
        }
    }
}

/// Says that the prompt's own input or output failed.
pub fn lost_terminal(error: &io::Error) -> Report {
    Report::error("E0908", format!("the prompt cannot go on: {error}"))
}

/// The project's history; where its folder cannot be made, none is kept.
fn history(project: &Project) -> Option<PathBuf> {
    std::fs::create_dir_all(&project.home).ok()?;
    Some(project.home.join("history"))
}
