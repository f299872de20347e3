//! Sessions and actors.

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use flowstone_engine::ids::RunId;
use flowstone_engine::token::Scope;
use flowstone_fronts::agents::actors;
use flowstone_fronts::agents::error::ApiError;
use flowstone_fronts::agents::records::Records;
use flowstone_fronts::agents::sessions::{self, Session};
use flowstone_fronts::agents::{pending, sight};
use serde_json::Value as Json;

use super::client::Client;
use super::generations::{Followed, settled};
use super::read;
use super::records::{Part, deleted};
use super::tags::change_of;
use crate::http::answer::Answer;
use crate::http::problem::Problem;
use crate::http::request::Query;
use crate::http::server::{EngineContext, Shared};

const SESSIONS: &str = "/api/v1/agents/{agent}/sessions";

pub(super) fn routes() -> Router<Shared> {
    let one = format!("{SESSIONS}/{{id}}");
    Router::new()
        .route("/api/v1/actors", get(list_actors).post(create_actor))
        .route(
            "/api/v1/actors/{id}",
            get(show_actor).patch(update_actor).delete(delete_actor),
        )
        .route("/api/v1/agents/{agent}/actors", post(create_agent_actor))
        .route(
            &format!("{one}/tags"),
            get(session_tags).put(session_tags).patch(session_tags),
        )
        .route(SESSIONS, get(list).post(create))
        .route(&one, get(show).patch(update).delete(delete))
        .route(&format!("{one}/generate"), post(generate))
        .route(&format!("{one}/messages"), get(messages).post(add))
        .route(&format!("{one}/tool-outputs"), post(submit))
}

type Place = Path<(String, String)>;

async fn create(
    State(server): State<Shared>,
    client: Client,
    Path(agent): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    client.need(Scope::Run)?;
    let body = read(&headers, body).await?;
    let who = client.who();
    let made = server
        .ask(async move |cx: &EngineContext| {
            sessions::create(&cx.engine, &who, (&agent, body)).await
        })
        .await?;
    Ok(Answer::with(StatusCode::CREATED, made))
}

async fn list(
    State(server): State<Shared>,
    client: Client,
    Path(agent): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    client.need(Scope::Read)?;
    let query = Query::read(query.as_deref(), &["actor_id", "limit", "offset", "status"])?;
    let part = Part::of(&query)?;
    let wanted = (query.owned("actor_id"), query.owned("status"));
    let who = client.who();
    let all = server
        .ask(async move |cx: &EngineContext| {
            sessions::list(&cx.engine, &who, (&agent, wanted)).await
        })
        .await?;
    let total = all.len();
    Ok(part.page(part.take(all), total))
}

async fn show(
    State(server): State<Shared>,
    client: Client,
    Path((agent, id)): Place,
) -> Result<Answer, Problem> {
    client.need(Scope::Read)?;
    let shown = server
        .ask(async move |cx: &EngineContext| {
            let session = Session::find(&cx.engine, &agent, &id).await?;
            session.to_json(&cx.engine).await
        })
        .await?;
    Ok(Answer::ok(shown))
}

async fn update(
    State(server): State<Shared>,
    client: Client,
    Path((agent, id)): Place,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    client.need(Scope::Run)?;
    let body = read(&headers, body).await?;
    let changed = server
        .ask(async move |cx: &EngineContext| {
            let session = Session::find(&cx.engine, &agent, &id).await?;
            session.update(&cx.engine, body).await
        })
        .await?;
    Ok(Answer::ok(changed))
}

async fn delete(
    State(server): State<Shared>,
    client: Client,
    Path((agent, id)): Place,
) -> Result<Response, Problem> {
    client.need(Scope::Run)?;
    server
        .ask(async move |cx: &EngineContext| {
            let session = Session::find(&cx.engine, &agent, &id).await?;
            session.delete(&cx.engine).await
        })
        .await?;
    Ok(deleted())
}

async fn messages(
    State(server): State<Shared>,
    client: Client,
    Path((agent, id)): Place,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    client.need(Scope::Read)?;
    let query = Query::read(query.as_deref(), &["limit", "offset"])?;
    let part = Part::of(&query)?;
    let all = server
        .ask(async move |cx: &EngineContext| {
            let session = Session::find(&cx.engine, &agent, &id).await?;
            session.messages(&cx.engine).await
        })
        .await?;
    let total = all.len();
    Ok(part.page(part.take(all), total))
}

async fn add(
    State(server): State<Shared>,
    client: Client,
    Path((agent, id)): Place,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    client.need(Scope::Run)?;
    let is_left = Query::read(query.as_deref(), &["async"])?.flag("async")?;
    let body = read(&headers, body).await?;
    let who = client.who();
    let (received, started) = server
        .ask(async move |cx: &EngineContext| {
            let mut session = Session::find(&cx.engine, &agent, &id).await?;
            let own = session.id().to_owned();
            let received = pending::receive(&cx.engine, &mut session, &who, &body).await?;
            let run = received.run.clone();
            let started = run.map(|run| {
                let followed = Followed::of(cx, &run, &session.agent);
                (own, run, followed)
            });
            Ok::<_, ApiError>((received, started))
        })
        .await?;
    if received.is_delayed {
        server.delayed.notify_one();
    }
    match started {
        // The message is new in any case.
        Some(started) if is_left => Ok(accepted(&started)),
        Some(started) => answered(&server, started, StatusCode::CREATED).await,
        None if received.is_new => Ok(Answer::with(StatusCode::CREATED, received.message)),
        None => Ok(Answer::ok(received.message)),
    }
}

async fn generate(
    State(server): State<Shared>,
    client: Client,
    Path((agent, id)): Place,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    client.need(Scope::Run)?;
    let is_left = Query::read(query.as_deref(), &["async"])?.flag("async")?;
    let body = read(&headers, body).await?;
    let who = client.who();
    let started = server
        .ask(async move |cx: &EngineContext| {
            let mut session = Session::find(&cx.engine, &agent, &id).await?;
            let run = session.generate(&cx.engine, &who, body).await?;
            let followed = Followed::of(cx, &run, &session.agent);
            Ok::<_, ApiError>((session.id().to_owned(), run, followed))
        })
        .await?;
    match is_left {
        true => Ok(accepted(&started)),
        false => answered(&server, started, StatusCode::OK).await,
    }
}

/// The id of a session, and its generation.
type Started = (String, RunId, Followed);

/// Returns the answer to a request that does not wait for its generation.
fn accepted((session, run, _): &Started) -> Answer {
    Answer::with(StatusCode::ACCEPTED, sessions::accepted(session, run))
}

/// Waits until a generation needs its caller, and returns the answer to the request that started it.
async fn answered(
    server: &Shared,
    (_, _, followed): Started,
    status: StatusCode,
) -> Result<Answer, Problem> {
    let view = settled(server, followed).await?;
    // Messages that came in the meantime are answered next.
    server.delayed.notify_one();
    Ok(Answer::with(status, sessions::answer(&view)))
}

async fn submit(
    State(server): State<Shared>,
    client: Client,
    Path((agent, id)): Place,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    client.need(Scope::Run)?;
    let body = read(&headers, body).await?;
    let caller = client.who().caller;
    let started = server
        .ask(async move |cx: &EngineContext| {
            let session = Session::find(&cx.engine, &agent, &id).await?;
            let run = session.submit(&cx.engine, body, caller).await?;
            let followed = Followed::of(cx, &run, &session.agent);
            Ok::<_, ApiError>((session.id().to_owned(), run, followed))
        })
        .await?;
    answered(&server, started, StatusCode::OK).await
}

async fn session_tags(
    State(server): State<Shared>,
    client: Client,
    Path((agent, id)): Place,
    method: Method,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    let change = change_of((&client, &method, Scope::Run), (headers, body)).await?;
    let tags = server
        .ask(async move |cx: &EngineContext| {
            let session = Session::find(&cx.engine, &agent, &id).await?;
            session.tags(&cx.engine, change).await
        })
        .await?;
    Ok(Answer::ok(tags))
}

async fn create_actor(
    State(server): State<Shared>,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    client.need(Scope::Run)?;
    let body = read(&headers, body).await?;
    let who = client.who();
    let (actor, is_new) = server
        .ask(async move |cx: &EngineContext| actors::create(&cx.engine, &who, body).await)
        .await?;
    Ok(added(actor, is_new))
}

fn added(actor: Json, is_new: bool) -> Answer {
    match is_new {
        true => Answer::with(StatusCode::CREATED, actor),
        false => Answer::ok(actor),
    }
}

async fn create_agent_actor(
    State(server): State<Shared>,
    client: Client,
    Path(agent): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    client.need(Scope::Run)?;
    let body = read(&headers, body).await?;
    let who = client.who();
    let (actor, is_new) = server
        .ask(async move |cx: &EngineContext| {
            actors::create_of_agent(&cx.engine, &who, (&agent, body)).await
        })
        .await?;
    Ok(added(actor, is_new))
}

async fn list_actors(
    State(server): State<Shared>,
    client: Client,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    client.need(Scope::Read)?;
    let known = ["external_id", "limit", "offset", "project_id"];
    let query = Query::read(query.as_deref(), &known)?;
    let part = Part::of(&query)?;
    let (project, external) = (query.owned("project_id"), query.owned("external_id"));
    let who = client.who();
    let records = server
        .ask(async move |cx: &EngineContext| {
            let wanted = (Records::Actors, project.as_deref());
            sight::listed(&cx.engine, &who, wanted).await
        })
        .await?;
    let is_it = |id: Option<&str>| external.is_none() || id == external.as_deref();
    let records = records.iter().filter(|it| is_it(it.text("external_id")));
    let all: Vec<Json> = records.map(actors::shown).collect();
    let total = all.len();
    Ok(part.page(part.take(all), total))
}

async fn show_actor(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
) -> Result<Answer, Problem> {
    client.need(Scope::Read)?;
    let record = server
        .ask(async move |cx: &EngineContext| Records::Actors.get(&cx.engine, &id).await)
        .await?;
    Ok(Answer::ok(actors::shown(&record)))
}

async fn update_actor(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    client.need(Scope::Run)?;
    let body = read(&headers, body).await?;
    let who = client.who();
    let changed = server
        .ask(async move |cx: &EngineContext| actors::update(&cx.engine, &who, (&id, body)).await)
        .await?;
    Ok(Answer::ok(changed))
}

async fn delete_actor(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    client.need(Scope::Run)?;
    server
        .ask(async move |cx: &EngineContext| Records::Actors.delete(&cx.engine, &id).await)
        .await?;
    Ok(deleted())
}
