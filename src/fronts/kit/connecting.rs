//! Requests for connections: what a program asked for, and how a person completes it.
//!
//! A request has no secret. The person enters it with the command of the request, which works once and for an hour; it is
//! written to `.env` beside the flows, and no answer has it.

use std::fs;
use std::path::Path;

use flowstone_engine::Engine;
use flowstone_engine::feed_event::instant;
use flowstone_engine::ports::{Random as _, SystemRandom};
use flowstone_model::private;
use flowstone_project::connections::ConnectionReport;
use serde_json::{Value as Json, json};

use super::context::KitCall;
use super::discovery::Integration;
use super::error::KitError;
use crate::rows::Rows;

/// The requests by flow and id.
const REQUESTS: Rows = Rows("flowstone_kit_connections");
/// How long a request can be completed.
pub const VALID_MS: i64 = 60 * 60 * 1000;
/// Maximum number of open requests of a flow.
pub const MOST_OPEN: usize = 5;
/// What the ids of requests begin with.
pub const PREFIX: &str = "kcr_";
/// The shortest and the longest secret.
const LENGTH: (usize, usize) = (6, 10_000);

/// How a person proves who they are to a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Oauth,
    ApiKey,
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Mode::Oauth => "oauth",
            Mode::ApiKey => "api_key",
        }
    }
}

/// Stores a request, or returns the open one for the same connection: `{status, integration, slug, command, expires_at}`.
///
/// # Errors
/// `limit_exceeded` when the flow has as many open requests as it may.
pub async fn request(
    cx: &KitCall<'_>,
    (integration, slug): (&str, &str),
    mode: Mode,
    known: Option<&Integration>,
) -> Result<Json, KitError> {
    let flow = cx.flow()?;
    let now_ms = cx.engine.now_ms();
    let under = format!("{}/{flow}/", cx.workspace);
    let mut open = REQUESTS.list_under(cx.engine, &under).await?;
    open.retain(|row| is_open(row, now_ms));
    let is_same = |row: &&Json| row["slug"] == json!(slug) && row["mode"] == json!(mode.name());
    if let Some(row) = open.iter().find(is_same) {
        return Ok(pending(row));
    }
    if open.len() >= MOST_OPEN {
        return Err(KitError::limit_exceeded(
            format!("{MOST_OPEN} requests for connections of this flow are open"),
            60,
        ));
    }
    let id = format!(
        "{PREFIX}{:016x}{:016x}",
        SystemRandom.next(),
        SystemRandom.next()
    );
    let row = json!({
        "id": id,
        "key": format!("{under}{id}"),
        "flow": flow,
        "integration": integration,
        "slug": slug,
        "mode": mode.name(),
        "secret": secret_of(known.map(|known| &known.report), slug),
        "is_described": known.is_some(),
        "created_ms": now_ms,
        "expires_ms": now_ms + VALID_MS,
        "status": "open",
    });
    REQUESTS
        .put(cx.engine, &format!("{under}{id}"), &row)
        .await?;
    Ok(pending(&row))
}

/// Returns the name of the secret that a connection needs.
fn secret_of(report: Option<&ConnectionReport>, slug: &str) -> String {
    let named = report.and_then(|report| report.secret.as_ref());
    named.map_or_else(|| format!("{slug}-token"), |secret| secret.name.clone())
}

fn is_open(row: &Json, now_ms: i64) -> bool {
    let expires_ms = row["expires_ms"].as_i64();
    row["status"] == json!("open") && expires_ms.is_some_and(|at| now_ms < at)
}

/// Returns what the caller learns about an open request.
fn pending(row: &Json) -> Json {
    let slug = row["slug"].as_str().unwrap_or_default();
    let command = match row["mode"].as_str() {
        Some("oauth") => format!("flowstone connections login {slug}"),
        _ => format!(
            "flowstone kit connect {}",
            row["id"].as_str().unwrap_or_default()
        ),
    };
    json!({
        "status": "pending",
        "integration": row["integration"],
        "slug": slug,
        "command": command,
        "expires_at": row["expires_ms"].as_i64().map(instant),
    })
}

/// What a person is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub slug: String,
    /// The variable of `.env` that the secret is written to.
    pub variable: String,
    /// The entry that `flowstone.edn` lacks.
    pub missing: Option<String>,
    key: String,
}

/// Finds an open request.
///
/// # Errors
/// `not_found` when no request has the id, or it was completed or has expired.
pub async fn find(engine: &Engine, id: &str) -> Result<Asked, KitError> {
    let rows = REQUESTS.list(engine).await?;
    let now_ms = engine.now_ms();
    let found = rows
        .iter()
        .find(|row| row["id"] == json!(id) && is_open(row, now_ms));
    let row =
        found.ok_or_else(|| KitError::not_found(format!("there is no open request `{id}`")))?;
    let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let (slug, secret) = (text("slug"), text("secret"));
    let is_described = row["is_described"] == json!(true);
    let missing = format!(
        ":connections {{:{slug} {{:base-url \"https://...\" :auth {{:type :bearer :secret-ref :{secret}}}}}}}"
    );
    Ok(Asked {
        variable: flowstone_steps::secrets::variable(&secret),
        missing: (!is_described).then_some(missing),
        key: text("key"),
        slug,
    })
}

/// Takes the secret of a request and writes it to `.env`. The request is completed: it takes no other.
///
/// # Errors
/// `invalid_arguments` for a secret that cannot be one; `internal` when the file cannot be written.
pub async fn complete(engine: &Engine, asked: &Asked, secret: &str) -> Result<(), KitError> {
    let secret = secret.trim();
    let length = secret.chars().count();
    let is_plain = !secret.chars().any(char::is_control);
    if !(LENGTH.0..=LENGTH.1).contains(&length) || !is_plain {
        return Err(KitError::invalid(
            "",
            "one line of at least 6 characters",
            "this cannot be a secret",
        ));
    }
    let path = engine.project_root().join(".env");
    write_variable(&path, &asked.variable, secret).map_err(|error| KitError::internal(&error))?;
    if let Some(mut row) = REQUESTS.get(engine, &asked.key).await? {
        row["status"] = json!("done");
        REQUESTS.put(engine, &asked.key, &row).await?;
    }
    Ok(())
}

/// Sets a variable in a file of variables; other lines stay as they are.
fn write_variable(path: &Path, variable: &str, value: &str) -> std::io::Result<()> {
    let before = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    let quoted = value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('$', "\\$");
    let line = format!("{variable}=\"{quoted}\"");
    let is_it = |text: &&str| {
        let name = text
            .trim_start()
            .trim_start_matches("export ")
            .split('=')
            .next();
        name.map(str::trim) == Some(variable)
    };
    let mut lines: Vec<&str> = before.lines().filter(|line| !is_it(line)).collect();
    lines.push(&line);
    private::write(path, format!("{}\n", lines.join("\n")).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_set_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(".env");
        fs::write(&path, "# keys\nA=1\nCRM_TOKEN=old\n").expect("a file");
        write_variable(&path, "CRM_TOKEN", "a\"b$c").expect("it is written");
        write_variable(&path, "B", "second").expect("it is written");
        let text = fs::read_to_string(&path).expect("a file");
        assert_eq!(
            text,
            "# keys\nA=1\nCRM_TOKEN=\"a\\\"b\\$c\"\nB=\"second\"\n"
        );
    }
}
