//! Credentials among the headers of tools: kept encrypted for the host of the tool, and sent by the step, never shown.
//!
//! A tool has at most one credential, because a request has one. The other headers are stored as they are; answers show the names
//! of all of them.

use flowstone_engine::Engine;
use flowstone_flow::permission::Host;
use serde_json::{Value as Json, json};

use super::body::Body;
use super::error::ApiError;
use super::{context, ids, providers};

/// The member with the name of the encrypted credential.
const SECRET: &str = "secret";
/// The member under which the credential is kept.
const SECRET_ID: &str = "secret_id";
/// The member with the name of the header that has the credential.
const HEADER: &str = "secret_header";
/// The member with what stands before the credential in its header.
const PREFIX: &str = "secret_prefix";
const AUTHORIZATION: &str = "authorization";
const BEARER: &str = "Bearer ";
/// Parts of the names of headers that have credentials.
const PARTS: &[&str] = &[
    "auth",
    "cookie",
    "credential",
    "key",
    "password",
    "secret",
    "token",
];

/// Checks the headers of a server, and keeps the credential among them for its host.
///
/// # Errors
/// When a header is not valid, two of them have credentials, or the credential cannot be kept.
pub fn keep(engine: &Engine, server: &mut Body, (host, at): (&Host, &str)) -> Result<(), ApiError> {
    let headers = server.get("headers").and_then(Json::as_object);
    let Some(mut headers) = headers.cloned() else {
        return Ok(());
    };
    context::check_headers(&headers, at)?;
    let names: Vec<&String> = headers.keys().filter(|name| is_credential(name)).collect();
    if let [one, other, ..] = names[..] {
        return Err(ApiError::invalid(format!(
            "`{at}` has two headers with credentials, `{one}` and `{other}`; a tool may have one"
        )));
    }
    let name = names.first().map(|name| (*name).clone());
    if let Some((name, Json::String(value))) = name.and_then(|name| headers.remove_entry(&name)) {
        let (prefix, token) = match value.split_once(' ') {
            Some((scheme, token)) if name.eq_ignore_ascii_case(AUTHORIZATION) => {
                (format!("{scheme} "), token.trim().to_owned())
            }
            Some(_) | None => (String::new(), value),
        };
        providers::check_secret_text(Some(&token), &format!("{at}.{name}"))?;
        let id = ids::key(engine);
        let secret = engine.keep_server_secret(&id, host, &token)?;
        for (member, text) in [
            (SECRET, secret),
            (SECRET_ID, id),
            (HEADER, name),
            (PREFIX, prefix),
        ] {
            server.0.insert(member.to_owned(), json!(text));
        }
    }
    server.0.insert("headers".to_owned(), Json::Object(headers));
    Ok(())
}

fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    PARTS.iter().any(|part| name.contains(part))
}

/// Returns the option `auth` of a step or a connection; nothing if the server has no credential.
pub fn auth(server: Option<&Json>) -> Option<Json> {
    let text = |member: &str| server?.get(member)?.as_str();
    let secret = text(SECRET)?;
    let prefix = text(PREFIX).unwrap_or(BEARER);
    if prefix.eq_ignore_ascii_case(BEARER) {
        return Some(json!({"type": "bearer", "secret-ref": secret}));
    }
    let header = text(HEADER).unwrap_or(AUTHORIZATION);
    Some(json!({"type": "api-key", "header": header, "prefix": prefix, "secret-ref": secret}))
}

/// Returns the id of the credential of a server, which is part of its name in flows.
pub fn id(server: Option<&Json>) -> Option<&str> {
    server?.get(SECRET_ID)?.as_str()
}

/// Removes the credential of a tool that is deleted or changed.
///
/// # Errors
/// When the file of the credential cannot be deleted.
pub fn forget(engine: &Engine, server: Option<&Json>) -> Result<(), ApiError> {
    match id(server) {
        Some(id) => Ok(engine.forget_server_secret(id)?),
        None => Ok(()),
    }
}

/// Returns a server as answers show it: the names of its headers, and whether one of them is a credential.
pub fn shown(server: &Json) -> Json {
    let mut shown = server.clone();
    let Some(members) = shown.as_object_mut() else {
        return shown;
    };
    let has_token = members.remove(SECRET).is_some();
    members.remove(SECRET_ID);
    members.remove(PREFIX);
    let hidden = members.remove(HEADER);
    let hidden = hidden
        .as_ref()
        .and_then(Json::as_str)
        .unwrap_or("Authorization");
    if let Some(Json::Object(headers)) = members.remove("headers") {
        let own = headers.keys().map(String::as_str);
        let mut names: Vec<&str> = own.chain(has_token.then_some(hidden)).collect();
        names.sort_unstable();
        members.insert("headers".to_owned(), json!(names));
    }
    members.insert("has_token".to_owned(), json!(has_token));
    shown
}
