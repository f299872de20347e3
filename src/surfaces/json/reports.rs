//! Reports: errors and findings with their places.

use flowstone_engine::diagnostic::{Diagnostic as Found, Severity as FoundSeverity};
use flowstone_lang::diagnostic::{Call, Cause, Change, Diagnostic, Excerpt, Expanded, Severity};
use flowstone_lang::session::Session;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use utoipa::ToSchema;

use super::values::object;

/// An error or a finding, with its place.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct Finding {
    /// `error`, `warning`, or `portability` if that was asked for.
    severity: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<&'static str>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_line: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_column: Option<Json>,
    /// What is wrong at the place.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    /// The argument of a function that was of a wrong kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    culprit: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hints: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    notes: Option<Json>,
    /// Changes of the file that would mend it: `title`, `certain`, and `edits` with `file`, `line`, `column`, `end_line`,
    /// `end_column`, `old` and `new`.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Vec<Json>>,
    /// Other places.
    #[serde(skip_serializing_if = "Option::is_none")]
    related: Option<Vec<Json>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    causes: Option<Vec<Json>>,
    /// The macros that the place comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    expansion: Option<Vec<Json>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<Vec<Json>>,
}

/// Returns a report as JSON. The names of the fields are stable.
pub fn report_json(report: &Diagnostic) -> Json {
    object(&finding_of(report))
}

/// Returns a report as part of an answer.
pub fn finding_of(report: &Diagnostic) -> Finding {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let list = |list: &Vec<String>| (!list.is_empty()).then(|| json!(list));
    let place = report.place.as_ref();
    Finding {
        severity: report.severity.name(),
        code: some(&report.code),
        phase: report.phase.map(|phase| phase.name()),
        message: report.message.clone(),
        file: place.map(|place| place.file.to_string()),
        line: place.map(|place| json!(place.line)),
        column: place.map(|place| json!(place.column)),
        end_line: place.map(|place| json!(place.end_line)),
        end_column: place.map(|place| json!(place.end_column)),
        label: some(&report.label),
        class: some(&report.class),
        culprit: report.culprit.as_ref().map(|culprit| {
            json!({
                "argument": culprit.argument,
                "function": culprit.function,
                "value": culprit.value,
                "kind": culprit.kind,
            })
        }),
        data: report.data.as_ref().map(|data| json!(data)),
        hints: list(&report.hints),
        notes: list(&report.notes),
        changes: objects(report.changes.iter().map(change_json)),
        related: objects(report.related.iter().map(related)),
        causes: objects(report.causes.iter().map(cause)),
        expansion: objects(report.expansion.iter().map(expanded)),
        trace: objects(report.trace.iter().map(call)),
    }
}

/// Returns a list unless it is empty.
fn objects(objects: impl Iterator<Item = Json>) -> Option<Vec<Json>> {
    let objects: Vec<Json> = objects.collect();
    (!objects.is_empty()).then_some(objects)
}

/// Returns a change as JSON. The names of the fields are stable.
pub fn change_json(change: &Change<Excerpt>) -> Json {
    let edits = change.edits.iter().map(|edit| {
        let mut fields = Map::new();
        put(&mut fields, &edit.place);
        fields.insert("old".into(), json!(edit.old));
        fields.insert("new".into(), json!(edit.new));
        Json::from(fields)
    });
    json!({
        "title": change.title,
        "certain": change.is_certain,
        "edits": edits.collect::<Vec<_>>(),
    })
}

fn related((place, what): &(Excerpt, String)) -> Json {
    let mut fields = Map::new();
    fields.insert("message".into(), json!(what));
    put(&mut fields, place);
    fields.into()
}

fn cause(cause: &Cause) -> Json {
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

fn expanded(expanded: &Expanded) -> Json {
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

fn call(call: &Call) -> Json {
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

fn put(fields: &mut Map<String, Json>, place: &Excerpt) {
    fields.insert("file".into(), json!(place.file));
    fields.insert("line".into(), json!(place.line));
    fields.insert("column".into(), json!(place.column));
    fields.insert("end_line".into(), json!(place.end_line));
    fields.insert("end_column".into(), json!(place.end_column));
}

/// Turns findings about a flow into reports with their places.
pub fn of_findings(session: &Session, findings: &[Found]) -> Vec<Diagnostic> {
    let sources = session.world().sources.borrow();
    findings
        .iter()
        .map(|finding| {
            let mut report =
                Diagnostic::error(finding.code, &*finding.message).at(&sources, finding.span);
            report.severity = match finding.severity {
                FoundSeverity::Error => Severity::Error,
                FoundSeverity::Warning => Severity::Warning,
                FoundSeverity::Portability => Severity::Portability,
            };
            report.label = finding.label.clone().unwrap_or_default();
            report.hints.clone_from(&finding.hints);
            let changes = finding.changes.iter();
            report.changes = changes
                .filter_map(|it| it.place(&sources, finding.span))
                .collect();
            report
        })
        .collect()
}
