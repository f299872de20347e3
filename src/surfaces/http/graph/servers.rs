//! `/v1/{app_id}/mcp-servers`.

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use flowstone_engine::token::Scope;
use flowstone_fronts::graph::servers;
use serde_json::json;

use super::read_object;
use super::visitor::Visitor;
use crate::http::answer::Answer;
use crate::http::problem::Problem;
use crate::http::server::{EngineContext, Shared};

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/v1/{app_id}/mcp-servers", get(list).post(create))
        .route("/v1/{app_id}/mcp-servers/{id}", get(show).delete(delete))
        .route("/v1/{app_id}/mcp-servers/{id}/probe", post(probe))
}

async fn list(State(server): State<Shared>, visitor: Visitor) -> Result<Answer, Problem> {
    visitor.owner_of_all(Scope::Read)?;
    let found = server
        .ask(async move |cx: &EngineContext| servers::list(&cx.engine).await)
        .await?;
    Ok(Answer::ok(json!({"servers": found})))
}

async fn create(
    State(server): State<Shared>,
    visitor: Visitor,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    visitor.owner_of_all(Scope::Admin)?;
    let body = read_object(&headers, body).await?;
    let created = server
        .ask(async move |cx: &EngineContext| servers::create(&cx.engine, body).await)
        .await?;
    Ok(Answer::with(
        StatusCode::CREATED,
        json!({"server": created}),
    ))
}

async fn show(
    State(server): State<Shared>,
    visitor: Visitor,
    Path((_, id)): Path<(String, String)>,
) -> Result<Answer, Problem> {
    visitor.owner_of_all(Scope::Read)?;
    let found = server
        .ask(async move |cx: &EngineContext| servers::get(&cx.engine, &id).await)
        .await?;
    Ok(Answer::ok(json!({"server": found})))
}

async fn delete(
    State(server): State<Shared>,
    visitor: Visitor,
    Path((_, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    visitor.owner_of_all(Scope::Admin)?;
    server
        .ask(async move |cx: &EngineContext| servers::delete(&cx.engine, &id).await)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Requests the list of a server's tools.
async fn probe(
    State(server): State<Shared>,
    visitor: Visitor,
    Path((_, id)): Path<(String, String)>,
) -> Result<Answer, Problem> {
    visitor.owner_of_all(Scope::Admin)?;
    let tools = server
        .ask(async move |cx: &EngineContext| servers::probe(&cx.engine, &id).await)
        .await?;
    Ok(Answer::ok(json!({"ok": true, "tools": tools})))
}
