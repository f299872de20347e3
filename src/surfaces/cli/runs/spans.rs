//! `flowstone runs spans`: the spans of a run, made of its journal, as a tree.

use std::collections::{HashMap, HashSet};

use serde_json::{Value as Json, json};

use super::ask;
use crate::cli::args::RunsSpans;
use crate::cli::exit::Exit;
use crate::cli::progress::seconds;
use crate::cli::report::Report;
use crate::cli::rows::{list, text};
use crate::cli::table::{Column, table};
use crate::cli::{App, output};
use crate::telemetry::{self, SendError};

/// The codes of the pages in `docs/errors`.
const NO_ENDPOINT: &str = "E1110";
const NOT_TAKEN: &str = "E1111";

/// Prints the spans, and sends them if requested.
pub(super) fn run(args: &RunsSpans, app: &dyn App) -> Result<Exit, Report> {
    let spans = ask(app, &args.home, async |engine| {
        let run = engine.find_run(&args.id).await?.id;
        engine.spans_of(&run).await
    })?;
    if args.send {
        telemetry::send_now(&spans).map_err(|error| unsent(&error))?;
    }
    tell(&telemetry::spans_json(&spans), args);
    Ok(Exit::Completed)
}

/// Prints spans, which are as in the JSON of OTLP: as a tree, or as one JSON object.
pub fn tell(spans: &Json, args: &RunsSpans) {
    if args.json {
        output::json(&json!({"ok": true, "spans": spans, "sent": args.send}));
        return;
    }
    let spans: Vec<&Json> = spans.as_array().into_iter().flatten().collect();
    let heading = [
        Column::Whole("name"),
        Column::Whole("took"),
        Column::Extra("after"),
        Column::Extra("span"),
        Column::Extra("error"),
    ];
    output::data(&table(&heading, tree(&spans)));
    if args.send {
        output::note(&format!("sent: {} spans", spans.len()));
    }
}

/// Returns the rows of spans: each below its parent, in the order of their starts.
fn tree(spans: &[&Json]) -> Vec<Vec<String>> {
    let first_ns = spans.iter().map(|span| began_ns(span)).min();
    let mut below: HashMap<&str, Vec<&Json>> = HashMap::new();
    let ids: HashSet<&str> = spans
        .iter()
        .filter_map(|it| it["spanId"].as_str())
        .collect();
    for span in spans {
        // The parent of a run is in another run, or in another program.
        let parent = span["parentSpanId"].as_str().filter(|id| ids.contains(id));
        below
            .entry(parent.unwrap_or_default())
            .or_default()
            .push(span);
    }
    for children in below.values_mut() {
        children.sort_by_key(|span| began_ns(span));
    }
    let mut rows = Vec::new();
    let roots = below.remove("").unwrap_or_default();
    let mut open: Vec<(usize, &Json)> = roots.into_iter().rev().map(|span| (0, span)).collect();
    while let Some((depth, span)) = open.pop() {
        rows.push(row(span, depth, first_ns.unwrap_or_default()));
        let children = below.remove(span["spanId"].as_str().unwrap_or_default());
        let children = children.unwrap_or_default().into_iter().rev();
        open.extend(children.map(|child| (depth + 1, child)));
    }
    rows
}

fn row(span: &Json, depth: usize, first_ns: i64) -> Vec<String> {
    let began_ns = began_ns(span);
    let error = list(span, "attributes").find(|it| it["key"] == "error.type");
    let error = error.map(|it| text(&it["value"], "stringValue"));
    vec![
        format!("{}{}", "  ".repeat(depth), text(span, "name")),
        duration(nanos(span, "endTimeUnixNano") - began_ns),
        duration(began_ns - first_ns),
        text(span, "spanId"),
        error.unwrap_or_default(),
    ]
}

fn began_ns(span: &Json) -> i64 {
    nanos(span, "startTimeUnixNano")
}

/// Returns a number of nanoseconds, which OTLP writes as text.
fn nanos(span: &Json, name: &str) -> i64 {
    let text = span[name].as_str().unwrap_or_default();
    text.parse().unwrap_or_default()
}

/// Writes a duration, also one below a millisecond.
fn duration(nanos: i64) -> String {
    match nanos {
        0 => "0 ms".to_owned(),
        ..1_000_000 => format!("{:.2} ms", nanos as f64 / 1_000_000.0),
        _ => seconds(nanos / 1_000_000),
    }
}

fn unsent(error: &SendError) -> Report {
    match error {
        SendError::NoEndpoint => Report::error(NO_ENDPOINT, "no collector is configured").hint(
            "set OTEL_EXPORTER_OTLP_ENDPOINT to its address, such as http://127.0.0.1:4318",
        ),
        SendError::Unreachable(_) | SendError::Refused { .. } | SendError::Partial { .. } => {
            Report::error(NOT_TAKEN, error.to_string()).hint(
                "check OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL and OTEL_EXPORTER_OTLP_HEADERS",
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_below_their_parents_in_the_order_of_their_starts() {
        let span = |id: &str, parent: &str, began: i64, ended: i64| {
            json!({"spanId": id, "parentSpanId": parent, "name": id,
                "startTimeUnixNano": began.to_string(), "endTimeUnixNano": ended.to_string()})
        };
        let spans = [
            span("attempt", "step", 2_000_000, 5_000_000),
            span("later", "run", 6_000_000, 6_400_000),
            span("step", "run", 1_000_000, 5_000_000),
            span("run", "elsewhere", 1_000_000, 2_001_000_000),
        ];
        let rows = tree(&spans.iter().collect::<Vec<_>>());
        let shown: Vec<String> = rows.iter().map(|row| row[..3].join("|")).collect();
        assert_eq!(
            shown,
            [
                "run|2.0 s|0 ms",
                "  step|4 ms|0 ms",
                "    attempt|3 ms|1 ms",
                "  later|0.40 ms|5 ms",
            ]
        );
    }
}
