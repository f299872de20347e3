//! `flowstone repl`: collects the services of the prompt, and starts it.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::rc::Rc;

use flowstone_engine::observer::Observer;
use flowstone_flow::step::Step;
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
use super::progress::Terminal;
use super::report::Report;
use super::steps;
use super::table::columns;

/// The services of a prompt.
pub struct Prompt {
    pub project: Project,
    /// The file of the history.
    pub history: Option<PathBuf>,
    pub colored: bool,
    progress: Rc<Terminal>,
    grants: Grants,
    interrupt: Interrupt,
}

impl Prompt {
    /// Clears an earlier Ctrl-C: the next one interrupts the input that is read from now on.
    pub fn begin(&self) {
        self.interrupt.clear();
    }

    /// Returns the world of the next evaluation, without steps.
    pub fn host(&self) -> Box<dyn Host> {
        let (grants, interrupt) = (self.grants.clone(), self.interrupt.clone());
        Box::new(ProgramHost::interactive(grants, interrupt))
    }

    /// Returns the display of the progress of steps.
    pub fn observer(&self) -> Rc<dyn Observer> {
        self.progress.clone()
    }

    /// Removes the live lines of steps after an evaluation, including those of an interrupted step.
    pub fn end(&self) {
        self.progress.clear();
    }

    /// Describes a step type.
    pub fn describe_step(&self, steps: &[Box<dyn Step>], kind: &str) -> Option<String> {
        steps::describe(steps, kind)
    }

    /// Returns the width of the terminal in columns.
    pub fn columns() -> usize {
        usize::from(columns())
    }

    /// Returns the interrupt that a step checks while it waits.
    pub fn interrupt(&self) -> flowstone_flow::Interrupt {
        self.interrupt.for_engine()
    }

    /// Prints the error of an evaluation.
    pub fn report_error(&self, session: &Session, signal: &Signal) {
        output::report(&describe(session, signal).0);
    }
}

/// Runs the prompt until the input ends.
pub fn run(args: &Repl, app: &dyn App) -> Exit {
    let project = Project {
        max_memory: args.limits.max_memory,
        permits: args.permits.clone(),
        ..Project::find(&args.home)
    };
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let prompt = Prompt {
        history: is_terminal.then(|| history(&project)).flatten(),
        project,
        colored: output::shows_color(),
        progress: Rc::new(Terminal::of_prompt()),
        grants: Grants {
            files: args.allow_files,
            paths: args.paths.clone(),
            memory: args.limits.max_memory,
            ..Grants::default()
        },
        interrupt: Interrupt::listen(),
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

/// Reports that the prompt's own input or output failed.
pub fn lost_terminal(error: &io::Error) -> Report {
    Report::error("E0908", format!("the prompt cannot continue: {error}"))
}

/// The project's history. If its folder cannot be created, no history is kept.
fn history(project: &Project) -> Option<PathBuf> {
    flowstone_engine::private::make_folder(&project.home).ok()?;
    Some(project.home.join("history"))
}
