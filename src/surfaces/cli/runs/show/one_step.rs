//! `flowstone runs show --step`: prints one step with its whole request and result.

use flowstone_engine::{StepDetails, StepStatus, codec};
use serde_json::json;

use super::{step_json, wait_words};
use crate::cli::output;
use crate::cli::pretty::pretty;
use crate::cli::progress::seconds;
use crate::cli::report::{Report, Shown};
use crate::json::{stored_json, wait_json};

/// Shows the step.
pub(super) fn tell(details: &StepDetails, as_json: bool) {
    if as_json {
        output::json(&in_json(details));
        return;
    }
    output::data(&in_words(details));
    if details.step.status == StepStatus::Failed
        && let Some(report) = failure(details)
    {
        output::data(&format!("\n{}", report.draw()));
    }
}

fn in_words(details: &StepDetails) -> String {
    let step = &details.step;
    let mut out = format!("step     {}\ntype     :{}\n", step.path, step.kind);
    if let Some(title) = &step.title {
        out.push_str(&format!("title    {title}\n"));
    }
    let took = step.ended_ms.map(|ended| (ended - step.started_ms).max(0));
    let took = took.map_or_else(String::new, |millis| format!(" after {}", seconds(millis)));
    out.push_str(&format!("status   {}{took}\n", step.status.name()));
    if let Some(place) = &details.place {
        out.push_str(&format!(
            "asked at {}:{}:{}\n",
            place.file, place.line, place.column
        ));
    }
    for attempt in step.tries.iter().filter(|_| step.tries.len() > 1) {
        let end = attempt.error.as_deref().unwrap_or("done");
        out.push_str(&format!("attempt  {}: {end}\n", attempt.number));
    }
    for wait in &details.waits {
        out.push_str(&format!("wait     {}\n", wait_words(wait)));
    }
    if let Some(request) = &details.request {
        let cut = match details.is_whole {
            true => "",
            false => " (shortened in the journal)",
        };
        out.push_str(&format!("\nrequest{cut}\n{}\n", shown(request)));
    }
    if let Some(result) = &step.result {
        let name = match step.status {
            StepStatus::Failed | StepStatus::Skipped => "error",
            _ => "result",
        };
        out.push_str(&format!("\n{name}\n{}\n", shown(result)));
    }
    if let Some(data) = &step.error_data {
        out.push_str(&format!("\ndata\n{}\n", shown(data)));
    }
    out
}

fn shown(text: &str) -> String {
    codec::decode(text).map_or_else(|_| text.to_owned(), |value| pretty(&value))
}

/// Returns the error with the place of the step in the flow.
fn failure(details: &StepDetails) -> Option<Report> {
    let place = details.place.as_ref()?;
    let error = details.step.error.as_deref()?;
    let report = Report::error("", error.to_owned());
    Some(report.on_line(
        &place.file,
        place.line,
        place.column,
        place.width,
        &place.text,
    ))
}

/// Returns the step as JSON. The names of the fields are stable.
fn in_json(details: &StepDetails) -> serde_json::Value {
    let mut step = step_json(&details.step);
    if let Some(fields) = step.as_object_mut() {
        let request = details.request.as_deref();
        let request = match details.is_whole {
            true => request.map(stored_json),
            false => request.map(|text| json!(text)),
        };
        fields.insert("ok".into(), json!(true));
        fields.insert("request".into(), json!(request));
        fields.insert("requestIsWhole".into(), json!(details.is_whole));
        let place = details
            .place
            .as_ref()
            .map(|place| json!({"file": place.file, "line": place.line, "column": place.column}));
        fields.insert("place".into(), json!(place));
        let waits: Vec<_> = details.waits.iter().map(wait_json).collect();
        fields.insert("waits".into(), json!(waits));
    }
    step
}
