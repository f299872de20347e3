//! Builds a request from a config: address, headers, credentials, body, limits.

use std::time::Duration;

use flowstone_flow::ports::Secret;
use flowstone_flow::step::{StepContext, StepError};
use reqwest::{Method, Url};

use super::body::Body;
use super::client::Request;
use super::content;
use super::error::HttpError;
use super::google;
use super::settings::{self, Usual};
use crate::connections::{self, Auth, Connection, Proof, text_pairs};
use crate::fields::Fields;
use crate::guard::host_of;
use crate::oauth::{self, Lent};
use crate::own_server;

/// Builds the request of a config.
pub(crate) async fn build(cx: &StepContext, fields: Fields<'_>) -> Result<Request, StepError> {
    let connection = match fields.name("connection")? {
        Some(name) => connections::find(cx, &name)?,
        None => Connection::default(),
    };
    let mut url = address(fields, &connection)?;
    if let Some(query) = fields.map("query")? {
        let pairs = text_pairs(":query", query)?;
        if !pairs.is_empty() {
            url.query_pairs_mut().extend_pairs(pairs);
        }
    }
    let usual = usual(cx, fields, &connection)?;
    let is_own_server = is_own_server(&connection, &url);
    let auth = match fields.map("auth")? {
        Some(auth) => Auth::read(":auth", auth)?,
        // The connection's secret goes only to the connection's server.
        None if is_own_server => connection.auth.clone(),
        None => Auth::Unsaid,
    };
    let mut secret_headers = Vec::new();
    let host = host_of(&url);
    let mut is_secret = false;
    let login = login(cx, &auth, &connection).await?;
    let proof = match &auth {
        Auth::GoogleServiceAccount { scopes, .. } => {
            let secret = auth.secret(cx, &connection.id, &host)?;
            google::proof(cx, &secret, scopes, &usual).await?
        }
        auth => auth.proof(cx, &connection.id, &host)?,
    };
    match proof {
        Proof::None => {}
        Proof::Header(name, value) => secret_headers.push((name, value)),
        Proof::Query(name, value) => {
            let encoded = Body::form(&[(String::new(), value.clone())]).bytes;
            let encoded = String::from_utf8_lossy(&encoded[1..]).into_owned();
            cx.hide(&Secret::new(encoded));
            is_secret = true;
            url.query_pairs_mut().append_pair(&name, &value);
        }
    }
    let body = content::body(cx, fields, usual.max_body).await?;
    let method = match fields.name("method")? {
        Some(name) => Method::from_bytes(name.to_ascii_uppercase().as_bytes())
            .map_err(|_| StepError::config("E0738", format!("`{name}` is not a method")))?,
        None if body.is_some() => Method::POST,
        None => Method::GET,
    };
    let mut headers = headers(fields)?;
    secret_headers.retain(|(name, _)| !has(&headers, name));
    // Options of a connection apply only to its own server, like its secret.
    for (name, value) in connection.headers.iter().filter(|_| is_own_server) {
        if !has(&headers, name) && !has(&secret_headers, name) {
            secret_headers.push((name.clone(), value.clone()));
        }
    }
    for (name, value) in implied(cx, fields, &method, body.as_ref())? {
        if !has(&headers, name) && !has(&secret_headers, name) {
            headers.push((name.to_owned(), value));
        }
    }
    if let Some(kind) = own_server::run_kind(cx, &url) {
        headers.retain(|(name, _)| !name.eq_ignore_ascii_case(&kind.0));
        headers.push(kind);
    }
    Ok(Request {
        limits: usual.limits,
        route: usual.route,
        sent_ms: Some(cx.now_ms()),
        trace_parent: cx.trace_parent(),
        method,
        url,
        headers,
        secret_headers,
        body: body.map(|body| body.bytes),
        is_secret,
        redactor: Some(cx.redactor()),
        login,
    })
}

/// Returns the login of a connection whose token the request carries, after it was renewed if that is due.
async fn login(
    cx: &StepContext,
    auth: &Auth,
    connection: &Connection,
) -> Result<Option<Lent>, StepError> {
    if !matches!(auth, Auth::Login(_)) {
        return Ok(None);
    }
    oauth::freshen(cx, connection).await?;
    Lent::of(cx, connection)
}

fn has(headers: &[(String, String)], name: &str) -> bool {
    headers.iter().any(|(it, _)| it.eq_ignore_ascii_case(name))
}

/// Returns the route of the request and the limits of its answer.
fn usual(
    cx: &StepContext,
    fields: Fields<'_>,
    connection: &Connection,
) -> Result<Usual, StepError> {
    let mut usual = settings::usual(cx, connection)?;
    if let Some(options) = fields.map("client-opts")? {
        usual.add(cx, options)?;
    }
    if let Some(stored) = super::store::Target::of(cx, fields)? {
        stored.widen(&mut usual);
    }
    usual.limits.timeout = timeout(cx, usual.limits.timeout);
    Ok(usual)
}

fn is_own_server(connection: &Connection, url: &Url) -> bool {
    let base = connection
        .base_url
        .as_deref()
        .and_then(|base| Url::parse(base).ok());
    base.is_none_or(|base| base.origin() == url.origin())
}

/// Returns the error for a request with two addresses.
pub(super) fn two_addresses() -> StepError {
    let message = "`:url` is the whole address; `:path` cannot be added";
    StepError::config("E0738", message)
}

/// Returns the error for a request without an address.
pub(super) fn no_address() -> StepError {
    StepError::config("E0738", "the request has no address")
        .hint("give it a `:url`, or a `:connection` and a `:path`")
}

fn address(fields: Fields<'_>, connection: &Connection) -> Result<Url, StepError> {
    let text = match (
        fields.text("url")?,
        fields.text("path")?,
        connection.base_url.as_deref(),
    ) {
        (Some(_), Some(_), _) => {
            return Err(two_addresses());
        }
        (Some(url), None, _) => url.to_string(),
        (None, path, Some(base)) => {
            let path = path.unwrap_or_default();
            if leaves(path) {
                let message = format!("`:path` {path:?} leads out of the connection's `:base-url`");
                return Err(StepError::new("E0971", "denied", message).hint(
                    "write a path below the base address; dot segments that go above it are refused in every encoding",
                ));
            }
            joined(base, path)
        }
        (None, _, None) if fields.has("connection") => {
            return Err(StepError::config(
                "E0738",
                format!("the connection `:{}` has no `:base-url`", connection.id),
            )
            .hint("add it in flowstone.edn or in `:requires`, or give the step a `:url`"));
        }
        (None, _, None) => {
            return Err(no_address());
        }
    };
    parsed(&text)
}

/// Parses a complete address.
pub(super) fn parsed(text: &str) -> Result<Url, StepError> {
    let bad = |why: String| HttpError::BadUrl {
        url: without_secrets(text),
        why,
    };
    let url = Url::parse(text).map_err(|error| bad(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad(format!("`{}:` is not HTTP", url.scheme())).into());
    }
    Ok(url)
}

/// How many times a path is decoded to see how servers behind other servers may read it.
const DECODINGS: usize = 4;

/// Tells whether dot segments of a path lead above its start, as a client, a proxy or a server may read it: percent
/// signs decoded any number of times, backslashes as slashes, parameters after `;` ignored.
pub(super) fn leaves(path: &str) -> bool {
    // A client removes these everywhere; query and fragment are not part of the path.
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let mut text = path.replace(['\t', '\n', '\r'], "");
    for _ in 0..=DECODINGS {
        if climbs(&text, &['/', '\\']) || climbs(&text, &['/']) {
            return true;
        }
        let decoded = decoded(&text).replace(['\t', '\n', '\r', '\0'], "");
        if decoded == text {
            return false;
        }
        text = decoded;
    }
    // Legitimate paths are never encoded this many times.
    true
}

/// Tells whether `..` leads above the start of a path. Empty segments do not count: servers merge the slashes around
/// them.
fn climbs(path: &str, separators: &[char]) -> bool {
    let mut depth = 0usize;
    for segment in path.split(separators) {
        let name = segment.split(';').next().unwrap_or_default();
        match name.trim_end_matches([' ', '\0']) {
            "" | "." => {}
            ".." => match depth.checked_sub(1) {
                Some(above) => depth = above,
                None => return true,
            },
            _ => depth += 1,
        }
    }
    false
}

/// Decodes percent signs once, including the overlong forms of `.`, `/` and `\` that careless servers accept.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let code = bytes.get(at + 1..at + 3).filter(|_| *byte == b'%');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(code) => {
                out.push(code);
                at += 3;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    let mut short = Vec::with_capacity(out.len());
    let mut rest = out.as_slice();
    while let Some((first, after)) = rest.split_first() {
        match (first, after) {
            // Two bytes for a character that fits in one.
            (0xc0 | 0xc1, [second, after @ ..]) if second & 0xc0 == 0x80 => {
                short.push((first & 1) << 6 | second & 0x3f);
                rest = after;
            }
            _ => {
                short.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&short).into_owned()
}

/// Appends a path to an address, with one slash between them.
pub(crate) fn joined(base: &str, path: &str) -> String {
    match (base.trim_end_matches('/'), path.trim_start_matches('/')) {
        (base, "") => base.to_string(),
        (base, path) if path.starts_with('?') => format!("{base}{path}"),
        (base, path) => format!("{base}/{path}"),
    }
}

/// Returns an address without user and password.
fn without_secrets(text: &str) -> String {
    crate::shown_url::without_password(text)
}

/// Headers that follow from the address, the body and the connection, and cannot be set.
const OURS: &[&str] = &[
    "connection",
    "content-length",
    "host",
    "transfer-encoding",
    "upgrade",
];

/// Returns the headers that the step sets.
fn headers(fields: Fields<'_>) -> Result<Vec<(String, String)>, StepError> {
    let headers = match fields.map("headers")? {
        Some(own) => text_pairs(":headers", own)?,
        None => Vec::new(),
    };
    match headers
        .iter()
        .find(|(name, _)| OURS.contains(&name.to_ascii_lowercase().as_str()))
    {
        Some((name, _)) => Err(StepError::config(
            "E0738",
            format!("the header `{name}` is not for a flow to say"),
        )
        .hint("leave it out: it follows from the address and the body")),
        None => Ok(headers),
    }
}

/// Returns the headers that follow from the rest of a config.
fn implied(
    cx: &StepContext,
    fields: Fields<'_>,
    method: &Method,
    body: Option<&Body>,
) -> Result<Vec<(&'static str, String)>, StepError> {
    let mut headers = Vec::new();
    if let Some(body) = body {
        headers.push(("content-type", body.content_type.clone()));
    }
    let (accept, response_as) = (fields.name("accept")?, fields.name("response-as")?);
    let accept = match (accept.as_deref(), response_as.as_deref()) {
        (Some("json"), _) | (None, Some("json")) => Some("application/json"),
        (Some("xml"), _) | (None, Some("xml")) => Some("application/xml, text/xml"),
        (Some("text"), _) => Some("text/plain, text/*"),
        (None, Some("edn")) => Some("application/edn"),
        (None, Some("jsonl")) => Some("application/x-ndjson, application/jsonl"),
        (None, Some("sse")) => Some("text/event-stream"),
        (None, Some("yaml")) => Some("application/yaml, text/yaml"),
        (Some(other), _) if other.contains('/') => Some(other),
        (Some(other), _) => {
            return Err(
                StepError::config("E0738", format!("`:accept :{other}` is not known"))
                    .hint("it takes `:json`, `:xml`, `:text`, or a type such as \"image/png\""),
            );
        }
        (None, _) => None,
    };
    headers.extend(accept.map(|accept| ("accept", accept.to_owned())));
    if !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
        headers.push(("idempotency-key", cx.idempotency_key().to_owned()));
    }
    Ok(headers)
}

/// Returns the timeout of a request, slightly shorter than that of the step: the error raised here knows how far the
/// answer had come.
pub(crate) fn timeout(cx: &StepContext, usual: Duration) -> Duration {
    let Some(deadline) = cx.deadline_ms() else {
        return usual;
    };
    let left = Duration::from_millis(u64::try_from(deadline - cx.now_ms()).unwrap_or(0));
    left.saturating_sub((left / 20).min(Duration::from_millis(50)))
}
