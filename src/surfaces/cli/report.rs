//! Errors as the command line prints them: drawn for a person, or one JSON object for a program.

use std::fmt::Write;

use flowstone_lang::diagnostic::{Call, Cause, Excerpt, Expanded, Role};
use serde_json::{Map, json};

use super::paint::{BOLD, BOLD_BLUE, BOLD_RED, BOLD_YELLOW, DIM, GREEN, PLAIN, Paint};

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
        let mut fields = Map::new();
        fields.insert("severity".into(), json!(self.severity.name()));
        if !self.code.is_empty() {
            fields.insert("code".into(), json!(self.code));
        }
        if let Some(phase) = self.phase {
            fields.insert("phase".into(), json!(phase.name()));
        }
        fields.insert("message".into(), json!(self.message));
        if let Some(place) = &self.place {
            put(&mut fields, place);
        }
        if !self.label.is_empty() {
            fields.insert("label".into(), json!(self.label));
        }
        if !self.class.is_empty() {
            fields.insert("class".into(), json!(self.class));
        }
        if let Some(culprit) = &self.culprit {
            fields.insert(
                "culprit".into(),
                json!({
                    "argument": culprit.argument,
                    "function": culprit.function,
                    "value": culprit.value,
                    "kind": culprit.kind,
                }),
            );
        }
        if let Some(data) = &self.data {
            fields.insert("data".into(), json!(data));
        }
        let lists = [("hints", &self.hints), ("notes", &self.notes)];
        for (name, list) in lists {
            if !list.is_empty() {
                fields.insert(name.into(), json!(list));
            }
        }
        let objects = [
            ("related", self.related.iter().map(related).collect()),
            ("causes", self.causes.iter().map(cause).collect()),
            ("expansion", self.expansion.iter().map(expanded).collect()),
            ("trace", self.trace.iter().map(call).collect()),
        ];
        for (name, objects) in objects {
            let objects: Vec<serde_json::Value> = objects;
            if !objects.is_empty() {
                fields.insert(name.into(), json!(objects));
            }
        }
        fields.into()
    }
}

fn style(role: Role) -> Paint {
    match role {
        Role::Severity(Severity::Error) => BOLD_RED,
        Role::Severity(Severity::Warning) => BOLD_YELLOW,
        Role::Message => BOLD,
        Role::Gutter => BOLD_BLUE,
        Role::Hint => GREEN,
        Role::Note => DIM,
        Role::Text => PLAIN,
    }
}

fn related((place, what): &(Excerpt, String)) -> serde_json::Value {
    let mut fields = Map::new();
    fields.insert("message".into(), json!(what));
    put(&mut fields, place);
    fields.into()
}

fn cause(cause: &Cause) -> serde_json::Value {
    let mut fields = Map::new();
    fields.insert("class".into(), json!(cause.class));
    if !cause.code.is_empty() {
        fields.insert("code".into(), json!(cause.code));
    }
    fields.insert("message".into(), json!(cause.message));
    if let Some(data) = &cause.data {
        fields.insert("data".into(), json!(data));
    }
    if let Some(place) = &cause.place {
        put(&mut fields, place);
    }
    fields.into()
}

fn expanded(expanded: &Expanded) -> serde_json::Value {
    let mut fields = Map::new();
    fields.insert("macro".into(), json!(expanded.macro_name));
    if let Some(form) = &expanded.form {
        fields.insert("form".into(), json!(form));
    }
    if let Some(place) = &expanded.place {
        put(&mut fields, place);
    }
    fields.into()
}

fn call(call: &Call) -> serde_json::Value {
    let mut fields = Map::new();
    fields.insert("function".into(), json!(call.function));
    if call.in_library {
        fields.insert("library".into(), json!(true));
    }
    if let Some(place) = &call.place {
        put(&mut fields, place);
    }
    fields.into()
}

fn put(fields: &mut Map<String, serde_json::Value>, place: &Excerpt) {
    fields.insert("file".into(), json!(place.file));
    fields.insert("line".into(), json!(place.line));
    fields.insert("column".into(), json!(place.column));
    fields.insert("end_line".into(), json!(place.end_line));
    fields.insert("end_column".into(), json!(place.end_column));
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
