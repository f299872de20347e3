//! What is wrong, as data that people, editors and programs are told it from.
//!
//! A diagnostic is self-contained: places are looked up in the texts when it is made. [`Diagnostic::render`] gives
//! plain text; a surface that wants colours takes [`Diagnostic::pieces`], whose text is the same.

mod draw;
mod exception;
mod excerpt;

pub use draw::{Piece, Role};
pub use excerpt::Excerpt;

use crate::reader::ReadError;
use crate::value::{Exception, Signal, Sources, Span};

pub use crate::value::Phase;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The program cannot go on.
    Error,
    /// The program goes on, but probably not as meant.
    Warning,
}

/// One thing that is wrong.
#[derive(Debug, Clone)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// A stable code with a page in `docs/errors`; empty for what a program threw itself.
    pub code: String,
    /// When it happened, where that is known.
    pub phase: Option<Phase>,
    /// What is wrong, in one sentence.
    pub message: String,
    /// Where it is, where that is known.
    pub place: Option<Excerpt>,
    /// What is written under the place.
    pub label: String,
    /// Other places that matter, and what is there.
    pub related: Vec<(Excerpt, String)>,
    /// The class of the exception, such as `ArithmeticException`; empty for other errors.
    pub class: String,
    /// What was at fault.
    pub culprit: Option<Box<Culprit>>,
    /// The data of an exception, printed shortly.
    pub data: Option<String>,
    /// What the exception follows from, nearest first.
    pub causes: Vec<Cause>,
    /// The macro calls that the code came through, innermost first.
    pub expansion: Vec<Expanded>,
    /// Facts below the message: the data of an exception, what caused it.
    pub notes: Vec<String>,
    /// What to try.
    pub hints: Vec<String>,
    /// The calls that led there, innermost first.
    pub trace: Vec<Call>,
}

/// The value that a call could not work with.
#[derive(Debug, Clone)]
pub struct Culprit {
    /// Counted from 1; `None` for the value in function position.
    pub argument: Option<u32>,
    /// The function that was called, if it is known.
    pub function: Option<String>,
    /// Printed shortly.
    pub value: String,
    /// In words, such as `a keyword`.
    pub kind: &'static str,
}

/// A macro call that code came through.
#[derive(Debug, Clone)]
pub struct Expanded {
    /// The macro, as it was called.
    pub macro_name: String,
    /// Where the call is.
    pub place: Option<Excerpt>,
    /// What the macro made of it; `None` where it did not come to that.
    pub form: Option<String>,
}

/// An exception from which another follows.
#[derive(Debug, Clone)]
pub struct Cause {
    /// The class of the exception.
    pub class: String,
    /// Empty for what a program threw itself.
    pub code: String,
    /// What was wrong.
    pub message: String,
    /// Its data, printed shortly.
    pub data: Option<String>,
    /// Where it was thrown.
    pub place: Option<Excerpt>,
}

/// One call on the way to an error.
#[derive(Debug, Clone)]
pub struct Call {
    /// The function, with its namespace where it has one.
    pub function: String,
    /// Where it is, where that is known.
    pub place: Option<Excerpt>,
    /// Whether the call stands in the library, not in what the user wrote.
    pub in_library: bool,
}

impl Severity {
    /// Returns the name that JSON and the text have for it.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

impl Diagnostic {
    /// Returns an error without a place.
    pub fn error(code: &str, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code: code.to_owned(),
            phase: None,
            message: message.into(),
            place: None,
            label: String::new(),
            related: Vec::new(),
            class: String::new(),
            culprit: None,
            data: None,
            causes: Vec::new(),
            expansion: Vec::new(),
            notes: Vec::new(),
            hints: Vec::new(),
            trace: Vec::new(),
        }
    }

    /// Returns a warning without a place.
    pub fn warning(code: &str, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(code, message)
        }
    }

    /// Says where it is, as far as the texts know.
    #[must_use]
    pub fn at(mut self, sources: &Sources, span: Span) -> Diagnostic {
        self.place = Excerpt::find(sources, span);
        self
    }

    /// Says where it is in a text, by line and column counted from 1.
    #[must_use]
    pub fn in_text(mut self, name: &str, text: &str, line: usize, column: usize) -> Diagnostic {
        self.place = Some(Excerpt::in_text(name, text, line, column));
        self
    }

    /// Says on which line it is, where only that line is known.
    #[must_use]
    ///
    /// `width` is how many columns of `text` are meant.
    pub fn on_line(
        mut self,
        file: &str,
        line: u32,
        column: u32,
        width: u32,
        text: &str,
    ) -> Diagnostic {
        let (column, width) = (column.max(1), width.max(1));
        self.place = Some(Excerpt {
            file: file.to_owned(),
            line,
            column,
            text: text.to_owned(),
            length: width as usize,
            end_line: line,
            end_column: column.saturating_add(width),
        });
        self
    }

    /// Says what to write under the place.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = label.into();
        self
    }

    /// Adds a sentence that says what to try.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Diagnostic {
        self.hints.push(hint.into());
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }

    /// Describes why a text could not be read.
    pub fn of_read_error(sources: &Sources, error: &ReadError) -> Diagnostic {
        let mut diagnostic = Diagnostic::error(error.code, &*error.message).at(sources, error.span);
        diagnostic.phase = Some(Phase::Read);
        diagnostic.hints.clone_from(&error.hints);
        if let Some((span, what)) = &error.related {
            let related = Excerpt::find(sources, *span).map(|place| (place, what.clone()));
            diagnostic.related.extend(related);
        }
        diagnostic
    }

    /// Describes what stopped a program.
    pub fn of_signal(sources: &Sources, signal: &Signal) -> Diagnostic {
        match signal {
            Signal::Throw(exception) => Diagnostic::of_exception(sources, exception),
            Signal::Stop(stop) => Diagnostic::error("", format!("stopped: {stop}")),
        }
    }

    /// Describes an exception that nothing caught.
    pub fn of_exception(sources: &Sources, exception: &Exception) -> Diagnostic {
        exception::describe(sources, exception)
    }

    /// Says where a program was when it was stopped.
    #[must_use]
    pub fn stopped_at(mut self, sources: &Sources, origin: &crate::value::Origin) -> Diagnostic {
        exception::put_origin(&mut self, sources, origin);
        self.phase = Some(Phase::Execution);
        self
    }

    /// Returns plain text of several lines, each with its end.
    pub fn render(&self) -> String {
        self.pieces().iter().map(|piece| &*piece.text).collect()
    }
}
