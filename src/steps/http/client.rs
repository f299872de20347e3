//! Sends a request and receives the answer, within limits.
//!
//! Redirects are followed here rather than by the client below, so that each hop is checked and no secret goes to
//! another host. Knows nothing of flows: plain data in and out.

use std::collections::VecDeque;
use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use flowstone_flow::ports::{RecordedResponse, ResponseEnd, ResponseHead};
use flowstone_flow::redact::Redactor;
use flowstone_flow::trace::TraceParent;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use super::error::{Answer, HttpError, preview_of_part, root_cause};
use super::redirect::Hops;
use super::route::{self, Route};
use super::source::{self, Delivery, Source};
use super::{pool, sockets, tls};
use crate::guard::{Refused, Zone, zone};
use crate::oauth::Lent;

/// The request, and the limits of its answer.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    pub url: Url,
    pub headers: Vec<(String, String)>,
    /// Headers with credentials: never sent to another host.
    pub secret_headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
    /// Whether the address or the body has a secret.
    pub is_secret: bool,
    /// Removes the secrets of the run from log lines; `None` outside of a run.
    pub redactor: Option<Arc<Redactor>>,
    pub limits: Limits,
    pub route: Route,
    /// The time of sending, by the clock of the run, to be compared with dates of the server.
    pub sent_ms: Option<i64>,
    /// The span that the request belongs to. Recordings do not have it.
    pub trace_parent: Option<TraceParent>,
    /// The login whose token the request has.
    pub login: Option<Lent>,
}

impl Request {
    /// Tells whether the request has a secret, or a header of its connection.
    fn has_secret(&self) -> bool {
        self.is_secret || !self.secret_headers.is_empty()
    }

    /// Returns a text without the secrets of the run.
    fn loggable(&self, text: String) -> String {
        match &self.redactor {
            Some(redactor) => redactor.text(text),
            None => text,
        }
    }
}

/// The header that names the span of a request.
const TRACE_PARENT: &str = "traceparent";

/// Maximum time to wait for the body of an error.
const SOON: Duration = Duration::from_secs(5);

/// Marks the end of a body that was cut.
const CUT: &str = "…";

/// Maximum size of a body in memory. A setting cannot allow more.
const IN_MEMORY_MAX: u64 = 1 << 30;

/// The limits of a request.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The limit of the whole exchange, including redirects and body.
    pub timeout: Duration,
    pub max_bytes: u64,
    pub max_redirects: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            timeout: Duration::from_secs(60),
            max_bytes: 50 << 20,
            max_redirects: 10,
        }
    }
}

/// An answer whose body is still being received.
pub struct Incoming {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub host: String,
    url: String,
    source: Source,
    deadline: Instant,
    limits: Limits,
    sent_ms: Option<i64>,
    received: Vec<u8>,
    got: u64,
    /// Held as long as the connection is used.
    _socket: Option<OwnedSemaphorePermit>,
}

/// Sends the request and collects the answer, whatever its status.
pub async fn send(request: Request) -> Result<Answer, HttpError> {
    open(request).await?.collect().await
}

/// Sends the request and returns when the headers of the final answer are there.
pub async fn open(mut request: Request) -> Result<Incoming, HttpError> {
    let deadline = |request: &Request| Instant::now() + request.limits.timeout;
    let mut recorder = match source::way(&request)? {
        Delivery::Send(recorder) => recorder,
        Delivery::Replay(answer) => {
            return Incoming::replayed(&request, answer, deadline(&request));
        }
    };
    // Waiting for a connection does not count as the server's time.
    let socket = sockets::connection().await;
    let deadline = deadline(&request);
    match answered(&mut request, deadline).await {
        Ok(response) => {
            let head = source::head(&request.url, &response);
            if let Some(recorder) = &mut recorder {
                recorder.head(head.clone());
            }
            let source = Source::Server { response, recorder };
            let incoming = Incoming::new(&request, head, source, deadline);
            Ok(Incoming {
                _socket: socket,
                ..incoming
            })
        }
        Err(error) => {
            if let Some(recorder) = &mut recorder {
                recorder.end(ResponseEnd::Failed(source::fault(&error)));
            }
            Err(error)
        }
    }
}

/// Sends the request, follows redirects, and returns the final answer; the request is then that of the last hop.
async fn answered(
    request: &mut Request,
    deadline: Instant,
) -> Result<reqwest::Response, HttpError> {
    // The first address may be anywhere; a redirect must not lead further inside.
    let mut least = Zone::Loopback;
    let mut hops = Hops::default();
    loop {
        let sent = send_once(request, least, deadline).await?;
        let Some(next) = hops.next(request, &sent.response)? else {
            return Ok(sent.response);
        };
        least = sent.zone;
        hops.follow(request, next, sent.response.status().as_u16());
    }
}

/// Returns the client for an address to which another library, such as that of a protocol, sends requests. The address
/// is checked now, its resolved addresses whenever a connection is made; redirects are not followed.
pub(crate) async fn for_address(url: &Url, route: &Route) -> Result<reqwest::Client, HttpError> {
    let least = Zone::Loopback;
    let guard = route.guard.at(url);
    guard.check_url(url, least)?;
    let via = route.proxy.via(url)?;
    if let Some(via) = &via {
        route::check_behind_proxy(&guard, via, url, least).await?;
    }
    pool::client(route, guard, via, least)
}

struct Sent {
    response: reqwest::Response,
    /// The final address.
    zone: Zone,
}

/// Sends a request and logs it.
async fn send_once(request: &Request, least: Zone, deadline: Instant) -> Result<Sent, HttpError> {
    let began = Instant::now();
    let sent = exchange(request, least, deadline).await;
    let (method, url) = (&request.method, request.loggable(loggable(&request.url)));
    let ms = began.elapsed().as_millis();
    match &sent {
        Ok(sent) => {
            let status = sent.response.status().as_u16();
            tracing::debug!(target: "flowstone::http", %method, %url, status, ms, "request");
        }
        Err(error) => {
            let error = request.loggable(error.to_string());
            tracing::debug!(target: "flowstone::http", %method, %url, %error, ms, "request failed");
        }
    }
    sent
}

/// Returns an address without possible secrets: user, password, and the values of the query.
fn loggable(url: &Url) -> String {
    let mut shown = format!("{}://", url.scheme());
    shown.push_str(url.host_str().unwrap_or(""));
    if let Some(port) = url.port() {
        shown.push_str(&format!(":{port}"));
    }
    shown.push_str(url.path());
    for (idx, (name, _)) in url.query_pairs().enumerate() {
        shown.push(if idx == 0 { '?' } else { '&' });
        shown.push_str(&format!("{name}=…"));
    }
    shown
}

async fn exchange(request: &Request, least: Zone, deadline: Instant) -> Result<Sent, HttpError> {
    let late = || HttpError::TimedOut {
        host: host(&request.url),
        limit: request.limits.timeout,
        status: None,
        preview: String::new(),
    };
    let (url, route) = (&request.url, &request.route);
    let guard = route.guard.at(url);
    guard.check_url(url, least)?;
    let via = route.proxy.via(url)?;
    let behind = match &via {
        None => None,
        Some(via) if via.is_of_step && url.scheme() == "http" && request.has_secret() => {
            return Err(HttpError::SecretByProxy {
                host: host(url),
                proxy: via.shown(),
            });
        }
        Some(via) => {
            let checked = route::check_behind_proxy(&guard, via, url, least);
            Some(timeout_at(deadline, checked).await.map_err(|_| late())??)
        }
    };
    let client = pool::client(route, guard, via, least)?;
    let mut headers = header_map(request.headers.iter().chain(&request.secret_headers))?;
    if let Some(parent) = request.trace_parent
        && !headers.contains_key(TRACE_PARENT)
        && let Ok(parent) = HeaderValue::try_from(parent.to_string())
    {
        headers.insert(TRACE_PARENT, parent);
    }
    let mut builder = client
        .request(request.method.clone(), url.clone())
        .headers(headers);
    if let Some(body) = &request.body {
        builder = builder.body(body.clone());
    }
    let response = timeout_at(deadline, builder.send())
        .await
        .map_err(|_| late())?
        .map_err(|error| failed(host(url), &error))?;
    let peer = response.remote_addr().map(|address| zone(address.ip()));
    Ok(Sent {
        zone: behind.or(peer).unwrap_or(Zone::Public),
        response,
    })
}

impl Incoming {
    fn new(request: &Request, head: ResponseHead, source: Source, deadline: Instant) -> Incoming {
        Incoming {
            status: head.status,
            headers: head.headers,
            host: host(&request.url),
            url: head.url,
            source,
            deadline,
            limits: request.limits,
            sent_ms: request.sent_ms,
            received: Vec::new(),
            got: 0,
            _socket: None,
        }
    }

    /// Returns the origin of the answer for messages.
    pub fn place(&self) -> String {
        match Url::parse(&self.url) {
            Ok(url) => super::shown::url(&url),
            Err(_) => self.host.clone(),
        }
    }

    /// An answer from a recording.
    fn replayed(
        request: &Request,
        answer: RecordedResponse,
        deadline: Instant,
    ) -> Result<Incoming, HttpError> {
        let Some(head) = answer.head else {
            return Err(match answer.end {
                ResponseEnd::Failed(fault) => source::of_fault(request, fault),
                ResponseEnd::Complete | ResponseEnd::Unread => HttpError::CutOff {
                    host: host(&request.url),
                    status: None,
                    got: 0,
                    preview: String::new(),
                    cause: "the recording has no answer".into(),
                },
            });
        };
        let (chunks, end) = (VecDeque::from(answer.chunks), answer.end);
        let source = Source::Recording { chunks, end };
        Ok(Incoming::new(request, head, source, deadline))
    }

    /// Returns the next chunk of the body; `None` at its end. `idle` limits the wait for this chunk.
    pub async fn next(&mut self, idle: Option<Duration>) -> Result<Option<Vec<u8>>, HttpError> {
        let chunk = self.part(idle).await;
        if let Source::Server {
            recorder: Some(recorder),
            ..
        } = &mut self.source
        {
            match &chunk {
                Ok(Some(chunk)) => recorder.chunk(chunk),
                Ok(None) => recorder.end(ResponseEnd::Complete),
                Err(error) => recorder.end(ResponseEnd::Failed(source::fault(error))),
            }
        }
        let Some(chunk) = chunk? else { return Ok(None) };
        self.got += chunk.len() as u64;
        if self.got > self.limits.max_bytes {
            return Err(self.too_large());
        }
        // The beginning is kept for errors; a stream may be long.
        if self.received.len() < 4096 {
            self.received.extend_from_slice(&chunk);
        }
        Ok(Some(chunk))
    }

    async fn part(&mut self, idle: Option<Duration>) -> Result<Option<Vec<u8>>, HttpError> {
        let until = idle.map_or(self.deadline, |idle| {
            self.deadline.min(Instant::now() + idle)
        });
        let part = match &mut self.source {
            Source::Server { response, .. } => timeout_at(until, response.chunk()).await,
            Source::Recording { chunks, end } => match (chunks.pop_front(), &*end) {
                (Some(chunk), _) => return Ok(Some(chunk)),
                (None, ResponseEnd::Complete) => return Ok(None),
                (None, end) => {
                    let end = end.clone();
                    return Err(self.recorded_end(end));
                }
            },
        };
        match part {
            Ok(Ok(chunk)) => Ok(chunk.map(|chunk| chunk.to_vec())),
            Ok(Err(error)) => Err(self.broken(root_cause(&error))),
            Err(_) if until < self.deadline => Err(self.late(idle.unwrap_or_default())),
            Err(_) => Err(self.late(self.limits.timeout)),
        }
    }

    /// Returns the error with which a recorded answer ends.
    fn recorded_end(&self, end: ResponseEnd) -> HttpError {
        match end {
            ResponseEnd::Failed(fault) if fault.kind == "timeout" => {
                self.late(source::millis(&fault.message))
            }
            ResponseEnd::Failed(fault) => self.broken(fault.message),
            ResponseEnd::Complete | ResponseEnd::Unread => {
                self.broken("the recorded response was not read further".into())
            }
        }
    }

    fn late(&self, limit: Duration) -> HttpError {
        HttpError::TimedOut {
            host: self.host.clone(),
            limit,
            status: Some(self.status),
            preview: preview_of_part(&self.received),
        }
    }

    /// Reads the whole body into memory.
    pub async fn collect(mut self) -> Result<Answer, HttpError> {
        self.limits.max_bytes = self.limits.max_bytes.min(IN_MEMORY_MAX);
        self.fits()?;
        let mut body = Vec::new();
        while let Some(chunk) = self.next(None).await? {
            body.extend_from_slice(&chunk);
        }
        Ok(Answer {
            status: self.status,
            headers: self.headers,
            body,
            url: self.url,
            sent_ms: self.sent_ms,
        })
    }

    /// Rejects a body whose declared size is too large.
    pub fn fits(&self) -> Result<(), HttpError> {
        let announced = match &self.source {
            Source::Server { response, .. } => response.content_length(),
            Source::Recording { .. } => super::error::header(&self.headers, "content-length")
                .and_then(|text| text.parse().ok()),
        };
        match announced {
            Some(announced) if announced > self.limits.max_bytes => Err(self.too_large()),
            _ => Ok(()),
        }
    }

    fn too_large(&self) -> HttpError {
        HttpError::TooLarge {
            host: self.host.clone(),
            status: self.status,
            limit: self.limits.max_bytes,
        }
    }

    /// Reads only the beginning of the body. A cut leaves `…`, in front of which redaction also finds the beginning of
    /// a secret.
    pub async fn start(mut self, most: usize) -> Answer {
        let mut body = Vec::new();
        let mut is_whole = false;
        while body.len() <= most
            && let Ok(chunk) = self.next(Some(SOON)).await
        {
            match chunk {
                Some(chunk) => body.extend_from_slice(&chunk),
                None => {
                    is_whole = true;
                    break;
                }
            }
        }
        if body.len() > most || !is_whole && !is_json(&body) {
            body.truncate(most.saturating_sub(CUT.len()));
            body.extend_from_slice(CUT.as_bytes());
        }
        Answer {
            status: self.status,
            headers: self.headers,
            body,
            url: self.url,
            sent_ms: self.sent_ms,
        }
    }

    fn broken(&self, cause: String) -> HttpError {
        HttpError::CutOff {
            host: self.host.clone(),
            status: Some(self.status),
            got: self.got,
            preview: preview_of_part(&self.received),
            cause,
        }
    }
}

/// Tells whether a body is complete without regard to how it ended.
fn is_json(body: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok()
}

/// Converts names and values to headers.
pub(crate) fn header_map<'a>(
    headers: impl Iterator<Item = &'a (String, String)>,
) -> Result<HeaderMap, HttpError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let bad = |what: &str| HttpError::BadRequest {
            message: format!("the {what} of the header `{name}` is not valid"),
        };
        let value = HeaderValue::from_str(value).map_err(|_| bad("value"))?;
        map.append(
            HeaderName::try_from(name.as_str()).map_err(|_| bad("name"))?,
            value,
        );
    }
    Ok(map)
}

/// Returns the host of an address, with its port if that is not the default.
pub fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or("the server");
    url.port()
        .map_or_else(|| host.to_string(), |port| format!("{host}:{port}"))
}

/// Names an error that occurred before there was an answer.
pub(crate) fn failed(host: String, error: &reqwest::Error) -> HttpError {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(found) = inner.downcast_ref::<Refused>() {
            return HttpError::from(found.clone());
        }
        cause = inner.source();
    }
    if let Some(fault) = tls::fault(error) {
        return HttpError::Untrusted { host, fault };
    }
    let cause = root_cause(error);
    if error.is_connect() && sockets::are_used_up() {
        return HttpError::NoHandle { host };
    }
    if error.is_connect() {
        let is_transient = true;
        return HttpError::Unreachable {
            host,
            cause,
            is_transient,
        };
    }
    if error.is_builder() {
        return HttpError::BadRequest {
            message: format!("the request cannot be sent: {cause}"),
        };
    }
    HttpError::CutOff {
        host,
        status: None,
        got: 0,
        preview: String::new(),
        cause,
    }
}
