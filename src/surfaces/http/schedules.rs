//! `/api/v1/schedules`: schedules of flows, and starting one by hand.

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use flowstone_engine::installation::InstalledFlow;
use flowstone_engine::token::Scope;
use serde_json::{Value as Json, json};

use super::access::Caller;
use super::answer::Answer;
use super::flows::no_flow;
use super::operation::{self as shape, Operation, Operations, Shape};
use super::problem::Problem;
use super::request::{Members, Query};
use super::server::{EngineContext, Shared};
use super::trace;
use crate::json::{Run, RunState, Schedule, row_json, run_state_json, schedule_json};

pub(super) fn operations() -> Operations {
    Operations::default()
        .with(
            Operation::get(
                "/api/v1/schedules",
                "listSchedules",
                "Lists the schedules of all flows.",
            )
            .scope(Scope::Read)
            .ok(shape::list::<Schedule>("schedules")),
            list,
        )
        .with(
            Operation::post(
                "/api/v1/schedules/{flow}/{id}/run",
                "runSchedule",
                "Starts the run of a schedule now.",
            )
            .scope(Scope::Run)
            .json(
                StatusCode::CREATED,
                "The run.",
                Shape::OneOf(vec![shape::of::<Run>(), shape::of::<RunState>()]),
            )
            .refuses(&[409, 422]),
            run,
        )
}

async fn list(
    State(server): State<Shared>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    Query::read(query.as_deref(), &[])?;
    let schedules = server
        .ask(async move |cx: &EngineContext| {
            let mut schedules = cx.engine.schedules().await?;
            schedules.retain(|schedule| reaches(cx, &caller, &schedule.row.flow));
            let shown: Vec<Json> = schedules.iter().map(schedule_json).collect();
            Ok::<_, Problem>(shown)
        })
        .await?;
    Ok(Answer::ok(json!({"schedules": schedules})))
}

fn reaches(cx: &EngineContext, caller: &Caller, flow: &str) -> bool {
    let labels = cx.catalog.labels(&cx.engine, flow);
    let side = caller.token.reaches_side(flow, &labels);
    // A schedule of an installation is its installer's.
    match InstalledFlow::read(flow) {
        Some(_) => side.is_installer(),
        None => side.is_whole(),
    }
}

async fn run(
    State(server): State<Shared>,
    caller: Caller,
    Path((flow, id)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Run)?;
    Members::read(&headers, body, &[]).await?;
    let shown = server
        .ask(async move |cx: &EngineContext| {
            // The run belongs to the schedule, so who reaches runs of their own only would not see it.
            if caller.has_own_runs_only() || !reaches(cx, &caller, &flow) {
                return Err(no_flow(&flow));
            }
            let run = cx.engine.start_schedule(&flow, &id, true).await?;
            trace::touches(&run);
            let row = cx.engine.run(&run).await?;
            Ok::<_, Problem>(match caller.may_read(&row) {
                true => row_json(&row),
                false => run_state_json(&row),
            })
        })
        .await?;
    let run = shown["id"].as_str().unwrap_or_default();
    let location = format!("/api/v1/runs/{run}");
    Ok(Answer::with(StatusCode::CREATED, shown).header(header::LOCATION, &location))
}
