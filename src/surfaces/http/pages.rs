//! Pages that people open by a link: the decision of a wait, and what they load.

pub(super) mod form;
mod run;
mod wait;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::get;
use flowstone_fronts::kit::link::{APPROVALS, CALLBACK, CONNECTIONS};

use super::operation::{Operation, Operations, Shape};
use super::problem::Problem;
use super::server::Shared;
use crate::pages;

/// What the page of a decision may load, and where its form may be sent.
pub(super) const FORM_POLICY: &str = "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route(
            "/{ws}/waits/{id}/{action}",
            get(wait::show).post(wait::decide),
        )
        .route("/runs/{id}", get(run::show))
        .route(pages::STYLE_PATH, get(style))
}

pub(super) fn operations() -> Operations {
    let link = Shape::Members(vec![("url", Shape::Text), ("expiresAt", Shape::Text)]);
    Operations::default().with(
        Operation::post(
            "/api/v1/runs/{id}/url",
            "createRunLink",
            "Makes a link to the page of a run that needs no token.",
        )
        .members(run::URL)
        .ok(link),
        run::url,
    )
}

/// Tells whether people open an address by a link in a browser.
pub(super) fn is_page(path: &str) -> bool {
    let mut parts = path.trim_start_matches('/').splitn(3, '/');
    match (parts.next(), parts.next()) {
        (Some("docs" | "runs"), Some(_)) => true,
        (Some("api"), Some("tools")) => [APPROVALS, CONNECTIONS].iter().any(|place| {
            let below = path.strip_prefix(place);
            below.is_some_and(|below| below.len() > 1 && below.starts_with('/'))
        }),
        (Some(workspace), Some("waits")) => workspace != "api",
        (Some(_), None) => path == CALLBACK,
        _ => false,
    }
}

/// Returns an error as a page, if the client is a browser that opens one.
pub(super) fn of_problem(
    problem: &Problem,
    path: &str,
    accepts: Option<&HeaderValue>,
    request: &str,
) -> Option<Response> {
    let accepted = accepts?.to_str().ok()?;
    if !is_page(path) || !accepted.contains("text/html") {
        return None;
    }
    let root = "../".repeat(path.matches('/').count().saturating_sub(1));
    let title = match problem.status {
        StatusCode::BAD_GATEWAY => "The login failed",
        StatusCode::CONFLICT => "This was decided already",
        StatusCode::GONE => "This is over",
        StatusCode::NOT_FOUND => "There is nothing here",
        StatusCode::TOO_MANY_REQUESTS => "Too many attempts",
        StatusCode::UNAUTHORIZED => "This page needs a link",
        status => status.canonical_reason().unwrap_or("Error"),
    };
    let hint = problem.hint.clone().unwrap_or_default();
    let hint = format!("{hint}\n{} · request {request}", problem.code);
    let html = pages::of_error(&root, title, &problem.detail, Some(hint.trim()));
    let mut response = page(problem.status, html, FORM_POLICY);
    response
        .headers_mut()
        .extend(problem.headers.iter().cloned());
    Some(response)
}

/// Returns a page as an answer, with what a browser must know of it.
pub(super) fn page(status: StatusCode, html: String, policy: &'static str) -> Response {
    let mut response = Response::new(Body::from(html));
    *response.status_mut() = status;
    let fixed = [
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        // With `no-referrer`, browsers send forms with `Origin: null`.
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::HeaderName::from_static("x-robots-tag"), "noindex"),
    ];
    let headers = response.headers_mut();
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Returns the answer to a form that leads to another page of this server, so that reloading sends nothing again.
///
/// # Errors
/// When the address has parts that cannot be part of a header.
pub(super) fn see_other(server: &Shared, target: &str) -> Result<Response, Problem> {
    let base = server.settings.base.split_once("://");
    let rest = base.map_or("", |(_, rest)| rest);
    let below = rest.split_once('/').map_or("", |(_, below)| below);
    let start = if below.is_empty() { "" } else { "/" };
    let target = HeaderValue::from_str(&format!("{start}{below}{target}"))
        .map_err(|_| Problem::malformed("the address has a part that is not a name"))?;
    let mut response = page(StatusCode::SEE_OTHER, String::new(), FORM_POLICY);
    response.headers_mut().insert(header::LOCATION, target);
    Ok(response)
}

/// The style of all pages. It holds nothing of the project, so everybody may have it.
async fn style() -> Response {
    let mut response = Response::new(Body::from(pages::STYLE));
    let fixed = [
        (header::CACHE_CONTROL, "public, max-age=300"),
        (header::CONTENT_TYPE, "text/css; charset=utf-8"),
    ];
    for (name, value) in fixed {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}
