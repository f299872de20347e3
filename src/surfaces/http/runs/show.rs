//! A run with its steps, its journal, and how it differs from another run.

use axum::extract::{Path, RawQuery, State};
use flowstone_engine::RunReport;
use flowstone_engine::installation::Side;
use flowstone_engine::ports::RunRow;
use flowstone_engine::token::Scope;
use serde_json::{Value as Json, json};

use super::super::access::Caller;
use super::super::answer::Answer;
use super::super::operation::{
    LIMIT, Operation, Operations, Param, Shape, VALUES, names, of, type_of,
};
use super::super::problem::Problem;
use super::super::request::Query;
use super::super::server::{EngineContext, Shared};
use super::reach::{reached, reached_as, row_for};
use crate::json::{
    Difference, JournalEntry, Run, RunParts, Step, StepParts, Values, diff_json, event_json,
    row_json_as, run_report_json, step_details_json,
};

pub(super) fn operations() -> Operations {
    let shown = Shape::OneOf(vec![
        of::<Run>(),
        Shape::All("RunReport", vec![type_of::<Run>(), type_of::<RunParts>()]),
        Shape::All(
            "StepDetails",
            vec![type_of::<Step>(), type_of::<StepParts>()],
        ),
    ]);
    let entries = Shape::Members(vec![
        ("entries", Shape::ListOf(Box::new(of::<JournalEntry>()))),
        ("next", Shape::Maybe(Box::new(Shape::Number))),
    ]);
    Operations::default()
        .with(
            Operation::get(
                "/api/v1/runs/{id}",
                "getRun",
                "Returns a run, with its steps if asked, or one of its steps.",
            )
            .query(SHOW)
            .ok(shown)
            .refuses(&[410]),
            show,
        )
        .with(
            Operation::get(
                "/api/v1/runs/{id}/diff/{other}",
                "compareRuns",
                "Returns how two runs differ.",
            )
            .scope(Scope::Read)
            .query(DIFF)
            .ok(of::<Difference>())
            .refuses(&[410]),
            diff,
        )
        .with(
            Operation::get(
                "/api/v1/runs/{id}/journal",
                "getJournal",
                "Returns journal entries after a position.",
            )
            .query(JOURNAL)
            .ok(entries)
            .refuses(&[410]),
            journal,
        )
}

const SHOW: &[Param] = &[
    Param::flag(
        "full",
        "Adds the steps, waits, log and children of the run.",
    ),
    Param::text(
        "step",
        "The path of a step, which is returned instead of the run.",
    ),
    VALUES,
];
const DIFF: &[Param] = &[Param::flag("all", "Also steps that are the same."), VALUES];
const JOURNAL: &[Param] = &[
    Param::number("after", "The position after which the page begins."),
    LIMIT,
    VALUES,
];

/// `GET /api/v1/runs/{id}`: its row; with `full` its steps, too; with `step` one of its steps.
pub(super) async fn show(
    State(server): State<Shared>,
    caller: Caller,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    let query = Query::read(query.as_deref(), &names(SHOW))?;
    let (full, step) = (query.flag("full")?, query.owned("step"));
    let values = query.values()?;
    if full && step.is_some() {
        return Err(Problem::malformed("`full` and `step` exclude each other"));
    }
    let shown = server
        .ask(async move |cx: &EngineContext| {
            let (row, side) = reached_as(cx, &caller, (&id, Side::is_any)).await?;
            if !side.is_whole() {
                return of_side(cx, (row, side), (step.as_deref(), values)).await;
            }
            if let Some(path) = step {
                let details = cx.engine.show_step(&row.id, &path).await?;
                return Ok::<_, Problem>(step_details_json(&details, values));
            }
            match full {
                true => {
                    let report = cx.engine.show_run(&row.id).await?;
                    Ok(report_json(cx, &caller, (&report, values)))
                }
                false => Ok(row_json_as(&row, values)),
            }
        })
        .await?;
    Ok(Answer::ok(shown))
}

/// Returns what one side may see of a run of an installation. The author sees what the run did, and not what it was given and
/// gave; the installer sees that, and none of its steps.
async fn of_side(
    cx: &EngineContext,
    (row, side): (RunRow, Side),
    (step, values): (Option<&str>, Values),
) -> Result<Json, Problem> {
    match step {
        None => row_for(cx, row, (side, values)).await,
        Some(path) if side.is_author() => {
            let details = cx.engine.show_step(&row.id, path).await?;
            Ok(step_details_json(&details, values))
        }
        Some(path) => Err(Problem::not_found(format!("the run has no step `{path}`"))),
    }
}

/// Returns a run with its steps. Of children that the caller does not reach, it contains only id and status.
fn report_json(
    cx: &EngineContext,
    caller: &Caller,
    (report, values): (&RunReport, Values),
) -> Json {
    let mut shown = run_report_json(report, values);
    let children = shown["children"].as_array_mut();
    for (child, shown) in report.children.iter().zip(children.into_iter().flatten()) {
        let labels = cx.catalog.labels(&cx.engine, &child.flow);
        if !caller.reaches_run(&child.flow, &labels, &child.started_by) {
            *shown = json!({"id": child.id.as_str(), "status": child.status.name()});
        }
    }
    shown
}

/// `GET /api/v1/runs/{id}/journal`: entries after a position, as `runs events --json` prints them.
pub(super) async fn journal(
    State(server): State<Shared>,
    caller: Caller,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    let query = Query::read(query.as_deref(), &names(JOURNAL))?;
    let (after, limit) = (query.number("after")?.unwrap_or(0), query.limit()?);
    let values = query.values()?;
    let page = server
        .ask(async move |cx: &EngineContext| {
            let (row, _) = reached_as(cx, &caller, (&id, Side::is_author)).await?;
            let page = cx.engine.journal_page(&row.id, after, limit).await?;
            let entries = page.events.iter().map(|it| event_json(it, values));
            let entries: Vec<Json> = entries.collect();
            let last = page.events.last().filter(|_| page.is_full);
            Ok::<_, Problem>(json!({"entries": entries, "next": last.map(|event| event.seq)}))
        })
        .await?;
    Ok(Answer::ok(page))
}

/// `GET /api/v1/runs/{id}/diff/{other}`.
pub(super) async fn diff(
    State(server): State<Shared>,
    caller: Caller,
    Path((id, other)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    let query = Query::read(query.as_deref(), &names(DIFF))?;
    let (all, values) = (query.flag("all")?, query.values()?);
    let shown = server
        .ask(async move |cx: &EngineContext| {
            let a = reached(cx, &caller, &id).await?;
            let b = reached(cx, &caller, &other).await?;
            let diff = cx.engine.compare_runs(&a.id, &b.id).await?;
            Ok::<_, Problem>(diff_json(&diff, all, values))
        })
        .await?;
    Ok(Answer::ok(shown))
}
