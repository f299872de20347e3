//! The events of runs, as a list and as server-sent events.

use axum::Router;
use axum::extract::{FromRequestParts, Path, RawQuery, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flowstone_engine::json::compact;
use flowstone_engine::ports::{News, RunRow};
use flowstone_fronts::graph::error::GraphError;
use flowstone_fronts::graph::events::RunEvent;
use flowstone_fronts::graph::runs::{self, FeedState, Reader};
use serde_json::{Value as Json, json};

use super::public::own;
use super::runs::readable;
use super::visitor::{Visitor, address, project};
use crate::http::access::{Caller, unauthorized};
use crate::http::answer::Answer;
use crate::http::feed::sse::Stream;
use crate::http::feed::{Streamed, position};
use crate::http::problem::Problem;
use crate::http::request::Query;
use crate::http::server::{EngineContext, Shared};

/// The default and the maximum number of events in a list.
const LIMIT: (i64, i64) = (100, 500);

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/v1/{app_id}/agents/{name}/runs/{id}/events", get(follow))
        .route(
            "/v1/{app_id}/agents/{name}/runs/{id}/events.json",
            get(list),
        )
        .route("/v1/{app_id}/public/runs/{id}/events", get(follow_own))
        .route("/v1/{app_id}/public/runs/{id}/events.json", get(list_own))
}

const OF_LIST: &[&str] = &["limit", "since_seq"];
const OF_STREAM: &[&str] = &["since_seq", "token"];

async fn list(
    State(server): State<Shared>,
    visitor: Visitor,
    Path((_, name, id)): Path<(String, String, String)>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    visitor.owner_or_program()?;
    let (after, limit) = page(&headers, query.as_deref())?;
    let events = server
        .ask(async move |cx: &EngineContext| {
            let row = readable(cx, &visitor, (&name, &id)).await?;
            Ok::<_, Problem>(runs::events(&cx.engine, &row, after, limit).await?)
        })
        .await?;
    Ok(Answer::ok(json!({"events": events})))
}

async fn list_own(
    State(server): State<Shared>,
    visitor: Visitor,
    Path((_, id)): Path<(String, String)>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    let (after, limit) = page(&headers, query.as_deref())?;
    let events = server
        .ask(async move |cx: &EngineContext| {
            let row = own(cx, &visitor, &id).await?;
            runs::events(&cx.engine, &row, after, limit).await
        })
        .await?;
    Ok(Answer::ok(json!({"events": events})))
}

/// Returns the number of the event before a list, and the length of the list.
fn page(headers: &HeaderMap, query: Option<&str>) -> Result<(i64, usize), Problem> {
    let query = Query::read(query, OF_LIST)?;
    let (usual, most) = LIMIT;
    let limit = query.number("limit")?.unwrap_or(usual).clamp(1, most);
    let after = position(headers, &query)?.unwrap_or(0);
    Ok((after, usize::try_from(limit).unwrap_or(1)))
}

async fn follow(
    State(server): State<Shared>,
    visitor: Visitor,
    Path((_, name, id)): Path<(String, String, String)>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    visitor.owner_or_program()?;
    let query = Query::read(query.as_deref(), OF_STREAM)?;
    let since = position(&headers, &query)?;
    let caller = visitor.caller.clone();
    let opened = server
        .ask(async move |cx: &EngineContext| {
            let row = readable(cx, &visitor, (&name, &id)).await?;
            Ok::<_, Problem>(open(cx, &row).await?)
        })
        .await?;
    stream(&server, caller, opened, since).await
}

/// The caller of a public stream, identified by a token in a header, or by a stream token in the address.
struct Follower(Visitor);

impl FromRequestParts<Shared> for Follower {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Shared) -> Result<Follower, Problem> {
        let query = Query::read(parts.uri.query(), OF_STREAM)?;
        let Some(text) = query.owned("token") else {
            if !["authorization", "apikey"]
                .iter()
                .any(|name| parts.headers.contains_key(*name))
            {
                return Err(unauthorized("this stream needs `?token=`, a stream token"));
            }
            return Visitor::from_request_parts(parts, server)
                .await
                .map(Follower);
        };
        project(parts, server)?;
        let run = parts
            .uri
            .path()
            .split('/')
            .nth(5)
            .unwrap_or_default()
            .to_owned();
        let accepted = server
            .ask(async move |cx: &EngineContext| {
                cx.engine.accept_stream_token(&text, Some(&run)).await
            })
            .await?;
        match accepted {
            Ok(token) => Ok(Follower(Visitor::new(
                Caller { token },
                address(parts, server),
            ))),
            Err(_) => Err(unauthorized("the stream token is not accepted")
                .header(header::WWW_AUTHENTICATE, "Bearer")),
        }
    }
}

async fn follow_own(
    State(server): State<Shared>,
    Follower(visitor): Follower,
    Path((_, id)): Path<(String, String)>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let query = Query::read(query.as_deref(), OF_STREAM)?;
    let since = position(&headers, &query)?;
    let caller = visitor.caller.clone();
    let opened = server
        .ask(async move |cx: &EngineContext| {
            let row = own(cx, &visitor, &id).await?;
            open(cx, &row).await
        })
        .await?;
    stream(&server, caller, opened, since).await
}

async fn open(cx: &EngineContext, row: &RunRow) -> Result<Reader, GraphError> {
    let reader = Reader::open(&cx.engine, row).await?;
    reader.ok_or_else(|| runs::no_run(row.id.as_str()))
}

/// Streams events after a number until the run ends.
async fn stream(
    server: &Shared,
    caller: Caller,
    reader: Reader,
    since: Option<i64>,
) -> Result<Response, Problem> {
    let mut follow = Follow {
        news: reader.news(),
        reader,
        after: since.unwrap_or(0),
    };
    let (first, stand) = follow.page().await?;
    // This status keeps an EventSource from reconnecting.
    if stand == FeedState::Ended && first.is_empty() && since.is_some() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let place = server.readers.enter(&caller.token.id, Streamed::Run)?;
    let (stream, response) = Stream::start(server.clone(), (&caller, Streamed::Run));
    tokio::spawn(async move {
        let _place = place;
        follow.send((first, stand), stream).await;
    });
    Ok(response)
}

/// Follows one run.
struct Follow {
    reader: Reader,
    news: Box<dyn News>,
    after: i64,
}

impl Follow {
    /// Returns the events that the client has not received yet. Rows that are added meanwhile are signalled as news.
    async fn page(&mut self) -> Result<(Vec<RunEvent>, FeedState), Problem> {
        loop {
            self.news.mark_seen();
            let (mut events, stand) = self.reader.page().await?;
            events.retain(|event| event.seq > self.after);
            if let Some(last) = events.last() {
                self.after = last.seq;
            }
            if !events.is_empty() || stand != FeedState::More {
                return Ok((events, stand));
            }
        }
    }

    async fn send(mut self, first: (Vec<RunEvent>, FeedState), mut stream: Stream) {
        let (mut events, mut stand) = first;
        loop {
            for event in &events {
                let data = compact(&Json::Object(event.data.clone()));
                if stream.frame(event.seq, event.kind, &data).await.is_err() || event.is_last() {
                    return;
                }
            }
            match stand {
                FeedState::More => {}
                FeedState::Ended => return,
                FeedState::Open => {
                    tokio::select! {
                        () = self.news.changed() => {}
                        _closed = stream.idle() => return,
                    }
                }
            }
            match self.page().await {
                Ok(next) => (events, stand) = next,
                Err(problem) => {
                    tracing::warn!(
                        detail = problem.detail,
                        "the events of a graph run cannot be read"
                    );
                    return;
                }
            }
        }
    }
}
