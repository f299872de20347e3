//! The interactive prompt.
//!
//! It reads forms from a terminal or a pipe, has the session evaluate them, and prints what they come to. Where values
//! come from and how steps are performed is the host's business: the prompt only drives a [`Vm`].

mod complete;
mod editor;
mod forms;
mod help;
mod paint;

use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;
use std::rc::Rc;

use flowstone_lang::session::Session;
use flowstone_lang::value::{PrintOptions, Result, Signal, Symbol, Value, Var};
use flowstone_lang::vm::{Stream, Vm};
use rustyline::error::ReadlineError;

use editor::{Entry, Lines};
use forms::split;

/// A prompt to be.
pub struct Repl {
    pub session: Rc<Session>,
    pub vm: Vm,
    /// Where the history is kept, if anywhere.
    pub history: Option<PathBuf>,
    /// Whether the terminal shows colours.
    pub colored: bool,
    /// Shows what went wrong.
    pub complain: Box<dyn Fn(&Session, &Signal)>,
    /// Is called before each evaluation: Ctrl-C is meant for it from then on.
    pub begin: Box<dyn Fn()>,
}

/// How many items of a collection are printed: an endless sequence must end somewhere.
const PRINTED: PrintOptions = PrintOptions {
    length: Some(1_000),
    level: Some(64),
    ..PrintOptions::READABLE
};

const GREETING: &str =
    "Ctrl-D leaves; (doc name), (apropos \"part\"), (dir namespace) and (source name) tell more.";

impl Repl {
    /// Talks until the input ends. Tells whether all went well: of a pipe, that nothing was thrown.
    ///
    /// # Errors
    /// When input or output fail.
    pub fn run(mut self) -> io::Result<bool> {
        let results = Results::new(&self.session);
        if io::stdin().is_terminal() && io::stdout().is_terminal() {
            self.talk(&results)
        } else {
            self.pipe(&results)
        }
    }

    fn talk(&mut self, results: &Results) -> io::Result<bool> {
        let world = self.session.world().clone();
        let mut lines =
            Lines::open(world, self.history.as_deref(), self.colored).map_err(io_error)?;
        self.print(&format!("{}\n", GREETING))?;
        loop {
            let namespace = self.session.world().current.borrow().name;
            match lines.next(&format!("{namespace}=> ")).map_err(io_error)? {
                Entry::Text(text) => {
                    self.entry(&text, results)?;
                }
                Entry::Dropped => {}
                Entry::End => return Ok(true),
            }
        }
    }

    /// Reads forms as their last line arrives, so that a program on the other end sees each answer at once.
    fn pipe(&mut self, results: &Results) -> io::Result<bool> {
        let mut text = String::new();
        let mut all_well = true;
        loop {
            let count = io::stdin().lock().read_line(&mut text)?;
            let is_open = matches!(split(&text), Err(error) if error.at_end);
            if is_open && count > 0 {
                continue;
            }
            all_well &= self.entry(&text, results)?;
            text.clear();
            if count == 0 {
                return Ok(all_well);
            }
        }
    }

    /// Evaluates each form of what was entered; stops at the first that fails.
    fn entry(&mut self, text: &str, results: &Results) -> io::Result<bool> {
        let Ok(forms) = split(text) else {
            // The session reads it again and says what is wrong, and where.
            return self.evaluate(text, results);
        };
        for typed in forms {
            if let Some(answer) = help::answer(&self.session, &mut self.vm, &typed.form) {
                self.print(&answer)?;
            } else if !self.evaluate(typed.text, results)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn evaluate(&mut self, text: &str, results: &Results) -> io::Result<bool> {
        (self.begin)();
        let answer = self.answer(text, results);
        match answer {
            Ok(printed) => {
                let printed = if self.colored {
                    paint::paint(&printed)
                } else {
                    printed
                };
                self.print(&format!("{printed}\n"))?;
                Ok(true)
            }
            Err(signal) => {
                if let Signal::Throw(exception) = &signal {
                    results.error.set_root(Value::Exception(exception.clone()));
                }
                (self.complain)(&self.session, &signal);
                Ok(false)
            }
        }
    }

    fn answer(&mut self, text: &str, results: &Results) -> Result<String> {
        let value = self.session.eval_text(&mut self.vm, "<repl>", text)?;
        let printed = self.vm.print(&value, PRINTED)?;
        results.push(value);
        Ok(printed)
    }

    /// Prints through the host, so that the order with what programs print is kept.
    fn print(&mut self, text: &str) -> io::Result<()> {
        let written = self.vm.host().write(Stream::Out, text);
        written.map_err(io::Error::other)
    }
}

/// The vars `*1`, `*2`, `*3` and `*e`.
struct Results {
    recent: [Rc<Var>; 3],
    error: Rc<Var>,
}

impl Results {
    fn new(session: &Session) -> Results {
        let var = |name: &str| {
            let var = session.world().core.intern(Symbol::new(name));
            var.set_root(Value::Nil);
            var
        };
        Results {
            recent: [var("*1"), var("*2"), var("*3")],
            error: var("*e"),
        }
    }

    fn push(&self, value: Value) {
        let [first, second, third] = &self.recent;
        third.set_root(second.root().unwrap_or(Value::Nil));
        second.set_root(first.root().unwrap_or(Value::Nil));
        first.set_root(value);
    }
}

fn io_error(error: ReadlineError) -> io::Error {
    match error {
        ReadlineError::Io(error) => error,
        other => io::Error::other(other.to_string()),
    }
}
