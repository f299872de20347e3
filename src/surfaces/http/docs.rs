//! The pages of errors, to which the `type` of each problem refers.

use axum::Router;
use axum::extract::Path;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use flowstone_project::workspace::error_page;

use super::problem::Problem;
use super::server::Shared;

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/docs/errors/{code}", get(show))
}

/// Answers with the page of an error code as Markdown; without a token, because it is the same for all projects.
async fn show(Path(code): Path<String>) -> Result<impl IntoResponse, Problem> {
    let page = error_page(&code)
        .ok_or_else(|| Problem::not_found(format!("no error has the code `{code}`")))?;
    Ok((
        [(header::CONTENT_TYPE, "text/markdown; charset=utf-8")],
        page,
    ))
}
