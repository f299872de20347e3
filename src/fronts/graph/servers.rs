//! The MCP servers that a project registers for agents. Credentials are kept encrypted and never returned.

use std::rc::Rc;

use flowstone_engine::feed_event::instant;
use flowstone_engine::json::items;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::outcome::RunOutcome;
use flowstone_engine::ports::{Random as _, SystemRandom};
use flowstone_engine::{Engine, ExecuteOptions, StartOptions};
use flowstone_lang::value::Value;
use flowstone_model::json::{to_json, uuid_text};
use serde_json::{Map, Value as Json, json};

use super::codes;
use super::compile::{PROBE_SECONDS, probe_flow};
use super::error::{GraphError, Status};
use super::known::Server;
use super::project::server_of_row;
use super::registry::Registry;
use super::shape::{self, Issue, Member, Name, Shape};
use super::spec::{AUDIENCES, MODES};
use crate::address::host_of;

const OVERRIDES: Shape = Shape::Object(&[
    Member::optional(
        "mode_override",
        Shape::OneOf(MODES),
        "Whether a person approves each call.",
    ),
    Member::optional(
        "exposed_to_override",
        Shape::OneOf(AUDIENCES),
        "Whose runs may call it.",
    ),
]);
const AUTH: Shape = Shape::Object(&[
    Member::required("type", Shape::OneOf(&["bearer"]), "How the token is sent."),
    Member::required("token", Shape::Text(10_000), "The token."),
]);
const SERVER: Shape = Shape::Object(&[
    Member::required(
        "name",
        Shape::Name(Name::Agent),
        "What people call the server.",
    ),
    Member::required(
        "url",
        Shape::Text(2_000),
        "The address of its MCP endpoint.",
    ),
    Member::optional(
        "transport",
        Shape::OneOf(&["http", "sse", "streamable_http"]),
        "Accepted for compatibility: the server is asked in the current way, then in older ones.",
    ),
    Member::optional("auth", AUTH, "The credentials."),
    Member::optional(
        "auth_header",
        Shape::Text(10_000),
        "The credentials as a header: `Bearer ...`.",
    ),
    Member::optional(
        "tool_acl",
        Shape::MapOf(Name::Tool, &OVERRIDES),
        "Overrides by tool, which only narrow.",
    ),
]);

/// The code of the error of a step that reached its `:total-timeout`.
const OUT_OF_TIME: &str = "E0531";

/// Returns all servers, without credentials.
///
/// # Errors
/// When the store cannot be read.
pub async fn list(engine: &Engine) -> Result<Vec<Json>, GraphError> {
    let rows = Registry::Servers.list(engine).await?;
    Ok(rows.into_iter().map(shown).collect())
}

/// Returns a server, without credentials.
///
/// # Errors
/// When no server has that id.
pub async fn get(engine: &Engine, id: &str) -> Result<Json, GraphError> {
    Ok(shown(row(engine, id).await?))
}

async fn row(engine: &Engine, id: &str) -> Result<Json, GraphError> {
    let row = Registry::Servers.get(engine, id).await?;
    row.ok_or_else(|| {
        GraphError::new(
            Status::NotFound,
            codes::MISSING,
            format!("there is no MCP server `{id}`"),
        )
    })
}

/// Returns a server in the form of responses.
fn shown(mut row: Json) -> Json {
    let Some(members) = row.as_object_mut() else {
        return row;
    };
    let has_auth = members.remove("secret").is_some();
    // The query of an address may be a key.
    if let Some(url) = members.get_mut("url")
        && let Some((address, _)) = url.as_str().and_then(|url| url.split_once('?'))
    {
        *url = json!(format!("{address}?..."));
    }
    members.insert(
        "auth".to_owned(),
        match has_auth {
            true => json!({"type": "bearer"}),
            false => Json::Null,
        },
    );
    row
}

/// Registers a server.
///
/// # Errors
/// When the body is not valid, or the name is taken.
pub async fn create(engine: &Engine, body: Json) -> Result<Json, GraphError> {
    let mut issues = Vec::new();
    shape::check(&SERVER, &body, &mut issues);
    issues.iter_mut().for_each(hide_credentials);
    let text = |key: &str| body.get(key).and_then(Json::as_str).map(str::to_owned);
    let url = text("url").unwrap_or_default();
    let host = host_of(&url);
    if host.is_none() && text("url").is_some() {
        issues.push(Issue::at(
            &[json!("url")],
            "expected an address that begins with http:// or https://, without credentials in it",
        ));
    }
    let token = token(&body, &mut issues);
    let Some(host) = host.filter(|_| issues.is_empty()) else {
        return Err(GraphError::invalid(
            codes::MALFORMED,
            "the body is not valid",
            &issues,
        ));
    };
    let name = text("name").unwrap_or_default();
    let mut all = Registry::Servers.list(engine).await?.into_iter();
    if all.any(|row| row["name"] == json!(name)) {
        let error = format!("there is an MCP server `{name}` already");
        return Err(GraphError::new(Status::Conflict, codes::TAKEN, error));
    }
    let id = uuid();
    let now = instant(engine.now_ms());
    let mut row = Map::new();
    row.insert("id".to_owned(), json!(id));
    row.insert("name".to_owned(), json!(name));
    row.insert("url".to_owned(), json!(url));
    row.insert(
        "transport".to_owned(),
        json!(text("transport").unwrap_or_else(|| "streamable_http".to_owned())),
    );
    row.insert(
        "tool_acl".to_owned(),
        body.get("tool_acl").cloned().unwrap_or_else(|| json!({})),
    );
    row.insert("created_at".to_owned(), now);
    if let Some(token) = token {
        let secret = engine.keep_server_secret(&id, &host, &token)?;
        row.insert("secret".to_owned(), json!(secret));
    }
    let row = Json::Object(row);
    Registry::Servers.put(engine, &id, &row).await?;
    Ok(shown(row))
}

/// Leaves credentials out of the description of a problem.
fn hide_credentials(issue: &mut Issue) {
    let member = issue.path.first().and_then(Json::as_str);
    if matches!(member, Some("auth" | "auth_header"))
        && let Some((expected, _)) = issue.message.split_once(", got ")
    {
        issue.message = expected.to_owned();
    }
}

/// Returns the bearer token in a body.
fn token(body: &Json, issues: &mut Vec<Issue>) -> Option<String> {
    let auth = body
        .get("auth")
        .and_then(|auth| auth.get("token"))
        .and_then(Json::as_str);
    let header = body.get("auth_header").and_then(Json::as_str);
    match (auth, header) {
        (Some(_), Some(_)) => {
            issues.push(Issue::at(
                &[json!("auth_header")],
                "expected `auth` or `auth_header`, not both",
            ));
            None
        }
        (Some(token), None) => Some(token.to_owned()),
        (None, Some(header)) => match header.split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
                Some(token.trim().to_owned())
            }
            _ => {
                issues.push(Issue::at(
                    &[json!("auth_header")],
                    "expected `Bearer` and a token",
                ));
                None
            }
        },
        (None, None) => None,
    }
}

/// Deletes a server and its credentials.
///
/// # Errors
/// When no server has that id.
pub async fn delete(engine: &Engine, id: &str) -> Result<(), GraphError> {
    row(engine, id).await?;
    engine.forget_server_secret(id)?;
    Registry::Servers.delete(engine, id).await?;
    Ok(())
}

/// Requests the list of a server's tools, in a separate run.
///
/// # Errors
/// When no server has that id, or it does not return a list.
pub async fn probe(engine: &Engine, id: &str) -> Result<Json, GraphError> {
    let server: Server = server_of_row(id, &row(engine, id).await?);
    let session = Rc::new(engine.session());
    let checked = engine.check_made(&session, &probe_flow(&server), "mcp-probe.edn");
    let loaded = checked
        .loaded
        .ok_or_else(|| unreachable("the server cannot be described as a flow"))?;
    let run = engine
        .start(&loaded, StartOptions::with_input(Value::map([])))
        .await?;
    let outcome = engine
        .execute(&run, Rc::new(NoObserver), ExecuteOptions::default())
        .await?;
    match outcome {
        RunOutcome::Completed(value) => Ok(listed(&value)),
        RunOutcome::Failed(failure) => {
            let exception = &failure.exception;
            let code = exception.data.get("code").and_then(Value::as_str);
            Err(match code {
                Some(OUT_OF_TIME) => unreachable(&format!(
                    "the server did not list its tools within {PROBE_SECONDS} s"
                )),
                _ => unreachable(exception.display_text()),
            })
        }
        RunOutcome::Waiting { .. }
        | RunOutcome::Cancelled { .. }
        | RunOutcome::Stuck { .. }
        | RunOutcome::Queued { .. }
        | RunOutcome::Interrupted => Err(unreachable("the server did not answer in time")),
    }
}

fn unreachable(error: &str) -> GraphError {
    GraphError::new(Status::BadGateway, codes::UNREACHABLE, error).with("ok", json!(false))
}

fn listed(value: &Value) -> Json {
    let tools = value.get("tools").and_then(items).unwrap_or_default();
    let tools = tools.iter().map(|tool| {
        let member = |key: &str| {
            tool.get(key)
                .and_then(|it| to_json(it).ok())
                .unwrap_or(Json::Null)
        };
        json!({
            "name": member("name"),
            "description": member("description"),
            "input_schema": member("input-schema"),
            "read_only": member("read-only?"),
        })
    });
    Json::Array(tools.collect())
}

/// Returns a random UUID of version 4.
fn uuid() -> String {
    let bits = (u128::from(SystemRandom.next()) << 64) | u128::from(SystemRandom.next());
    let bits = (bits & !(0xf << 76)) | (0x4 << 76);
    let bits = (bits & !(0x3 << 62)) | (0x2 << 62);
    uuid_text(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_of_version_4() {
        let text = uuid();
        assert_eq!((text.len(), &text[14..15]), (36, "4"), "{text}");
        assert!("89ab".contains(&text[19..20]), "{text}");
    }
}
