//! The data of errors: complete, as JSON for programs, and the path through child runs for people.

use flowstone_engine::json::to_exact_json;
use flowstone_engine::outcome::{Failure, FailurePlace};
use flowstone_flow::step::StepError;
use flowstone_lang::diagnostic::{Diagnostic as Report, Role, Severity};
use flowstone_lang::value::{
    Exception, PrintOptions, Sources, Unforced, Value, is_written_within, print_value,
};
use serde::Serialize;
use serde_json::{Map, json};
use utoipa::ToSchema;

use super::reports::report_json;

/// The code of a step whose child run did not complete.
const CHILD_FAILED: &str = "E0548";
/// How many runs are listed at each end of a chain.
const LISTED: usize = 4;

/// Returns a run's failure as JSON.
pub fn failure_json(failure: &Failure) -> serde_json::Value {
    error_json(&of_failure(failure), &failure.exception)
}

/// Reports why a run failed.
pub fn of_failure(failure: &Failure) -> Report {
    let report = match &failure.session {
        Some(session) => {
            let sources = session.world().sources.borrow();
            Report::of_exception(&sources, &failure.exception)
        }
        None => {
            let report = Report::of_exception(&Sources::default(), &failure.exception);
            match &failure.place {
                Some(place) => on_line(report, place),
                None => report,
            }
        }
    };
    with_chain(report, &failure.exception)
}

/// Returns the file and line of an error.
pub fn on_line(report: Report, place: &FailurePlace) -> Report {
    let FailurePlace {
        file,
        line,
        column,
        width,
        text,
    } = place;
    report.on_line(file, *line, *column, *width, text)
}

/// Returns a report about an exception as JSON, with the data of the exception and its causes.
pub fn error_json(report: &Report, exception: &Exception) -> serde_json::Value {
    let mut json = report_json(report);
    let has_data = exception.data.as_map().is_some_and(|data| !data.is_empty());
    if has_data && json.get("related").is_none() {
        json["data"] = data_json(&exception.data);
    }
    let mut cause = &exception.cause;
    if let Some(causes) = json
        .get_mut("causes")
        .and_then(|causes| causes.as_array_mut())
    {
        for shown in causes {
            let Value::Exception(inner) = cause else {
                break;
            };
            if shown.get("data").is_some() {
                shown["data"] = data_json(&inner.data);
            }
            cause = &inner.cause;
        }
    }
    json
}

/// A part of the text of an error.
#[derive(Debug, Serialize, ToSchema)]
pub struct TextPiece {
    /// What it is: `error`, `warning`, `message`, `gutter`, `text`, `note`, `data` or `hint`.
    role: &'static str,
    text: String,
}

/// Returns an error as people read it, in pieces, each with its role. The line with the error's data is one piece.
pub fn error_text(report: &Report) -> Vec<TextPiece> {
    let data = report.data.as_ref().map(|data| format!("  data: {data}"));
    let mut data = data.as_deref();
    let mut pieces: Vec<TextPiece> = Vec::new();
    for piece in report.pieces() {
        if let Some(last) = pieces
            .last_mut()
            .filter(|it| it.role == DATA && !it.text.ends_with('\n'))
        {
            last.text += &piece.text;
            continue;
        }
        let is_data = data.is_some_and(|data| piece.role == Role::Note && piece.text == data);
        if is_data {
            data = None;
        }
        pieces.push(TextPiece {
            role: if is_data { DATA } else { role_name(piece.role) },
            text: piece.text,
        });
    }
    pieces
}

/// The role of the line with an error's data.
const DATA: &str = "data";
/// The names of roles.
const ROLES: &[(Role, &str)] = &[
    (Role::Severity(Severity::Error), "error"),
    (Role::Severity(Severity::Warning), "warning"),
    (Role::Severity(Severity::Portability), "portability"),
    (Role::Message, "message"),
    (Role::Gutter, "gutter"),
    (Role::Text, "text"),
    (Role::Note, "note"),
    (Role::Note, DATA),
    (Role::Hint, "hint"),
];

fn role_name(role: Role) -> &'static str {
    let named = ROLES.iter().find(|(known, _)| *known == role);
    named.map_or("text", |(_, name)| name)
}

/// Returns the role with a name; that of plain text, if the name is not known.
pub fn role_from_name(name: &str) -> Role {
    let named = ROLES.iter().find(|(_, known)| *known == name);
    named.map_or(Role::Text, |(role, _)| *role)
}

/// Maximum size of printed data. Parts that values share would be written once for each use.
const DATA_MAX: u64 = 50_000_000;

/// Returns data as JSON. Values that JSON cannot represent, such as functions, are printed as text; data larger than 50
/// MB is replaced by its kind.
pub fn data_json(data: &Value) -> serde_json::Value {
    match is_written_within(data, DATA_MAX) {
        true => data_or_text(data),
        false => json!(format!("#<{}, more than 50 MB>", data.kind())),
    }
}

fn data_or_text(data: &Value) -> serde_json::Value {
    if let Ok(json) = to_exact_json(data) {
        return json;
    }
    if let Some(map) = data.as_map() {
        let fields = map
            .iter()
            .map(|(key, value)| (name(key), data_or_text(value)));
        return fields.collect::<Map<_, _>>().into();
    }
    match data.as_vector() {
        Some(items) => items.iter().map(data_or_text).collect(),
        None => json!(printed(data)),
    }
}

fn name(key: &Value) -> String {
    match key {
        Value::Keyword(name) => name.to_string().trim_start_matches(':').to_owned(),
        Value::Text(text) => text.to_string(),
        other => printed(other),
    }
}

/// Prints a value readably.
pub(super) fn printed(value: &Value) -> String {
    let mut out = String::new();
    match print_value(&mut out, &mut Unforced, value, PrintOptions::READABLE) {
        Ok(()) => out,
        Err(_) => format!("#<{}>", value.kind()),
    }
}

/// Adds the runs that an error passed through, one per line, outermost first. Leaves out data that the message and the
/// hints repeat.
pub fn with_chain(mut report: Report, exception: &Exception) -> Report {
    if exception.code == StepError::NOT_ALLOWED {
        report.data = None;
    }
    if exception.code != CHILD_FAILED {
        return report;
    }
    let mut lines = Vec::new();
    let mut data = Some(&exception.data);
    while let Some(at) = data {
        let Some(run) = at.get("run").and_then(Value::as_str) else {
            break;
        };
        let flow = at.get("flow").and_then(Value::as_str).unwrap_or("?");
        let place = at.get("place").and_then(Value::as_str);
        let place = place.map_or_else(String::new, |place| format!(" at {place}"));
        lines.push(format!("in run {run} of `{flow}`{place}"));
        data = at.get("error").and_then(|error| error.get("data"));
    }
    // The message already names the only run.
    if lines.len() > 1 {
        report.data = None;
        let left_out = lines.len().saturating_sub(2 * LISTED);
        if left_out > 1 {
            let more = format!("... {left_out} runs ...");
            lines.splice(LISTED..LISTED + left_out, [more]);
        }
        report.notes.extend(lines);
    }
    report
}

#[cfg(test)]
mod tests {
    use flowstone_engine::codec;

    use super::*;

    #[test]
    fn data_without_a_form_in_json_is_printed() {
        let data = codec::decode("{:status 402 :body {:error \"declined\"}}").expect("EDN");
        assert_eq!(
            data_json(&data),
            json!({"status": 402, "body": {"error": "declined"}})
        );
    }
}
