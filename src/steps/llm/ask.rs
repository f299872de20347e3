//! Sends one call, and joins the streamed answer.
//!
//! The future may be dropped at any time: the response is dropped with it, and the server sees the connection close.

use std::time::Duration;

use flowstone_flow::step::{Progress, Retry, StepContext, StepError};
use tracing::{Instrument as _, debug_span};

use super::call::{Call, Delta, Reply};
use super::error::LlmError;
use super::family::{Family, Stream};
use super::pause;
use super::provider::{Backend, Endpoint, Server};
use super::stop::{self, Gate};
use super::surrogates::Joiner;
use crate::fields::listed;
use crate::http::client::{self, Incoming, Limits, Request};
use crate::http::error::{Again, HttpError, header};
use crate::oauth::{self, Lent};
use crate::{http, json, sse};

/// Maximum time between two pieces of a stream. Models that think can be silent for minutes.
const IDLE: Duration = Duration::from_secs(180);

/// Maximum time of a call if the step has no `:timeout`.
const TOTAL: Duration = Duration::from_secs(1800);

/// Sends a call, and returns the whole answer. Its pieces are reported as they arrive.
pub(super) async fn ask(
    cx: &StepContext,
    endpoint: &Endpoint,
    call: &Call,
) -> Result<Reply, StepError> {
    let (provider, model) = (&*endpoint.provider, &*call.model);
    let span = debug_span!(target: "flowstone::model", "chat", provider, model);
    asked(cx, endpoint, call).instrument(span).await
}

async fn asked(cx: &StepContext, endpoint: &Endpoint, call: &Call) -> Result<Reply, StepError> {
    cx.emit(Progress::Status(format!(
        "asking {} ({})",
        endpoint.provider, call.model
    )));
    match &endpoint.way {
        Backend::Script(script) => script.answer(cx, call).await,
        Backend::Server(server) => {
            let left_out = endpoint.dialect.family.leaves_out(call);
            if !left_out.is_empty() {
                cx.emit(Progress::Status(format!(
                    "{} has no {}: left out",
                    endpoint.provider,
                    listed(&left_out)
                )));
            }
            match &server.login {
                None => Ok(ask_on(cx, endpoint, server, call).await?),
                Some(lent) => ask_with_login(cx, endpoint, (server, lent), call).await,
            }
        }
    }
}

/// Sends a call with the token of a login, and once more with a new one if the provider refuses it.
async fn ask_with_login(
    cx: &StepContext,
    endpoint: &Endpoint,
    (server, lent): (&Server, &Lent),
    call: &Call,
) -> Result<Reply, StepError> {
    let mut server = server.clone();
    let header = lent.fresh(cx).await?;
    oauth::replace(&mut server.secret_headers, header);
    match Box::pin(ask_on(cx, endpoint, &server, call)).await {
        Err(LlmError::Unauthorized { .. }) => {}
        other => return Ok(other?),
    }
    let used = oauth::token_of(&server.secret_headers).unwrap_or_default();
    let header = lent.renewed(cx, used).await?;
    oauth::replace(&mut server.secret_headers, header);
    Ok(Box::pin(ask_on(cx, endpoint, &server, call)).await?)
}

/// Sends a call, and continues while the provider pauses in the middle of an answer.
async fn ask_on(
    cx: &StepContext,
    endpoint: &Endpoint,
    server: &Server,
    call: &Call,
) -> Result<Reply, LlmError> {
    let mut reply = ask_server(cx, endpoint, server, call).await?;
    for _ in 0..pause::MOST {
        let Some(further) = pause::further(call, &reply) else {
            break;
        };
        // Boxed: few answers pause, and every waiting call would need the memory for it.
        let next = Box::pin(ask_server(cx, endpoint, server, &further)).await?;
        reply = pause::joined(reply, next);
    }
    Ok(reply)
}

async fn ask_server(
    cx: &StepContext,
    endpoint: &Endpoint,
    server: &Server,
    call: &Call,
) -> Result<Reply, LlmError> {
    let family = endpoint.dialect.family;
    let incoming = client::open(request(cx, endpoint, server, call)).await?;
    if incoming.status >= 400 {
        return Err(LlmError::from_answer(
            &endpoint.provider,
            &incoming.collect().await?,
        ));
    }
    let is_stream =
        header(&incoming.headers, "content-type").is_none_or(|kind| !kind.contains("json"));
    let stops = match family.stops() {
        true => &[],
        false => call.options.stop.as_slice(),
    };
    let mut reply = match is_stream {
        true => streamed(cx, &endpoint.provider, family, stops, incoming).await?,
        false => {
            let answer = incoming.collect().await?;
            whole(cx, &endpoint.provider, family, stops, &answer.body)?
        }
    };
    stop::cut(&mut reply, stops);
    // Servers that do not count tokens send zeros.
    reply.usage = reply.usage.filter(|usage| usage.total > 0);
    Ok(reply)
}

/// Reads an answer that was not streamed.
fn whole(
    cx: &StepContext,
    provider: &str,
    family: &dyn Family,
    stops: &[String],
    body: &[u8],
) -> Result<Reply, LlmError> {
    let text = std::str::from_utf8(body).map(Joiner::whole);
    let body = text.as_ref().map_or(body, |text| text.as_bytes());
    let mut reply = family.decode(provider, body)?;
    stop::cut(&mut reply, stops);
    if !reply.reasoning.is_empty() {
        cx.emit(Progress::Thought(reply.reasoning.clone()));
    }
    if !reply.content.is_empty() {
        cx.emit(Progress::Text(reply.content.clone()));
    }
    Ok(reply)
}

fn request(cx: &StepContext, endpoint: &Endpoint, server: &Server, call: &Call) -> Request {
    let family = endpoint.dialect.family;
    let url = match &server.url {
        Some(url) => url.clone(),
        None => family.address(&server.base, call),
    };
    let own = family.headers().iter();
    let own = own.map(|(name, value)| ((*name).to_string(), (*value).to_string()));
    let mut headers: Vec<(String, String)> = own.collect();
    headers.extend(server.headers.clone());
    if let Some((name, features)) = family.features(call) {
        match headers
            .iter_mut()
            .find(|it| it.0.eq_ignore_ascii_case(name))
        {
            Some((_, own)) => *own = format!("{own},{features}"),
            None => headers.push((name.to_string(), features)),
        }
    }
    let ours = [
        ("content-type", "application/json"),
        ("accept", family.frames().accept()),
    ];
    headers.extend(ours.map(|(name, value)| (name.to_string(), value.to_string())));
    let mut request = Request {
        method: reqwest::Method::POST,
        url,
        headers,
        secret_headers: server.secret_headers.clone(),
        // No secret is sent to a model, even if a flow puts one into a prompt.
        body: Some(
            json::compact(&cx.redactor().json(family.encode(call, &endpoint.dialect))).into_bytes(),
        ),
        limits: Limits {
            timeout: http::timeout(cx, TOTAL),
            max_redirects: 3,
            ..Limits::default()
        },
        route: server.route.clone(),
        sent_ms: Some(cx.now_ms()),
        is_secret: false,
        redactor: Some(cx.redactor()),
        trace_parent: cx.trace_parent(),
        // A call that needs another token is made again, with another request.
        login: None,
    };
    if let Some(signer) = &server.signer {
        let kind = [("content-type".into(), "application/json".into())];
        let body = request.body.as_deref().unwrap_or_default();
        let proof = signer.sign("POST", &request.url, &kind, body, cx.now_ms());
        request.secret_headers.extend(proof);
    }
    request
}

async fn streamed(
    cx: &StepContext,
    provider: &str,
    family: &dyn Family,
    stops: &[String],
    mut incoming: Incoming,
) -> Result<Reply, LlmError> {
    /// Maximum size of an event.
    const MOST: usize = 18 << 20;
    let mut stream = family.stream(provider);
    let mut gate = Gate::new(stops);
    let mut joiner = Joiner::default();
    let mut decoder = family.frames().decoder();
    let mut first = Vec::new();
    let mut any = false;
    while !stream.is_done() {
        let chunk = incoming
            .next(Some(IDLE))
            .await
            .map_err(|error| broken(provider, &*stream, error))?;
        let Some(chunk) = chunk else { break };
        if !any {
            first.extend_from_slice(&chunk);
        }
        let events = decoder.push(&chunk);
        for event in events.map_err(|cause| not_a_stream(provider, &cause, &chunk))? {
            any = true;
            take(cx, &mut *stream, &mut gate, &joined(&mut joiner, event))?;
        }
        if decoder.waiting().max(first.len()) > MOST {
            return Err(not_a_stream(provider, "an event that does not end", &first));
        }
    }
    if let Some(event) = decoder.finish() {
        any = true;
        take(cx, &mut *stream, &mut gate, &joined(&mut joiner, event))?;
    }
    // Some servers do not stream, and do not declare what they send instead.
    let is_json = matches!(first.trim_ascii_start().first(), Some(b'{' | b'['));
    if !any && is_json {
        return whole(cx, provider, family, stops, &first);
    }
    if !any && !first.is_empty() {
        return Err(not_a_stream(provider, "no event in what it sent", &first));
    }
    let reply = stream.finish()?;
    show(cx, gate.rest());
    Ok(reply)
}

fn joined(joiner: &mut Joiner, event: sse::Event) -> sse::Event {
    let data = joiner.take(&event.data).into_owned();
    sse::Event { data, ..event }
}

fn take(
    cx: &StepContext,
    stream: &mut dyn Stream,
    gate: &mut Gate<'_>,
    event: &sse::Event,
) -> Result<(), LlmError> {
    for delta in stream.push(event)? {
        show(cx, gate.pass(delta));
    }
    Ok(())
}

fn show(cx: &StepContext, delta: Option<Delta>) {
    match delta {
        Some(Delta::Text(text)) => cx.emit(Progress::Text(text)),
        Some(Delta::Thought(text)) => cx.emit(Progress::Thought(text)),
        None => {}
    }
}

fn not_a_stream(provider: &str, cause: &str, first: &[u8]) -> LlmError {
    LlmError::Malformed {
        provider: provider.into(),
        cause: cause.into(),
        preview: http::error::preview(first),
    }
}

/// Returns the error for a stream that broke off.
fn broken(provider: &str, stream: &dyn Stream, error: HttpError) -> LlmError {
    let provider = provider.to_string();
    match error {
        HttpError::TimedOut { limit, .. } => LlmError::Stalled {
            provider,
            idle: limit,
            chars: stream.chars(),
        },
        HttpError::CutOff { cause, .. } => LlmError::BrokeOff {
            provider,
            cause,
            chars: stream.chars(),
        },
        error => LlmError::Http(error),
    }
}

impl From<LlmError> for StepError {
    fn from(error: LlmError) -> StepError {
        if let LlmError::Http(error) = error {
            return error.into();
        }
        let (code, kind) = error.code();
        let retry = match error.again() {
            Again::Never => Retry::Never,
            Again::Later => Retry::Backoff,
            Again::After(wait) => Retry::After(wait),
        };
        let step = StepError::new(code, kind, error.to_string())
            .hint(error.hint())
            .retry(retry);
        match error {
            LlmError::BadOutput { content, problem } => {
                step.with("content", content).with("problem", problem)
            }
            LlmError::CutShort { content } => step.with("content", content),
            LlmError::Malformed { preview, .. } => step.with("preview", preview),
            LlmError::BrokeOff { cause, .. } => step.with("cause", cause),
            LlmError::BadRequest { status, .. }
            | LlmError::Overloaded { status, .. }
            | LlmError::WebPage { status, .. } => step.with("status", i64::from(status)),
            _ => step,
        }
    }
}
