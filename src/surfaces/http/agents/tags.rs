//! Tags: an object of texts below each record. PUT replaces it, and PATCH merges into it.

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Method};
use axum::routing::{MethodRouter, get};
use flowstone_engine::token::Scope;
use flowstone_fronts::agents::generations;
use flowstone_fronts::agents::records::{Records, Tags};

use super::client::Client;
use super::read;
use crate::http::answer::Answer;
use crate::http::problem::Problem;
use crate::http::server::{EngineContext, Shared};

/// The addresses of the tags of records, and the scope that changes them.
const OF_RECORDS: &[(&str, Records, Scope)] = &[
    ("/api/v1/actors/{id}/tags", Records::Actors, Scope::Run),
    ("/api/v1/agents/{id}/tags", Records::Agents, Scope::Edit),
    (
        "/api/v1/ai-providers/{id}/tags",
        Records::Providers,
        Scope::Edit,
    ),
    ("/api/v1/api-keys/{id}/tags", Records::Keys, Scope::Admin),
    (
        "/api/v1/documents/{id}/tags",
        Records::Documents,
        Scope::Run,
    ),
    ("/api/v1/memories/{id}/tags", Records::Memories, Scope::Run),
    (
        "/api/v1/policies/{id}/tags",
        Records::Policies,
        Scope::Admin,
    ),
    ("/api/v1/projects/{id}/tags", Records::Projects, Scope::Edit),
    ("/api/v1/secrets/{id}/tags", Records::Secrets, Scope::Edit),
    ("/api/v1/tools/{id}/tags", Records::Tools, Scope::Edit),
];

pub(super) fn routes() -> Router<Shared> {
    let records = OF_RECORDS.iter().map(|(path, kind, scope)| {
        let tags = of_record(*kind, *scope);
        Router::new().route(path, tags)
    });
    records
        .fold(Router::new(), Router::merge)
        .route("/api/v1/agents/generations/{id}/tags", of_run("generation"))
        .route("/api/v1/traces/{id}/tags", of_run("trace"))
}

fn of_record(kind: Records, scope: Scope) -> MethodRouter<Shared> {
    let handler = async move |State(server): State<Shared>,
                              client: Client,
                              Path(id): Path<String>,
                              method: Method,
                              headers: HeaderMap,
                              body: Body| {
        let change = change_of((&client, &method, scope), (headers, body)).await?;
        let tags = server
            .ask(async move |cx: &EngineContext| {
                let record = kind.get(&cx.engine, &id).await?;
                record.tags(&cx.engine, change).await
            })
            .await?;
        Ok::<_, Problem>(Answer::ok(tags))
    };
    get(handler).put(handler).patch(handler)
}

fn of_run(noun: &'static str) -> MethodRouter<Shared> {
    let handler = async move |State(server): State<Shared>,
                              client: Client,
                              Path(id): Path<String>,
                              method: Method,
                              headers: HeaderMap,
                              body: Body| {
        let change = change_of((&client, &method, Scope::Run), (headers, body)).await?;
        let tags = server
            .ask(async move |cx: &EngineContext| {
                let (row, _) = generations::find(&cx.engine, noun, &id).await?;
                Tags::of_run(&cx.engine, row.id.as_str(), change).await
            })
            .await?;
        Ok::<_, Problem>(Answer::ok(tags))
    };
    get(handler).put(handler).patch(handler)
}

/// Returns the change of tags that a request asks for.
pub(super) async fn change_of(
    (client, method, scope): (&Client, &Method, Scope),
    (headers, body): (HeaderMap, Body),
) -> Result<Option<Tags>, Problem> {
    if method == Method::GET || method == Method::HEAD {
        // Who may not see a record does not see its tags.
        client.need(match scope {
            Scope::Admin => Scope::Admin,
            _ => Scope::Read,
        })?;
        return Ok(None);
    }
    client.need(scope)?;
    let body = read(&headers, body).await?;
    Ok(Some(match *method == Method::PUT {
        true => Tags::Replace(body),
        false => Tags::Merge(body),
    }))
}
