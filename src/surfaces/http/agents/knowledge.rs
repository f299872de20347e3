//! Memories, their entries, and the search of knowledge.

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use flowstone_engine::token::Scope;
use flowstone_fronts::agents::records::Records;
use flowstone_fronts::agents::{knowledge, memories};
use serde_json::Value as Json;

use super::client::Client;
use super::nouns::{Create, Delete, Update, create, delete, show, update};
use super::read;
use super::records::{PAGED, Part, deleted};
use crate::http::answer::Answer;
use crate::http::problem::Problem;
use crate::http::request::Query;
use crate::http::server::{EngineContext, Shared};

const ENTRIES: &str = "/api/v1/memories/{memory}/entries";

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/v1/knowledge/search", post(search))
        .route("/api/v1/memories", get(list).post(create_memory))
        .route(
            "/api/v1/memories/{id}",
            get(show_memory).put(update_memory).delete(delete_memory),
        )
        .route(ENTRIES, get(entries).post(write))
        .route(
            &format!("{ENTRIES}/{{id}}"),
            get(entry).put(update_entry).delete(delete_entry),
        )
}

type Place = Path<(String, String)>;

async fn search(
    State(server): State<Shared>,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    client.need(Scope::Read)?;
    let body = read(&headers, body).await?;
    let who = client.who();
    let found = server
        .ask(async move |cx: &EngineContext| {
            let embedder = cx.backend.embedder(&cx.engine)?;
            let by = (embedder.as_deref(), &who);
            let found = knowledge::search(&cx.engine, by, body).await?;
            Ok::<_, Problem>(found)
        })
        .await?;
    Ok(Answer::ok(found))
}

async fn list(
    State(server): State<Shared>,
    client: Client,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    client.need(Scope::Read)?;
    let (query, tags) = Query::read_repeated(query.as_deref(), PAGED, "tags")?;
    let part = Part::of_whole(&query)?;
    let project = query.owned("project_id");
    let who = client.who();
    let all = server
        .ask(async move |cx: &EngineContext| {
            memories::list(&cx.engine, &who, (project.as_deref(), &tags)).await
        })
        .await?;
    Ok(Answer::ok(Json::Array(part.take(all))))
}

async fn create_memory(
    State(server): State<Shared>,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    let made: Create = |engine, body| Box::pin(memories::create(engine, body));
    create((server, client), (headers, body), made).await
}

async fn show_memory(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
) -> Result<Answer, Problem> {
    show((server, client), id, Records::Memories, memories::shown).await
}

async fn update_memory(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    let changed: Update = |engine, id, body| Box::pin(memories::update(engine, id, body));
    update((server, client), id, (headers, body), changed).await
}

async fn delete_memory(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let gone: Delete = |engine, id| Box::pin(memories::delete(engine, id));
    delete((server, client), id, gone).await
}

async fn entries(
    State(server): State<Shared>,
    client: Client,
    Path(memory): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    client.need(Scope::Read)?;
    let query = Query::read(query.as_deref(), &["limit", "offset"])?;
    let part = Part::of_whole(&query)?;
    let all = server
        .ask(async move |cx: &EngineContext| memories::entries(&cx.engine, &memory).await)
        .await?;
    Ok(Answer::ok(Json::Array(part.take(all))))
}

async fn write(
    State(server): State<Shared>,
    client: Client,
    Path(memory): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    client.need(Scope::Run)?;
    let body = read(&headers, body).await?;
    let (entry, is_new) = server
        .ask(async move |cx: &EngineContext| {
            let embedder = cx.backend.embedder(&cx.engine)?;
            let written = memories::write(&cx.engine, embedder.as_deref(), &memory, body).await?;
            Ok::<_, Problem>(written)
        })
        .await?;
    Ok(match is_new {
        true => Answer::with(StatusCode::CREATED, entry),
        false => Answer::ok(entry),
    })
}

async fn entry(
    State(server): State<Shared>,
    client: Client,
    Path((memory, id)): Place,
) -> Result<Answer, Problem> {
    client.need(Scope::Read)?;
    let entry = server
        .ask(async move |cx: &EngineContext| memories::entry(&cx.engine, &memory, &id).await)
        .await?;
    Ok(Answer::ok(entry))
}

async fn update_entry(
    State(server): State<Shared>,
    client: Client,
    Path((memory, id)): Place,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    client.need(Scope::Run)?;
    let body = read(&headers, body).await?;
    let changed = server
        .ask(async move |cx: &EngineContext| {
            memories::update_entry(&cx.engine, &memory, &id, body).await
        })
        .await?;
    Ok(Answer::ok(changed))
}

async fn delete_entry(
    State(server): State<Shared>,
    client: Client,
    Path((memory, id)): Place,
) -> Result<Response, Problem> {
    client.need(Scope::Run)?;
    server
        .ask(async move |cx: &EngineContext| memories::delete_entry(&cx.engine, &memory, &id).await)
        .await?;
    Ok(deleted())
}
