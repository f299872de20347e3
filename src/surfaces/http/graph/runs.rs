//! `/v1/{app_id}/agents/{name}/runs`, and the audit of a run.

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use flowstone_engine::ports::RunRow;
use flowstone_engine::token::Scope;
use flowstone_fronts::graph::access::Who;
use flowstone_fronts::graph::agents::Agent;
use flowstone_fronts::graph::answers::{self, Rights};
use flowstone_fronts::graph::error::GraphError;
use flowstone_fronts::graph::runs::{self, Start, StartedRun};
use serde_json::{Value as Json, json};

use super::read_object;
use super::visitor::Visitor;
use crate::http::answer::Answer;
use crate::http::problem::Problem;
use crate::http::request::Query;
use crate::http::server::{EngineContext, Shared};
use crate::http::trace;

/// The default and the maximum number of runs in a list.
const LISTED: (i64, i64) = (100, 500);

pub(super) fn list_routes() -> Router<Shared> {
    Router::new().route("/v1/{app_id}/agents/{name}/runs", get(list))
}

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/v1/{app_id}/agents/{name}/runs", post(start))
        .route("/v1/{app_id}/agents/{name}/runs/{id}", get(show))
        .route("/v1/{app_id}/agents/{name}/runs/{id}/cancel", post(cancel))
        .route("/v1/{app_id}/agents/{name}/runs/{id}/resume", post(resume))
        .route("/v1/{app_id}/runs/{id}/tool-calls", get(tool_calls))
}

async fn list(
    State(server): State<Shared>,
    visitor: Visitor,
    Path((_, name)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    visitor.owner(Scope::Read)?;
    let query = Query::read(query.as_deref(), &["limit"])?;
    let (usual, most) = LISTED;
    let limit = query.number("limit")?.unwrap_or(usual).clamp(1, most);
    let limit = usize::try_from(limit).unwrap_or(1);
    let runs = server
        .ask(async move |cx: &EngineContext| {
            visitor.agent(cx, &name).await?;
            runs::list(&cx.engine, &name, limit).await
        })
        .await?;
    Ok(Answer::ok(json!({"runs": runs})))
}

async fn start(
    State(server): State<Shared>,
    visitor: Visitor,
    Path((_, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    visitor.owner(Scope::Run)?;
    let body = read_object(&headers, body).await?;
    let started = server
        .ask(async move |cx: &EngineContext| {
            let agent = visitor.agent(cx, &name).await?;
            begin(cx, &agent, &visitor.who, &body).await
        })
        .await?;
    Ok(answer(&started, json!({})))
}

/// Starts a run of an agent from a request body.
pub(super) async fn begin(
    cx: &EngineContext,
    agent: &Agent,
    who: &Who,
    body: &Json,
) -> Result<StartedRun, GraphError> {
    let started = runs::start(&cx.engine, agent, who, &Start::read(body)?).await?;
    trace::touches(&started.run);
    Ok(started)
}

/// Returns the response to a start, with further members.
pub(super) fn answer(started: &StartedRun, more: Json) -> Answer {
    let mut body = json!({"run_id": started.run.as_str(), "status": started.status});
    if let (Json::Object(body), Json::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    match started.is_replay {
        true => Answer::ok(body),
        false => Answer::with(StatusCode::CREATED, body),
    }
}

/// Returns a run of an agent that the caller's token gives access to.
pub(super) async fn reached(
    cx: &EngineContext,
    visitor: &Visitor,
    (name, id): (&str, &str),
) -> Result<RunRow, GraphError> {
    if !visitor.reaches(name) {
        return Err(runs::no_run(id));
    }
    let row = runs::find(&cx.engine, name, id).await?;
    trace::touches(&row.id);
    Ok(row)
}

/// Returns a run that the caller may read: with the scope `read`, or because the caller's token started it.
pub(super) async fn readable(
    cx: &EngineContext,
    visitor: &Visitor,
    at: (&str, &str),
) -> Result<RunRow, Problem> {
    let found = reached(cx, visitor, at).await;
    match found {
        Ok(row) if visitor.caller.may_read(&row) => Ok(row),
        found => {
            visitor.caller.need(Scope::Read)?;
            Ok(found?)
        }
    }
}

async fn show(
    State(server): State<Shared>,
    visitor: Visitor,
    Path((_, name, id)): Path<(String, String, String)>,
) -> Result<Answer, Problem> {
    visitor.owner_or_program()?;
    let run = server
        .ask(async move |cx: &EngineContext| {
            let row = readable(cx, &visitor, (&name, &id)).await?;
            Ok::<_, Problem>(runs::show(&cx.engine, &row).await?)
        })
        .await?;
    Ok(Answer::ok(json!({"run": run})))
}

async fn cancel(
    State(server): State<Shared>,
    visitor: Visitor,
    Path((_, name, id)): Path<(String, String, String)>,
) -> Result<Answer, Problem> {
    visitor.owner(Scope::Run)?;
    let answered = server
        .ask(async move |cx: &EngineContext| {
            let row = reached(cx, &visitor, (&name, &id)).await?;
            let status = runs::cancel(&cx.engine, &row, &visitor.who.id).await?;
            Ok::<_, GraphError>(json!({"run_id": row.id.as_str(), "status": status}))
        })
        .await?;
    Ok(Answer::with(StatusCode::ACCEPTED, answered))
}

async fn resume(
    State(server): State<Shared>,
    visitor: Visitor,
    Path((_, name, id)): Path<(String, String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    visitor.owner(Scope::Approve)?;
    let body = read_object(&headers, body).await?;
    let answered = server
        .ask(async move |cx: &EngineContext| {
            let said = answers::Answer::read(&body)?;
            let row = reached(cx, &visitor, (&name, &id)).await?;
            let caller = (visitor.caller.decides(), Rights::Decide);
            let status = answers::resume(&cx.engine, &row, &said, caller).await?;
            Ok::<_, GraphError>(json!({"run_id": row.id.as_str(), "status": status}))
        })
        .await?;
    Ok(Answer::with(StatusCode::ACCEPTED, answered))
}

async fn tool_calls(
    State(server): State<Shared>,
    visitor: Visitor,
    Path((_, id)): Path<(String, String)>,
) -> Result<Answer, Problem> {
    visitor.owner_or_program()?;
    let calls = server
        .ask(async move |cx: &EngineContext| {
            let found = runs::any(&cx.engine, &id).await;
            if !found.as_ref().is_ok_and(|row| visitor.caller.may_read(row)) {
                visitor.caller.need(Scope::Read)?;
            }
            let row = found?;
            match visitor.caller.token.reaches_flow(&row.flow, &[]) {
                true => Ok(runs::tool_calls(&cx.engine, &row).await?),
                false => Err(Problem::from(runs::no_run(&id))),
            }
        })
        .await?;
    Ok(Answer::ok(json!({"tool_calls": calls})))
}
