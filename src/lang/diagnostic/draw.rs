//! How a diagnostic is laid out. Each piece of text has a role, by which a surface may colour it.

use super::{Call, Diagnostic, Excerpt, Severity};

/// What a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `error[E0204]`, and the marks under the place.
    Severity(Severity),
    /// The message.
    Message,
    /// Line numbers and rules; the marks under another place.
    Gutter,
    /// Source text, file names.
    Text,
    /// A fact or a call.
    Note,
    /// The word `hint`.
    Hint,
}

/// Text of one role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// What the text is there for.
    pub role: Role,
    /// The text itself.
    pub text: String,
}

/// What the code outside of functions is called in a trace.
const TOP_LEVEL: &str = "top level";
/// Calls that are shown; the innermost say most.
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
        page.put(Role::Message, format!(": {}", self.message));
        page.end_line();
        if let Some(place) = &self.place {
            page.excerpt(place, severity, &self.label);
        }
        if let Some((place, what)) = &self.related {
            page.excerpt(place, Role::Gutter, what);
        }
        for note in &self.notes {
            page.put(Role::Note, format!("  {note}"));
            page.end_line();
        }
        for hint in &self.hints {
            page.put(Role::Hint, "  hint");
            page.put(Role::Text, format!(": {hint}"));
            page.end_line();
        }
        // A single call in the place that is shown already says nothing new.
        match self.trace.as_slice() {
            [call] if call.function == TOP_LEVEL && call.is_at(self.place.as_ref()) => {}
            trace => page.trace(trace),
        }
        page.pieces
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

    /// Writes the calls that the user wrote, and how many of the library stand between them.
    fn trace(&mut self, calls: &[Call]) {
        let mut folded = 0;
        let mut shown = 0;
        for call in calls {
            if call.in_library {
                folded += 1;
                continue;
            }
            if shown == MAX_CALLS {
                break;
            }
            shown += 1;
            self.fold(&mut folded);
            let at = call.place.as_ref().map_or_else(String::new, |place| {
                format!(" ({}:{}:{})", place.file, place.line, place.column)
            });
            self.put(Role::Note, format!("  in {}{at}", call.function));
            self.end_line();
        }
        let all = calls.iter().filter(|call| !call.in_library).count();
        if all > shown {
            self.put(Role::Note, format!("  ... and {} more calls", all - shown));
            self.end_line();
        } else if shown > 0 {
            self.fold(&mut folded);
        }
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
