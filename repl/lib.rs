//! The interactive prompt.
//!
//! It reads forms from a terminal or a pipe, has them evaluated, and prints their values. Its [`Evaluator`] provides
//! the world and performs steps.

#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

mod complete;
mod editor;
mod forms;
mod help;
mod layout;
mod paint;

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::rc::Rc;

use flowstone_lang::session::Session;
use flowstone_lang::value::{PrintOptions, Result, Signal, Symbol, Value, Var};
use flowstone_lang::visible::visible;
use flowstone_lang::vm::Vm;
use rustyline::error::ReadlineError;

use editor::{Entry, Lines};
use forms::{Typed, split};
use help::Question;
use layout::lay_out;

/// A computation to evaluate.
pub type Body = Box<dyn FnOnce(&mut Vm) -> Result<Value>>;

/// The evaluation behind the prompt.
pub trait Evaluator {
    /// Called before input is read: from then on, Ctrl-C interrupts that input.
    fn begin(&mut self);

    /// Evaluates a body until it returns, or until Ctrl-C.
    ///
    /// # Errors
    /// Any exception that it throws, or the reason why it was stopped.
    fn evaluate(&mut self, body: Body) -> Result<Value>;

    /// Reports an error to the user.
    fn report_error(&mut self, signal: &Signal);

    /// Describes a step type by its name; `None` if there is no such type.
    fn describe_step(&self, kind: &str) -> Option<String>;
}

/// The configuration of a prompt.
pub struct Repl<'a> {
    pub session: Rc<Session>,
    pub evaluator: &'a mut dyn Evaluator,
    /// The file of the history, if it is kept.
    pub history: Option<PathBuf>,
    /// Whether the terminal shows colours.
    pub colored: bool,
    /// Returns the current number of columns of the terminal.
    pub columns: fn() -> usize,
}

/// Limits of printing unless `*print-length*` and `*print-level*` are set, because an infinite sequence must end
/// somewhere.
const MOST_ITEMS: usize = 1_000;
const MOST_LEVELS: usize = 64;

const GREETING: &str = "`help` shows what the prompt offers; Ctrl-D or `exit` leaves.";

impl Repl<'_> {
    /// Runs the prompt until the input ends. Returns whether it succeeded: for a pipe, whether nothing was thrown.
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
        let session = Rc::clone(&self.session);
        let lines = Lines::open(session, self.history.as_deref(), self.colored);
        let mut lines = lines.map_err(io_error)?;
        print(&format!("{GREETING}\n"))?;
        loop {
            self.evaluator.begin();
            let namespace = self.session.world().current.borrow().name;
            match lines.next(&format!("{namespace}=> ")).map_err(io_error)? {
                Entry::Text(text) => {
                    if self.entry(&text, results, Echo::Wrapped)? == Next::Leave {
                        return Ok(true);
                    }
                }
                Entry::Dropped => {}
                Entry::End => return Ok(true),
            }
        }
    }

    /// Reads forms as soon as their last line arrives, so that a program on the other end sees each answer immediately.
    fn pipe(&mut self, results: &Results) -> io::Result<bool> {
        let mut text = String::new();
        let mut all_well = true;
        loop {
            self.evaluator.begin();
            let count = io::stdin().lock().read_line(&mut text)?;
            let is_open = matches!(split(&text), Err(error) if error.at_end);
            if is_open && count > 0 {
                continue;
            }
            let next = self.entry(&text, results, Echo::OneLine)?;
            all_well &= next != Next::Failed;
            text.clear();
            if count == 0 || next == Next::Leave {
                return Ok(all_well);
            }
        }
    }

    /// Evaluates each form of an entry; stops at the first failure.
    fn entry(&mut self, text: &str, results: &Results, echo: Echo) -> io::Result<Next> {
        let Ok(forms) = split(text) else {
            // The session reads it again and reports what is wrong, and where.
            return self.evaluate(text, results, echo);
        };
        for typed in forms {
            let next = match Question::of(&self.session, &typed.form) {
                Some(Question::Leave) => Next::Leave,
                Some(Question::LastError) => self.last_error(&typed, results)?,
                Some(question) => self.help(question)?,
                None => self.evaluate(typed.text, results, echo)?,
            };
            if next != Next::Form {
                return Ok(next);
            }
        }
        Ok(Next::Form)
    }

    fn help(&mut self, question: Question) -> io::Result<Next> {
        if let Question::Step(kind) = &question {
            let text = self.evaluator.describe_step(kind);
            let unknown = || format!("there is no step type `:{kind}`\n");
            print(&text.unwrap_or_else(unknown))?;
            return Ok(Next::Form);
        }
        let session = Rc::clone(&self.session);
        let body: Body = Box::new(move |vm| question.answer(&session, vm).map(Value::from));
        match self.evaluator.evaluate(body) {
            Ok(answer) => print(answer.as_str().unwrap_or(""))?,
            Err(signal) => self.evaluator.report_error(&signal),
        }
        Ok(Next::Form)
    }

    /// Handles `(pst)`: shows the last error again, or the given exception.
    fn last_error(&mut self, typed: &Typed<'_>, results: &Results) -> io::Result<Next> {
        let given = match help::argument(&typed.form) {
            Some(_) => {
                let about = typed.text.replacen("pst", "do", 1);
                match self.answer(&about) {
                    Ok((value, _)) => value,
                    Err(signal) => {
                        self.evaluator.report_error(&signal);
                        return Ok(Next::Failed);
                    }
                }
            }
            None => Value::Nil,
        };
        match (given, results.error.root()) {
            (Value::Exception(exception), _) | (_, Some(Value::Exception(exception))) => {
                self.evaluator.report_error(&Signal::Throw(exception));
            }
            _ => print("there was no error yet\n")?,
        }
        Ok(Next::Form)
    }

    fn evaluate(&mut self, text: &str, results: &Results, echo: Echo) -> io::Result<Next> {
        match self.answer(text) {
            Ok((value, printed)) => {
                results.push(value);
                let printed = match echo {
                    Echo::OneLine => printed,
                    Echo::Wrapped => lay_out(&printed, (self.columns)()),
                };
                match self.colored {
                    true => put(&format!("{}\n", paint::paint(&visible(&printed))))?,
                    false => print(&format!("{printed}\n"))?,
                }
                Ok(Next::Form)
            }
            Err(signal) => {
                if let Signal::Throw(exception) = &signal {
                    results.error.set_root(Value::Exception(exception.clone()));
                }
                self.evaluator.report_error(&signal);
                Ok(Next::Failed)
            }
        }
    }

    /// Returns a text's value and its printed form. Printing may compute lazy parts, so it belongs to the evaluation.
    fn answer(&mut self, text: &str) -> Result<(Value, String)> {
        let (session, text) = (Rc::clone(&self.session), text.to_owned());
        let both = self.evaluator.evaluate(Box::new(move |vm| {
            let value = session.eval_text(vm, "<repl>", &text)?;
            let asked = session.print_options(vm);
            let options = PrintOptions {
                length: asked.length.or(Some(MOST_ITEMS)),
                level: asked.level.or(Some(MOST_LEVELS)),
                ..asked
            };
            let printed = vm.print(&value, options)?;
            Ok(Value::entry(value, Value::from(printed)))
        }))?;
        let part = |idx: usize| both.as_vector().and_then(|both| both.get(idx).cloned());
        let printed = part(1).as_ref().and_then(Value::as_str).map(str::to_owned);
        Ok((part(0).unwrap_or(Value::Nil), printed.unwrap_or_default()))
    }
}

/// How to continue after a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Continue with the next form.
    Form,
    /// Continue with the next entry: the rest of this one is skipped, because one of its forms failed.
    Failed,
    /// Leave the prompt.
    Leave,
}

/// How a value is printed: on one line for a program on a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Echo {
    OneLine,
    Wrapped,
}

/// Prints text: on a terminal, control characters are shown as escapes.
fn print(text: &str) -> io::Result<()> {
    match io::stdout().is_terminal() {
        true => put(&visible(text)),
        false => put(text),
    }
}

fn put(text: &str) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(text.as_bytes())?;
    out.flush()
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
