//! `/v1/{app_id}/agents`.

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use flowstone_engine::token::Scope;
use flowstone_fronts::graph::agents::{self, Agent};
use flowstone_fronts::graph::error::GraphError;
use flowstone_fronts::graph::shape::Issue;
use serde_json::{Value as Json, json};

use super::visitor::Visitor;
use super::{Text, read_object, read_text};
use crate::http::answer::Answer;
use crate::http::problem::Problem;
use crate::http::server::{EngineContext, Shared};

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/v1/{app_id}/agents", get(list).post(create))
        .route(
            "/v1/{app_id}/agents/{name}",
            get(show).patch(patch).delete(delete),
        )
        .route("/v1/{app_id}/agents/{name}/validate", post(validate))
}

async fn list(State(server): State<Shared>, visitor: Visitor) -> Result<Answer, Problem> {
    visitor.owner(Scope::Read)?;
    let agents = server
        .ask(async move |cx: &EngineContext| {
            let mut agents = agents::list(&cx.engine).await?;
            agents.retain(|agent| visitor.reaches(&agent.name));
            let agents = agents.iter().map(Agent::to_json);
            Ok::<_, GraphError>(agents.collect::<Vec<Json>>())
        })
        .await?;
    Ok(Answer::ok(json!({"agents": agents})))
}

async fn create(
    State(server): State<Shared>,
    visitor: Visitor,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    visitor.owner(Scope::Edit)?;
    let body = read_object(&headers, body).await?;
    // An agent whose name the token does not reach could not be used with it either.
    if let Some(name) = body.get("name").and_then(|name| name.as_str())
        && !visitor.reaches(name)
    {
        return Err(agents::no_agent(name).into());
    }
    let agent = server
        .ask(async move |cx: &EngineContext| {
            let agent = agents::create(&cx.engine, body).await?;
            Ok::<_, GraphError>(agent.to_json())
        })
        .await?;
    Ok(Answer::with(StatusCode::CREATED, json!({"agent": agent})))
}

async fn show(
    State(server): State<Shared>,
    visitor: Visitor,
    Path((_, name)): Path<(String, String)>,
) -> Result<Answer, Problem> {
    visitor.owner(Scope::Read)?;
    let agent = server
        .ask(async move |cx: &EngineContext| {
            Ok::<_, GraphError>(visitor.agent(cx, &name).await?.to_json())
        })
        .await?;
    Ok(Answer::ok(json!({"agent": agent})))
}

async fn patch(
    State(server): State<Shared>,
    visitor: Visitor,
    Path((_, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    visitor.owner(Scope::Edit)?;
    let body = read_object(&headers, body).await?;
    let agent = server
        .ask(async move |cx: &EngineContext| {
            visitor.agent(cx, &name).await?;
            let agent = agents::patch(&cx.engine, &name, body).await?;
            Ok::<_, GraphError>(agent.to_json())
        })
        .await?;
    Ok(Answer::ok(json!({"agent": agent})))
}

async fn delete(
    State(server): State<Shared>,
    visitor: Visitor,
    Path((_, name)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    visitor.owner(Scope::Edit)?;
    server
        .ask(async move |cx: &EngineContext| {
            visitor.agent(cx, &name).await?;
            agents::delete(&cx.engine, &name).await
        })
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Checks a spec in the body, or the stored one. The agent need not exist if there is a body.
async fn validate(
    State(server): State<Shared>,
    visitor: Visitor,
    Path((_, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    visitor.owner(Scope::Read)?;
    let body = match read_text(&headers, body).await? {
        Text::Empty => None,
        Text::Json(body) => Some(body),
        // The body is JSON, so what is wrong with it is an issue of the spec.
        Text::Refused(error) => {
            let issue = Issue::at(&[], error.to_string());
            let issues = [issue.to_json()];
            return Ok(Answer::ok(json!({"valid": false, "issues": issues})));
        }
    };
    let report = server
        .ask(async move |cx: &EngineContext| {
            if body.is_none() || !visitor.reaches(&name) {
                visitor.agent(cx, &name).await?;
            }
            let report = agents::check(&cx.engine, &name, body).await?;
            Ok::<_, GraphError>(report.to_json())
        })
        .await?;
    Ok(Answer::ok(report))
}
