//! The server: its connections, what lies around every route, and its orderly end.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use flowstone_engine::catalog::Catalog;
use flowstone_engine::ids::RunId;
use flowstone_engine::json::compact;
use flowstone_engine::ports::{Random, SystemRandom, Telemetry, wall_clock_ms};
use flowstone_engine::{Engine, Interrupt};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::sync::{Notify, watch};
use tower::ServiceExt as _;
use tower_http::catch_panic::CatchPanicLayer;
use tracing::{Instrument as _, Span, field, info_span};

use super::access::{Caller, Failures, ProofClass, bearer, unauthorized};
use super::bodies::Room;
use super::engines::Engines;
use super::feed::Readers;
use super::interfaces::receive::sender;
use super::problem::{Problem, codes};
use super::rates::{self, Addresses, Rates};
use super::request::decoded;
use super::resources::UPLOADS;
use super::rights::Rights;
use super::settings::ServerSettings;
use super::stall::Stalling;
use super::{Backend, agents, events, graph, kit, origin, pages, routes, tables, trace};
use crate::mcp::Sessions;
use crate::metrics::Metrics;

/// How long the request line and the headers may take.
const HEADER_TIME: Duration = Duration::from_secs(10);
/// Maximum size of the request line and the headers.
const HEADER_BYTES: usize = 16 << 10;
const HEADER_FIELDS: usize = 100;
/// How long the other side may take nothing of an answer.
const STALLED: Duration = Duration::from_secs(30);
/// How long connections may take to finish when the server stops.
const STOP_TIME: Duration = Duration::from_secs(5);
/// Stands for addresses that no route has.
const UNKNOWN: &str = "unknown";
/// Maximum length of the id that a proxy gives a request.
const REQUEST_ID_MAX: usize = 64;
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What a thread that answers requests works with.
pub(crate) struct EngineContext {
    pub engine: Engine,
    pub catalog: Catalog,
    pub backend: Arc<dyn Backend>,
}

/// What all requests share.
pub(crate) struct Server {
    pub(super) engines: Engines<EngineContext>,
    pub settings: ServerSettings,
    pub(super) failures: Failures,
    pub(super) rates: Rates,
    pub(super) room: Room,
    /// The folder of the project's data, for bodies while they arrive.
    pub(super) home: PathBuf,
    pub(super) readers: Readers,
    /// Of callers whose answers are open.
    pub(super) rights: Rights,
    /// Logins whose persons are at a login page.
    pub(super) logins: super::kit::Logins,
    /// Sessions of clients of MCP.
    pub sessions: Sessions,
    pub metrics: Arc<Metrics>,
    pub telemetry: Arc<dyn Telemetry>,
    pub interrupt: Interrupt,
    /// Set when the server stops. A flag of many readers that each look at the interrupt would cost time.
    pub stopping: watch::Sender<bool>,
    /// Wakes what answers delayed messages of sessions.
    pub delayed: Notify,
    /// How often requests have changed what the registry serves.
    pub(super) registry_changes: AtomicU64,
}

pub(crate) type Shared = Arc<Server>;

/// The address that a request comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub SocketAddr);

/// Marks requests on a connection of an address that has too many.
#[derive(Debug, Clone, Copy)]
struct Crowded;

/// The id of the token that a request was made with, once that is known.
#[derive(Debug, Clone, Default)]
struct UsedToken(Arc<OnceLock<String>>);

impl Server {
    /// Asks an engine.
    ///
    /// # Errors
    /// What the question fails with, or that nobody can be asked.
    pub(crate) async fn ask<A: Send + 'static, E: Into<Problem> + Send + 'static>(
        &self,
        question: impl AsyncFnOnce(&EngineContext) -> Result<A, E> + Send + 'static,
    ) -> Result<A, Problem> {
        let changes = self.registry_changes.load(Ordering::Acquire);
        // Lines that the engine logs meanwhile are lines of the request.
        let span = Span::current();
        let asked = self.engines.ask(async move |cx: &EngineContext| {
            let asked = async {
                cx.catalog.follow_changes(&cx.engine, changes).await;
                question(cx).await
            };
            asked.instrument(span).await
        });
        asked.await?.map_err(Into::into)
    }

    /// Notes that a request has changed what the registry serves, so that the next ones see it.
    pub(super) fn registry_changed(&self) {
        self.registry_changes.fetch_add(1, Ordering::Release);
    }

    /// Returns who makes a request.
    ///
    /// # Errors
    /// When it has no token, or one that is not accepted.
    pub(super) async fn caller(&self, parts: &Parts) -> Result<Caller, Problem> {
        // A call inside this process, for somebody who was known before.
        if let Some(caller) = parts.extensions.get::<Caller>() {
            return Ok(caller.clone());
        }
        let Some(text) = bearer(&parts.headers)? else {
            return Err(unauthorized("this address needs a token"));
        };
        let text = text.to_owned();
        let accepted = self
            .ask(async move |cx: &EngineContext| cx.engine.accept_token(&text).await)
            .await?;
        match accepted {
            Ok(token) => {
                if let Some(used) = parts.extensions.get::<UsedToken>() {
                    // A request has one token.
                    let _ = used.0.set(token.id.clone());
                }
                let caller = Caller { token };
                let peer = parts.extensions.get::<Peer>().map(|peer| peer.0.ip());
                match self.rates.note(&caller, peer, Instant::now()) {
                    Some(problem) => Err(problem),
                    None => Ok(caller),
                }
            }
            Err(why) => {
                tracing::warn!(target: "flowstone::server", reason = why.name(), "a token was not accepted");
                let refused = unauthorized("the token is not accepted");
                Err(self.failed(parts, ProofClass::Token, (why.name(), refused)))
            }
        }
    }

    /// Counts a failed proof, and returns its answer: that of the proof, or that the sender failed too often.
    pub(super) fn failed(
        &self,
        parts: &Parts,
        class: ProofClass,
        (reason, problem): (&str, Problem),
    ) -> Problem {
        self.metrics.refused(reason);
        let peer = parts.extensions.get::<Peer>().map(|peer| peer.0.ip());
        let noted = peer.and_then(|peer| self.failures.note(peer, class, Instant::now()));
        noted.unwrap_or(problem)
    }
}

impl FromRequestParts<Shared> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Shared) -> Result<Caller, Problem> {
        server.caller(parts).await
    }
}

/// Accepts connections until the server is to stop, and then lets those under way finish.
pub(super) async fn accept(listener: TcpListener, server: Shared) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let app = app(server.clone());
    let graceful = GracefulShutdown::new();
    let limits = &server.settings.limits;
    let places = Arc::new(tokio::sync::Semaphore::new(limits.connections));
    let addresses = Addresses::new(limits.connections_per_address);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = server.interrupt.wait() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Most likely no file handle is left; the next attempt may find one.
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            tracing::warn!(%peer, "a connection is refused: too many are open");
            continue;
        };
        let from = peer.ip().to_canonical();
        let is_limited = !from.is_loopback() && !server.settings.is_proxy(from);
        let own = is_limited.then(|| addresses.enter(from));
        let is_crowded = matches!(own, Some(None));
        // Answers are small; waiting for more of them costs time.
        let _ = stream.set_nodelay(true);
        let app =
            app.clone()
                .map_request(move |mut request: hyper::Request<hyper::body::Incoming>| {
                    request.extensions_mut().insert(Peer(peer));
                    if is_crowded {
                        request.extensions_mut().insert(Crowded);
                    }
                    request.map(Body::new)
                });
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIME)
            .max_buf_size(HEADER_BYTES)
            .max_headers(HEADER_FIELDS);
        let connection = builder.serve_connection(
            TokioIo::new(Stalling::new(stream, STALLED)),
            TowerToHyperService::new(app),
        );
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            let (_place, _own) = (place, own);
            // The other side may break off at any time.
            if let Err(error) = connection.await {
                tracing::debug!(%peer, %error, "a connection ended early");
            }
        });
    }
    drop(listener);
    server.stopping.send_replace(true);
    // What is still open after this ends with the process.
    let _ = tokio::time::timeout(STOP_TIME, graceful.shutdown()).await;
    Ok(())
}

/// Returns all routes with what lies around them.
fn app(server: Shared) -> Router {
    routes()
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(CatchPanicLayer::custom(|_| {
            Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                codes::INTERNAL,
                "the request failed with an internal error, which the server's log describes",
            )
            .into_response()
        }))
        .layer(middleware::from_fn_with_state(
            server.clone(),
            agents::limit_keys,
        ))
        .layer(middleware::from_fn_with_state(server.clone(), wrap_request))
        .with_state(server)
}

async fn no_route(request: Request) -> Problem {
    Problem::not_found(format!("there is nothing at `{}`", request.uri().path()))
}

async fn no_method(request: Request) -> Response {
    if request.method() == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    let method = request.method();
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        codes::METHOD,
        format!("`{}` does not take {method}", request.uri().path()),
    )
    .into_response()
}

/// Checks where a request comes from, gives it an id, and writes one line about it to the log.
async fn wrap_request(State(server): State<Shared>, mut request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let id = request_id(&server, &request);
    let named = trace::parent(request.headers());
    let used = UsedToken::default();
    request.extensions_mut().insert(used.clone());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let is_page = pages::is_page(&path);
    let accepts = request.headers().get(header::ACCEPT).cloned();
    let asked = (&method, request.uri());
    let checked = match request.extensions().get::<Crowded>() {
        Some(Crowded) => Err(rates::crowded()),
        None => origin::check(&server.settings, asked, request.headers(), is_page),
    };
    let checked = checked.and_then(|()| plain_path(&path));
    let page = match &checked {
        Ok(()) => origin::Page::of(&method, request.headers()),
        Err(_) => None,
    };
    resolve_peer(&server.settings, &mut request);
    let route = request.extensions().get::<MatchedPath>().cloned();
    let shown = route.as_ref().map_or(UNKNOWN, MatchedPath::as_str);
    // Files go to the disk as they come, and have a limit of their own.
    if shown != UPLOADS {
        request = request.map(|body| server.room.count(body));
    }
    let span = info_span!("request", request = %id, %method, route = shown, run = field::Empty);
    let mut response = match checked {
        Ok(()) => next.run(request).instrument(span.clone()).await,
        Err(problem) => problem.into_response(),
    };
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        if let Some(page) = pages::of_problem(&problem, &path, accepts.as_ref(), &id) {
            response = page;
        } else {
            let mut members = problem.to_json();
            members["requestId"] = serde_json::json!(id);
            graph::add_error(&path, &problem, &mut members);
            if let Some(envelope) = envelope(&path, &problem, &id) {
                members = envelope;
                response.headers_mut().insert(
                    header::CONTENT_TYPE,
                    HeaderValue::from_static("application/json"),
                );
            }
            *response.body_mut() = Body::from(compact(&members));
            response.headers_mut().remove(header::CONTENT_LENGTH);
        }
    }
    let headers = response.headers_mut();
    if let Some(page) = page {
        page.allow(headers);
    }
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, id);
    }
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    let status = response.status().as_u16();
    let took = begun.elapsed();
    server
        .metrics
        .request(shown, method.as_str(), status, took.as_secs_f64());
    let answered = trace::Answered {
        method: method.as_str(),
        route: shown,
        status,
        id: &id,
        token: used.0.get().map(String::as_str),
        ended_ns: wall_clock_ms().saturating_mul(1_000_000),
        took,
    };
    trace::send(&*server.telemetry, named, &answered);
    tracing::info!(target: "flowstone::server", parent: &span, %path, status, millis = took.as_millis() as u64, "answered");
    response
}

/// Returns the body of an error in the shape of the front that an address belongs to; nothing for the project's own API.
fn envelope(path: &str, problem: &Problem, id: &str) -> Option<serde_json::Value> {
    let agents = agents::envelope(path, problem, id);
    agents.or_else(|| kit::envelope(path, problem, id))
}

/// Refuses a path with a part that could be taken for another path once it is decoded.
///
/// # Errors
/// When it has an escaped slash, an escaped NUL, or a part `..`. The key of a wait may hold anything, so paths of events are
/// left to their route. The name of a table may have several parts.
fn plain_path(path: &str) -> Result<(), Problem> {
    let mut parts = path.split('/').skip(1);
    if parts.nth(1) == Some(events::PART) {
        return Ok(());
    }
    let table = path
        .strip_prefix(tables::PATH)
        .map(|rest| path.len() - rest.len());
    let mut start = 0;
    for part in path.split('/') {
        let is_table = table == Some(start);
        start += part.len() + 1;
        let decoded = decoded(part, false)?;
        let is_dotted = decoded.split('/').any(|part| matches!(part, "." | ".."));
        if is_dotted || decoded.contains('\0') || (decoded.contains('/') && !is_table) {
            return Err(Problem::malformed("the path has a part that is not a name"));
        }
    }
    Ok(())
}

/// Replaces the address of a proxy by that of the sender that it names, so that limits and failed proofs count for the
/// sender.
fn resolve_peer(settings: &ServerSettings, request: &mut Request) {
    let Some(Peer(peer)) = request.extensions().get::<Peer>().copied() else {
        return;
    };
    let from = sender(
        peer.ip().to_canonical(),
        request.headers(),
        &settings.proxies,
    );
    let peer = Peer(SocketAddr::new(from, peer.port()));
    request.extensions_mut().insert(peer);
}

/// Returns the id of a request: one of our own, or that of a proxy.
fn request_id(server: &Server, request: &Request) -> String {
    let peer = request
        .extensions()
        .get::<Peer>()
        .map(|peer| peer.0.ip().to_canonical());
    let is_proxy = peer.is_some_and(|peer| server.settings.is_proxy(peer));
    let given = request.headers().get(REQUEST_ID);
    let given = given.and_then(|id| id.to_str().ok());
    let is_plain = |id: &&str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        (1..=REQUEST_ID_MAX).contains(&id.len()) && id.bytes().all(is_letter)
    };
    match given.filter(|_| is_proxy).filter(is_plain) {
        Some(id) => id.to_owned(),
        None => RunId::new(wall_clock_ms(), SystemRandom.next()).to_string(),
    }
}
