//! Requests for connections: what a program asked for, and how a person completes it.
//!
//! A request has no secret. The person enters it on the page of the request or with its command, once and within an hour; it
//! is written to `.env` beside the flows, and no answer has it.

use std::fs;
use std::path::Path;

use flowstone_engine::feed_event::instant;
use flowstone_engine::links::KitPage;
use flowstone_engine::ports::{Random as _, SystemRandom};
use flowstone_engine::{Engine, EngineError};
use flowstone_model::private;
use serde_json::{Value as Json, json};

use super::connectable::Wanted;
use super::context::KitCall;
use super::error::KitError;
use super::link::{self, Linked};
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

    fn named(name: &str) -> Option<Mode> {
        let mut modes = [Mode::Oauth, Mode::ApiKey].into_iter();
        modes.find(|mode| mode.name() == name)
    }
}

/// Stores a request, or returns the open one for the same connection:
/// `{status, integration, slug, url?, command, expires_at}`.
///
/// # Errors
/// `limit_exceeded` when the flow has as many open requests as it may.
pub async fn request(
    cx: &KitCall<'_>,
    (integration, slug): (&str, &str),
    mode: Mode,
    wanted: &Wanted,
) -> Result<Json, KitError> {
    let flow = cx.flow()?;
    let now_ms = cx.engine.now_ms();
    let under = format!("{}/{flow}/", cx.workspace);
    let mut open = REQUESTS.list_under(cx.engine, &under).await?;
    open.retain(|row| is_open(row, now_ms));
    let is_same = |row: &&Json| row["slug"] == json!(slug) && row["mode"] == json!(mode.name());
    if let Some(row) = open.iter().find(is_same) {
        return pending(cx, row);
    }
    if open.len() >= MOST_OPEN {
        return Err(KitError::full(
            format!("{MOST_OPEN} requests for connections of this flow are open"),
            "let the person complete one of them; each ends an hour after it was made",
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
        "secret": wanted.secret,
        "place": wanted.place,
        "problem": wanted.problem,
        "entry": wanted.entry,
        "asked_by": cx.token.attributed_to(),
        "created_ms": now_ms,
        "expires_ms": now_ms + VALID_MS,
        "status": "open",
    });
    REQUESTS
        .put(cx.engine, &format!("{under}{id}"), &row)
        .await?;
    pending(cx, &row)
}

fn is_open(row: &Json, now_ms: i64) -> bool {
    let expires_ms = row["expires_ms"].as_i64();
    row["status"] == json!("open") && expires_ms.is_some_and(|at| now_ms < at)
}

/// Returns what the caller learns about an open request.
fn pending(cx: &KitCall<'_>, row: &Json) -> Result<Json, KitError> {
    let (slug, id) = (text(row, "slug"), text(row, "id"));
    let expires_ms = row["expires_ms"].as_i64().unwrap_or_default();
    let command = match row["mode"].as_str() {
        Some("oauth") => format!("flowstone connections login {slug}"),
        _ => format!("flowstone kit connect {id}"),
    };
    let mut answer = json!({
        "status": "pending",
        "integration": row["integration"],
        "slug": slug,
        "command": command,
        "expires_at": instant(expires_ms),
    });
    if let Some(url) = link::url(cx, KitPage::Connection, (&id, expires_ms))? {
        answer["url"] = json!(url);
    }
    Ok(answer)
}

fn text(row: &Json, key: &str) -> String {
    row[key].as_str().unwrap_or_default().to_owned()
}

/// Where the secret of a connection is written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A variable of `.env`.
    Variable(String),
    /// A file or an entry of the system's keyring, which the settings name.
    Elsewhere(String),
}

impl Place {
    /// Returns the place that a report of the connection names, or the variable of a secret that no settings place.
    fn of(row: &Json) -> Place {
        let place = text(row, "place");
        match place.split_once(' ') {
            Some(("environment" | ".env", variable)) => Place::Variable(variable.to_owned()),
            Some(_) => Place::Elsewhere(place),
            None => Place::Variable(flowstone_steps::secrets::variable(&text(row, "secret"))),
        }
    }
}

/// What a person is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    pub id: String,
    pub flow: String,
    pub slug: String,
    pub mode: Option<Mode>,
    pub place: Place,
    /// The entry that `flowstone.edn` lacks.
    pub missing: Option<String>,
    /// What else is wrong with the connection.
    pub problem: Option<String>,
    pub asked_by: String,
    pub created_ms: i64,
    pub expires_ms: i64,
    /// The name of the secret.
    secret: String,
    row: Json,
}

impl Asked {
    fn of(row: &Json) -> Asked {
        let (slug, secret) = (text(row, "slug"), text(row, "secret"));
        Asked {
            id: text(row, "id"),
            flow: text(row, "flow"),
            mode: Mode::named(&text(row, "mode")),
            place: Place::of(row),
            missing: row["entry"].as_str().map(str::to_owned),
            problem: row["problem"].as_str().map(str::to_owned),
            asked_by: text(row, "asked_by"),
            created_ms: row["created_ms"].as_i64().unwrap_or_default(),
            expires_ms: row["expires_ms"].as_i64().unwrap_or_default(),
            row: row.clone(),
            secret,
            slug,
        }
    }

    /// Tells whether the secret has a value already. A link then replaces nothing: who has it proves nothing about a person.
    pub fn is_set(&self, engine: &Engine) -> bool {
        let profile = engine.bindings().profile.as_deref();
        let found = engine.secrets().find_in(profile, &self.secret);
        let Place::Variable(variable) = &self.place else {
            return found.is_some();
        };
        found.is_some() || engine.secrets().find(variable).is_some()
    }
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
    let found = found.map(Asked::of);
    found.ok_or_else(|| KitError::not_found(format!("there is no open request `{id}`")))
}

/// Returns the request that a link leads to.
///
/// # Errors
/// When the store or the key of links cannot be read.
pub async fn linked(engine: &Engine, id: &str, token: &str) -> Result<Linked<Asked>, EngineError> {
    let Some(end_ms) = engine.read_kit_token(KitPage::Connection, id, token)? else {
        return Ok(Linked::Nothing);
    };
    let now_ms = engine.now_ms();
    let rows = REQUESTS.list(engine).await?;
    let row = rows.iter().find(|row| row["id"] == json!(id));
    Ok(match row {
        Some(row) if is_open(row, now_ms) && now_ms < end_ms => Linked::Open(Asked::of(row)),
        Some(row) if row["status"] == json!("done") => {
            Linked::Over("this request was completed, and takes nothing else".to_owned())
        }
        Some(_) | None => Linked::Over("nobody completed this request within an hour".to_owned()),
    })
}

/// Takes the secret of a request and writes it to `.env`. The request is completed: it takes no other.
///
/// # Errors
/// `invalid_arguments` for a secret that cannot be one, `not_found` when somebody completed the request before, and
/// `internal` when the file cannot be written.
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
    let variable = match &asked.place {
        Place::Variable(variable) => variable,
        Place::Elsewhere(place) => {
            return Err(KitError::invalid(
                "",
                "a secret in a variable",
                format!("the settings keep this secret elsewhere: write it to {place}"),
            ));
        }
    };
    let claim = claim(engine, asked).await?;
    let path = engine.project_root().join(".env");
    if let Err(error) = write_variable(&path, variable, secret) {
        claim.release(engine).await?;
        return Err(KitError::internal(&error));
    }
    Ok(())
}

/// A request that is being completed. Nobody else completes it.
#[derive(Debug)]
pub struct Claim {
    open: Json,
    done: Json,
}

/// Closes a request before it is completed, so that of several persons one completes it.
///
/// # Errors
/// `not_found` when somebody was faster.
pub async fn claim(engine: &Engine, asked: &Asked) -> Result<Claim, KitError> {
    let mut done = asked.row.clone();
    done["status"] = json!("done");
    let (open, key) = (asked.row.clone(), text(&asked.row, "key"));
    match REQUESTS.replace_exact(engine, &key, (&open, &done)).await? {
        true => Ok(Claim { open, done }),
        false => Err(KitError::not_found(format!(
            "the request `{}` was completed already",
            asked.id
        ))),
    }
}

impl Claim {
    /// Opens the request again, because it was not completed.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn release(self, engine: &Engine) -> Result<(), EngineError> {
        let key = text(&self.open, "key");
        let released = REQUESTS.replace_exact(engine, &key, (&self.done, &self.open));
        released.await.map(drop)
    }
}

/// Sets a variable in a file of variables; other lines stay as they are.
fn write_variable(path: &Path, variable: &str, value: &str) -> std::io::Result<()> {
    let before = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    // In single quotes nothing has a meaning, neither to readers of such files nor to a shell.
    let quoted = value.replace('\'', "'\"'\"'");
    let line = format!("{variable}='{quoted}'");
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
        write_variable(&path, "CRM_TOKEN", "a\"b$c`d`\\e'f").expect("it is written");
        write_variable(&path, "B", "second").expect("it is written");
        let text = fs::read_to_string(&path).expect("a file");
        assert_eq!(
            text,
            "# keys\nA=1\nCRM_TOKEN='a\"b$c`d`\\e'\"'\"'f'\nB='second'\n"
        );
    }
}
