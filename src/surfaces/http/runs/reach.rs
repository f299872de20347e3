//! Which runs a caller reaches, and what of them: all, or what belongs to one side of an installation.

use axum::http::StatusCode;
use flowstone_engine::EngineError;
use flowstone_engine::ids::RunId;
use flowstone_engine::installation::{InstalledFlow, Side};
use flowstone_engine::outcome::{code_of, without_source};
use flowstone_engine::ports::{RunRow, RunSummary as Summary};
use flowstone_engine::token::Scope;
use serde_json::{Value as Json, json};

use super::super::access::Caller;
use super::super::problem::Problem;
use super::super::server::EngineContext;
use super::super::trace;
use crate::json::{Values, row_json, row_json_as};

/// Returns a run's row without the text of its flow, unless the caller may read that: an installer may if the installation is
/// readable.
pub(in crate::http) async fn visible(
    cx: &EngineContext,
    row: RunRow,
    side: Side,
) -> Result<RunRow, Problem> {
    let (Some(error), false) = (&row.error, side.is_author()) else {
        return Ok(row);
    };
    let Some(installed) = InstalledFlow::read(&row.flow) else {
        return Ok(row);
    };
    let installations = &cx.engine.stores().installations;
    let found = installations.installation(&installed.at).await;
    match found.map_err(EngineError::from)? {
        Some(found) if found.is_readable => Ok(row),
        _ => Ok(RunRow {
            error: Some(without_source(error)),
            ..row
        }),
    }
}

/// Returns a run of somebody who started it, or acts on it.
pub(in crate::http) async fn run_json(
    cx: &EngineContext,
    caller: Option<&Caller>,
    run: &RunId,
) -> Result<Json, Problem> {
    let row = cx.engine.run(run).await?;
    let side = match caller {
        Some(caller) => side(cx, caller, (&row.flow, &row.started_by)),
        None => Side::Installer,
    };
    Ok(row_json(&visible(cx, row, side).await?))
}

/// Returns a run's row as one side may see it. The author of an installed flow sees the outcome of the run, but neither its input
/// nor its result.
pub(super) async fn row_for(
    cx: &EngineContext,
    row: RunRow,
    (side, values): (Side, Values),
) -> Result<Json, Problem> {
    let row = visible(cx, row, side).await?;
    let mut shown = row_json_as(&row, values);
    if side.is_installer() {
        return Ok(shown);
    }
    for name in [
        "input",
        "result",
        "key",
        "externalId",
        "waitReason",
        "cancelReason",
    ] {
        shown[name] = Json::Null;
    }
    let code = row.error.as_deref().and_then(code_of);
    shown["error"] = match &row.error {
        Some(_) => json!({"code": code}),
        None => Json::Null,
    };
    Ok(shown)
}

/// Returns a run of a list with its values, as far as the caller may see them.
pub(super) async fn whole_json(
    cx: &EngineContext,
    caller: &Caller,
    run: &RunId,
) -> Result<Json, Problem> {
    let row = cx.engine.run(run).await?;
    let side = side(cx, caller, (&row.flow, &row.started_by));
    row_for(cx, row, (side, Values::Json)).await
}

/// Returns what a list says to the author of an installed flow about a run.
pub(super) fn for_author(run: Summary) -> Summary {
    Summary {
        external_id: None,
        key: None,
        wait_reason: None,
        ..run
    }
}

/// Returns what a caller may see of the runs of a flow that somebody started.
pub(crate) fn side(cx: &EngineContext, caller: &Caller, (flow, by): (&str, &str)) -> Side {
    let labels = cx.catalog.labels(&cx.engine, flow);
    caller.side_of_run(flow, &labels, by)
}

/// Tells whether a caller reaches everything of runs of a flow that somebody started.
pub(crate) fn is_reached(cx: &EngineContext, caller: &Caller, (flow, by): (&str, &str)) -> bool {
    let labels = cx.catalog.labels(&cx.engine, flow);
    caller.reaches_run(flow, &labels, by)
}

/// Returns a run by its whole id, if the caller may read everything of it: with the scope `read`, or because it is their own.
pub(in crate::http) async fn reached(
    cx: &EngineContext,
    caller: &Caller,
    id: &str,
) -> Result<RunRow, Problem> {
    let found = reached_as(cx, caller, (id, Side::is_whole)).await?;
    Ok(found.0)
}

/// Returns a run by its whole id and the side of the caller, if that is wanted and the caller may read the run.
pub(super) async fn reached_as(
    cx: &EngineContext,
    caller: &Caller,
    (id, is_wanted): (&str, fn(Side) -> bool),
) -> Result<(RunRow, Side), Problem> {
    let missing = || {
        Problem::new(
            StatusCode::NOT_FOUND,
            "E0502",
            format!("there is no run `{id}`"),
        )
        .hint("`GET /api/v1/runs` shows the runs")
    };
    let row = match cx.engine.run(&RunId::from_text(id)).await {
        Ok(row) => row,
        Err(EngineError::NoSuchRun { .. }) => return Err(missing()),
        Err(error) => return Err(error.into()),
    };
    let side = side(cx, caller, (&row.flow, &row.started_by));
    if !is_wanted(side) {
        return Err(missing());
    }
    trace::touches(&row.id);
    match caller.may_read(&row) {
        true => Ok((row, side)),
        false => caller.need(Scope::Read).map(|()| (row, side)),
    }
}
