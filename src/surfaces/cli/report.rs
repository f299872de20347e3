//! What went wrong, as a surface shows it: drawn for a person, or one JSON object for a program.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use flowstone_lang::reader::ReadError;
use flowstone_lang::value::{
    Class, Exception, PrintOptions, Source, Sources, Span, Unforced, Value, print_value,
};
use serde_json::{Map, json};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    Error,
    Warning,
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }

    fn style(self) -> Style {
        let color = match self {
            Severity::Error => AnsiColor::Red,
            Severity::Warning => AnsiColor::Yellow,
        };
        color.on_default().bold()
    }
}

/// Where it is: a part of one line.
#[derive(Debug, Clone)]
pub struct Place {
    pub file: String,
    /// Counted from 1, as is the column.
    pub line: u32,
    pub column: u32,
    /// The line itself.
    text: String,
    /// How many characters to underline.
    width: usize,
}

/// One call on the way to the error.
#[derive(Debug, Clone)]
struct Call {
    function: String,
    place: Option<Place>,
}

/// One thing that is wrong.
#[derive(Debug, Clone)]
pub struct Report {
    pub severity: Severity,
    /// A code with a page in `docs/errors`; empty for what a program threw itself.
    pub code: String,
    pub message: String,
    pub place: Option<Place>,
    /// What is written under the place.
    pub label: String,
    /// Another place that matters, and what is there.
    related: Option<(Place, String)>,
    pub hints: Vec<String>,
    /// Facts below the message: the data of an exception, what caused it.
    notes: Vec<String>,
    calls: Vec<Call>,
}

const GUTTER: Style = AnsiColor::Blue.on_default().bold();
const BOLD: Style = Style::new().bold();
const HINT: Style = AnsiColor::Green.on_default();
const DIM: Style = Style::new().dimmed();
/// A longer line is shown in part.
const MAX_LINE: usize = 140;
/// Calls that are shown; the innermost say most.
const MAX_CALLS: usize = 8;

impl Report {
    pub fn error(code: &str, message: impl Into<String>) -> Report {
        Report {
            severity: Severity::Error,
            code: code.to_owned(),
            message: message.into(),
            place: None,
            label: String::new(),
            related: None,
            hints: Vec::new(),
            notes: Vec::new(),
            calls: Vec::new(),
        }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Report {
        self.hints.push(hint.into());
        self
    }

    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Report {
        self.notes.push(note.into());
        self
    }

    /// Says where it is, as far as the texts know.
    #[must_use]
    pub fn at(mut self, sources: &Sources, span: Span) -> Report {
        self.place = Place::find(sources, span);
        self
    }

    /// Says where it is in a text, by line and column counted from 1.
    #[must_use]
    pub fn in_text(self, name: &str, text: &str, line: usize, column: usize) -> Report {
        let number = |number: usize| u32::try_from(number.max(1)).unwrap_or(u32::MAX);
        let content = text.lines().nth(line.saturating_sub(1)).unwrap_or("");
        self.on_line(name, number(line), number(column), content)
    }

    /// Says on which line it is, where only that line is known.
    #[must_use]
    pub fn on_line(mut self, file: &str, line: u32, column: u32, text: &str) -> Report {
        self.place = Some(Place {
            file: file.to_owned(),
            line,
            column,
            text: text.to_owned(),
            width: 1,
        });
        self
    }

    /// Describes why a text could not be read.
    pub fn of_read_error(sources: &Sources, error: &ReadError) -> Report {
        let mut report = Report::error(error.code, &*error.message).at(sources, error.span);
        report.hints.clone_from(&error.hints);
        if let Some((span, what)) = &error.related {
            report.related = Place::find(sources, *span).map(|place| (place, what.clone()));
        }
        report
    }

    /// Describes an exception that nothing caught.
    pub fn of_exception(sources: &Sources, exception: &Exception) -> Report {
        let mut report = Report::error(exception.code, exception.text());
        if exception.code.is_empty() {
            report.message = format!("{}: {}", exception.class.0.name, exception.text());
        }
        report.hints.clone_from(&exception.hints);
        let origin = exception.origin.borrow();
        let span = origin.span.unwrap_or(Span::NONE);
        if exception.class.is_a(Class::READER_EXCEPTION) {
            report.related = related(sources, span, &exception.data);
        } else if exception.data.as_map().is_some_and(|data| !data.is_empty()) {
            report = report.note(format!("data: {}", brief(&exception.data)));
        }
        let mut cause = &exception.cause;
        while let Value::Exception(inner) = cause {
            report = report.note(format!("caused by: {}", inner.text()));
            cause = &inner.cause;
        }
        report.calls = origin
            .trace
            .iter()
            .take(MAX_CALLS)
            .map(|frame| Call {
                function: frame.function.to_string(),
                place: Place::find(sources, frame.span),
            })
            .collect();
        report.at(sources, span)
    }

    /// Draws it for a person, with colours that a pipe takes out again.
    pub fn draw(&self) -> String {
        let mut out = String::new();
        let style = self.severity.style();
        let name = self.severity.name();
        let code = match self.code.as_str() {
            "" => String::new(),
            code => format!("[{code}]"),
        };
        let _ = writeln!(
            out,
            "{style}{name}{code}{style:#}{BOLD}: {}{BOLD:#}",
            self.message
        );
        if let Some(place) = &self.place {
            place.draw(&mut out, style, &self.label);
        }
        if let Some((place, what)) = &self.related {
            place.draw(&mut out, GUTTER, what);
        }
        for note in &self.notes {
            let _ = writeln!(out, "  {DIM}{note}{DIM:#}");
        }
        for call in &self.calls {
            let at = call.place.as_ref().map_or_else(String::new, |place| {
                format!(" ({}:{}:{})", place.file, place.line, place.column)
            });
            let _ = writeln!(out, "  {DIM}in {}{at}{DIM:#}", call.function);
        }
        for hint in &self.hints {
            let _ = writeln!(out, "  {HINT}hint{HINT:#}: {hint}");
        }
        out
    }

    /// Returns it as JSON. The names of the fields are stable.
    pub fn to_json(&self) -> serde_json::Value {
        let mut fields = Map::new();
        fields.insert("severity".into(), json!(self.severity.name()));
        if !self.code.is_empty() {
            fields.insert("code".into(), json!(self.code));
        }
        fields.insert("message".into(), json!(self.message));
        if let Some(place) = &self.place {
            place.put(&mut fields);
        }
        if !self.label.is_empty() {
            fields.insert("label".into(), json!(self.label));
        }
        if let Some((place, what)) = &self.related {
            let mut related = Map::new();
            related.insert("message".into(), json!(what));
            place.put(&mut related);
            fields.insert("related".into(), related.into());
        }
        let lists = [("hints", &self.hints), ("notes", &self.notes)];
        for (name, list) in lists {
            if !list.is_empty() {
                fields.insert(name.into(), json!(list));
            }
        }
        if !self.calls.is_empty() {
            let calls: Vec<_> = self.calls.iter().map(Call::to_json).collect();
            fields.insert("trace".into(), json!(calls));
        }
        fields.into()
    }
}

impl Call {
    fn to_json(&self) -> serde_json::Value {
        let mut fields = Map::new();
        fields.insert("function".into(), json!(self.function));
        if let Some(place) = &self.place {
            place.put(&mut fields);
        }
        fields.into()
    }
}

impl Place {
    fn find(sources: &Sources, span: Span) -> Option<Place> {
        if !span.is_some() {
            return None;
        }
        Some(Place::of(sources.get(span.source)?, span))
    }

    fn of(source: &Source, span: Span) -> Place {
        let start = source.line_column(span.start);
        let end = source.line_column(span.end.max(span.start));
        let text = source.line(start.line).to_owned();
        let rest = (text.chars().count() + 1).saturating_sub(start.column as usize);
        let width = if end.line == start.line {
            (end.column.saturating_sub(start.column)) as usize
        } else {
            rest
        };
        Place {
            file: source.name.to_string(),
            line: start.line,
            column: start.column,
            text,
            width: width.clamp(1, rest.max(1)),
        }
    }

    fn put(&self, fields: &mut Map<String, serde_json::Value>) {
        fields.insert("file".into(), json!(self.file));
        fields.insert("line".into(), json!(self.line));
        fields.insert("column".into(), json!(self.column));
    }

    fn draw(&self, out: &mut String, style: Style, label: &str) {
        let number = self.line.to_string();
        let pad = " ".repeat(number.len());
        let (text, before, width) = self.window();
        let marks = "^".repeat(width);
        let file = &self.file;
        let _ = writeln!(
            out,
            " {pad}{GUTTER}-->{GUTTER:#} {file}:{}:{}",
            self.line, self.column
        );
        let _ = writeln!(out, " {pad} {GUTTER}|{GUTTER:#}");
        let _ = writeln!(out, " {GUTTER}{number} |{GUTTER:#} {text}");
        let space = if label.is_empty() { "" } else { " " };
        let _ = writeln!(
            out,
            " {pad} {GUTTER}|{GUTTER:#} {before}{style}{marks}{space}{label}{style:#}"
        );
    }

    /// Returns the part of the line to show, what stands before the marks on their own line, and how many marks.
    /// Tabs stay tabs on both lines, so that they have the same width.
    fn window(&self) -> (String, String, usize) {
        let column = self.column as usize - 1;
        let chars: Vec<char> = self.text.chars().collect();
        let from = if chars.len() <= MAX_LINE {
            0
        } else {
            column.saturating_sub(MAX_LINE / 2)
        };
        let to = (from + MAX_LINE).min(chars.len());
        let mut text: String = chars[from..to].iter().collect();
        let mut before: String = chars[from..column.clamp(from, to)]
            .iter()
            .map(|c| if *c == '\t' { '\t' } else { ' ' })
            .collect();
        if from > 0 {
            text.insert(0, '…');
            before.insert(0, ' ');
        }
        if to < chars.len() {
            text.push('…');
        }
        let width = self.width.min((to + 1).saturating_sub(column)).max(1);
        (text, before, width)
    }
}

/// Returns the other place of a reader's exception: in its data, as offsets into the same text.
fn related(sources: &Sources, span: Span, data: &Value) -> Option<(Place, String)> {
    let related = data.get("related")?;
    let offset = |key: &str| {
        related
            .get(key)?
            .as_int()
            .and_then(|at| u32::try_from(at).ok())
    };
    let other = Span {
        source: span.source,
        start: offset("start")?,
        end: offset("end")?,
    };
    let what = related.get("message")?.as_str()?.to_owned();
    Some((Place::find(sources, other)?, what))
}

/// Says that a file cannot be read.
pub fn unreadable(name: &str, error: &std::io::Error) -> Report {
    let why = match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
        std::io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    };
    Report::error("E0905", format!("cannot read {name}: {why}"))
}

/// Prints a value without running anything and never the whole of something large.
fn brief(value: &Value) -> String {
    let mut out = String::new();
    match print_value(&mut out, &mut Unforced, value, PrintOptions::BRIEF) {
        Ok(()) => out,
        Err(_) => value.kind().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(text: &str, start: usize, end: usize) -> String {
        let mut sources = Sources::default();
        let source = sources.add("a.clj", text);
        let span = Span {
            source,
            start: start as u32,
            end: end as u32,
        };
        let report = Report::error("E0101", "wrong")
            .at(&sources, span)
            .hint("do");
        anstream::adapter::strip_str(&report.draw()).to_string()
    }

    #[test]
    fn the_marks_stand_under_the_place() {
        let expected =
            "error[E0101]: wrong\n  --> a.clj:2:3\n   |\n 2 | \té(b)\n   | \t ^^^\n  hint: do\n";
        assert_eq!(drawn("x\n\té(b)\n", 5, 8), expected);
    }

    #[test]
    fn a_place_of_several_lines_is_marked_to_the_end_of_the_first() {
        assert!(drawn("(a\n b)", 0, 6).contains(" 1 | (a\n   | ^^\n"));
    }

    #[test]
    fn a_place_at_the_end_of_the_text_is_marked() {
        assert!(drawn("(a", 2, 2).contains(" 1 | (a\n   |   ^\n"));
    }

    #[test]
    fn of_a_long_line_a_part_is_shown() {
        let text = format!("{}(here){}", "a".repeat(500), "b".repeat(500));
        let drawn = drawn(&text, 500, 506);
        assert!(
            drawn.lines().all(|line| line.chars().count() < 160),
            "{drawn}"
        );
        assert!(drawn.contains("^^^^^^"), "{drawn}");
    }
}
