//! `flowstone runs show --step`: prints one step with its whole request and result.

use flowstone_engine::{StepDetails, StepStatus, codec};

use super::wait_words;
use crate::cli::output;
use crate::cli::pretty::pretty;
use crate::cli::progress::seconds;
use crate::cli::report::{Report, Shown};
use crate::json::{ok, step_details_json};

/// Shows the step.
pub(super) fn tell(details: &StepDetails, as_json: bool) {
    if as_json {
        output::json(&ok(step_details_json(details)));
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
