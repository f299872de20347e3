//! Answers to messages: at once, or when no message has come for the delay of the session.
//!
//! A message of a session with a delay leaves a row with the instant at which it is to be answered. The server performs the rows
//! whose time has come, also those of a server that was killed. A row is removed once a generation has seen its message.

use flowstone_engine::Engine;
use flowstone_engine::ids::RunId;
use flowstone_engine::waits::Caller;
use serde_json::{Value as Json, json};

use super::codes;
use super::error::ApiError;
use super::generations::Who;
use super::sessions::{Added, Session};
use crate::rows::Rows;

/// The messages to answer, by `SESSION.MESSAGE`.
const PENDING: Rows = Rows("flowstone_api_pending");
/// Milliseconds until a session whose generation is not over is tried again.
const RETRY_MS: i64 = 500;

/// A message that was added, and the generation that answers it.
#[derive(Debug, Clone)]
pub struct Received {
    pub message: Json,
    pub is_new: bool,
    pub run: Option<RunId>,
    /// Whether the message waits for the delay of the session.
    pub is_delayed: bool,
}

/// Adds a message of the user, and answers it if the session does so by itself. While a generation of the session is not over, the
/// message is only added.
///
/// # Errors
/// When the body is not valid, or the session takes no messages.
pub async fn receive(
    engine: &Engine,
    session: &mut Session,
    who: &Who,
    body: &Json,
) -> Result<Received, ApiError> {
    let Added {
        message,
        is_new,
        key,
    } = session.add(engine, who, body).await?;
    let mut received = Received {
        message,
        is_new,
        run: None,
        is_delayed: false,
    };
    if !is_new || !session.generates_by_itself() {
        return Ok(received);
    }
    let context = body.get("tool_context").cloned();
    if let Some(delay_ms) = session.delay_ms() {
        let row = json!({
            "key": key,
            "agent_id": session.agent.record.id(),
            "session_id": session.id(),
            "message": key,
            "due_ms": engine.now_ms().saturating_add(delay_ms),
            "started_by": who.started_by,
            "token": who.token,
            "tool_context": context,
        });
        PENDING.put(engine, &key, &row).await?;
        received.is_delayed = true;
        return Ok(received);
    }
    let request = json!({"tool_context": context});
    received.run = match session.generate(engine, who, request).await {
        Ok(run) => Some(run),
        Err(error) if is_busy(&error) => None,
        Err(error) => return Err(error),
    };
    Ok(received)
}

fn is_busy(error: &ApiError) -> bool {
    matches!(error, ApiError::Refused(refusal) if refusal.code == codes::BUSY)
}

/// Answers the messages whose time has come. Returns the instant at which to ask again, if messages are left.
///
/// # Errors
/// When the store cannot be read or written.
pub async fn answer_due(engine: &Engine) -> Result<Option<i64>, ApiError> {
    let rows = PENDING.list(engine).await?;
    let now = engine.now_ms();
    let mut next: Option<i64> = None;
    for (idx, row) in rows.iter().enumerate() {
        // Rows are sorted by session, then by message: only the last one of a session counts.
        let is_last = rows
            .get(idx + 1)
            .is_none_or(|other| other["session_id"] != row["session_id"]);
        let due = row["due_ms"].as_i64().unwrap_or(now);
        if !is_last {
            PENDING.delete(engine, text(row, "key")).await?;
            continue;
        }
        let again = match due > now {
            true => Some(due),
            false => answer(engine, row).await?.then_some(now + RETRY_MS),
        };
        next = match (next, again) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
    Ok(next)
}

fn text<'a>(row: &'a Json, name: &str) -> &'a str {
    row[name].as_str().unwrap_or_default()
}

/// Answers the message of a row. Returns whether to try again, because a generation of the session is not over.
async fn answer(engine: &Engine, row: &Json) -> Result<bool, ApiError> {
    let started = start(engine, row).await;
    match started {
        Err(error) if is_busy(&error) => return Ok(true),
        Err(ApiError::Engine(error)) => return Err(error.into()),
        // The session was closed or deleted, or its agent cannot run.
        Err(ApiError::Refused(refusal)) => {
            tracing::warn!(
                session = text(row, "session_id"),
                "a message is not answered: {}",
                refusal.message
            );
        }
        Ok(()) => {}
    }
    PENDING.delete(engine, text(row, "key")).await?;
    Ok(false)
}

async fn start(engine: &Engine, row: &Json) -> Result<(), ApiError> {
    let (agent, session) = (text(row, "agent_id"), text(row, "session_id"));
    let mut session = Session::find(engine, agent, session).await?;
    if session.has_seen(engine, text(row, "message")).await? {
        return Ok(());
    }
    let who = Who {
        started_by: text(row, "started_by").to_owned(),
        caller: Caller::default(),
        is_operator: false,
        token: row["token"].as_str().map(str::to_owned),
        narrowed: None,
    };
    let request = json!({"tool_context": row["tool_context"]});
    session.generate(engine, &who, request).await.map(|_| ())
}
