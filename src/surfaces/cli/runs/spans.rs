//! `flowstone runs spans`: prints the spans of a run, which are derived from its journal.

use flowstone_engine::ports::{FinishedSpan, SpanValue};
use serde_json::json;

use super::ask;
use crate::cli::args::RunsSpans;
use crate::cli::exit::Exit;
use crate::cli::report::Report;
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
    if args.json {
        let spans = telemetry::spans_json(&spans);
        output::json(&json!({"ok": true, "spans": spans, "sent": args.send}));
        return Ok(Exit::Completed);
    }
    let heading = [
        Column::Whole("span"),
        Column::Whole("parent"),
        Column::Whole("name"),
        Column::Extra("ms"),
        Column::Extra("error"),
    ];
    output::data(&table(&heading, spans.iter().map(row)));
    if args.send {
        output::note(&format!("sent: {} spans", spans.len()));
    }
    Ok(Exit::Completed)
}

fn row(span: &FinishedSpan) -> Vec<String> {
    let error = span.attributes.iter().find(|(key, _)| *key == "error.type");
    let error = error.map(|(_, value)| match value {
        SpanValue::Text(text) => text.clone(),
        SpanValue::Int(_) | SpanValue::Texts(_) => String::new(),
    });
    vec![
        span.id.to_string(),
        span.parent
            .map(|parent| parent.to_string())
            .unwrap_or_default(),
        span.name.clone(),
        ((span.ended_ns - span.began_ns) / 1_000_000).to_string(),
        error.unwrap_or_default(),
    ]
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
