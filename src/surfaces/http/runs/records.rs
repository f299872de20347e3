//! What is kept of a run besides its steps: its events by page, its spans, and the run as a file.

use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use flowstone_engine::installation::Side;
use flowstone_engine::token::Scope;
use flowstone_engine::{EngineError, FeedState};
use serde_json::{Value as Json, json};

use super::super::access::Caller;
use super::super::answer::Answer;
use super::super::feed::position;
use super::super::operation::{Content, LIMIT, Operation, Operations, Param, Shape, names};
use super::super::problem::{Problem, codes};
use super::super::request::Query;
use super::super::server::{EngineContext, Shared};
use super::reach::{reached, reached_as};
use crate::json::feed_event_json;
use crate::telemetry;

pub(super) fn operations() -> Operations {
    let object = || Shape::ListOf(Box::new(Shape::Map(Box::new(Shape::Any))));
    let events = Shape::Members(vec![
        ("events", object()),
        ("next", Shape::Maybe(Box::new(Shape::Number))),
        ("ended", Shape::Flag),
    ]);
    Operations::default()
        .with(
            Operation::get(
                "/api/v1/runs/{id}/export",
                "exportRun",
                "Returns a file with a run and everything it needs, for `flowstone runs import`.",
            )
            .scope(Scope::Read)
            .query(EXPORT)
            .reply(StatusCode::OK, "The file.", Content::Bytes(ARCHIVE))
            .refuses(&[410]),
            export,
        )
        .with(
            Operation::get(
                "/api/v1/runs/{id}/feed",
                "listRunEvents",
                "Returns the events of a run that come after a number, a page at a time.",
            )
            .query(FEED)
            .ok(events)
            .refuses(&[410]),
            feed,
        )
        .with(
            Operation::get(
                "/api/v1/runs/{id}/spans",
                "listRunSpans",
                "Returns the spans of a run, each as in the JSON of OTLP.",
            )
            .ok(Shape::Members(vec![("spans", object())]))
            .refuses(&[410]),
            spans,
        )
}

const ARCHIVE: &str = "application/edn";
const EXPORT: &[Param] = &[Param::flag(
    "children",
    "Also the child runs that it started.",
)];
const FEED: &[Param] = &[
    Param::flag("full", "The event of the creation has the input."),
    LIMIT,
    Param::number("since_seq", "The number of the last event that is known."),
];

/// `GET /api/v1/runs/{id}/feed`: the events of the stream, as `runs feed --json` prints them.
async fn feed(
    State(server): State<Shared>,
    caller: Caller,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    let query = Query::read(query.as_deref(), &names(FEED))?;
    let since = position(&HeaderMap::new(), &query)?.unwrap_or(0);
    let (full, limit) = (query.flag("full")?, query.limit()?);
    let page = server
        .ask(async move |cx: &EngineContext| {
            let run = reached(cx, &caller, &id).await?.id;
            let mut reader = cx.engine.feeds().follow(&run, since);
            if full {
                reader = reader.with_input();
            }
            let missing = || EngineError::NoSuchRun { run: id.clone() };
            let page = reader.page(limit).await.map_err(EngineError::from)?;
            let page = page.ok_or_else(missing)?;
            let (is_full, ended) = match page.state {
                FeedState::Gone => return Err(EngineError::Pruned { run: id }.into()),
                FeedState::More => (true, false),
                FeedState::Open => (false, false),
                FeedState::Ended => (false, true),
            };
            let last = page.events.last().map_or(since, |event| event.seq);
            let next = is_full.then_some(last);
            let events: Vec<Json> = page.events.iter().map(feed_event_json).collect();
            Ok::<_, Problem>(json!({"events": events, "next": next, "ended": ended}))
        })
        .await?;
    Ok(Answer::ok(page))
}

/// `GET /api/v1/runs/{id}/spans`.
async fn spans(
    State(server): State<Shared>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Answer, Problem> {
    let spans = server
        .ask(async move |cx: &EngineContext| {
            let (run, side) = reached_as(cx, &caller, (&id, Side::is_any)).await?;
            let mut spans = cx.engine.spans_of(&run.id).await?;
            if !side.is_author() {
                // That there was a run, when, and how it ended is the installer's; what it did is the author's.
                spans.retain(|span| span.parent.is_none());
                spans.truncate(1);
                spans.iter_mut().for_each(|span| span.attributes.clear());
            }
            Ok::<_, Problem>(telemetry::spans_json(&spans))
        })
        .await?;
    Ok(Answer::ok(json!({"spans": spans})))
}

/// `GET /api/v1/runs/{id}/export`: the file that `runs export` writes.
async fn export(
    State(server): State<Shared>,
    caller: Caller,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    caller.need(Scope::Read)?;
    let query = Query::read(query.as_deref(), &names(EXPORT))?;
    let children = query.flag("children")?;
    let (run, text) = server
        .ask(async move |cx: &EngineContext| {
            let run = reached(cx, &caller, &id).await?.id;
            whole(&caller)?;
            let archive = cx.engine.export_run(&run, children).await?;
            Ok::<_, Problem>((run, archive.write()))
        })
        .await?;
    let mut response = text.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(ARCHIVE));
    let name = format!("attachment; filename=\"{run}.edn\"");
    if let Ok(name) = HeaderValue::from_str(&name) {
        headers.insert(header::CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

/// Refuses callers that do not reach everything: the file also has the flow's text, child runs and stored files.
fn whole(caller: &Caller) -> Result<(), Problem> {
    let limits = &caller.token.limits;
    let is_limited =
        caller.is_limited() || !limits.resources.is_empty() || !limits.job_types.is_empty();
    match is_limited {
        false => Ok(()),
        true => Err(Problem::new(
            StatusCode::FORBIDDEN,
            codes::MISSING_SCOPE,
            "an export has the text of the flow, child runs and stored files, and the token reaches only some of them",
        )
        .hint("use a token of kind `service` without `--flow`, `--label`, `--resource` and `--job-type`")),
    }
}
