//! Errors and warnings as data, for people, editors and programs.
//!
//! A diagnostic is self-contained: places are resolved to lines of text when it is created. [`Diagnostic::render`]
//! returns plain text; a surface that uses colours takes [`Diagnostic::pieces`], which have the same text.

mod change;
mod draw;
mod exception;
mod excerpt;

pub use draw::{Piece, Role};
pub use excerpt::Excerpt;

use crate::reader::ReadError;
use crate::value::{Exception, Signal, Sources, Span};

pub use crate::value::{Change, Edit, Phase};

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The program cannot continue.
    Error,
    /// The program continues, but probably not as intended.
    Warning,
    /// The program continues here, but not on every system that it is written for.
    Portability,
}

/// One problem in a program.
#[derive(Debug, Clone)]
pub struct Diagnostic {
    /// The severity of the problem.
    pub severity: Severity,
    /// A stable code with a page in `docs/errors`; empty for exceptions thrown by a program.
    pub code: String,
    /// The phase in which it occurred, if it is known.
    pub phase: Option<Phase>,
    /// A sentence that describes the problem.
    pub message: String,
    /// The place of the problem, if it is known.
    pub place: Option<Excerpt>,
    /// The text written under the place.
    pub label: String,
    /// Other relevant places, each with its label.
    pub related: Vec<(Excerpt, String)>,
    /// The class of the exception, such as `ArithmeticException`; empty for other errors.
    pub class: String,
    /// The value at fault.
    pub culprit: Option<Box<Culprit>>,
    /// The data of an exception, in short printed form.
    pub data: Option<String>,
    /// The causes of the exception, nearest first.
    pub causes: Vec<Cause>,
    /// The macro calls that produced the code, innermost first.
    pub expansion: Vec<Expanded>,
    /// Facts below the message, such as the data and the causes of an exception.
    pub notes: Vec<String>,
    /// Suggestions of what to try.
    pub hints: Vec<String>,
    /// Changes of the texts that would mend it.
    pub changes: Vec<Change<Excerpt>>,
    /// The active calls, innermost first.
    pub trace: Vec<Call>,
}

/// A value that a call rejected.
#[derive(Debug, Clone)]
pub struct Culprit {
    /// The argument's number, from 1; `None` for the value in function position.
    pub argument: Option<u32>,
    /// The function that was called, if it is known.
    pub function: Option<String>,
    /// The value in short printed form.
    pub value: String,
    /// The kind of the value, such as `a keyword`.
    pub kind: &'static str,
}

/// A macro call that produced code.
#[derive(Debug, Clone)]
pub struct Expanded {
    /// The macro, as it was called.
    pub macro_name: String,
    /// The place of the call.
    pub place: Option<Excerpt>,
    /// The macro's result; `None` if the macro did not return one.
    pub form: Option<String>,
}

/// The cause of another exception.
#[derive(Debug, Clone)]
pub struct Cause {
    /// The class of the exception.
    pub class: String,
    /// The error code; empty for exceptions thrown by a program.
    pub code: String,
    /// The message of the exception.
    pub message: String,
    /// The data in short printed form.
    pub data: Option<String>,
    /// The place where it was thrown.
    pub place: Option<Excerpt>,
}

/// A call that was active when an error occurred.
#[derive(Debug, Clone)]
pub struct Call {
    /// The function, with its namespace if it has one.
    pub function: String,
    /// The place of the call, if it is known.
    pub place: Option<Excerpt>,
    /// Whether the call is in the library rather than in the user's code.
    pub in_library: bool,
}

impl Severity {
    /// Returns the name used in JSON and in text.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Portability => "portability",
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
            changes: Vec::new(),
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

    /// Sets the place from a span, if the texts still contain it.
    #[must_use]
    pub fn at(mut self, sources: &Sources, span: Span) -> Diagnostic {
        self.place = Excerpt::find(sources, span);
        self
    }

    /// Sets the place in a text, by line and column counted from 1.
    #[must_use]
    pub fn in_text(mut self, name: &str, text: &str, line: usize, column: usize) -> Diagnostic {
        self.place = Some(Excerpt::in_text(name, text, line, column));
        self
    }

    /// Sets the place by line and column, if the whole text is not available.
    #[must_use]
    /// ¶ `width` is the number of columns of `text` to mark.
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

    /// Sets the text written under the place.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = label.into();
        self
    }

    /// Adds a sentence that suggests what to try.
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

    /// Describes an error of reading a text.
    pub fn of_read_error(sources: &Sources, error: &ReadError) -> Diagnostic {
        let mut diagnostic = Diagnostic::error(error.code, &*error.message).at(sources, error.span);
        diagnostic.phase = Some(Phase::Read);
        diagnostic.hints.clone_from(&error.hints);
        let changes = error.changes.iter();
        diagnostic.changes = changes
            .filter_map(|it| it.place(sources, error.span))
            .collect();
        if let Some((span, what)) = &error.related {
            let related = Excerpt::find(sources, *span).map(|place| (place, what.clone()));
            diagnostic.related.extend(related);
        }
        diagnostic
    }

    /// Describes the signal that stopped a program.
    pub fn of_signal(sources: &Sources, signal: &Signal) -> Diagnostic {
        match signal {
            Signal::Throw(exception) => Diagnostic::of_exception(sources, exception),
            Signal::Stop(stop) => Diagnostic::error("", format!("stopped: {stop}")),
        }
    }

    /// Describes an uncaught exception.
    pub fn of_exception(sources: &Sources, exception: &Exception) -> Diagnostic {
        exception::describe(sources, exception)
    }

    /// Sets the place where a program was stopped.
    #[must_use]
    pub fn stopped_at(mut self, sources: &Sources, origin: &crate::value::Origin) -> Diagnostic {
        exception::put_origin(&mut self, sources, origin);
        self.phase = Some(Phase::Execution);
        self
    }

    /// Returns plain text of several lines, each with a line end.
    pub fn render(&self) -> String {
        self.pieces().iter().map(|piece| &*piece.text).collect()
    }
}
