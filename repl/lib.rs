//! The interactive prompt.
//!
//! It reads forms from a terminal or a pipe, has them evaluated, and prints their values. Its [`Evaluator`] provides
//! the world and performs steps.

#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

mod console;
mod editor;
mod help;
mod indent;
mod layout;
mod paint;

use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::rc::Rc;

use flowstone_lang::session::{Session, Typed, split_typed};
use flowstone_lang::value::{PrintOptions, Result, Signal, Symbol, Value, Var};
use flowstone_lang::visible::visible;
use flowstone_lang::vm::Vm;
use rustyline::error::ReadlineError;

use editor::Entry;
use help::Question;
use layout::lay_out;

pub use console::Console;

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

    /// Returns how a value is shown to a person, if not as it is printed: a table of runs, for example. Its colours
    /// are codes for the terminal.
    fn page(&self, value: &Value) -> Option<String>;

    /// Describes a step type by its name; `None` if there is no such type.
    fn describe_step(&self, kind: &str) -> Option<String>;
}

/// Helps to type forms.
pub trait Assist {
    /// Returns where the word at the end of a text begins, and its completions.
    fn complete(&self, text: &str) -> (usize, Vec<String>);

    /// Returns the arguments that the call at the end of a text still needs.
    fn hint(&self, text: &str) -> Option<String>;

    /// Called with each entry, whose words may be typed again.
    fn note(&self, text: &str);
}

/// The configuration of a prompt.
pub struct Repl<'a> {
    pub session: Rc<Session>,
    pub evaluator: &'a mut dyn Evaluator,
    pub console: Rc<Console>,
    /// Whether the terminal shows colours.
    pub colored: bool,
    /// Returns the current numbers of rows and columns of the terminal.
    pub size: fn() -> (usize, usize),
    /// The rest of the last output that was cut.
    pub rest: RefCell<String>,
}

/// Limits of printing unless `*print-length*` and `*print-level*` are set, because an infinite sequence must end
/// somewhere.
const MOST_ITEMS: usize = 1_000;
const MOST_LEVELS: usize = 64;

/// Rows of the terminal that an output leaves free, and the rows that it has in any terminal.
const KEPT_ROWS: usize = 3;
const LEAST_ROWS: usize = 10;

const GREETING: &str = "`help` shows what the prompt offers; Ctrl-D or `exit` leaves.";

impl Repl<'_> {
    /// Runs the prompt until the input ends. Returns whether it succeeded: for a pipe, whether nothing was thrown.
    ///
    /// # Errors
    /// When input or output fail.
    pub fn run(mut self) -> io::Result<bool> {
        let results = Results::new(&self.session);
        if self.console.is_terminal() {
            self.talk(&results)
        } else {
            self.pipe(&results)
        }
    }

    fn talk(&mut self, results: &Results) -> io::Result<bool> {
        print(&format!("{GREETING}\n"))?;
        loop {
            self.evaluator.begin();
            let namespace = self.session.world().current.borrow().name;
            match self.console.next(&format!("{namespace}=> "))? {
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
            let count = Console::read_line(&mut text)?;
            let is_open = matches!(split_typed(&text), Err(error) if error.at_end);
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
        let Ok(forms) = split_typed(text) else {
            // The session reads it again and reports what is wrong, and where.
            return self.evaluate(text, results, echo);
        };
        for typed in forms {
            let next = match Question::of(&self.session, &typed.form) {
                Some(Question::Leave) => Next::Leave,
                Some(Question::LastError) => self.last_error(&typed, results)?,
                Some(Question::More { all }) => self.more(all)?,
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

    /// Handles `(more)`: shows the next part of an output that was cut, or the whole rest.
    fn more(&mut self, all: bool) -> io::Result<Next> {
        let rest = self.rest.take();
        match (rest.is_empty(), all) {
            (true, _) => print("there is no more\n")?,
            (false, true) => put(&rest)?,
            (false, false) => self.screen(&rest)?,
        }
        Ok(Next::Form)
    }

    /// Writes text that is ready for the terminal, as much as fits; the rest is kept for `(more)`.
    fn screen(&self, text: &str) -> io::Result<()> {
        let (rows, _) = (self.size)();
        let most = rows.saturating_sub(KEPT_ROWS).max(LEAST_ROWS);
        let (shown, rest) = cut(text, most);
        put(shown)?;
        if !rest.is_empty() {
            let count = rest.lines().count();
            print(&format!("… {count} more lines: (more), or (more :all)\n"))?;
        }
        self.rest.replace(rest.to_owned());
        Ok(())
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
                let page = self.evaluator.page(&value);
                results.push(value);
                match (echo, page) {
                    (Echo::OneLine, _) => print(&format!("{printed}\n"))?,
                    (Echo::Wrapped, Some(page)) => self.screen(&page)?,
                    (Echo::Wrapped, None) => {
                        let shown = visible(&lay_out(&printed, (self.size)().1)).into_owned();
                        let shown = match self.colored {
                            true => paint::paint(&shown),
                            false => shown,
                        };
                        self.screen(&format!("{shown}\n"))?;
                    }
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

/// Splits a text after a number of lines.
fn cut(text: &str, most: usize) -> (&str, &str) {
    let ends = text.match_indices('\n').map(|(at, _)| at + 1);
    match ends.clone().nth(most.saturating_sub(1)) {
        // One more line takes no more room than the note about it.
        Some(_) if ends.count() <= most + 1 => (text, ""),
        Some(at) => text.split_at(at),
        None => (text, ""),
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

pub(crate) fn io_error(error: ReadlineError) -> io::Error {
    match error {
        ReadlineError::Io(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_long_text_is_cut_after_a_line() {
        assert_eq!(cut("a\nb\nc\nd\n", 2), ("a\nb\n", "c\nd\n"));
        assert_eq!(cut("a\nb\nc\n", 2), ("a\nb\nc\n", ""));
        assert_eq!(cut("a", 2), ("a", ""));
    }
}
