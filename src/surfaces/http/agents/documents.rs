//! Documents.

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::get;
use flowstone_fronts::agents::documents;
use flowstone_fronts::agents::records::Records;
use serde_json::Value as Json;

use super::client::Client;
use super::nouns::{Create, Delete, Update, create, delete, list, show, update};
use crate::http::answer::Answer;
use crate::http::problem::Problem;
use crate::http::server::Shared;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route(
            "/api/v1/documents",
            get(list_documents).post(create_document),
        )
        .route(
            "/api/v1/documents/{id}",
            get(show_document)
                .patch(update_document)
                .delete(delete_document),
        )
}

async fn list_documents(
    State(server): State<Shared>,
    client: Client,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    let shown = documents::listed;
    let (all, part) = list(
        (server, client),
        query.as_deref(),
        Records::Documents,
        shown,
    )
    .await?;
    Ok(Answer::ok(Json::Array(part.take(all))))
}

async fn create_document(
    State(server): State<Shared>,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    let made: Create = |engine, body| Box::pin(documents::create(engine, body));
    create((server, client), (headers, body), made).await
}

async fn show_document(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
) -> Result<Answer, Problem> {
    show((server, client), id, Records::Documents, documents::shown).await
}

async fn update_document(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    let changed: Update = |engine, id, body| Box::pin(documents::update(engine, id, body));
    update((server, client), id, (headers, body), changed).await
}

async fn delete_document(
    State(server): State<Shared>,
    client: Client,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let gone: Delete = |engine, id| Box::pin(Records::Documents.delete(engine, id));
    delete((server, client), id, gone).await
}
