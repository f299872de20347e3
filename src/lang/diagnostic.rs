//! What is wrong, as data that people, editors and programs are told it from.
//!
//! A diagnostic is self-contained: places are looked up in the texts when it is made. [`Diagnostic::render`] gives
//! plain text; a surface that wants colours takes [`Diagnostic::pieces`], whose text is the same.

mod draw;
mod excerpt;

pub use draw::{Piece, Role};
pub use excerpt::Excerpt;

use crate::library;
use crate::reader::ReadError;
use crate::value::{Class, Exception, Frame, Signal, Source, Sources, Span, Value, brief};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The program cannot go on.
    Error,
    /// The program goes on, but probably not as meant.
    Warning,
}

/// When it happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The text is not made of forms.
    Read,
    /// The forms are no program.
    Compile,
    /// The program ran.
    Execution,
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
    /// Another place that matters, and what is there.
    pub related: Option<(Excerpt, String)>,
    /// Facts below the message: the data of an exception, what caused it.
    pub notes: Vec<String>,
    /// What to try.
    pub hints: Vec<String>,
    /// The calls that led there, innermost first.
    pub trace: Vec<Call>,
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

impl Phase {
    /// Returns the name that JSON and the text have for it.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Read => "read",
            Phase::Compile => "compile",
            Phase::Execution => "execution",
        }
    }

    /// Returns the phase that an exception of the language belongs to.
    fn of(exception: &Exception) -> Phase {
        match exception.code.get(..3) {
            Some("E01") => Phase::Read,
            Some("E02") => Phase::Compile,
            _ if exception.class.is_a(Class::READER_EXCEPTION) => Phase::Read,
            _ if exception.class.is_a(Class::COMPILER_EXCEPTION) => Phase::Compile,
            _ => Phase::Execution,
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
            related: None,
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
    pub fn on_line(mut self, file: &str, line: u32, column: u32, text: &str) -> Diagnostic {
        self.place = Some(Excerpt {
            file: file.to_owned(),
            line,
            column: column.max(1),
            text: text.to_owned(),
            length: 1,
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
            diagnostic.related = Excerpt::find(sources, *span).map(|place| (place, what.clone()));
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
        let message = if exception.code.is_empty() {
            format!("{}: {}", exception.class.0.name, exception.text())
        } else {
            exception.text().to_owned()
        };
        let mut diagnostic = Diagnostic::error(exception.code, message);
        diagnostic.phase = Some(Phase::of(exception));
        diagnostic.hints.clone_from(&exception.hints);
        let origin = exception.origin.borrow();
        let thrown = origin.span.unwrap_or(Span::NONE);
        if exception.class.is_a(Class::READER_EXCEPTION) {
            diagnostic.related = related(sources, thrown, &exception.data);
        } else if exception.data.as_map().is_some_and(|data| !data.is_empty()) {
            diagnostic = diagnostic.note(format!("data: {}", brief(&exception.data)));
        }
        let mut cause = &exception.cause;
        while let Value::Exception(inner) = cause {
            diagnostic = diagnostic.note(format!("caused by: {}", inner.text()));
            cause = &inner.cause;
        }
        diagnostic.trace = origin
            .trace
            .iter()
            .map(|frame| Call::of(sources, frame))
            .collect();
        diagnostic.at(sources, nearest_to_user(sources, thrown, &origin.trace))
    }

    /// Returns plain text of several lines, each with its end.
    pub fn render(&self) -> String {
        self.pieces().iter().map(|piece| &*piece.text).collect()
    }
}

impl Call {
    /// Tells whether the call is where an excerpt is.
    fn is_at(&self, place: Option<&Excerpt>) -> bool {
        match (&self.place, place) {
            (Some(own), Some(other)) => {
                (&own.file, own.line, own.column) == (&other.file, other.line, other.column)
            }
            (own, other) => own.is_none() && other.is_none(),
        }
    }

    fn of(sources: &Sources, frame: &Frame) -> Call {
        Call {
            function: frame.function.to_string(),
            place: Excerpt::find(sources, frame.span),
            in_library: is_library(sources, frame.span),
        }
    }
}

/// Returns where an error shows: where it was thrown, or, if that is inside the library, the call that led there.
fn nearest_to_user(sources: &Sources, thrown: Span, trace: &[Frame]) -> Span {
    if thrown.is_some() && !is_library(sources, thrown) {
        return thrown;
    }
    trace
        .iter()
        .map(|frame| frame.span)
        .find(|span| span.is_some() && !is_library(sources, *span))
        .unwrap_or(thrown)
}

/// Tells whether a place is in the library, or is no place, as in a native.
fn is_library(sources: &Sources, span: Span) -> bool {
    let is_library_file = |source: &Source| {
        // The library's texts have their path in brackets for a name.
        let name = source.name.strip_prefix('<').unwrap_or_default();
        let path = name.strip_suffix('>').unwrap_or_default();
        library::SOURCES.iter().any(|file| file.file == path)
    };
    !span.is_some()
        || sources
            .get(span.source)
            .is_none_or(|source| is_library_file(source))
}

/// Returns the other place of a reader's exception: in its data, as offsets into the same text.
fn related(sources: &Sources, span: Span, data: &Value) -> Option<(Excerpt, String)> {
    let related = data.get("related")?;
    let offset = |key: &str| u32::try_from(related.get(key)?.as_int()?).ok();
    let other = Span {
        source: span.source,
        start: offset("start")?,
        end: offset("end")?,
    };
    let what = related.get("message")?.as_str()?.to_owned();
    Some((Excerpt::find(sources, other)?, what))
}
