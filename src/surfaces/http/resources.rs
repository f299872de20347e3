//! `/api/v1/resources`: files and other things with a `res://` name.

mod content;
mod range;
mod upload;

use axum::Router;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use flowstone_engine::ports::{Clock as _, ResourcePage, ResourceQuery, ResourceRow, ResourceSort};
use flowstone_engine::resource::{ResourceKind, Tier, sign};
use flowstone_engine::resources::ResourceError;
use flowstone_engine::token::Scope;
use flowstone_engine::{EngineError, SystemClock};
use serde_json::{Value as Json, json};

use super::access::Caller;
use super::answer::Answer;
use super::cursor;
use super::problem::Problem;
use super::request::{Members, Query};
use super::server::{Desk, Shared};
use crate::json::{instant, resource_json};

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route(sign::PATH, get(content::signed))
        .route(
            "/api/v1/resources",
            get(list).post(upload::upload).delete(delete),
        )
        .route("/api/v1/resources/content", get(content::by_token))
        .route("/api/v1/resources/url", post(url))
}

/// Maximum number of resources that are read to fill a page of those that the caller reaches.
const SCANNED_MAX: usize = 5_000;

const FILTERS: &[&str] = &[
    "all", "cursor", "limit", "prefix", "run", "sort", "tier", "types",
];

async fn list(
    State(server): State<Shared>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    let given = Query::read(query.as_deref(), FILTERS)?;
    let limit = given.limit()?;
    let names = FILTERS
        .iter()
        .filter(|name| !["cursor", "limit"].contains(name));
    let filters: Vec<String> = names
        .map(|name| format!("{name}={:?}", given.get(name)))
        .collect();
    let filters = filters.join("&");
    let mut query = resource_query(&given)?;
    if let Some(text) = given.get("cursor") {
        query.after = Some(cursor::read(text, &filters)?);
    }
    let page = server
        .ask(async move |desk: &Desk| page(desk, &caller, query, limit).await)
        .await?;
    let shown: Vec<Json> = page.0;
    let next = page.1.map(|after| cursor::write(&after, &filters));
    Ok(Answer::ok(json!({"resources": shown, "next": next})))
}

fn resource_query(given: &Query) -> Result<ResourceQuery, Problem> {
    let mut kinds = Vec::new();
    for name in given.list("types") {
        let kind = ResourceKind::from_name(&name);
        kinds.push(
            kind.ok_or_else(|| Problem::malformed(format!("`{name}` is not a type of resources")))?,
        );
    }
    let tier =
        match given.get("tier") {
            None => None,
            Some(name) => Some(Tier::from_name(name).ok_or_else(|| {
                Problem::malformed(format!("`{name}` is not a tier of resources"))
            })?),
        };
    let sort = match given.get("sort") {
        None | Some("created") => ResourceSort::Created,
        Some("name") => ResourceSort::Name,
        Some(other) => {
            return Err(Problem::malformed(format!(
                "`sort` must be created or name, got `{other}`"
            )));
        }
    };
    Ok(ResourceQuery {
        kinds,
        prefix: given.owned("prefix"),
        run: given.owned("run"),
        tier,
        with_gone: given.flag("all")?,
        sort,
        now_ms: SystemClock.now_ms(),
        ..ResourceQuery::default()
    })
}

/// Returns a page of resources that the caller reaches, and where the next one begins.
async fn page(
    desk: &Desk,
    caller: &Caller,
    mut query: ResourceQuery,
    limit: usize,
) -> Result<(Vec<Json>, Option<String>), Problem> {
    let mut shown = Vec::new();
    let mut scanned = 0;
    loop {
        query.limit = limit - shown.len();
        let ResourcePage { rows, next } =
            desk.engine.stores().resources.list(query.clone()).await?;
        scanned += rows.len();
        let reached = rows.iter().filter(|row| caller.reaches_resource(&row.uri));
        shown.extend(reached.map(resource_json));
        if next.is_none() || shown.len() >= limit || scanned >= SCANNED_MAX {
            return Ok((shown, next));
        }
        query.after = next;
    }
}

/// Returns a resource that is there and that the caller reaches.
async fn reached(desk: &Desk, caller: &Caller, uri: &str) -> Result<ResourceRow, Problem> {
    let missing = || {
        let uri = uri.to_owned();
        Problem::from(EngineError::from(ResourceError::Missing { uri }))
    };
    // Without reach, a resource that is gone looks like one that never was.
    let row = desk.engine.resource(uri).await?;
    if !caller.reaches_resource(&row.uri) {
        return Err(missing());
    }
    Ok(desk.engine.live_resource(&row.uri).await?)
}

async fn delete(
    State(server): State<Shared>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    caller.need(Scope::Edit)?;
    let query = Query::read(query.as_deref(), &["force", "uri"])?;
    let (uri, force) = (query.needed("uri")?, query.flag("force")?);
    server
        .ask(async move |desk: &Desk| {
            let row = reached(desk, &caller, &uri).await?;
            desk.engine.delete_resource(&row.uri, force).await?;
            Ok::<_, Problem>(())
        })
        .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /api/v1/resources/url`: a signed link, as `resources url` makes it.
async fn url(
    State(server): State<Shared>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    let given = Members::read(&headers, body, &["ttl", "uri"]).await?;
    let uri = given.text("uri")?;
    let uri = uri.ok_or_else(|| Problem::malformed("`uri` is missing"))?;
    let ttl = link_ttl(&given)?;
    let (url, expires_ms) = server
        .ask(async move |desk: &Desk| {
            let row = reached(desk, &caller, &uri).await?;
            Ok::<_, Problem>(desk.engine.link(&row.uri, ttl).await?)
        })
        .await?;
    Ok(Answer::ok(
        json!({"url": url, "expiresAt": instant(expires_ms)}),
    ))
}

/// Returns for how many seconds a link is wanted.
pub(super) fn link_ttl(given: &Members) -> Result<i64, Problem> {
    let ttl = given.number("ttl")?.unwrap_or(sign::DEFAULT_TTL);
    if !sign::TTL.contains(&ttl) {
        let (least, most) = (sign::TTL.start(), sign::TTL.end());
        return Err(Problem::malformed(format!(
            "`ttl` must be a number of seconds from {least} to {most}, got {ttl}"
        )));
    }
    Ok(ttl)
}
