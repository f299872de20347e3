//! Generations: starting one, waiting for it, and giving it the outputs of client tools.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use flowstone_engine::ids::RunId;
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
const BELOW: Duration = Duration::from_millis(100);
/// As [`BELOW`], while the outer one does not wait yet: its feed does not show either that it begins to.
const BEFORE: Duration = Duration::from_millis(500);

/// Returns after how long a generation is checked again, if its feed may not show what changes. `may_nest` tells whether it can start
/// others.
pub(super) fn again(view: &View, may_nest: bool) -> Option<Duration> {
    match (view.waits_below(), may_nest) {
        (true, _) => Some(BELOW),
        (false, true) => Some(BEFORE),
        (false, false) => None,
    }
}

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
    let record = server
        .ask(async move |cx: &EngineContext| generations::show(&cx.engine, &id).await)
        .await?;
    Ok(Answer::ok(record))
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
    let (followed, live) = server
        .ask(async move |cx: &EngineContext| {
            let agent = Agent::find(&cx.engine, &id).await?;
            let run = generations::start(&cx.engine, &agent, &who, body).await?;
            if is_streamed {
                generations::note_streamed(&cx.engine, &run).await?;
            }
            let live = generations::live(&cx.engine, &run);
            Ok::<_, ApiError>((Followed::of(cx, &run, &agent), live))
        })
        .await?;
    if is_streamed {
        return stream::start(server, client, followed, live).await;
    }
    let view = settled(&server, followed).await?;
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
    let followed = server
        .ask(async move |cx: &EngineContext| {
            let (row, agent) = generations::find_of(&cx.engine, &agent, &id).await?;
            let agent = Agent::find(&cx.engine, &agent).await?;
            let followed = Followed::of(cx, &row.id, &agent);
            outputs::submit(&cx.engine, &agent, &row, body, caller).await?;
            Ok::<_, ApiError>(followed)
        })
        .await?;
    Ok(Answer::ok(settled(&server, followed).await?.to_answer()))
}

/// A generation that somebody waits for.
pub(super) struct Followed {
    /// Its id.
    pub id: String,
    pub news: Box<dyn News>,
    /// Whether it can start others.
    pub may_nest: bool,
}

impl Followed {
    pub(super) fn of(cx: &EngineContext, run: &RunId, agent: &Agent) -> Followed {
        Followed {
            id: ids::generation(run),
            news: generations::news(&cx.engine, run),
            may_nest: agent.may_nest(),
        }
    }
}

/// Waits until a generation is over or needs its caller.
pub(super) async fn settled(
    server: &Shared,
    Followed {
        id,
        mut news,
        may_nest,
    }: Followed,
) -> Result<View, Problem> {
    let ends = tokio::time::Instant::now() + LONGEST;
    let mut stopping = server.stopping.subscribe();
    loop {
        news.mark_seen();
        let id = id.clone();
        let view = server
            .ask(async move |cx: &EngineContext| generations::view(&cx.engine, &id).await)
            .await?;
        if view.is_settled() {
            return Ok(view);
        }
        let again = again(&view, may_nest);
        tokio::select! {
            () = news.changed() => {}
            () = tokio::time::sleep(again.unwrap_or(LONGEST)), if again.is_some() => {}
            () = tokio::time::sleep_until(ends) => return Ok(view),
            _ = stopping.wait_for(|is_stopping| *is_stopping) => return Ok(view),
        }
    }
}
