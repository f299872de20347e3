//! Makes a request of a config: address, headers, proof of who we are, body, limits.

use std::time::Duration;

use flowstone_engine::ports::Secret;
use flowstone_engine::step::{StepContext, StepError};
use flowstone_lang::value::{Object, Value};
use reqwest::{Method, Url};

use super::body::{Body, Part};
use super::client::{Limits, Request};
use super::error::{HttpError, header};
use crate::connections::{self, Auth, Connection, Proof, text_pairs};
use crate::fields::Fields;
use crate::{json, resource};

/// What bytes are when nobody says.
const OCTETS: &str = "application/octet-stream";

/// What a template may say of a request.
pub(super) const TEMPLATE_KEYS: &[&str] = &[
    "accept",
    "body",
    "content-type",
    "form",
    "headers",
    "json",
    "method",
    "path",
    "query",
    "url",
];

const BODIES: &[&str] = &["body", "body-from-ref", "form", "json", "multipart"];

pub(super) fn has_body(fields: Fields<'_>) -> bool {
    BODIES.iter().any(|key| fields.has(key))
}

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
    let auth = match fields.map("auth")? {
        Some(auth) => Auth::read(":auth", auth)?,
        // The connection's secret goes to the connection's server only.
        None if is_own_server(&connection, &url) => connection.auth.clone(),
        None => Auth::Unsaid,
    };
    let mut secret_headers = Vec::new();
    match auth.proof(cx, &connection.id)? {
        Proof::None => {}
        Proof::Header(name, value) => secret_headers.push((name, value)),
        Proof::Query(name, value) => {
            let encoded = Body::form(&[(String::new(), value.clone())]).bytes;
            let encoded = String::from_utf8_lossy(&encoded[1..]).into_owned();
            cx.hide(&Secret::new(encoded));
            url.query_pairs_mut().append_pair(&name, &value);
        }
    }
    let body = body(cx, fields).await?;
    let method = match fields.name("method")? {
        Some(name) => Method::from_bytes(name.to_ascii_uppercase().as_bytes())
            .map_err(|_| StepError::config("E0738", format!("`{name}` is not a method")))?,
        None if body.is_some() => Method::POST,
        None => Method::GET,
    };
    let headers = headers(cx, fields, &connection, &method, body.as_ref())?;
    secret_headers.retain(|(name, _)| header(&headers, &name.to_ascii_lowercase()).is_none());
    Ok(Request {
        limits: limits(cx, fields, &connection)?,
        method,
        url,
        headers,
        secret_headers,
        body: body.map(|body| body.bytes),
    })
}

fn is_own_server(connection: &Connection, url: &Url) -> bool {
    let base = connection
        .base_url
        .as_deref()
        .and_then(|base| Url::parse(base).ok());
    base.is_none_or(|base| base.origin() == url.origin())
}

fn address(fields: Fields<'_>, connection: &Connection) -> Result<Url, StepError> {
    let text = match (
        fields.text("url")?,
        fields.text("path")?,
        connection.base_url.as_deref(),
    ) {
        (Some(_), Some(_), _) => {
            return Err(StepError::config(
                "E0738",
                "`:url` is the whole address; `:path` cannot be added",
            ));
        }
        (Some(url), None, _) => url.to_string(),
        (None, path, Some(base)) => joined(base, path.unwrap_or_default()),
        (None, _, None) if fields.has("connection") => {
            return Err(StepError::config(
                "E0738",
                format!("the connection `:{}` has no `:base-url`", connection.id),
            )
            .hint("add it in flowstone.edn or in `:requires`, or give the step a `:url`"));
        }
        (None, _, None) => {
            return Err(StepError::config("E0738", "the request has no address")
                .hint("give it a `:url`, or a `:connection` and a `:path`"));
        }
    };
    let bad = |why: String| HttpError::BadUrl {
        url: without_secrets(&text),
        why,
    };
    let url = Url::parse(&text).map_err(|error| bad(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad(format!("`{}:` is not HTTP", url.scheme())).into());
    }
    Ok(url)
}

/// Puts a path behind an address, with one slash between.
pub(crate) fn joined(base: &str, path: &str) -> String {
    match (base.trim_end_matches('/'), path.trim_start_matches('/')) {
        (base, "") => base.to_string(),
        (base, path) if path.starts_with('?') => format!("{base}{path}"),
        (base, path) => format!("{base}/{path}"),
    }
}

/// Returns an address without user and password.
fn without_secrets(text: &str) -> String {
    crate::files::git::without_password(text)
}

fn headers(
    cx: &StepContext,
    fields: Fields<'_>,
    connection: &Connection,
    method: &Method,
    body: Option<&Body>,
) -> Result<Vec<(String, String)>, StepError> {
    let mut headers = match fields.map("headers")? {
        Some(own) => text_pairs(":headers", own)?,
        None => Vec::new(),
    };
    let has = |headers: &[(String, String)], name: &str| {
        headers.iter().any(|(it, _)| it.eq_ignore_ascii_case(name))
    };
    for (name, value) in &connection.headers {
        if !has(&headers, name) {
            headers.push((name.clone(), value.clone()));
        }
    }
    let mut add = |name: &str, value: String| {
        if !has(&headers, name) {
            headers.push((name.to_string(), value));
        }
    };
    if let Some(body) = body {
        let content_type = fields.text("content-type")?.unwrap_or(&body.content_type);
        add("content-type", content_type.to_string());
    }
    let (accept, response_as) = (fields.name("accept")?, fields.name("response-as")?);
    let accept = match (accept.as_deref(), response_as.as_deref()) {
        (Some("json"), _) | (None, Some("json")) => Some("application/json"),
        (Some("xml"), _) => Some("application/xml, text/xml"),
        (Some("text"), _) => Some("text/plain, text/*"),
        (None, Some("sse")) => Some("text/event-stream"),
        (other, _) => other,
    };
    if let Some(accept) = accept {
        add("accept", accept.to_string());
    }
    if !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
        add("idempotency-key", cx.idempotency_key().to_string());
    }
    Ok(headers)
}

async fn body(cx: &StepContext, fields: Fields<'_>) -> Result<Option<Body>, StepError> {
    let given: Vec<&str> = BODIES
        .iter()
        .copied()
        .filter(|key| fields.has(key))
        .collect();
    match given.as_slice() {
        [] => Ok(None),
        // As the reference has it.
        ["body", "json"] | ["json"] => Ok(Some(Body::json(&as_json(":json", fields.get("json"))?))),
        ["body"] => raw(fields).map(Some),
        ["body-from-ref"] => {
            let (bytes, content_type) =
                load(cx, fields.get("body-from-ref").unwrap_or(&Value::Nil)).await?;
            Ok(Some(Body::new(bytes, content_type)))
        }
        ["form"] => {
            let form = fields.map("form")?.cloned().unwrap_or(Value::Nil);
            Ok(Some(Body::form(&text_pairs(":form", &form)?)))
        }
        ["multipart"] => multipart(cx, fields).await.map(Some),
        several => Err(StepError::config(
            "E0738",
            format!(
                "a request has one body, and this has {}",
                crate::fields::listed(several)
            ),
        )),
    }
}

fn raw(fields: Fields<'_>) -> Result<Body, StepError> {
    match fields.get("body") {
        Some(Value::Text(text)) => Ok(Body::new(text.as_bytes(), "text/plain; charset=utf-8")),
        Some(Value::Object(object)) if let Object::Bytes(bytes) = &**object => {
            Ok(Body::new(bytes.to_vec(), OCTETS))
        }
        other => {
            let kind = other.map_or("nothing", Value::kind);
            Err(
                StepError::config("E0738", format!("`:body` takes text or bytes, not {kind}"))
                    .hint("`:json` sends data"),
            )
        }
    }
}

fn as_json(key: &str, value: Option<&Value>) -> Result<serde_json::Value, StepError> {
    json::to_json(value.unwrap_or(&Value::Nil))
        .map_err(|error| StepError::config("E0738", format!("`{key}`: {error}")))
}

async fn multipart(cx: &StepContext, fields: Fields<'_>) -> Result<Body, StepError> {
    let mut parts = Vec::new();
    for part in fields
        .get("multipart")
        .and_then(json::items)
        .unwrap_or_default()
    {
        let fields = Fields::inside(":multipart part", &part)?;
        fields.only(&["name", "filename", "content-type", "content", "from-ref"])?;
        let name = fields
            .name("name")?
            .ok_or_else(|| StepError::config("E0738", "a part of `:multipart` needs a `:name`"))?;
        let (bytes, content_type) = match (fields.get("content"), fields.get("from-ref")) {
            (Some(Value::Text(text)), None) => (text.as_bytes().to_vec(), None),
            (Some(Value::Object(object)), None) if let Object::Bytes(bytes) = &**object => {
                (bytes.to_vec(), Some(OCTETS.to_string()))
            }
            (Some(data), None) => (
                as_json(":content", Some(data))?.to_string().into_bytes(),
                Some("application/json".to_string()),
            ),
            (None, Some(reference)) => {
                let (bytes, content_type) = load(cx, reference).await?;
                (bytes, Some(content_type))
            }
            _ => {
                return Err(StepError::config(
                    "E0738",
                    format!("the part `{name}` needs `:content` or `:from-ref`"),
                ));
            }
        };
        parts.push(Part {
            name: name.to_string(),
            filename: fields.text("filename")?.map(str::to_string),
            content_type: fields
                .text("content-type")?
                .map(str::to_string)
                .or(content_type),
            bytes,
        });
    }
    Ok(Body::multipart(&parts))
}

/// Loads stored bytes by a reference to them, and what they are.
pub(crate) async fn load(
    cx: &StepContext,
    reference: &Value,
) -> Result<(Vec<u8>, String), StepError> {
    let (row, bytes) = resource::bytes(cx, reference).await?;
    let content_type = row.content_type.unwrap_or_else(|| OCTETS.into());
    Ok((bytes, content_type))
}

fn limits(
    cx: &StepContext,
    fields: Fields<'_>,
    connection: &Connection,
) -> Result<Limits, StepError> {
    let usual = Limits::default();
    let nothing = Value::map([]);
    let options = Fields::inside(
        ":client-opts",
        fields.map("client-opts")?.unwrap_or(&nothing),
    )?;
    options.only(&["allow-link-local", "max-redirects", "max-response-bytes"])?;
    let max_bytes = options
        .int("max-response-bytes", 1, i64::MAX)?
        .and_then(|it| u64::try_from(it).ok());
    Ok(Limits {
        timeout: timeout(cx, usual.timeout),
        max_bytes: max_bytes.unwrap_or(usual.max_bytes),
        max_redirects: options
            .count("max-redirects", 0, 50)?
            .unwrap_or(usual.max_redirects),
        allow_link_local: options
            .bool("allow-link-local")?
            .unwrap_or(connection.allow_link_local),
    })
}

/// Returns how long a request may take. A little under the step's own limit: the error made here knows how
/// far the answer had come.
pub(crate) fn timeout(cx: &StepContext, usual: Duration) -> Duration {
    let Some(deadline) = cx.deadline_ms() else {
        return usual;
    };
    let left = Duration::from_millis(u64::try_from(deadline - cx.now_ms()).unwrap_or(0));
    left.saturating_sub((left / 20).min(Duration::from_millis(50)))
}
