//! `flowstone runs show --step`: prints one step with its whole request and result.

use flowstone_engine::StepStatus;
use serde_json::Value as Json;

use super::{laid_out, wait_text};
use crate::cli::output;
use crate::cli::progress::seconds;
use crate::cli::report::draw_pieces;
use crate::cli::rows::{list, maybe, text};

/// Prints the step.
pub(super) fn tell(step: &Json) {
    output::data(&page(step));
}

/// Returns the page of a step, with why it failed.
pub(in crate::cli) fn page(step: &Json) -> String {
    let mut page = describe(step);
    if !step["errorText"].is_null() {
        page.push_str(&format!("\n{}", draw_pieces(&step["errorText"], None)));
    }
    page
}

fn describe(step: &Json) -> String {
    let status = text(step, "status");
    let mut out = format!(
        "step     {}\ntype     :{}\n",
        text(step, "path"),
        text(step, "type")
    );
    if let Some(title) = maybe(step, "title") {
        out.push_str(&format!("title    {title}\n"));
    }
    let took = step["millis"].as_i64();
    let took = took.map_or_else(String::new, |millis| format!(" after {}", seconds(millis)));
    out.push_str(&format!("status   {status}{took}\n"));
    let place = &step["place"];
    if let Some(file) = maybe(place, "file") {
        let (line, column) = (&place["line"], &place["column"]);
        out.push_str(&format!("asked at {file}:{line}:{column}\n"));
    }
    let tries: Vec<&Json> = list(step, "tries").collect();
    for attempt in tries.iter().filter(|_| tries.len() > 1) {
        let end = maybe(attempt, "error").unwrap_or_else(|| "done".to_owned());
        out.push_str(&format!("attempt  {}: {end}\n", attempt["number"]));
    }
    for wait in list(step, "waits") {
        out.push_str(&format!("wait     {}\n", wait_text(wait)));
    }
    if let Some(request) = maybe(step, "request") {
        let cut = match step["requestIsWhole"] == true {
            true => "",
            false => " (shortened in the journal)",
        };
        out.push_str(&format!("\nrequest{cut}\n{}\n", laid_out(&request)));
    }
    if let Some(result) = maybe(step, "result") {
        let failures = [StepStatus::Failed.name(), StepStatus::Skipped.name()];
        let name = match failures.contains(&&*status) {
            true => "error",
            false => "result",
        };
        out.push_str(&format!("\n{name}\n{}\n", laid_out(&result)));
    }
    if let Some(data) = maybe(step, "errorData") {
        out.push_str(&format!("\ndata\n{}\n", laid_out(&data)));
    }
    out
}
