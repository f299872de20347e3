//! `/runs/{id}`: the page of a run, for the holder of a link or of a token.

use std::time::Instant;

use axum::body::Body;
use axum::extract::{Extension, Path, RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use flowstone_engine::codec;
use flowstone_engine::ids::RunId;
use flowstone_engine::json::items;
use flowstone_engine::links::LinkError;
use flowstone_engine::ports::ResourceRow;
use flowstone_engine::resource::{ResourceKind, flow_output, sign};
use flowstone_engine::token::Scope;
use flowstone_engine::viewer::{TableView, View};
use flowstone_engine::{Direct, EngineError, RunReport};
use flowstone_lang::value::Value;
use serde_json::json;

use super::page;
use crate::http::access::{Caller, ProofClass, unauthorized};
use crate::http::answer::Answer;
use crate::http::operation::{Param, names};
use crate::http::problem::Problem;
use crate::http::request::{Members, Query};
use crate::http::resources::{link_ttl, sees};
use crate::http::runs::reached;
use crate::http::server::{EngineContext, Peer, Shared};
use crate::json::instant;
use crate::pages::{Resolved, Resources, RunPage, expanded};

/// What the page may load: its style, and pictures, sounds and films of the project.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; media-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'";
/// The way from the page to the root of the server.
const ROOT: &str = "../";
/// Bytes of a result that is drawn.
const RESULT_MAX: usize = 1 << 20;
/// Resources that a page refers to.
const RESOURCES_MAX: usize = 100;
/// Rows of a table that are drawn.
const ROWS: i64 = 100;

/// Who looks at a run.
enum Viewer {
    Caller(Box<Caller>),
    /// The holder of a link, and when it ends.
    Link(i64),
}

pub(super) async fn show(
    State(server): State<Shared>,
    Extension(peer): Extension<Peer>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let query = Query::read(query.as_deref(), &["expires", "signature"])?;
    let is_bearer = parts.headers.contains_key("authorization");
    let viewer = match (is_bearer, query.owned("expires"), query.owned("signature")) {
        (true, _, _) => Viewer::Caller(Box::new(server.caller(&parts).await?)),
        (false, Some(expires), Some(signature)) => {
            let id = id.clone();
            let checked = server
                .ask(async move |cx: &EngineContext| {
                    cx.engine.check_run_link(&id, &expires, &signature)
                })
                .await;
            Viewer::Link(checked.map_err(|problem| counted(&server, peer, problem))?)
        }
        (false, _, _) => {
            return Err(unauthorized("this page needs a link, or an access token")
                .hint("make a link with `flowstone runs url`"));
        }
    };
    let html = server
        .ask(async move |cx: &EngineContext| html(cx, &id, &viewer).await)
        .await?;
    Ok(page(StatusCode::OK, html, POLICY))
}

pub(super) const URL: &[Param] = &[Param::number(
    "ttl",
    "How many seconds the link is good for.",
)];

/// `POST /api/v1/runs/{id}/url`: a link to the page, as `runs url` makes it.
pub(super) async fn url(
    State(server): State<Shared>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    let given = Members::read(&headers, body, &names(URL)).await?;
    let ttl = link_ttl(&given)?;
    let (url, expires_ms) = server
        .ask(async move |cx: &EngineContext| {
            let row = reached(cx, &caller, &id).await?;
            caller.need(Scope::Read)?;
            Ok::<_, Problem>(cx.engine.run_link(&row.id, ttl).await?)
        })
        .await?;
    Ok(Answer::ok(
        json!({"url": url, "expiresAt": instant(expires_ms)}),
    ))
}

/// Counts a link that was forged; after too many, the answer is that there were too many.
fn counted(server: &Shared, Peer(peer): Peer, problem: Problem) -> Problem {
    let forged = LinkError::Run(sign::BadLink::Forged).code();
    if problem.code != forged || problem.status == StatusCode::GONE {
        return problem;
    }
    server.metrics.refused("link");
    let refused = server
        .failures
        .note(peer.ip(), ProofClass::RunLink, Instant::now());
    refused.unwrap_or(problem)
}

async fn html(cx: &EngineContext, id: &str, viewer: &Viewer) -> Result<String, Problem> {
    let engine = &cx.engine;
    let run = match viewer {
        Viewer::Caller(caller) => reached(cx, caller, id).await?.id,
        Viewer::Link(_) => RunId::from_text(id),
    };
    let report = engine.show_run(&run).await?;
    let now_ms = engine.now_ms();
    let (until_ms, expires_ms) = match viewer {
        Viewer::Link(end) => (Some(*end), *end),
        Viewer::Caller(_) => (None, now_ms + sign::DEFAULT_TTL * 1_000),
    };
    let view = view(&report)?;
    let mut resources = Resources::new();
    for uri in view.iter().flat_map(View::resources).take(RESOURCES_MAX) {
        if !resources.contains_key(uri)
            && let Some(found) = resolved(cx, viewer, uri, expires_ms).await?
        {
            resources.insert(uri.to_owned(), found);
        }
    }
    let page = RunPage {
        report: &report,
        view: view.as_ref(),
        resources: &resources,
        content: content(cx, viewer, &report, expires_ms).await?,
        until_ms,
        root: ROOT,
        now_ms,
    };
    Ok(page.html())
}

/// Returns how the result is shown; `None` if the run has no result, or one that is too large.
fn view(report: &RunReport) -> Result<Option<View>, Problem> {
    let result = report.row.result.as_deref();
    let Some(text) = result.filter(|text| text.len() <= RESULT_MAX) else {
        return Ok(None);
    };
    let value = codec::decode(text).map_err(EngineError::from)?;
    Ok(Some(expanded(View::of(&value))))
}

/// Returns where the whole result is, and its size.
async fn content(
    cx: &EngineContext,
    viewer: &Viewer,
    report: &RunReport,
    expires_ms: i64,
) -> Result<Option<(String, usize)>, Problem> {
    let Some(result) = &report.row.result else {
        return Ok(None);
    };
    let uri = flow_output(report.row.id.as_str());
    let found = resolved(cx, viewer, &uri, expires_ms).await?;
    Ok(found.map(|found| (found.href, result.len())))
}

/// Returns what is known of a resource that the viewer may see.
async fn resolved(
    cx: &EngineContext,
    viewer: &Viewer,
    uri: &str,
    expires_ms: i64,
) -> Result<Option<Resolved>, Problem> {
    let row = match cx.engine.live_resource(uri).await {
        Ok(row) => row,
        Err(EngineError::Resource(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if let Viewer::Caller(caller) = viewer
        && !sees(cx, caller, &row).await?
    {
        return Ok(None);
    }
    Ok(Some(Resolved {
        href: cx
            .engine
            .link_below(ROOT.trim_end_matches('/'), &row, expires_ms)?,
        rows: rows(cx, &row).await?,
        content_type: row.content_type,
        name: row.name,
        size: row.size,
    }))
}

/// Returns the first rows of a table, and whether there are more.
async fn rows(cx: &EngineContext, row: &ResourceRow) -> Result<Option<(TableView, bool)>, Problem> {
    if row.kind != ResourceKind::Table {
        return Ok(None);
    }
    let keyword = Value::keyword;
    let page = Value::map([(keyword("limit"), Value::Int(ROWS))]);
    let direct = Direct {
        kind: "table",
        config: Value::map([
            (keyword("op"), keyword("query")),
            (keyword("table"), Value::from(row.uri.as_str())),
            (keyword("page"), page),
        ]),
        folder: None,
    };
    let found = cx.engine.perform(direct).await?;
    let rows = found.get("rows").cloned().unwrap_or(Value::Nil);
    let count = items(&rows).map_or(0, |rows| rows.len());
    Ok(match View::of(&rows) {
        View::Table(table) => Some((table, count >= ROWS as usize)),
        _ => None,
    })
}
