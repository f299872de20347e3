//! Server-sent events: the feed of a run, and that of the project.
//!
//! A reader takes pages from the journal at its own pace, so a slow one needs no more memory than a fast one. What waits for
//! its connection is bounded; one that takes nothing is sent `resync`, and continues later from the number that it had.

mod backlog;
mod readers;
pub(super) mod sse;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use flowstone_engine::feed_event::FeedEvent;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{FeedDetail, LiveText, News};
use flowstone_engine::token::Scope;
use flowstone_engine::{EngineError, FeedState, ProjectFeed, RunEvents, RunFeed};
use serde_json::json;

use super::access::{Caller, ProofClass, bearer, unauthorized};
use super::answer::Answer;
use super::operation::{Content, Kind, Operation, Operations, Param, Shape, names};
use super::problem::{Problem, codes};
use super::request::{Members, Query};
use super::runs::reached;
use super::server::{EngineContext, Shared};
use crate::json::instant;
pub(super) use readers::{Place, Readers, Streamed};
use sse::Stream;

/// Maximum number of events that are read at a time.
const PAGE: usize = 64;

pub(super) fn operations() -> Operations {
    Operations::default()
        .with(
            Operation::get(
                "/api/v1/events",
                "followProject",
                "Streams the events of all runs as server-sent events.",
            )
            .scope(Scope::Read)
            .query(OF_PROJECT)
            .headers(LAST)
            .reply(StatusCode::OK, "The events.", STREAM),
            of_project,
        )
        .with(
            Operation::get(
                "/api/v1/runs/{id}/events",
                "followRun",
                "Streams the events of a run as server-sent events.",
            )
            .query(OF_RUN)
            .headers(LAST)
            .reply(StatusCode::OK, "The events.", STREAM)
            .reply(
                StatusCode::NO_CONTENT,
                "The run is over, and its last event was received.",
                Content::Nothing,
            )
            .refuses(&[410]),
            of_run,
        )
        .with(
            Operation::post(
                "/api/v1/stream-tokens",
                "createStreamToken",
                "Creates a token for streams, which is good for 15 minutes.",
            )
            .members(STREAM_TOKEN)
            .json(
                StatusCode::CREATED,
                "The token.",
                Shape::Members(vec![("token", Shape::Text), ("expiresAt", Shape::Text)]),
            ),
            stream_token,
        )
}

const STREAM: Content = Content::Bytes("text/event-stream");
const LAST: &[Param] = &[Param::number(
    "Last-Event-ID",
    "The number of the last event that was received.",
)];
const SINCE: Param = Param::number(
    "since_seq",
    "As `Last-Event-ID`, for clients that cannot send headers.",
);
const TOKEN: Param = Param::text(
    "token",
    "A stream token, for clients that cannot send headers.",
);
const OF_PROJECT: &[Param] = &[
    Param::new(
        "detail",
        Kind::OneOf(&["steps"]),
        "`steps` adds the events of steps.",
    ),
    SINCE,
    TOKEN,
];
const OF_RUN: &[Param] = &[
    Param::flag("full", "The event of the creation has the input."),
    SINCE,
    TOKEN,
];
const STREAM_TOKEN: &[Param] = &[Param::text(
    "run",
    "The run; the stream of the project if it is left out.",
)];

async fn stream_token(
    State(server): State<Shared>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    let given = Members::read(&headers, body, &names(STREAM_TOKEN)).await?;
    let run = given.text("run")?;
    if run.is_none() {
        caller.need(Scope::Read)?;
    }
    let (token, expires_ms) = server
        .ask(async move |cx: &EngineContext| {
            if let Some(run) = &run {
                reached(cx, &caller, run).await?;
            }
            Ok::<_, Problem>(cx.engine.stream_token(&caller.token, run.as_deref())?)
        })
        .await?;
    let body = json!({"token": token, "expiresAt": instant(expires_ms)});
    Ok(Answer::with(StatusCode::CREATED, body))
}

/// Returns who follows events: by the token in a header, or by a stream token in the address.
async fn follower(
    server: &Shared,
    parts: &Parts,
    query: &Query,
    run: Option<String>,
) -> Result<Caller, Problem> {
    let text = match (bearer(&parts.headers)?, query.owned("token")) {
        (None, Some(text)) => text,
        // The token in the header is the caller's own.
        (Some(_), _) | (None, None) => return server.caller(parts).await,
    };
    let accepted = server
        .ask(async move |cx: &EngineContext| {
            cx.engine.accept_stream_token(&text, run.as_deref()).await
        })
        .await?;
    accepted.map(|token| Caller { token }).map_err(|why| {
        tracing::warn!(target: "flowstone::server", reason = why.name(), "a stream token was not accepted");
        let refused = unauthorized("the token is not accepted");
        server.failed(parts, ProofClass::Token, (why.name(), refused))
    })
}

/// Returns the number after which a reader continues, if it named one.
pub(super) fn position(headers: &HeaderMap, query: &Query) -> Result<Option<i64>, Problem> {
    let mut sent = headers.get_all("last-event-id").iter();
    let text = match (sent.next(), sent.next()) {
        (None, _) => query.get("since_seq"),
        (Some(last), None) => Some(last.to_str().unwrap_or("?")),
        (Some(_), Some(_)) => Some("?"),
    };
    let Some(text) = text else {
        return Ok(None);
    };
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<i64>() {
        Ok(number) if is_number => Ok(Some(number)),
        Ok(_) | Err(_) => Err(Problem::malformed(
            "`Last-Event-ID` and `since_seq` must be one number of an event",
        )),
    }
}

async fn of_run(
    State(server): State<Shared>,
    Path(id): Path<String>,
    parts: Parts,
) -> Result<Response, Problem> {
    let query = Query::read(parts.uri.query(), &names(OF_RUN))?;
    let caller = follower(&server, &parts, &query, Some(id.clone())).await?;
    let since = position(&parts.headers, &query)?;
    let full = query.flag("full")?;
    let asking = caller.clone();
    let (run, feeds) = server
        .ask(async move |cx: &EngineContext| {
            let row = reached(cx, &asking, &id).await?;
            Ok::<_, Problem>((row.id, cx.engine.feeds()))
        })
        .await?;
    let mut reader = feeds.follow(&run, since.unwrap_or(0));
    if full {
        reader = reader.with_input();
    }
    let mut follow = RunFollower {
        news: feeds.watch(&run),
        live: feeds.live(&run),
        reader,
        run,
    };
    let first = follow.page().await?;
    match first.state {
        FeedState::Gone => return Err(gone(&follow.run)),
        // This is what keeps an EventSource from coming back.
        FeedState::Ended if first.events.is_empty() && since.is_some() => {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        FeedState::More | FeedState::Open | FeedState::Ended => {}
    }
    let place = server.readers.enter(&caller.token.id, Streamed::Run)?;
    let (stream, response) = Stream::start(server.clone(), (&caller, Streamed::Run));
    tokio::spawn(async move {
        let _place = place;
        follow.send(first, stream).await;
    });
    Ok(response)
}

fn gone(run: &RunId) -> Problem {
    EngineError::Pruned {
        run: run.to_string(),
    }
    .into()
}

/// Follows one run.
struct RunFollower {
    run: RunId,
    reader: RunFeed,
    news: Box<dyn News>,
    live: Box<dyn LiveText>,
}

impl RunFollower {
    async fn page(&mut self) -> Result<RunEvents, Problem> {
        self.news.mark_seen();
        let page = self.reader.page(PAGE).await.map_err(EngineError::from)?;
        page.ok_or_else(|| {
            let run = self.run.to_string();
            EngineError::NoSuchRun { run }.into()
        })
    }

    /// Sends events until the run is over, or the reader or the server goes.
    async fn send(mut self, first: RunEvents, mut stream: Stream) {
        let mut page = first;
        loop {
            for event in &page.events {
                if stream.event(event.seq, event).await.is_err() {
                    return;
                }
            }
            match page.state {
                FeedState::More => {}
                FeedState::Ended | FeedState::Gone => return,
                FeedState::Open => {
                    if self.wait(&mut stream).await.is_err() {
                        return;
                    }
                }
            }
            page = match self.page().await {
                Ok(page) => page,
                Err(problem) => {
                    tracing::warn!(run = %self.run, detail = problem.detail, "a feed cannot be read");
                    return;
                }
            };
        }
    }

    /// Sends the text of models until there may be events.
    async fn wait(&mut self, stream: &mut Stream) -> Result<(), sse::Closed> {
        loop {
            for piece in self.live.pieces() {
                let data = json!({
                    "path": piece.path,
                    "offset": piece.offset,
                    "text": piece.text,
                    "final": false,
                });
                stream.note("text", &data).await?;
            }
            tokio::select! {
                () = self.news.changed() => return Ok(()),
                () = self.live.changed() => {}
                closed = stream.idle() => return Err(closed),
            }
        }
    }
}

async fn of_project(State(server): State<Shared>, parts: Parts) -> Result<Response, Problem> {
    let query = Query::read(parts.uri.query(), &names(OF_PROJECT))?;
    let caller = follower(&server, &parts, &query, None).await?;
    caller.need(Scope::Read)?;
    let detail = match query.get("detail") {
        None => FeedDetail::Events,
        Some("steps") => FeedDetail::Steps,
        Some(other) => {
            return Err(Problem::new(
                StatusCode::BAD_REQUEST,
                codes::MALFORMED,
                format!("`detail` must be steps, got `{other}`"),
            ));
        }
    };
    let since = position(&parts.headers, &query)?;
    let feeds = server
        .ask(async |cx: &EngineContext| Ok::<_, Problem>(cx.engine.feeds()))
        .await?;
    let after = match since {
        Some(position) => position,
        None => feeds.last_position().await.map_err(EngineError::from)?,
    };
    let place = server.readers.enter(&caller.token.id, Streamed::Project)?;
    let (stream, response) = Stream::start(server.clone(), (&caller, Streamed::Project));
    let follow = ProjectFollower {
        news: feeds.watch_project(),
        reader: feeds.follow_project(after, detail),
        seen: readers::Reached::new(server, caller),
    };
    tokio::spawn(async move {
        let _place = place;
        follow.send(stream).await;
    });
    Ok(response)
}

/// Follows all runs that a caller reaches.
struct ProjectFollower {
    reader: ProjectFeed,
    news: Box<dyn News>,
    seen: readers::Reached,
}

impl ProjectFollower {
    async fn send(mut self, mut stream: Stream) {
        loop {
            self.news.mark_seen();
            let page = match self.reader.page(PAGE).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::warn!(%error, "the feed of the project cannot be read");
                    return;
                }
            };
            for event in &page.events {
                let is_sent = self.send_one(event, &mut stream).await;
                if is_sent.is_err() {
                    return;
                }
            }
            if !page.events.is_empty() {
                continue;
            }
            let closed = tokio::select! {
                () = self.news.changed() => None,
                closed = stream.idle() => Some(closed),
            };
            if closed.is_some() {
                return;
            }
        }
    }

    async fn send_one(
        &mut self,
        event: &FeedEvent,
        stream: &mut Stream,
    ) -> Result<(), sse::Closed> {
        if !self.seen.reaches(&event.run, &event.flow).await {
            return Ok(());
        }
        stream
            .event(event.position.unwrap_or(event.seq), event)
            .await
    }
}

/// The headers of a stream of events.
pub(super) fn headers_of_stream(response: &mut Response) {
    let headers = response.headers_mut();
    let pairs = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    for (name, value) in pairs {
        headers.insert(name, header::HeaderValue::from_static(value));
    }
}
