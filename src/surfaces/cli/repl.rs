//! `flowstone repl`: collects the services of the prompt, and starts it.

mod data;
mod desk;
mod given;
mod open_forms;
mod operations;
mod person;
mod words;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::rc::Rc;

use flowstone_engine::Asker;
use flowstone_engine::observer::Observer;
use flowstone_flow::step::Step;
use flowstone_lang::session::Session;
use flowstone_lang::value::{Signal, Value};
use flowstone_lang::vm::Host;

use super::App;
use super::args::{Repl, Show};
use super::eval::describe;
use super::exit::Exit;
use super::home::Project;
use super::interrupt::Interrupt;
use super::output;
use super::permission;
use super::program::{Grants, ProgramHost};
use super::progress::{Answers, Terminal};
use super::report::{Report, Shown};
use super::steps;
use super::table::size;

pub use desk::{Around, Desk};
pub use person::{Lines, Person, Waiting};
pub use words::{Candidate, Words};

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

    /// Returns the numbers of rows and columns of the terminal.
    pub fn size() -> (usize, usize) {
        let (rows, columns) = size();
        (usize::from(rows), usize::from(columns))
    }

    /// Returns who is asked for permissions that the flows of the project lack.
    pub fn asker(&self) -> Asker {
        let show = Show {
            json: false,
            quiet: false,
        };
        permission::asker(&show, &self.progress, &self.project.root)
    }

    /// Returns a way to report the progress of operations.
    pub fn progress(&self) -> Progress {
        Progress(self.progress.clone())
    }

    /// Returns the page of a value that an operation returned, ready for the terminal.
    pub fn page(&self, desk: &Desk<'_>, value: &Value) -> Option<String> {
        let page = desk.page(value)?;
        let end = if page.ends_with('\n') { "" } else { "\n" };
        Some(output::as_shown(&format!("{page}{end}")))
    }

    /// Prints the report of an error that an operation made.
    pub fn report_page(&self, page: &str) {
        output::note_part(page);
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

/// Reports the progress of operations above the live lines of steps.
pub struct Progress(Rc<Terminal>);

impl Progress {
    /// Removes all live lines.
    pub fn clear(&self) {
        self.0.clear();
    }

    /// Reports something, as a line of its own.
    pub fn tell(&self, text: &str) {
        self.0.tell(text);
    }
}

/// Runs the prompt until the input ends.
pub fn run(args: &Repl, app: &dyn App) -> Exit {
    let project = Project {
        max_memory: args.limits.max_memory,
        permits: args.permits.clone(),
        ..Project::find(&args.home)
    };
    if let Some(port) = args.socket {
        return super::nrepl::socket(args, port, app);
    }
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let prompt = Prompt {
        history: is_terminal.then(|| history(&project)).flatten(),
        project,
        colored: output::shows_color(),
        progress: Rc::new(Terminal::of_prompt(match is_terminal {
            true => Answers::Here,
            false => Answers::Elsewhere,
        })),
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

/// Returns the error of an evaluation as text.
pub(crate) fn draw_error(session: &Session, signal: &Signal) -> String {
    describe(session, signal).0.draw()
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
