//! `/api/v1/traces`.

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::routing::get;
use flowstone_engine::token::Scope;
use flowstone_fronts::agents::generations::Filter;
use flowstone_fronts::agents::traces;

use super::client::Client;
use super::records::{PAGED, Part};
use crate::http::answer::Answer;
use crate::http::problem::Problem;
use crate::http::request::Query;
use crate::http::server::{EngineContext, Shared};

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/v1/traces", get(list))
        .route("/api/v1/traces/{id}", get(show))
        .route("/api/v1/traces/{id}/generations", get(generations))
        .route("/api/v1/traces/{id}/tree", get(tree))
}

async fn list(
    State(server): State<Shared>,
    client: Client,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    client.need(Scope::Read)?;
    let query = Query::read(query.as_deref(), PAGED)?;
    let part = Part::of(&query)?;
    let filter = Filter {
        project: query.owned("project_id"),
        limit: part.limit,
        offset: part.offset,
        ..Filter::default()
    };
    let who = client.who();
    let page = server
        .ask(async move |cx: &EngineContext| traces::list(&cx.engine, &who, &filter).await)
        .await?;
    Ok(part.page(page.data, page.total))
}

async fn show(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
) -> Result<Answer, Problem> {
    client.need(Scope::Read)?;
    let trace = server
        .ask(async move |cx: &EngineContext| traces::show(&cx.engine, &id).await)
        .await?;
    Ok(Answer::ok(trace))
}

async fn generations(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
) -> Result<Answer, Problem> {
    client.need(Scope::Read)?;
    let who = client.who();
    let generations = server
        .ask(async move |cx: &EngineContext| traces::generations(&cx.engine, &who, &id).await)
        .await?;
    Ok(Answer::ok(generations))
}

async fn tree(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
) -> Result<Answer, Problem> {
    client.need(Scope::Read)?;
    let who = client.who();
    let tree = server
        .ask(async move |cx: &EngineContext| traces::tree(&cx.engine, &who, &id).await)
        .await?;
    Ok(Answer::ok(tree))
}
