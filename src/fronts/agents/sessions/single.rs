//! The one open session of an actor, for agents that allow one.
//!
//! A row for each agent and actor names the session. A session takes it before it opens and frees it after it has closed, each with one
//! write that fails if another request was faster. A server that is killed in between leaves a row whose session is not open: it
//! counts for [`OPENING_MS`] only.

use flowstone_engine::Engine;
use serde_json::{Value as Json, json};

use super::{Session, activity, refused};
use crate::agents::error::{ApiError, Status};
use crate::agents::records::{Record, Records};
use crate::agents::{codes, ids};
use crate::rows::Rows;

/// The open sessions of actors.
const ACTORS: Rows = Rows("flowstone_api_actor_sessions");
/// Milliseconds for which a session that is not open yet holds its row.
const OPENING_MS: i64 = 10_000;

/// Makes a session the open one of its actor, where an actor has one.
///
/// # Errors
/// When the actor has another open session.
pub(super) async fn take(engine: &Engine, session: &Session) -> Result<(), ApiError> {
    let Some(key) = key(session) else {
        return Ok(());
    };
    let own = json!({"session_id": session.id(), "at_ms": engine.now_ms()});
    while !ACTORS.insert(engine, &key, &own).await? {
        let Some(row) = ACTORS.get(engine, &key).await? else {
            continue;
        };
        let holder = row["session_id"].as_str().unwrap_or_default();
        if holder != session.id() && holds(engine, session, &row).await? {
            return Err(conflict(holder));
        }
        ACTORS.delete_exact(engine, &key, &row).await?;
    }
    // Sessions that were opened while the agent allowed several have no row.
    if let Some(other) = other(engine, session).await? {
        ACTORS.delete_exact(engine, &key, &own).await?;
        return Err(conflict(&other));
    }
    Ok(())
}

/// Allows the actor of a session another one.
///
/// # Errors
/// When the store cannot be written.
pub(super) async fn free(engine: &Engine, session: &Session) -> Result<(), ApiError> {
    let Some(key) = key(session) else {
        return Ok(());
    };
    if let Some(row) = ACTORS.get(engine, &key).await?
        && row["session_id"] == json!(session.id())
    {
        ACTORS.delete_exact(engine, &key, &row).await?;
    }
    Ok(())
}

fn key(session: &Session) -> Option<String> {
    let agent = &session.agent.record;
    let is_single = agent.get("single_session_per_actor") == Some(&json!(true));
    let actor = session.record.text("actor_id").filter(|_| is_single)?;
    Some(format!("{}.{}", agent.key(), ids::key_of(actor)))
}

/// Tells whether the session of a row is open, or is being opened.
async fn holds(engine: &Engine, session: &Session, row: &Json) -> Result<bool, ApiError> {
    let taken_ms = row["at_ms"].as_i64().unwrap_or(0);
    let is_opening = engine.now_ms().saturating_sub(taken_ms) < OPENING_MS;
    let id = row["session_id"].as_str().unwrap_or_default();
    match Records::Sessions.get(engine, id).await {
        Ok(record) => Ok(match status(engine, session, record).await?.as_str() {
            "open" => true,
            "closed" => is_opening,
            _ => false,
        }),
        Err(ApiError::Refused(_)) => Ok(is_opening),
        Err(error) => Err(error),
    }
}

/// Returns the status of another session of the same agent.
async fn status(engine: &Engine, session: &Session, record: Record) -> Result<String, ApiError> {
    let record = activity::with(engine, record).await?;
    let agent = session.agent.clone();
    Ok(Session { record, agent }.status(engine).to_owned())
}

/// Returns another open session of the agent and the actor.
async fn other(engine: &Engine, session: &Session) -> Result<Option<String>, ApiError> {
    let project = session.agent.record.project();
    let is_same = |record: &Record, name: &str| record.text(name) == session.record.text(name);
    for record in Records::Sessions.list_in(engine, Some(project)).await? {
        let id = record.id().to_owned();
        if id != session.id()
            && is_same(&record, "agent_id")
            && is_same(&record, "actor_id")
            && status(engine, session, record).await? == "open"
        {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

fn conflict(holder: &str) -> ApiError {
    let message = "An open session already exists for this actor.".to_owned();
    let error = refused(
        Status::Conflict,
        "SINGLE_SESSION_CONFLICT",
        codes::SINGLE_SESSION,
        message,
    );
    error.with(json!({"session_id": holder}))
}
