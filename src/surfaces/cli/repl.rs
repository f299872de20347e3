//! `flowstone repl`: gathers what the prompt needs, and hands over.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::rc::Rc;

use flowstone_engine::observer::Observer;
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

/// What a prompt gets.
pub struct Prompt {
    pub project: Project,
    /// Where the history is kept.
    pub history: Option<PathBuf>,
    pub colored: bool,
    /// Shows the progress of steps.
    pub observer: Rc<dyn Observer>,
    grants: Grants,
    interrupt: Interrupt,
}

impl Prompt {
    /// Forgets an earlier Ctrl-C: the next is meant for what is read from now on.
    pub fn begin(&self) {
        self.interrupt.clear();
    }

    /// Returns the world of the next evaluation, without steps.
    pub fn host(&self) -> Box<dyn Host> {
        let (grants, interrupt) = (self.grants.clone(), self.interrupt.clone());
        Box::new(ProgramHost::interactive(grants, interrupt))
    }

    /// Returns what a step looks at while it waits.
    pub fn interrupt(&self) -> flowstone_engine::Interrupt {
        self.interrupt.for_engine()
    }

    /// Shows what went wrong.
    pub fn complain(&self, session: &Session, signal: &Signal) {
        output::report(&describe(session, signal).0);
    }
}

/// Talks until the input ends.
pub fn run(args: &Repl, app: &dyn App) -> Exit {
    let project = Project {
        max_memory: args.limits.max_memory,
        ..Project::find(&args.home)
    };
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let prompt = Prompt {
        history: is_terminal.then(|| history(&project)).flatten(),
        project,
        colored: output::shows_color(),
        observer: Rc::new(Terminal::new()),
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

/// Says that the prompt's own input or output failed.
pub fn lost_terminal(error: &io::Error) -> Report {
    Report::error("E0908", format!("the prompt cannot go on: {error}"))
}

/// The project's history; where its folder cannot be made, none is kept.
fn history(project: &Project) -> Option<PathBuf> {
    std::fs::create_dir_all(&project.home).ok()?;
    Some(project.home.join("history"))
}
