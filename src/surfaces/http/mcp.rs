//! `/mcp`: the Model Context Protocol over HTTP.
//!
//! A request of a session names it in a header; a request of the stateless revision names its revision, its method and its
//! object in headers, which must agree with the body. An answer is JSON, or a stream of events if there is something to say
//! before the answer, or the answer takes a while.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flowstone_engine::json::compact;
use flowstone_engine::trace::TraceParent;
use flowstone_fronts::kit::{DoorPermissions, KitError, Origin};
use http_body_util::channel::{Channel, Sender};
use hyper::body::{Bytes, Frame};
use serde_json::{Map, Value as Json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tracing::{Instrument as _, Span};

use super::access::Caller;
use super::answer::Answer;
use super::feed::{Place, Streamed, headers_of_stream};
use super::graph::CallerAddress;
use super::problem::{Problem, codes as problems};
use super::request::{self, JSON_MAX, refuse_other_types};
use super::rights::{Ended, Right};
use super::server::{EngineContext, Shared};
use super::{kit, trace};
use crate::kit::KitDoor;
use crate::mcp::{
    self, Era, Incoming, LEGACY, LISTEN, META_VERSION, Repeated, Request, RpcError, STATELESS,
    Session, ToolSets, codes,
};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// After this time, an answer is a stream, so that proxies and clients know that it lives.
const PLAIN: Duration = Duration::from_secs(2);
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Messages and pieces that wait for a slow client.
const BACKLOG: usize = 16;

pub(super) fn routes() -> Router<Shared> {
    let kit = post(kit_message).get(stream).delete(end);
    Router::new()
        .route("/mcp", post(message).get(stream).delete(end))
        .route("/mcp/kit/{slug}", kit)
}

/// The build kit of a flow.
async fn kit_message(
    server: State<Shared>,
    caller: Caller,
    address: CallerAddress,
    Path(slug): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let (token, named) = (caller.token.clone(), slug.clone());
    let reached = server.ask(async move |cx: &EngineContext| {
        let labels = cx.catalog.labels(&cx.engine, &named);
        Ok::<_, Problem>(token.reaches_flow(&named, &labels))
    });
    if !reached.await? {
        return Err(KitError::not_found(format!("there is no flow `{slug}`")).into());
    }
    let door = KitDoor {
        slug: Some(slug),
        permissions: DoorPermissions::default(),
        origin: Origin {
            is_test: kit::is_test(&headers),
            base: Some(kit::base(&server, &headers)),
            ..Origin::default()
        },
        is_for_model: true,
    };
    let of = (ToolSets::default(), Some(Arc::new(door)));
    incoming(server.0, (caller, address.0), of, (headers, body)).await
}

async fn message(
    State(server): State<Shared>,
    caller: Caller,
    CallerAddress(address): CallerAddress,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let sets = ToolSets::of_query(query.as_deref()).map_err(|name| unknown_set(&name))?;
    incoming(server, (caller, address), (sets, None), (headers, body)).await
}

async fn incoming(
    server: Shared,
    (caller, address): (Caller, String),
    (sets, kit): (ToolSets, Option<Arc<KitDoor>>),
    (headers, body): (HeaderMap, Body),
) -> Result<Response, Problem> {
    refuse_other_types(&headers)?;
    let bytes = request::bytes(body, JSON_MAX).await?;
    let message = match mcp::read(&bytes) {
        Ok(message) => message,
        Err((id, error)) => return Ok(rpc(StatusCode::BAD_REQUEST, &id, &Err(error))),
    };
    match message {
        Incoming::Request {
            id,
            method,
            params,
            rounded,
        } => {
            let asked = RpcRequest {
                id,
                method,
                params,
                rounded,
                sets,
                kit,
            };
            match prepared(&server, &caller, &headers, &asked) {
                Ok((era, session)) => {
                    let place = match asked.method == LISTEN {
                        true => Some(server.readers.enter(&caller.token.id, Streamed::Mcp)?),
                        false => None,
                    };
                    let repeated = era.is_stateless().then(|| repeated(&headers));
                    let from = Transport {
                        caller,
                        address,
                        parent: trace::parent(&headers),
                        repeated,
                        place,
                    };
                    Ok(answered(server, from, (era, session), asked).await)
                }
                Err(Refused::Rpc(status, error)) => Ok(rpc(status, &asked.id, &Err(error))),
                Err(Refused::Problem(problem)) => Err(*problem),
            }
        }
        Incoming::Notification { method, params } => {
            if let Some(session) = of_header(&server, &caller, &headers)?
                && method == "notifications/cancelled"
                && let Some(id) = params.get("requestId")
            {
                session.cancel(id);
            }
            Ok(StatusCode::ACCEPTED.into_response())
        }
        Incoming::Response { id, result } => {
            if let Some(session) = of_header(&server, &caller, &headers)? {
                session.answered(&id, result);
            }
            Ok(StatusCode::ACCEPTED.into_response())
        }
    }
}

fn unknown_set(name: &str) -> Problem {
    Problem::not_found(format!("there is no tool set `{name}`"))
        .hint("the tool sets are agents, flows, tree and workspace")
}

/// What the transport knows about a request.
struct Transport {
    caller: Caller,
    address: String,
    parent: Option<TraceParent>,
    repeated: Option<Repeated>,
    /// Of a stream that stays open.
    place: Option<Place>,
}

/// A request that is to be answered.
struct RpcRequest {
    id: Json,
    method: String,
    params: Map<String, Json>,
    rounded: Option<String>,
    sets: ToolSets,
    kit: Option<Arc<KitDoor>>,
}

/// Why a request is not answered.
enum Refused {
    Rpc(StatusCode, RpcError),
    Problem(Box<Problem>),
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Refused {
        Refused::Problem(Box::new(problem))
    }
}

fn bad(error: RpcError) -> Refused {
    Refused::Rpc(StatusCode::BAD_REQUEST, error)
}

/// Returns an answer as JSON.
fn rpc(status: StatusCode, id: &Json, answer: &Result<Json, RpcError>) -> Response {
    Answer::with(status, mcp::response(id, answer)).into_response()
}

/// Returns the session that a request names.
fn of_header(
    server: &Shared,
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<Option<Arc<Session>>, Problem> {
    let Some(id) = headers.get(SESSION) else {
        return Ok(None);
    };
    let found = id.to_str().ok();
    let found = found.and_then(|id| server.sessions.get(id, &caller.token.id));
    match found {
        Some(session) => Ok(Some(session)),
        None => Err(Problem::new(
            StatusCode::NOT_FOUND,
            problems::MCP_SESSION,
            "there is no such session, or it is over",
        )
        .hint("begin a new one with `initialize`")),
    }
}

/// Finds out how a request is to be understood, and checks what its headers say.
fn prepared(
    server: &Shared,
    caller: &Caller,
    headers: &HeaderMap,
    asked: &RpcRequest,
) -> Result<(Era, Option<Arc<Session>>), Refused> {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let of_header_version = text(&VERSION).map(str::trim);
    let meta = asked.params.get("_meta").and_then(Json::as_object);
    let of_meta = meta.and_then(|meta| meta.get(META_VERSION)?.as_str());
    let is_known = |version: &str| version == STATELESS || LEGACY.contains(&version);
    let known = |version: Option<&str>| match version {
        Some(version) if !is_known(version) => Err(bad(RpcError::version(version))),
        _ => Ok(()),
    };
    known(of_header_version)?;
    // A header that differs from the body is found before an unknown version in the body.
    if of_meta.is_some() && of_header_version.is_some() && of_meta != of_header_version {
        agree(headers, asked).map_err(bad)?;
    }
    known(of_meta)?;
    let is_stateless = [of_meta, of_header_version].contains(&Some(STATELESS));
    if is_stateless {
        mcp::check_meta(&asked.params).map_err(bad)?;
        agree(headers, asked).map_err(bad)?;
        return Ok((Era::Stateless, None));
    }
    if asked.method == "initialize" {
        let version = asked.params.get("protocolVersion").and_then(Json::as_str);
        let era = Era::negotiated(version);
        let capabilities = asked.params.get("capabilities").cloned();
        let capabilities = capabilities.unwrap_or(Json::Null);
        let session = Session::new(caller.token.id.clone(), era, capabilities);
        return Ok((era, Some(server.sessions.add(session))));
    }
    match of_header(server, caller, headers)? {
        Some(session) => Ok((session.era, Some(session))),
        None => Err(bad(RpcError::new(
            codes::INVALID_REQUEST,
            "the request has no `Mcp-Session-Id`; a session begins with `initialize`",
        ))),
    }
}

/// Checks that the headers of a stateless request say what its body says.
fn agree(headers: &HeaderMap, asked: &RpcRequest) -> Result<(), RpcError> {
    let of_meta = asked
        .params
        .get("_meta")
        .and_then(|meta| meta.get(META_VERSION));
    let expected = [
        (&VERSION, of_meta.and_then(Json::as_str)),
        (&METHOD, Some(asked.method.as_str())),
        (&NAME, mcp::object_of(&asked.method, &asked.params)),
    ];
    for (name, expected) in expected {
        let Some(expected) = expected else { continue };
        let given = headers.get(name).and_then(decoded);
        if given.as_deref() != Some(expected) {
            let found = given.map_or("is missing".to_owned(), |given| format!("is `{given}`"));
            let message = format!("the header `{name}` {found}, and the body says `{expected}`");
            return Err(RpcError::new(codes::HEADERS, message));
        }
    }
    Ok(())
}

/// Returns the headers that repeat arguments.
fn repeated(headers: &HeaderMap) -> Repeated {
    let named = headers.iter().filter_map(|(name, value)| {
        let name = name.as_str().strip_prefix(mcp::PREFIX)?;
        Some((name.to_owned(), decoded(value)))
    });
    named.collect()
}

/// Returns the text of a header, which may be Base64: `=?base64?...?=`.
fn decoded(value: &HeaderValue) -> Option<String> {
    let text = value.to_str().ok()?.trim();
    let inner = text
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    match inner {
        None => Some(text.to_owned()),
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
    }
}

/// Returns the status of an answer: errors that the revision gives one.
fn status_of(era: Era, answer: &Result<Json, RpcError>) -> StatusCode {
    match (era, answer.as_ref().map_err(|error| error.code)) {
        (Era::Stateless, Err(codes::METHOD)) => StatusCode::NOT_FOUND,
        (Era::Stateless, Err(codes::CAPABILITY | codes::HEADERS)) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// The work on an answer, which ends when nobody waits for it.
struct Work(JoinHandle<Result<Json, RpcError>>);

impl Drop for Work {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Work {
    async fn done(&mut self) -> Result<Json, RpcError> {
        let ended = (&mut self.0).await;
        ended.unwrap_or_else(|error| {
            tracing::error!(%error, "a request of MCP failed");
            Err(RpcError::new(
                codes::INTERNAL,
                "the request failed with an internal error",
            ))
        })
    }
}

/// An answer that is being worked on.
struct Pending {
    id: Json,
    work: Work,
    /// Messages that come before the answer.
    outgoing: mpsc::Receiver<Json>,
    session: Option<Arc<Session>>,
    cancelled: Option<watch::Receiver<bool>>,
    right: Right,
    _place: Option<Place>,
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            session.end(&self.id);
        }
    }
}

/// What happens next while an answer is worked on.
enum Next {
    Answer(Result<Json, RpcError>),
    Message(Json),
    Cancelled,
    /// The caller may no longer read the answer.
    Ended(Ended),
}

impl Pending {
    async fn next(&mut self) -> Next {
        let cancelled = async {
            match &mut self.cancelled {
                Some(cancelled) => drop(cancelled.wait_for(|it| *it).await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            ended = self.right.ended() => Next::Ended(ended),
            Some(message) = self.outgoing.recv() => Next::Message(message),
            () = cancelled => Next::Cancelled,
            answer = self.work.done() => match self.outgoing.try_recv() {
                // Nothing is lost: what came before the answer is sent first, and the answer is kept.
                Ok(message) => {
                    self.work = Work(tokio::spawn(async move { answer }));
                    Next::Message(message)
                }
                Err(_) => Next::Answer(answer),
            },
        }
    }
}

async fn answered(
    server: Shared,
    from: Transport,
    (era, session): (Era, Option<Arc<Session>>),
    asked: RpcRequest,
) -> Response {
    let (out, outgoing) = mpsc::channel(BACKLOG);
    let right = server.rights.open(&from.caller);
    let meta = asked.params.get("_meta").and_then(Json::as_object);
    let rq = Request {
        server: server.clone(),
        caller: from.caller,
        address: from.address,
        sets: asked.sets.clone(),
        kit: asked.kit.clone(),
        era,
        session: session.clone(),
        id: asked.id.clone(),
        repeated: from.repeated,
        meta: meta.cloned().unwrap_or_default(),
        rounded: asked.rounded.clone(),
        parent: from.parent,
        out,
    };
    let is_first = asked.method == "initialize" && session.is_some();
    let RpcRequest {
        id, method, params, ..
    } = asked;
    let cancelled = session.as_ref().map(|session| session.begin(&id));
    // Lines that are logged meanwhile are lines of the request.
    let span = Span::current();
    let work = async move { mcp::answer(&rq, &method, &params).await };
    let work = tokio::spawn(work.instrument(span));
    let mut pending = Pending {
        id,
        work: Work(work),
        outgoing,
        session: session.clone(),
        cancelled,
        right,
        _place: from.place,
    };
    let next = tokio::time::timeout(PLAIN, pending.next()).await;
    let mut response = match next {
        Ok(Next::Answer(answer)) => rpc(status_of(era, &answer), &pending.id, &answer),
        // A cancelled request has no answer.
        Ok(Next::Cancelled) => StatusCode::ACCEPTED.into_response(),
        Ok(Next::Ended(ended)) => Problem::from(ended).into_response(),
        Ok(Next::Message(first)) => events(server, pending, Some(first)),
        Err(_) => events(server, pending, None),
    };
    if let (true, Some(session)) = (is_first, session)
        && let Ok(id) = HeaderValue::from_str(&session.id)
    {
        response.headers_mut().insert(SESSION, id);
    }
    response
}

/// Sends messages and the answer as a stream of events.
fn events(server: Shared, mut pending: Pending, first: Option<Json>) -> Response {
    let (sender, body) = Channel::<Bytes, Infallible>::new(BACKLOG);
    let mut response = Response::new(Body::new(body));
    headers_of_stream(&mut response);
    tokio::spawn(async move {
        let right = pending.right.clone();
        let mut writer = Writer { sender, right };
        let mut stopping = server.stopping.subscribe();
        if let Some(first) = first
            && !writer.message(&first).await
        {
            return;
        }
        loop {
            let is_open = tokio::select! {
                next = pending.next() => match next {
                    Next::Message(message) => writer.message(&message).await,
                    Next::Cancelled => false,
                    Next::Ended(ended) => {
                        writer.ended(ended);
                        false
                    }
                    Next::Answer(answer) => {
                        writer.message(&mcp::response(&pending.id, &answer)).await;
                        false
                    }
                },
                () = tokio::time::sleep(HEARTBEAT) => writer.text(": hb\n\n").await,
                () = async { drop(stopping.wait_for(|it| *it).await) } => false,
            };
            if !is_open {
                return;
            }
        }
    });
    response
}

/// Writes events. What it returns tells whether the client is there, and may read them.
struct Writer {
    sender: Sender<Bytes, Infallible>,
    right: Right,
}

impl Writer {
    async fn text(&mut self, text: &str) -> bool {
        let sent = self.sender.send_data(Bytes::from(text.to_owned()));
        tokio::select! {
            biased;
            _ = self.right.ended() => false,
            sent = sent => sent.is_ok(),
        }
    }

    /// Writes the last line, unless the client takes nothing.
    fn ended(&mut self, ended: Ended) {
        let last = Frame::data(Bytes::from_static(ended.comment().as_bytes()));
        let _ = self.sender.try_send(last);
    }

    async fn message(&mut self, message: &Json) -> bool {
        self.text(&format!("event: message\ndata: {}\n\n", compact(message)))
            .await
    }
}

/// The messages of a session that belong to no request.
async fn stream(
    State(server): State<Shared>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let session = of_header(&server, &caller, &headers)?.ok_or_else(|| {
        let detail = "a stream belongs to a session: the request has no `Mcp-Session-Id`";
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, problems::METHOD, detail)
            .header(header::ALLOW, "POST")
    })?;
    let place = server.readers.enter(&caller.token.id, Streamed::Mcp)?;
    let (sender, body) = Channel::<Bytes, Infallible>::new(BACKLOG);
    let mut response = Response::new(Body::new(body));
    headers_of_stream(&mut response);
    let mut messages = session.open_stream();
    let weak = Arc::downgrade(&session);
    let mut right = server.rights.open(&caller);
    tokio::spawn(async move {
        let _place = place;
        let mut writer = Writer {
            sender,
            right: right.clone(),
        };
        let mut stopping = server.stopping.subscribe();
        // Headers are sent with the first piece.
        let mut is_open = writer.text(": open\n\n").await;
        while is_open {
            is_open = tokio::select! {
                message = messages.recv() => match message {
                    Some(message) => writer.message(&message).await,
                    // The session has another stream, or is over.
                    None => false,
                },
                () = tokio::time::sleep(HEARTBEAT) => {
                    weak.strong_count() > 0 && writer.text(": hb\n\n").await
                }
                () = async { drop(stopping.wait_for(|it| *it).await) } => false,
                ended = right.ended() => {
                    writer.ended(ended);
                    false
                }
            };
        }
    });
    Ok(response)
}

/// Ends a session.
async fn end(
    State(server): State<Shared>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let session = of_header(&server, &caller, &headers)?
        .ok_or_else(|| Problem::malformed("the request has no `Mcp-Session-Id`"))?;
    server.sessions.remove(&session.id);
    Ok(StatusCode::NO_CONTENT.into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded_text(text: &'static str) -> Option<String> {
        decoded(&HeaderValue::from_static(text))
    }

    #[test]
    fn names_in_headers_may_be_base64() {
        assert_eq!(decoded_text(" plain ").as_deref(), Some("plain"));
        assert_eq!(decoded_text("=?base64?w6Q=?=").as_deref(), Some("ä"));
        assert_eq!(decoded_text("=?base64?w6Q?="), None);
        assert_eq!(decoded_text("=?base64?!!?="), None);
    }
}
