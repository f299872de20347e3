//! Policies and API keys, and the check of requests that are made with a key.

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use flowstone_engine::Engine;
use flowstone_engine::token::Scope;
use flowstone_fronts::agents::error::{ApiError, Status};
use flowstone_fronts::agents::guard::{self, Asked};
use flowstone_fronts::agents::records::{Record, Records};
use flowstone_fronts::agents::{codes, keys, policies};
use serde_json::{Value as Json, json};

use super::client::{Allowed, Client};
use super::openapi::{Matched, matched};
use super::records::{Part, deleted};
use super::{NOUNS, read};
use crate::http::access::bearer;
use crate::http::answer::Answer;
use crate::http::problem::Problem;
use crate::http::request::{JSON_MAX, Query, bytes, decoded, json as read_json};
use crate::http::server::{EngineContext, Shared};

const BASE: &str = "/api/v1/";
const PROJECT: &str = "project_id";

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/v1/api-keys", get(list_keys).post(create_key))
        .route(
            "/api/v1/api-keys/{id}",
            get(show_key).put(update_key).delete(delete_key),
        )
        .route("/api/v1/policies", get(list_policies).post(create_policy))
        .route(
            "/api/v1/policies/{id}",
            get(show_policy).put(update_policy).delete(delete_policy),
        )
}

/// Checks requests with an API key before their routes see them.
pub(in crate::http) async fn limit_keys(
    State(server): State<Shared>,
    request: Request,
    next: Next,
) -> Response {
    let text = bearer(request.headers()).ok().flatten();
    if !text.is_some_and(|text| text.starts_with(keys::PREFIX)) {
        return next.run(request).await;
    }
    match limited(&server, request).await {
        Ok(request) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

async fn limited(server: &Shared, request: Request) -> Result<Request, Problem> {
    let path = request.uri().path().to_owned();
    let rest = path.strip_prefix(BASE).unwrap_or_default();
    let module = rest.split('/').next().unwrap_or_default();
    if !NOUNS.contains(&module) {
        return match path.starts_with("/api/") || path.starts_with("/mcp") {
            true => Err(outside()),
            // Pages are open to all.
            false => Ok(request),
        };
    }
    let Some(operation) = matched(request.method().as_str(), &path[BASE.len() - 1..]) else {
        return Ok(request);
    };
    let (mut parts, mut body) = request.into_parts();
    let caller = server.caller(&parts).await?;
    let mut asked = Asked {
        operation: operation.id.clone().into_owned(),
        module: module.to_owned(),
        ids: ids(&operation)?,
        project: of_query(&parts.uri)?,
        body: None,
    };
    let is_new = asked.ids.is_empty() && parts.method == Method::POST;
    let takes_project = operation.members.iter().any(|it| it.name == PROJECT);
    let is_change = matches!(parts.method, Method::PATCH | Method::PUT);
    if is_change || is_new && takes_project {
        let given = bytes(body, JSON_MAX).await?;
        let read = match given.is_empty() {
            true => json!({}),
            false => read_json(&given)?,
        };
        if is_new {
            asked.project = read.get(PROJECT).and_then(Json::as_str).map(str::to_owned);
        }
        asked.body = Some(read);
        body = Body::from(given);
    }
    let token = caller.token.id.clone();
    let (asked, project) = server
        .ask(async move |cx: &EngineContext| {
            let project = guard::check(&cx.engine, &token, &asked).await?;
            Ok::<_, ApiError>((asked, project))
        })
        .await?;
    if let Some(mut given) = asked.body.filter(|_| is_new) {
        if let (Some(project), Some(members)) = (&project, given.as_object_mut()) {
            members.insert(PROJECT.to_owned(), json!(project));
        }
        body = Body::from(given.to_string());
        parts.headers.remove(header::CONTENT_LENGTH);
    }
    let is_list = asked.ids.is_empty() && parts.method == Method::GET;
    if let Some(project) = project.filter(|_| is_list && asked.project.is_none()) {
        parts.uri = with_project(&parts.uri, &project)?;
    }
    parts.extensions.insert(Allowed);
    parts.extensions.insert(caller);
    Ok(Request::from_parts(parts, body))
}

fn outside() -> Problem {
    ApiError::new(
        Status::Forbidden,
        ("FORBIDDEN", codes::FORBIDDEN),
        "an API key is for the agents API only",
    )
    .into()
}

fn ids(operation: &Matched<'_>) -> Result<Vec<(String, String)>, Problem> {
    let ids = operation.ids.iter();
    ids.map(|(name, value)| Ok(((*name).to_owned(), decoded(value, false)?.to_string())))
        .collect()
}

/// Returns `project_id` of a query.
fn of_query(uri: &Uri) -> Result<Option<String>, Problem> {
    for pair in uri.query().unwrap_or_default().split('&') {
        if let Some((name, value)) = pair.split_once('=')
            && decoded(name, true)? == PROJECT
        {
            return Ok(Some(decoded(value, true)?.to_string()));
        }
    }
    Ok(None)
}

/// Returns an address whose query names a project.
fn with_project(uri: &Uri, project: &str) -> Result<Uri, Problem> {
    let query = uri.query().filter(|it| !it.is_empty());
    let query = query.map_or_else(String::new, |query| format!("{query}&"));
    let text = format!("{}?{query}{PROJECT}={project}", uri.path());
    text.parse()
        .map_err(|_| Problem::malformed("the address is not valid"))
}

async fn list_of(
    (server, client): (Shared, Client),
    query: Option<&str>,
    (kind, shown): (Records, fn(&Record) -> Json),
) -> Result<Answer, Problem> {
    client.need(Scope::Admin)?;
    let query = Query::read(query, &["limit", "offset"])?;
    let part = Part::of_whole(&query)?;
    let records = server
        .ask(async move |cx: &EngineContext| kind.list(&cx.engine).await)
        .await?;
    let all = records.iter().map(shown).collect();
    Ok(Answer::ok(Json::Array(part.take(all))))
}

async fn show_of(
    (server, client): (Shared, Client),
    id: String,
    (kind, shown): (Records, fn(&Record) -> Json),
) -> Result<Answer, Problem> {
    client.need(Scope::Admin)?;
    let record = server
        .ask(async move |cx: &EngineContext| kind.get(&cx.engine, &id).await)
        .await?;
    Ok(Answer::ok(shown(&record)))
}

/// Changes records with the rights of an administrator.
async fn change(
    (server, client): (Shared, Client),
    (headers, body): (HeaderMap, Body),
    status: StatusCode,
    work: impl AsyncFnOnce(&Engine, Json) -> Result<Json, ApiError> + Send + 'static,
) -> Result<Answer, Problem> {
    client.need(Scope::Admin)?;
    let body = read(&headers, body).await?;
    let made = server
        .ask(async move |cx: &EngineContext| work(&cx.engine, body).await)
        .await?;
    Ok(Answer::with(status, made))
}

async fn list_keys(
    State(server): State<Shared>,
    client: Client,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    let of = (Records::Keys, keys::shown as fn(&Record) -> Json);
    list_of((server, client), query.as_deref(), of).await
}

async fn create_key(
    State(server): State<Shared>,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    let by = client.0.token.clone();
    change(
        (server, client),
        (headers, body),
        StatusCode::CREATED,
        async move |engine: &Engine, body| keys::create(engine, &by, body).await,
    )
    .await
}

async fn show_key(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
) -> Result<Answer, Problem> {
    show_of((server, client), id, (Records::Keys, keys::shown)).await
}

async fn update_key(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    change(
        (server, client),
        (headers, body),
        StatusCode::OK,
        async move |engine: &Engine, body| keys::update(engine, &id, body).await,
    )
    .await
}

async fn delete_key(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    client.need(Scope::Admin)?;
    server
        .ask(async move |cx: &EngineContext| keys::delete(&cx.engine, &id).await)
        .await?;
    Ok(deleted())
}

async fn list_policies(
    State(server): State<Shared>,
    client: Client,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    let of = (Records::Policies, policies::shown as fn(&Record) -> Json);
    list_of((server, client), query.as_deref(), of).await
}

async fn create_policy(
    State(server): State<Shared>,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    change(
        (server, client),
        (headers, body),
        StatusCode::CREATED,
        async move |engine: &Engine, body| policies::create(engine, body).await,
    )
    .await
}

async fn show_policy(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
) -> Result<Answer, Problem> {
    show_of((server, client), id, (Records::Policies, policies::shown)).await
}

async fn update_policy(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    change(
        (server, client),
        (headers, body),
        StatusCode::OK,
        async move |engine: &Engine, body| policies::update(engine, &id, body).await,
    )
    .await
}

async fn delete_policy(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    client.need(Scope::Admin)?;
    server
        .ask(async move |cx: &EngineContext| policies::delete(&cx.engine, &id).await)
        .await?;
    Ok(deleted())
}
