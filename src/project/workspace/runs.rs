//! Runs of the project: a list of them, and one with its steps.

use flowstone_engine::lookup;
use flowstone_engine::{EngineError, RunReport, StepReport};
use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;
use flowstone_model::codec;
use flowstone_model::ids::RunId;
use flowstone_model::installation::Namespace;
use flowstone_model::ports::{RunQuery, RunStatus, RunSummary};

use super::args::Args;
use super::{facts, instant, maybe_instant, of_engine, text};
use flowstone_steps::json::items;

const LIMIT: (usize, usize) = (1, 100);
const DEFAULT: usize = 20;

pub(super) async fn list(cx: &StepContext, args: &Args) -> Result<Value, StepError> {
    let limit = args.count("limit", LIMIT)?.unwrap_or(DEFAULT);
    let query = RunQuery {
        statuses: statuses(args)?,
        flow: args.name("flow-slug")?.map(|slug| slug.to_string()),
        after: args.name("cursor")?.map(|id| RunId::from_text(&*id)),
        limit: limit + 1,
        ..RunQuery::default()
    };
    let mut found = cx.stores()?.runs.summaries(query).await?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next = found
        .last()
        .filter(|_| has_more)
        .map(|last| last.id.as_str());
    // What installations do is not the project's.
    let own = found.iter().filter(|run| is_of_project(&run.flow));
    Ok(facts([
        ("runs", Value::vector(own.map(summary))),
        ("next-cursor", text(next)),
    ]))
}

fn is_of_project(flow: &str) -> bool {
    Namespace::of_flow(flow) == Namespace::Project
}

fn statuses(args: &Args) -> Result<Vec<RunStatus>, StepError> {
    let given = match args.get("status") {
        None => return Ok(Vec::new()),
        Some(given) => items(given).unwrap_or_else(|| vec![given.clone()]),
    };
    let known = |value: &Value| {
        let name = flowstone_flow::flow::name_of(value).unwrap_or_default();
        let name = name.trim_start_matches(':').to_owned();
        let found = RunStatus::NAMES.iter().find(|(_, known)| *known == name);
        found.map(|(status, _)| *status).ok_or_else(|| {
            let names: Vec<&str> = RunStatus::NAMES.iter().map(|(_, name)| *name).collect();
            args.wrong(format!("there is no status `{name}`"))
                .hint(format!("there are {}", names.join(", ")))
        })
    };
    given.iter().map(known).collect()
}

fn summary(run: &RunSummary) -> Value {
    facts([
        ("id", Value::from(run.id.as_str())),
        ("flow-slug", Value::from(run.flow.as_str())),
        ("status", Value::keyword(run.status.name())),
        ("wait-reason", text(run.wait_reason.as_deref())),
        ("started-by", Value::from(run.started_by.as_str())),
        (
            "parent",
            text(run.parent.as_ref().map(|parent| parent.run.as_str())),
        ),
        ("created-at", instant(run.created_ms)),
        ("updated-at", instant(run.updated_ms)),
        ("ended-at", maybe_instant(run.ended_ms)),
    ])
}

pub(super) async fn show(cx: &StepContext, args: &Args) -> Result<Value, StepError> {
    let id = args.needed("run-id")?;
    let stores = cx.stores()?;
    let row = lookup::find(stores, &id).await.map_err(of_engine)?;
    if !is_of_project(&row.flow) {
        let run = id.to_string();
        return Err(of_engine(EngineError::NoSuchRun { run }));
    }
    let report = lookup::report(stores, row).await.map_err(of_engine)?;
    Ok(shown(&report))
}

fn shown(report: &RunReport) -> Value {
    let row = &report.row;
    let stored = |given: Option<&str>| given.map_or(Value::Nil, decoded);
    let error = report.failure.as_ref().map_or(Value::Nil, |failure| {
        facts([
            ("code", Value::from(failure.exception.code)),
            ("message", Value::from(failure.exception.text())),
        ])
    });
    facts([
        ("id", Value::from(row.id.as_str())),
        ("flow-slug", Value::from(row.flow.as_str())),
        ("status", Value::keyword(row.status.name())),
        ("wait-reason", text(row.wait_reason.as_deref())),
        ("version", Value::from(row.program.as_str())),
        ("input", decoded(&row.input)),
        ("result", stored(row.result.as_deref())),
        ("error", error),
        ("created-at", instant(row.created_ms)),
        ("ended-at", maybe_instant(row.ended_ms)),
        (
            "cost-micros",
            match report.cost_micros {
                0 => Value::Nil,
                micros => Value::Int(micros),
            },
        ),
        ("steps", Value::vector(report.steps.iter().map(step))),
        (
            "waits",
            match report.waits.is_empty() {
                true => Value::Nil,
                false => Value::vector(report.waits.iter().map(|wait| {
                    facts([
                        ("key", Value::from(wait.key.as_str())),
                        ("path", Value::from(wait.path.as_str())),
                    ])
                })),
            },
        ),
        (
            "children",
            match report.children.is_empty() {
                true => Value::Nil,
                false => Value::vector(report.children.iter().map(|child| {
                    facts([
                        ("id", Value::from(child.id.as_str())),
                        ("flow-slug", Value::from(child.flow.as_str())),
                        ("status", Value::keyword(child.status.name())),
                    ])
                })),
            },
        ),
    ])
}

fn step(step: &StepReport) -> Value {
    facts([
        ("path", Value::from(step.path.as_str())),
        ("type", Value::keyword(&step.kind)),
        ("packaged", text(step.packaged.as_deref())),
        (
            "status",
            Value::keyword(&step.status.name().replace(' ', "-")),
        ),
        ("attempts", Value::Int(i64::from(step.attempts))),
        ("started-at", instant(step.started_ms)),
        (
            "millis",
            step.ended_ms.map_or(Value::Nil, |ended| {
                Value::Int((ended - step.started_ms).max(0))
            }),
        ),
        ("request", text(step.request.as_deref())),
        (
            "result",
            match &step.error {
                Some(_) => Value::Nil,
                None => step.result.as_deref().map_or(Value::Nil, decoded),
            },
        ),
        ("error", text(step.error.as_deref())),
    ])
}

/// A stored value, or its text where it cannot be read as data.
fn decoded(given: &str) -> Value {
    match codec::decode(given) {
        Ok(value) if flowstone_steps::json::to_json(&value).is_ok() => value,
        _ => Value::from(given),
    }
}
