//! `/api/v1/resources`: files and other things with a `res://` name.

mod content;
mod range;
mod upload;

use axum::Router;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{Clock as _, ResourcePage, ResourceQuery, ResourceRow, ResourceSort};
use flowstone_engine::resource::{ResourceKind, Tier, sign};
use flowstone_engine::resources::ResourceError;
use flowstone_engine::token::Scope;
use flowstone_engine::{EngineError, SystemClock};
use serde_json::{Value as Json, json};

pub(super) use content::whole;

use super::access::Caller;
use super::answer::Answer;
use super::cursor;
use super::operation::{
    self as shape, CURSOR, Content, Kind, LIMIT, Operation, Operations, Param, Shape, names,
};
use super::problem::Problem;
use super::request::{Members, Query};
use super::server::{EngineContext, Shared};
use crate::json::{Reference, Resource, instant, resource_json};

pub(super) fn routes() -> Router<Shared> {
    Router::new().route(sign::PATH, get(content::signed))
}

pub(super) fn operations() -> Operations {
    Operations::default()
        .with(
            Operation::get(
                "/api/v1/resources",
                "listResources",
                "Lists resources, newest first.",
            )
            .scope(Scope::Read)
            .query(FILTERS)
            .ok(shape::page::<Resource>("resources")),
            list,
        )
        .with(
            Operation::post(UPLOADS, "uploadFile", "Stores a file.")
                .scope(Scope::Run)
                .query(upload::QUERY)
                .file()
                .json(
                    StatusCode::CREATED,
                    "A reference to the file.",
                    shape::of::<Reference>(),
                )
                .refuses(&[409, 422]),
            upload::upload,
        )
        .with(
            Operation::delete("/api/v1/resources", "deleteResource", "Deletes a resource.")
                .scope(Scope::Edit)
                .query(DELETE)
                .reply(StatusCode::NO_CONTENT, "It is deleted.", Content::Nothing)
                .refuses(&[409, 410]),
            delete,
        )
        .with(
            Operation::get(
                "/api/v1/resources/content",
                "getContent",
                "Returns the contents of a resource.",
            )
            .scope(Scope::Read)
            .query(URI)
            .headers(content::HEADERS)
            .reply(StatusCode::OK, "The contents.", Content::Bytes("*/*"))
            .reply(
                StatusCode::PARTIAL_CONTENT,
                "A range of the contents.",
                Content::Bytes("*/*"),
            )
            .reply(
                StatusCode::NOT_MODIFIED,
                "The contents are those of `If-None-Match`.",
                Content::Nothing,
            )
            .refuses(&[410, 416]),
            content::by_token,
        )
        .with(
            Operation::post(
                "/api/v1/resources/url",
                "createLink",
                "Makes a link to a resource that needs no token.",
            )
            .scope(Scope::Read)
            .members(LINK)
            .ok(Shape::Members(vec![
                ("url", Shape::Text),
                ("expiresAt", Shape::Text),
            ]))
            .refuses(&[410, 422]),
            url,
        )
}

const URI: &[Param] = &[Param::text("uri", "The resource.").needed()];
const DELETE: &[Param] = &[
    Param::flag("force", "Deletes it even if an unfinished run needs it."),
    Param::text("uri", "The resource.").needed(),
];
const LINK: &[Param] = &[
    Param::number("ttl", "How many seconds the link is good for."),
    Param::text("uri", "The resource.").needed(),
];

/// The route that takes files.
pub(super) const UPLOADS: &str = "/api/v1/resources";

/// Maximum number of resources that are read to fill a page of those that the caller reaches.
const SCANNED_MAX: usize = 5_000;

const FILTERS: &[Param] = &[
    Param::flag("all", "Also resources that are deleted or expired."),
    CURSOR,
    LIMIT,
    Param::text("prefix", "Only resources whose names begin like this."),
    Param::text("run", "Only resources of this run."),
    Param::new(
        "sort",
        Kind::OneOf(&["created", "name"]),
        "The order; `created`, the newest first, if it is left out.",
    ),
    Param::text("tier", "Only resources of this tier."),
    Param::new("types", Kind::Texts, "Only resources of these types."),
];

async fn list(
    State(server): State<Shared>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Read)?;
    let given = Query::read(query.as_deref(), &names(FILTERS))?;
    let limit = given.limit()?;
    let names = names(FILTERS).into_iter();
    let filters: Vec<String> = names
        .filter(|name| !["cursor", "limit"].contains(name))
        .map(|name| format!("{name}={:?}", given.get(name)))
        .collect();
    let filters = filters.join("&");
    let mut query = resource_query(&given)?;
    if let Some(text) = given.get("cursor") {
        query.after = Some(cursor::read(text, &filters)?);
    }
    let page = server
        .ask(async move |cx: &EngineContext| page(cx, &caller, query, limit).await)
        .await?;
    let shown: Vec<Json> = page.0;
    let next = page.1.map(|after| cursor::write(&after, &filters));
    Ok(Answer::ok(json!({"resources": shown, "next": next})))
}

fn resource_query(given: &Query) -> Result<ResourceQuery, Problem> {
    let mut kinds = Vec::new();
    for name in given.list("types") {
        let kind = ResourceKind::from_name(&name);
        kinds.push(kind.ok_or_else(|| {
            let names: Vec<&str> = ResourceKind::NAMES.iter().map(|(_, name)| *name).collect();
            Problem::malformed(format!("`types` can be {}, got `{name}`", names.join(", ")))
        })?);
    }
    let tier = match given.get("tier") {
        None => None,
        Some(name) => Some(Tier::from_name(name).ok_or_else(|| {
            Problem::malformed(format!(
                "`tier` must be retained or ephemeral, got `{name}`"
            ))
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
    cx: &EngineContext,
    caller: &Caller,
    mut query: ResourceQuery,
    limit: usize,
) -> Result<(Vec<Json>, Option<String>), Problem> {
    let mut shown = Vec::new();
    let mut scanned = 0;
    loop {
        query.limit = limit - shown.len();
        let ResourcePage { rows, next } = cx.engine.stores().resources.list(query.clone()).await?;
        scanned += rows.len();
        for row in &rows {
            if sees(cx, caller, row).await? {
                shown.push(resource_json(row));
            }
        }
        if next.is_none() || shown.len() >= limit || scanned >= SCANNED_MAX {
            return Ok((shown, next));
        }
        query.after = next;
    }
}

/// Tells whether the caller reaches a resource: by its name, and by the installation that has it.
pub(super) async fn sees(
    cx: &EngineContext,
    caller: &Caller,
    row: &ResourceRow,
) -> Result<bool, Problem> {
    let run = match &row.run {
        Some(run) => cx.engine.run(&RunId::from_text(run.as_str())).await,
        None => return Ok(caller.sees_resource(row, None)),
    };
    match run {
        Ok(run) => Ok(caller.sees_resource(row, Some(&run.flow))),
        // It was removed, or never ran here.
        Err(EngineError::NoSuchRun { .. }) => Ok(caller.sees_resource(row, None)),
        Err(error) => Err(error.into()),
    }
}

/// Returns a resource that is there and that the caller reaches.
async fn reached(cx: &EngineContext, caller: &Caller, uri: &str) -> Result<ResourceRow, Problem> {
    let missing = || {
        let uri = uri.to_owned();
        Problem::from(EngineError::from(ResourceError::Missing { uri }))
    };
    // Without reach, a resource that is gone looks like one that never was.
    let row = cx.engine.resource(uri).await?;
    if !sees(cx, caller, &row).await? {
        return Err(missing());
    }
    Ok(cx.engine.live_resource(&row.uri).await?)
}

async fn delete(
    State(server): State<Shared>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    caller.need(Scope::Edit)?;
    let query = Query::read(query.as_deref(), &names(DELETE))?;
    let (uri, force) = (query.needed("uri")?, query.flag("force")?);
    server
        .ask(async move |cx: &EngineContext| {
            let row = reached(cx, &caller, &uri).await?;
            cx.engine.delete_resource(&row.uri, force).await?;
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
    let given = Members::read(&headers, body, &names(LINK)).await?;
    let uri = given.text("uri")?;
    let uri = uri.ok_or_else(|| Problem::malformed("`uri` is missing"))?;
    let ttl = link_ttl(&given)?;
    let (url, expires_ms) = server
        .ask(async move |cx: &EngineContext| {
            let row = reached(cx, &caller, &uri).await?;
            Ok::<_, Problem>(cx.engine.link(&row.uri, ttl).await?)
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
