//! Generations: starting one, waiting for it, and giving it the outputs of client tools.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use flowstone_engine::ports::News;
use flowstone_engine::token::Scope;
use flowstone_fronts::agents::agent::Agent;
use flowstone_fronts::agents::error::ApiError;
use flowstone_fronts::agents::generations::{self, Filter, State as Stage, View};
use flowstone_fronts::agents::{ids, outputs};

use super::client::Client;
use super::records::Part;
use super::{read, stream};
use crate::http::answer::Answer;
use crate::http::problem::Problem;
use crate::http::request::Query;
use crate::http::server::{EngineContext, Shared};

/// How long a caller waits. A generation that takes longer is answered with `in_progress`, and goes on.
const LONGEST: Duration = Duration::from_secs(600);
/// How often nested generations are checked for a pause: the feed of the outer one does not show it.
pub(super) const BELOW: Duration = Duration::from_millis(100);

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/v1/agents/generations", get(list))
        .route("/api/v1/agents/generations/{id}", get(show))
        .route("/api/v1/agents/{id}/generate", post(generate))
        .route(
            "/api/v1/agents/{id}/generate/{generation}/tool-outputs",
            post(submit),
        )
}

const OF_LIST: &[&str] = &["agent_id", "limit", "offset", "project_id", "status"];

async fn list(
    State(server): State<Shared>,
    client: Client,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    client.need(Scope::Read)?;
    let query = Query::read(query.as_deref(), OF_LIST)?;
    let part = Part::of(&query)?;
    let state = match query.get("status") {
        None => None,
        Some(name) => Some(Stage::named(name).ok_or_else(|| {
            let names: Vec<&str> = Stage::NAMES.iter().map(|it| it.1).collect();
            Problem::malformed(format!(
                "`status` must be one of {}, got `{name}`",
                names.join(", ")
            ))
        })?),
    };
    let filter = Filter {
        project: query.owned("project_id"),
        agent: query.owned("agent_id"),
        state,
        limit: part.limit,
        offset: part.offset,
    };
    let who = client.who();
    let page = server
        .ask(async move |cx: &EngineContext| generations::list(&cx.engine, &who, &filter).await)
        .await?;
    Ok(part.page(page.data, page.total))
}

async fn show(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
) -> Result<Answer, Problem> {
    client.need(Scope::Read)?;
    let view = server
        .ask(async move |cx: &EngineContext| generations::view(&cx.engine, &id).await)
        .await?;
    Ok(Answer::ok(view.to_record()))
}

async fn generate(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    client.need(Scope::Run)?;
    let body = read(&headers, body).await?;
    let is_streamed = body.get("stream") == Some(&serde_json::Value::Bool(true));
    let who = client.who();
    let (id, news) = server
        .ask(async move |cx: &EngineContext| {
            let agent = Agent::find(&cx.engine, &id).await?;
            let run = generations::start(&cx.engine, &agent, &who, body).await?;
            let news = generations::news(&cx.engine, &run);
            let live = generations::live(&cx.engine, &run);
            Ok::<_, ApiError>((ids::generation(&run), (news, live)))
        })
        .await?;
    if is_streamed {
        return stream::start(server, client, id, news).await;
    }
    let view = settled(&server, &id, news.0).await?;
    Ok(Answer::ok(view.to_answer()).into_response())
}

async fn submit(
    State(server): State<Shared>,
    client: Client,
    Path((agent, id)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    client.need(Scope::Run)?;
    let body = read(&headers, body).await?;
    let caller = client.who().caller;
    let (id, news) = server
        .ask(async move |cx: &EngineContext| {
            let (row, agent) = generations::find_of(&cx.engine, &agent, &id).await?;
            let agent = Agent::find(&cx.engine, &agent).await?;
            let news = generations::news(&cx.engine, &row.id);
            outputs::submit(&cx.engine, &agent, &row, body, caller).await?;
            Ok::<_, ApiError>((ids::generation(&row.id), news))
        })
        .await?;
    Ok(Answer::ok(settled(&server, &id, news).await?.to_answer()))
}

/// Waits until a generation is over or needs its caller.
pub(super) async fn settled(
    server: &Shared,
    id: &str,
    mut news: Box<dyn News>,
) -> Result<View, Problem> {
    let ends = tokio::time::Instant::now() + LONGEST;
    let mut stopping = server.stopping.subscribe();
    loop {
        news.mark_seen();
        let id = id.to_owned();
        let view = server
            .ask(async move |cx: &EngineContext| generations::view(&cx.engine, &id).await)
            .await?;
        if view.is_settled() {
            return Ok(view);
        }
        let waits_below = view.waits_below();
        tokio::select! {
            () = news.changed() => {}
            () = tokio::time::sleep(BELOW), if waits_below => {}
            () = tokio::time::sleep_until(ends) => return Ok(view),
            _ = stopping.wait_for(|is_stopping| *is_stopping) => return Ok(view),
        }
    }
}
