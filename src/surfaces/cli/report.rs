//! Errors as the command line prints them: drawn for a person, or one JSON object for a program.

use std::fmt::Write;

use flowstone_lang::diagnostic::Role;

use super::paint::{BOLD, BOLD_BLUE, BOLD_RED, BOLD_YELLOW, DIM, GREEN, PLAIN, Paint};
use crate::json::{report_json, role_from_name};

pub use flowstone_lang::diagnostic::{Diagnostic as Report, Severity};

/// The two forms of a report.
pub trait Shown {
    /// Draws it for a person; colours are removed for a pipe.
    fn draw(&self) -> String;

    /// Returns it as JSON. The names of the fields are stable.
    fn to_json(&self) -> serde_json::Value;
}

impl Shown for Report {
    fn draw(&self) -> String {
        let mut out = String::new();
        for piece in self.pieces() {
            let style = style(piece.role);
            let _ = write!(out, "{style}{}{style:#}", piece.text);
        }
        out
    }

    fn to_json(&self) -> serde_json::Value {
        report_json(self)
    }
}

/// Draws an error that is JSON: a list of pieces of text with their roles. Pieces of one role can be left out.
pub fn draw_pieces(pieces: &serde_json::Value, left_out: Option<&str>) -> String {
    let mut out = String::new();
    for piece in pieces.as_array().into_iter().flatten() {
        let [role, text] = ["role", "text"].map(|name| piece[name].as_str().unwrap_or_default());
        if Some(role) != left_out {
            let style = style(role_from_name(role));
            let _ = write!(out, "{style}{text}{style:#}");
        }
    }
    out
}

fn style(role: Role) -> Paint {
    match role {
        Role::Severity(Severity::Error) => BOLD_RED,
        Role::Severity(Severity::Warning | Severity::Portability) => BOLD_YELLOW,
        Role::Message => BOLD,
        Role::Gutter => BOLD_BLUE,
        Role::Hint => GREEN,
        Role::Note => DIM,
        Role::Text => PLAIN,
    }
}

/// Reports that a file cannot be read.
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

#[cfg(test)]
mod tests {
    use super::*;
    use flowstone_lang::value::{Sources, Span};

    #[test]
    fn colours_add_nothing_to_the_text() {
        let mut sources = Sources::default();
        let source = sources.add("a.clj", "(b)");
        let span = Span {
            source,
            start: 1,
            end: 2,
        };
        let report = Report::error("E0101", "wrong")
            .at(&sources, span)
            .hint("do");
        let drawn = report.draw();
        assert_ne!(drawn, report.render());
        assert_eq!(crate::cli::paint::exact(&drawn), report.render());
        assert_eq!(report.to_json()["column"], 2);
    }
}
