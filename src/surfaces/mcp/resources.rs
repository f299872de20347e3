//! `resources/*`: flows, runs, stored resources, and resources of flows.

use std::sync::Arc;

use axum::http::Method;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flowstone_engine::ids::RunId;
use flowstone_engine::resource::PREFIX;
use flowstone_engine::token::Scope;
use flowstone_flow::mcp_interfaces::McpKind;
use serde_json::{Map, Value as Json, json};

use super::api;
use super::call::{offered, result_of};
use super::content;
use super::peer::{Request, refused};
use super::protocol::{RpcError, codes};
use crate::http::{EngineContext, Problem};

const FLOWS: &str = "flowstone://flows/";
const RUNS: &str = "flowstone://runs/";
/// The notification that a resource has changed.
pub(super) const UPDATED: &str = "notifications/resources/updated";
const JSON: &str = "application/json";
/// Maximum number of runs in a list; the API has all of them.
const RUNS_LISTED: usize = 50;

/// Lists flows, the newest runs, and stored resources, page by page.
///
/// # Errors
/// When the cursor is malformed, or the server is too busy or is stopping.
pub(super) async fn list(rq: &Request, params: &Map<String, Json>) -> Result<Json, RpcError> {
    let cursor = params.get("cursor").and_then(Json::as_str);
    let mut found = Vec::new();
    if cursor.is_none() {
        for it in offered(rq, McpKind::Resource).await? {
            let uri = it.interface.uri.as_ref().filter(|uri| uri.is_plain());
            if let Some(uri) = uri {
                found.push(resource(
                    (uri.text(), &it.interface.name),
                    &it.description,
                    it.interface.media.as_deref(),
                ));
            }
        }
    }
    if !rq.caller.token.has(Scope::Read) {
        return Ok(json!({"resources": found}));
    }
    if cursor.is_none() {
        let flows = get(rq, "/api/v1/flows?limit=500").await?;
        for flow in flows["flows"].as_array().into_iter().flatten() {
            let slug = flow["slug"].as_str().unwrap_or_default();
            let about = flow["description"].as_str().or(flow["name"].as_str());
            let about = about.map_or_else(|| format!("The flow `{slug}`."), str::to_owned);
            found.push(resource(
                (&format!("{FLOWS}{slug}"), slug),
                &about,
                Some(JSON),
            ));
        }
        let runs = get(rq, &format!("/api/v1/runs?limit={RUNS_LISTED}")).await?;
        for run in runs["runs"].as_array().into_iter().flatten() {
            let text = |key: &str| run[key].as_str().unwrap_or_default();
            let name = format!("{} {}", text("flow"), text("id"));
            let about = format!("A run of `{}`: {}.", text("flow"), text("status"));
            let uri = format!("{RUNS}{}", text("id"));
            found.push(resource((&uri, &name), &about, Some(JSON)));
        }
    }
    let cursor = cursor.map(|cursor| format!("&cursor={}", api::escaped(cursor)));
    let path = format!("/api/v1/resources?limit=100{}", cursor.unwrap_or_default());
    let stored = get(rq, &path).await?;
    for row in stored["resources"].as_array().into_iter().flatten() {
        let text = |key: &str| row[key].as_str();
        let uri = text("uri").unwrap_or_default();
        let name = text("name")
            .or_else(|| uri.rsplit('/').next())
            .unwrap_or(uri);
        let kind = text("type").unwrap_or("resource");
        let about = format!("Stored in the project: {kind}.");
        found.push(resource((uri, name), &about, text("contentType")));
    }
    let mut answer = json!({"resources": found});
    if let Some(next) = stored["next"].as_str() {
        answer["nextCursor"] = json!(next);
    }
    Ok(answer)
}

fn resource((uri, name): (&str, &str), description: &str, media: Option<&str>) -> Json {
    let mut shown = json!({"uri": uri, "name": name, "description": description});
    if let Some(media) = media {
        shown["mimeType"] = json!(media);
    }
    shown
}

/// Calls the API.
async fn get(rq: &Request, path: &str) -> Result<Json, RpcError> {
    let answer = api::call(rq, Method::GET, path, None).await?;
    match answer.problem() {
        None => Ok(answer.json()),
        Some(problem) => Err(RpcError::params(problem)),
    }
}

/// Lists the templates of addresses.
///
/// # Errors
/// When the server is too busy, or is stopping.
pub(super) async fn templates(rq: &Request) -> Result<Json, RpcError> {
    let template = |uri: &str, name: &str, about: &str, media: Option<&str>| {
        let mut shown = json!({"uriTemplate": uri, "name": name, "description": about});
        if let Some(media) = media {
            shown["mimeType"] = json!(media);
        }
        shown
    };
    let mut found = Vec::new();
    if rq.caller.token.has(Scope::Read) {
        let flow = "What a flow takes, and how it is started.";
        let run = "A run with its steps, its result and its waits.";
        found.push(template(
            "flowstone://flows/{slug}",
            "flow",
            flow,
            Some(JSON),
        ));
        found.push(template("flowstone://runs/{id}", "run", run, Some(JSON)));
        let stored = "Something stored in the project.";
        found.push(template(
            &format!("{PREFIX}{{+path}}"),
            "stored",
            stored,
            None,
        ));
    }
    for it in offered(rq, McpKind::Resource).await? {
        let uri = it.interface.uri.as_ref().filter(|uri| !uri.is_plain());
        if let Some(uri) = uri {
            let media = it.interface.media.as_deref();
            found.push(template(
                uri.text(),
                &it.interface.name,
                &it.description,
                media,
            ));
        }
    }
    Ok(json!({"resourceTemplates": found}))
}

/// Reads a resource.
///
/// # Errors
/// When the resource does not exist, or the caller has no access to it.
pub(super) async fn read(rq: &Request, params: &Map<String, Json>) -> Result<Json, RpcError> {
    let uri = uri_of(params)?;
    let path = match (uri.strip_prefix(FLOWS), uri.strip_prefix(RUNS)) {
        (Some(slug), _) => Some(format!("/api/v1/flows/{}", api::escaped(slug))),
        (_, Some(run)) => Some(format!("/api/v1/runs/{}?full=true", api::escaped(run))),
        _ => None,
    };
    if let Some(path) = path {
        let answer = api::call(rq, Method::GET, &path, None).await?;
        return match answer.problem() {
            None => Ok(json!({"contents": [
                {"uri": uri, "mimeType": JSON, "text": String::from_utf8_lossy(&answer.bytes)},
            ]})),
            Some(_) => Err(missing(rq, uri)),
        };
    }
    if uri.starts_with(PREFIX) {
        let found = content::stored(rq, uri).await?;
        let (media, bytes) = found.ok_or_else(|| missing(rq, uri))?;
        return Ok(json!({"contents": [contents_of(uri, media, bytes)]}));
    }
    for it in offered(rq, McpKind::Resource).await? {
        let found = it
            .interface
            .uri
            .as_ref()
            .and_then(|known| known.matches(uri));
        let Some(parts) = found else { continue };
        let arguments = parts
            .into_iter()
            .map(|(name, part)| (name, Json::String(part)));
        let arguments: Map<String, Json> = arguments.collect();
        let media = it.interface.media.clone();
        return match result_of(rq, &it, (&arguments, params)).await? {
            Ok(result) => content::resource_contents(rq, (uri, media.as_deref()), &result).await,
            Err(input) => Ok(input),
        };
    }
    Err(missing(rq, uri))
}

fn uri_of(params: &Map<String, Json>) -> Result<&str, RpcError> {
    let uri = params.get("uri").and_then(Json::as_str);
    uri.ok_or_else(|| RpcError::params("`uri` must be the address of a resource"))
}

fn missing(rq: &Request, uri: &str) -> RpcError {
    let code = match rq.era.is_stateless() {
        true => codes::PARAMS,
        false => codes::RESOURCE,
    };
    RpcError::new(code, format!("there is no resource `{uri}`")).with(json!({"uri": uri}))
}

/// Returns text as it is, and other bytes as Base64.
fn contents_of(uri: &str, media: String, bytes: Vec<u8>) -> Json {
    let is_binary = ["image/", "audio/", "video/"]
        .iter()
        .any(|kind| media.starts_with(kind));
    match String::from_utf8(bytes) {
        Ok(text) if !is_binary => json!({"uri": uri, "mimeType": media, "text": text}),
        Ok(text) => json!({"uri": uri, "mimeType": media, "blob": STANDARD.encode(text)}),
        Err(error) => {
            json!({"uri": uri, "mimeType": media, "blob": STANDARD.encode(error.as_bytes())})
        }
    }
}

/// Follows a resource for a session. Only runs change; other resources are accepted, but never reported.
///
/// # Errors
/// When the run does not exist, or too many resources are followed.
pub(super) async fn subscribe(rq: &Request, params: &Map<String, Json>) -> Result<Json, RpcError> {
    let uri = uri_of(params)?.to_owned();
    let session = rq.session.as_ref();
    let session = session.ok_or_else(|| RpcError::no_method("resources/subscribe"))?;
    if !uri.starts_with(RUNS) {
        return Ok(json!({}));
    }
    let run = run_of(rq, &uri).await?;
    let run = run.ok_or_else(|| missing(rq, &uri))?;
    let watched = run.clone();
    let feeds = rq
        .server
        .ask(async |cx: &EngineContext| Ok::<_, Problem>(cx.engine.feeds()));
    let feeds = feeds.await.map_err(|problem| refused(&problem))?;
    let mut news = feeds.watch(&watched);
    let weak = Arc::downgrade(session);
    let reported = uri.clone();
    let follower = tokio::spawn(async move {
        loop {
            news.changed().await;
            news.mark_seen();
            // The session may have ended.
            let Some(session) = weak.upgrade() else {
                return;
            };
            session.send(UPDATED, &json!({"uri": reported}));
        }
    });
    match session.follow(&uri, follower.abort_handle()) {
        true => Ok(json!({})),
        false => Err(RpcError::params("too many resources are followed")),
    }
}

/// Returns the run of an address that clients can follow; `None` if the caller has no access to it.
///
/// # Errors
/// When the server is too busy, or is stopping.
pub(super) async fn run_of(rq: &Request, uri: &str) -> Result<Option<RunId>, RpcError> {
    let Some(run) = uri.strip_prefix(RUNS) else {
        return Ok(None);
    };
    let path = format!("/api/v1/runs/{}", api::escaped(run));
    let answer = api::call(rq, Method::GET, &path, None).await?;
    Ok(match answer.problem() {
        None => Some(RunId::from_text(run)),
        Some(_) => None,
    })
}

/// Stops following a resource.
///
/// # Errors
/// When the request is malformed.
pub(super) fn unsubscribe(rq: &Request, params: &Map<String, Json>) -> Result<Json, RpcError> {
    let uri = uri_of(params)?;
    if let Some(session) = &rq.session {
        session.unfollow(uri);
    }
    Ok(json!({}))
}
