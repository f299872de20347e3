//! Reports: errors and findings with their places.

use flowstone_engine::diagnostic::{Diagnostic as Finding, Severity as FindingSeverity};
use flowstone_lang::diagnostic::{Call, Cause, Diagnostic, Excerpt, Expanded, Severity};
use flowstone_lang::session::Session;
use serde_json::{Map, json};

/// Returns a report as JSON. The names of the fields are stable.
pub fn report_json(report: &Diagnostic) -> serde_json::Value {
    let mut fields = Map::new();
    fields.insert("severity".into(), json!(report.severity.name()));
    if !report.code.is_empty() {
        fields.insert("code".into(), json!(report.code));
    }
    if let Some(phase) = report.phase {
        fields.insert("phase".into(), json!(phase.name()));
    }
    fields.insert("message".into(), json!(report.message));
    if let Some(place) = &report.place {
        put(&mut fields, place);
    }
    if !report.label.is_empty() {
        fields.insert("label".into(), json!(report.label));
    }
    if !report.class.is_empty() {
        fields.insert("class".into(), json!(report.class));
    }
    if let Some(culprit) = &report.culprit {
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
    if let Some(data) = &report.data {
        fields.insert("data".into(), json!(data));
    }
    let lists = [("hints", &report.hints), ("notes", &report.notes)];
    for (name, list) in lists {
        if !list.is_empty() {
            fields.insert(name.into(), json!(list));
        }
    }
    let objects = [
        ("related", report.related.iter().map(related).collect()),
        ("causes", report.causes.iter().map(cause).collect()),
        ("expansion", report.expansion.iter().map(expanded).collect()),
        ("trace", report.trace.iter().map(call).collect()),
    ];
    for (name, objects) in objects {
        let objects: Vec<serde_json::Value> = objects;
        if !objects.is_empty() {
            fields.insert(name.into(), json!(objects));
        }
    }
    fields.into()
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

/// Turns findings about a flow into reports with their places.
pub fn of_findings(session: &Session, findings: &[Finding]) -> Vec<Diagnostic> {
    let sources = session.world().sources.borrow();
    findings
        .iter()
        .map(|finding| {
            let mut report =
                Diagnostic::error(finding.code, &*finding.message).at(&sources, finding.span);
            if finding.severity == FindingSeverity::Warning {
                report.severity = Severity::Warning;
            }
            report.label = finding.label.clone().unwrap_or_default();
            report.hints.clone_from(&finding.hints);
            report
        })
        .collect()
}
