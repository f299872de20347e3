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

/// The nouns whose records have tags, and the scope that changes them.
const NOUNS: &[(&str, Records, Scope)] = &[
    ("actors", Records::Actors, Scope::Run),
    ("agents", Records::Agents, Scope::Edit),
    ("ai-providers", Records::Providers, Scope::Edit),
    ("api-keys", Records::Keys, Scope::Admin),
    ("documents", Records::Documents, Scope::Run),
    ("memories", Records::Memories, Scope::Run),
    ("policies", Records::Policies, Scope::Admin),
    ("projects", Records::Projects, Scope::Edit),
    ("secrets", Records::Secrets, Scope::Edit),
    ("tools", Records::Tools, Scope::Edit),
];

pub(super) fn routes() -> Router<Shared> {
    let nouns = NOUNS.iter().map(|(noun, kind, scope)| {
        let tags = of_record(*kind, *scope);
        Router::new().route(&format!("/api/v1/{noun}/{{id}}/tags"), tags)
    });
    nouns
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
