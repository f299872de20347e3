//! `/v1/{app_id}/public`: runs of users and of callers with the anonymous key.

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use flowstone_engine::feed_event::instant;
use flowstone_engine::ports::RunRow;
use flowstone_engine::token::Scope;
use flowstone_fronts::graph::access::open;
use flowstone_fronts::graph::answers::{self, Rights};
use flowstone_fronts::graph::error::GraphError;
use flowstone_fronts::graph::runs;
use serde_json::{Value as Json, json};

use super::read_object;
use super::runs::{answer, begin};
use super::visitor::Visitor;
use crate::http::answer::Answer;
use crate::http::problem::Problem;
use crate::http::server::{EngineContext, Shared};
use crate::http::trace;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/v1/{app_id}/public/agents/{name}/runs", post(start))
        .route("/v1/{app_id}/public/runs/{id}", get(show))
        .route("/v1/{app_id}/public/runs/{id}/cancel", post(cancel))
        .route("/v1/{app_id}/public/runs/{id}/resume", post(resume))
        .route(
            "/v1/{app_id}/public/runs/{id}/stream-token",
            post(stream_token),
        )
}

async fn start(
    State(server): State<Shared>,
    visitor: Visitor,
    Path((_, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    visitor.caller.need(Scope::Run)?;
    let body = read_object(&headers, body).await?;
    let (started, token) = server
        .ask(async move |cx: &EngineContext| {
            let caller = (&visitor.who, visitor.reaches(&name));
            let agent = open(&cx.engine, &name, caller).await?;
            let started = begin(cx, &agent, &visitor.who, &body).await?;
            let token = token_json(cx, &visitor, started.run.as_str())?;
            Ok::<_, GraphError>((started, token))
        })
        .await?;
    Ok(answer(&started, token))
}

fn token_json(cx: &EngineContext, visitor: &Visitor, run: &str) -> Result<Json, GraphError> {
    let (token, expires_ms) = cx.engine.stream_token(&visitor.caller.token, Some(run))?;
    Ok(json!({"stream_token": token, "expires_at": instant(expires_ms)}))
}

/// Returns a run that the caller started.
pub(super) async fn own(
    cx: &EngineContext,
    visitor: &Visitor,
    id: &str,
) -> Result<RunRow, GraphError> {
    let row = runs::any(&cx.engine, id).await?;
    let is_reached = visitor.caller.token.reaches_flow(&row.flow, &[]);
    if !is_reached || !visitor.who.has_started(&row.started_by) {
        return Err(runs::no_run(id));
    }
    trace::touches(&row.id);
    Ok(row)
}

async fn show(
    State(server): State<Shared>,
    visitor: Visitor,
    Path((_, id)): Path<(String, String)>,
) -> Result<Answer, Problem> {
    let run = server
        .ask(async move |cx: &EngineContext| {
            let row = own(cx, &visitor, &id).await?;
            runs::show(&cx.engine, &row).await
        })
        .await?;
    Ok(Answer::ok(json!({"run": run})))
}

async fn cancel(
    State(server): State<Shared>,
    visitor: Visitor,
    Path((_, id)): Path<(String, String)>,
) -> Result<Answer, Problem> {
    let answered = server
        .ask(async move |cx: &EngineContext| {
            let row = own(cx, &visitor, &id).await?;
            let status = runs::cancel(&cx.engine, &row, &visitor.who.id).await?;
            Ok::<_, GraphError>(json!({"run_id": row.id.as_str(), "status": status}))
        })
        .await?;
    Ok(Answer::with(StatusCode::ACCEPTED, answered))
}

/// Accepts only the `{input}` of an interrupt.
async fn resume(
    State(server): State<Shared>,
    visitor: Visitor,
    Path((_, id)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    let body = read_object(&headers, body).await?;
    let answered = server
        .ask(async move |cx: &EngineContext| {
            let said = answers::Answer::read(&body)?;
            let row = own(cx, &visitor, &id).await?;
            let caller = (visitor.caller.decides(), Rights::Input);
            let status = answers::resume(&cx.engine, &row, &said, caller).await?;
            Ok::<_, GraphError>(json!({"run_id": row.id.as_str(), "status": status}))
        })
        .await?;
    Ok(Answer::with(StatusCode::ACCEPTED, answered))
}

async fn stream_token(
    State(server): State<Shared>,
    visitor: Visitor,
    Path((_, id)): Path<(String, String)>,
) -> Result<Answer, Problem> {
    let token = server
        .ask(async move |cx: &EngineContext| {
            let row = own(cx, &visitor, &id).await?;
            token_json(cx, &visitor, row.id.as_str())
        })
        .await?;
    Ok(Answer::with(StatusCode::CREATED, token))
}
