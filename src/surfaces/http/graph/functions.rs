//! `/v1/{app_id}/functions`.

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, patch};
use flowstone_engine::token::Scope;
use flowstone_fronts::graph::functions;
use serde_json::json;

use super::read_object;
use super::visitor::Visitor;
use crate::http::answer::Answer;
use crate::http::problem::Problem;
use crate::http::server::{EngineContext, Shared};

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/v1/{app_id}/functions", get(list).post(create))
        .route(
            "/v1/{app_id}/functions/{name}",
            patch(change).delete(delete),
        )
}

async fn list(State(server): State<Shared>, visitor: Visitor) -> Result<Answer, Problem> {
    visitor.owner_of_all(Scope::Read)?;
    let found = server
        .ask(async move |cx: &EngineContext| functions::list(&cx.engine).await)
        .await?;
    Ok(Answer::ok(json!({"functions": found})))
}

async fn create(
    State(server): State<Shared>,
    visitor: Visitor,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    visitor.owner_of_all(Scope::Edit)?;
    let body = read_object(&headers, body).await?;
    let created = server
        .ask(async move |cx: &EngineContext| functions::create(&cx.engine, body).await)
        .await?;
    Ok(Answer::with(
        StatusCode::CREATED,
        json!({"function": created}),
    ))
}

async fn change(
    State(server): State<Shared>,
    visitor: Visitor,
    Path((_, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    visitor.owner_of_all(Scope::Edit)?;
    let body = read_object(&headers, body).await?;
    let changed = server
        .ask(async move |cx: &EngineContext| functions::patch(&cx.engine, &name, body).await)
        .await?;
    Ok(Answer::ok(json!({"function": changed})))
}

async fn delete(
    State(server): State<Shared>,
    visitor: Visitor,
    Path((_, name)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    visitor.owner_of_all(Scope::Edit)?;
    server
        .ask(async move |cx: &EngineContext| functions::delete(&cx.engine, &name).await)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
