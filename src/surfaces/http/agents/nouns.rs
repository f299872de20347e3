//! Agents, projects, providers, secrets and tools.

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use flowstone_engine::Engine;
use flowstone_engine::token::Scope;
use flowstone_flow::step::LocalFuture;
use flowstone_fronts::agents::error::ApiError;
use flowstone_fronts::agents::records::{Record, Records};
use flowstone_fronts::agents::{agent, projects, providers, sight, tools};
use serde_json::{Value as Json, json};

use super::client::Client;
use super::read;
use super::records::{PAGED, Part, deleted};
use crate::http::answer::Answer;
use crate::http::problem::Problem;
use crate::http::request::Query;
use crate::http::server::{EngineContext, Shared};

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/v1/agents", get(list_agents).post(create_agent))
        .route(
            "/api/v1/agents/{id}",
            get(show_agent).put(update_agent).delete(delete_agent),
        )
        .route("/api/v1/projects", get(list_projects).post(create_project))
        .route(
            "/api/v1/projects/{id}",
            get(show_project).delete(delete_project),
        )
        .route(
            "/api/v1/ai-providers",
            get(list_providers).post(create_provider),
        )
        .route(
            "/api/v1/ai-providers/{id}",
            get(show_provider)
                .patch(update_provider)
                .delete(delete_provider),
        )
        .route("/api/v1/secrets", get(list_secrets).post(create_secret))
        .route(
            "/api/v1/secrets/{id}",
            get(show_secret).patch(update_secret).delete(delete_secret),
        )
        .route("/api/v1/tools", get(list_tools).post(create_tool))
        .route(
            "/api/v1/tools/{id}",
            get(show_tool).patch(update_tool).delete(delete_tool),
        )
        .route("/api/v1/tools/{id}/call", post(call_tool))
}

/// What adds a record of a body.
pub(super) type Create = for<'a> fn(&'a Engine, Json) -> LocalFuture<'a, Result<Json, ApiError>>;
/// What changes a record by a body.
pub(super) type Update =
    for<'a> fn(&'a Engine, &'a str, Json) -> LocalFuture<'a, Result<Json, ApiError>>;
/// What deletes a record.
pub(super) type Delete = for<'a> fn(&'a Engine, &'a str) -> LocalFuture<'a, Result<(), ApiError>>;

pub(super) async fn create(
    (server, client): (Shared, Client),
    (headers, body): (HeaderMap, Body),
    create: Create,
) -> Result<Answer, Problem> {
    client.need(Scope::Edit)?;
    let body = read(&headers, body).await?;
    let made = server
        .ask(async move |cx: &EngineContext| create(&cx.engine, body).await)
        .await?;
    Ok(Answer::with(StatusCode::CREATED, made))
}

pub(super) async fn update(
    (server, client): (Shared, Client),
    id: String,
    (headers, body): (HeaderMap, Body),
    update: Update,
) -> Result<Answer, Problem> {
    client.need(Scope::Edit)?;
    let body = read(&headers, body).await?;
    let changed = server
        .ask(async move |cx: &EngineContext| update(&cx.engine, &id, body).await)
        .await?;
    Ok(Answer::ok(changed))
}

pub(super) async fn show(
    (server, client): (Shared, Client),
    id: String,
    kind: Records,
    shown: fn(&Record) -> Json,
) -> Result<Answer, Problem> {
    client.need(Scope::Read)?;
    let record = server
        .ask(async move |cx: &EngineContext| kind.get(&cx.engine, &id).await)
        .await?;
    Ok(Answer::ok(shown(&record)))
}

pub(super) async fn delete(
    (server, client): (Shared, Client),
    id: String,
    delete: Delete,
) -> Result<Response, Problem> {
    client.need(Scope::Edit)?;
    server
        .ask(async move |cx: &EngineContext| delete(&cx.engine, &id).await)
        .await?;
    Ok(deleted())
}

/// Returns the records of a list, and the part of it that is wanted.
pub(super) async fn list(
    (server, client): (Shared, Client),
    query: Option<&str>,
    kind: Records,
    shown: fn(&Record) -> Json,
) -> Result<(Vec<Json>, Part), Problem> {
    client.need(Scope::Read)?;
    let query = Query::read(query, PAGED)?;
    let part = Part::of_whole(&query)?;
    let project = query.owned("project_id");
    let who = client.who();
    let records = server
        .ask(async move |cx: &EngineContext| {
            sight::listed(&cx.engine, &who, (kind, project.as_deref())).await
        })
        .await?;
    Ok((records.iter().map(shown).collect(), part))
}

fn plain(record: &Record) -> Json {
    record.to_json(&[])
}

async fn list_agents(
    State(server): State<Shared>,
    client: Client,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    let (all, part) = list(
        (server, client),
        query.as_deref(),
        Records::Agents,
        agent::shown,
    )
    .await?;
    Ok(Answer::ok(Json::Array(part.take(all))))
}

async fn create_agent(
    State(server): State<Shared>,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    client.need(Scope::Edit)?;
    let body = read(&headers, body).await?;
    let who = client.who();
    let made = server
        .ask(async move |cx: &EngineContext| agent::create(&cx.engine, &who, body).await)
        .await?;
    Ok(Answer::with(StatusCode::CREATED, made))
}

async fn show_agent(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
) -> Result<Answer, Problem> {
    show((server, client), id, Records::Agents, agent::shown).await
}

async fn update_agent(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    client.need(Scope::Edit)?;
    let body = read(&headers, body).await?;
    let who = client.who();
    let changed = server
        .ask(async move |cx: &EngineContext| agent::update(&cx.engine, &who, (&id, body)).await)
        .await?;
    Ok(Answer::ok(changed))
}

async fn delete_agent(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let gone: Delete = |engine, id| Box::pin(agent::delete(engine, id));
    delete((server, client), id, gone).await
}

async fn list_projects(
    State(server): State<Shared>,
    client: Client,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    let (all, part) = list((server, client), query.as_deref(), Records::Projects, plain).await?;
    Ok(Answer::ok(Json::Array(part.take(all))))
}

async fn create_project(
    State(server): State<Shared>,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    let made: Create =
        |engine, body| Box::pin(async move { Ok(plain(&projects::create(engine, body).await?)) });
    create((server, client), (headers, body), made).await
}

async fn show_project(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
) -> Result<Answer, Problem> {
    show((server, client), id, Records::Projects, plain).await
}

async fn delete_project(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let gone: Delete = |engine, id| Box::pin(projects::delete(engine, id));
    delete((server, client), id, gone).await
}

async fn list_providers(
    State(server): State<Shared>,
    client: Client,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    let shown = providers::shown;
    let (all, part) = list(
        (server, client),
        query.as_deref(),
        Records::Providers,
        shown,
    )
    .await?;
    Ok(Answer::ok(Json::Array(part.take(all))))
}

async fn create_provider(
    State(server): State<Shared>,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    client.need(Scope::Edit)?;
    let body = read(&headers, body).await?;
    let who = client.who();
    let made = server
        .ask(async move |cx: &EngineContext| providers::create(&cx.engine, &who, body).await)
        .await?;
    Ok(Answer::with(StatusCode::CREATED, made))
}

async fn show_provider(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
) -> Result<Answer, Problem> {
    show((server, client), id, Records::Providers, providers::shown).await
}

async fn update_provider(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    client.need(Scope::Edit)?;
    let body = read(&headers, body).await?;
    let who = client.who();
    let changed = server
        .ask(async move |cx: &EngineContext| providers::update(&cx.engine, &who, (&id, body)).await)
        .await?;
    Ok(Answer::ok(changed))
}

async fn delete_provider(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let gone: Delete = |engine, id| Box::pin(providers::delete(engine, id));
    delete((server, client), id, gone).await
}

async fn list_secrets(
    State(server): State<Shared>,
    client: Client,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    let (all, part) = list((server, client), query.as_deref(), Records::Secrets, plain).await?;
    Ok(Answer::ok(Json::Array(part.take(all))))
}

async fn create_secret(
    State(server): State<Shared>,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    let made: Create = |engine, body| Box::pin(providers::create_secret(engine, body));
    create((server, client), (headers, body), made).await
}

async fn show_secret(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
) -> Result<Answer, Problem> {
    show((server, client), id, Records::Secrets, plain).await
}

async fn update_secret(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    let changed: Update = |engine, id, body| Box::pin(providers::update_secret(engine, id, body));
    update((server, client), id, (headers, body), changed).await
}

async fn delete_secret(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let gone: Delete = |engine, id| Box::pin(providers::delete_secret(engine, id));
    delete((server, client), id, gone).await
}

async fn list_tools(
    State(server): State<Shared>,
    client: Client,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    let (all, part) = list(
        (server, client),
        query.as_deref(),
        Records::Tools,
        tools::shown,
    )
    .await?;
    Ok(Answer::ok(json!({"data": part.take(all)})))
}

async fn create_tool(
    State(server): State<Shared>,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    let made: Create = |engine, body| Box::pin(tools::create(engine, body));
    create((server, client), (headers, body), made).await
}

async fn show_tool(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
) -> Result<Answer, Problem> {
    show((server, client), id, Records::Tools, tools::shown).await
}

async fn update_tool(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    let changed: Update = |engine, id, body| Box::pin(tools::update(engine, id, body));
    update((server, client), id, (headers, body), changed).await
}

async fn delete_tool(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let gone: Delete = |engine, id| Box::pin(tools::delete(engine, id));
    delete((server, client), id, gone).await
}

async fn call_tool(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    client.need(Scope::Run)?;
    let body = read(&headers, body).await?;
    let who = client.who();
    let output = server
        .ask(async move |cx: &EngineContext| tools::call(&cx.engine, &id, body, &who).await)
        .await?;
    Ok(Answer::ok(output))
}
