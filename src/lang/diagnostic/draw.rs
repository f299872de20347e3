//! The layout of a diagnostic. Each piece of text has a role, which a surface may colour.

use super::{Call, Diagnostic, Excerpt, Severity};

/// The role of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `error[E0204]`, and the marks under the place.
    Severity(Severity),
    /// The message.
    Message,
    /// Line numbers and rules, and the marks under another place.
    Gutter,
    /// Source text, file names.
    Text,
    /// A fact or a call.
    Note,
    /// The word `hint`.
    Hint,
}

/// A piece of text with one role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The role of the text.
    pub role: Role,
    /// The text itself.
    pub text: String,
}

/// The name of the code outside of functions in a trace.
const TOP_LEVEL: &str = "top level";
/// Maximum number of calls shown; the innermost are the most useful.
const MAX_CALLS: usize = 8;

impl Diagnostic {
    /// Returns the text of several lines, in pieces.
    pub fn pieces(&self) -> Vec<Piece> {
        let mut page = Page::default();
        let severity = Role::Severity(self.severity);
        let code = match self.code.as_str() {
            "" => String::new(),
            code => format!("[{code}]"),
        };
        page.put(severity, format!("{}{code}", self.severity.name()));
        page.put(
            Role::Message,
            format!(": {}", self.message.replace('\n', "\n  ")),
        );
        page.end_line();
        if let Some(place) = &self.place {
            page.excerpt(place, severity, &self.label);
        }
        for (place, what) in &self.related {
            page.excerpt(place, Role::Gutter, what);
        }
        for note in self.all_notes() {
            page.put(Role::Note, format!("  {note}"));
            page.end_line();
        }
        for hint in &self.hints {
            page.put(Role::Hint, "  hint");
            page.put(Role::Text, format!(": {hint}"));
            page.end_line();
        }
        // A single call at the place already shown adds no information.
        match self.trace.as_slice() {
            [call] if call.function == TOP_LEVEL && call.is_at(self.place.as_ref()) => {}
            trace => page.trace(trace),
        }
        page.pieces
    }
}

impl Diagnostic {
    /// Returns the facts below the place, each of one or more lines.
    fn all_notes(&self) -> Vec<String> {
        let data = |data: &Option<String>| data.as_ref().map(|data| format!("data: {data}"));
        let mut notes: Vec<String> = data(&self.data).into_iter().collect();
        for cause in &self.causes {
            let code = match cause.code.as_str() {
                "" => cause.class.clone(),
                code => format!("{}[{code}]", cause.class),
            };
            let at = cause.place.as_ref().map_or_else(String::new, at);
            notes.push(format!("caused by {code}: {}{at}", cause.message));
            notes.extend(data(&cause.data).map(|data| format!("  {data}")));
        }
        for expanded in &self.expansion {
            if let Some(form) = &expanded.form {
                notes.push(format!("`{}` expanded to {form}", expanded.macro_name));
            }
        }
        notes.extend(self.notes.iter().cloned());
        notes
    }
}

/// Returns a place in parentheses.
fn at(place: &Excerpt) -> String {
    format!(" ({}:{}:{})", place.file, place.line, place.column)
}

impl Call {
    /// Tells whether the call is at the place of an excerpt.
    fn is_at(&self, place: Option<&Excerpt>) -> bool {
        match (&self.place, place) {
            (Some(own), Some(other)) => own.is_at(other),
            (own, other) => own.is_none() && other.is_none(),
        }
    }
}

#[derive(Default)]
struct Page {
    pieces: Vec<Piece>,
}

impl Page {
    fn put(&mut self, role: Role, text: impl Into<String>) {
        self.pieces.push(Piece {
            role,
            text: text.into(),
        });
    }

    fn end_line(&mut self) {
        self.put(Role::Text, "\n");
    }

    fn excerpt(&mut self, place: &Excerpt, marks: Role, label: &str) {
        let number = place.line.to_string();
        let pad = " ".repeat(number.len());
        let window = place.window();
        self.put(Role::Gutter, format!("{pad} --> "));
        self.put(
            Role::Text,
            format!("{}:{}:{}\n", place.file, place.line, place.column),
        );
        self.put(Role::Gutter, format!("{pad} |\n{number} | "));
        self.put(Role::Text, format!("{}\n", window.text));
        self.put(Role::Gutter, format!("{pad} | "));
        self.put(Role::Text, window.indent);
        let space = if label.is_empty() { "" } else { " " };
        self.put(marks, format!("{}{space}{label}", "^".repeat(window.marks)));
        self.end_line();
    }

    /// Writes the user's calls, and the number of library calls between them. Repeated calls are written once.
    fn trace(&mut self, calls: &[Call]) {
        let mut folded = 0;
        let mut shown = 0;
        let mut repeated = 0;
        let mut last: Option<&Call> = None;
        for call in calls {
            if call.in_library {
                folded += 1;
                continue;
            }
            let is_again = last.is_some_and(|last| {
                last.function == call.function && call.is_at(last.place.as_ref())
            });
            if is_again && folded == 0 {
                repeated += 1;
                continue;
            }
            self.repeat(&mut repeated);
            if shown == MAX_CALLS {
                break;
            }
            shown += 1;
            self.fold(&mut folded);
            let at = call.place.as_ref().map_or_else(String::new, at);
            self.put(Role::Note, format!("  in {}{at}", call.function));
            self.end_line();
            last = Some(call);
        }
        self.repeat(&mut repeated);
        if shown == MAX_CALLS {
            self.put(Role::Note, "  ... and more calls around these");
            self.end_line();
        } else if shown > 0 {
            self.fold(&mut folded);
        }
    }

    fn repeat(&mut self, repeated: &mut usize) {
        let text = match std::mem::take(repeated) {
            0 => return,
            1 => "  ... the same once more".to_owned(),
            count => format!("  ... the same {count} times more, or more often"),
        };
        self.put(Role::Note, text);
        self.end_line();
    }

    fn fold(&mut self, folded: &mut usize) {
        let text = match std::mem::take(folded) {
            0 => return,
            1 => "  ... through the library".to_owned(),
            count => format!("  ... through the library ({count} calls)"),
        };
        self.put(Role::Note, text);
        self.end_line();
    }
}
