//! Answers to messages: at once, when no message has come for the delay of the session, or when its generation is over.
//!
//! A message that is to be answered leaves a row with the instant at which it is. The server performs the rows whose time has
//! come, also those of a server that was killed. A row is removed once a generation has seen its message.

use flowstone_engine::Engine;
use flowstone_engine::ids::RunId;
use flowstone_engine::waits::Caller;
use serde_json::{Value as Json, json};

use super::codes;
use super::error::{ApiError, Refusal};
use super::generations::{State, Who};
use super::sessions::{Draft, Session};
use crate::rows::Rows;

/// The messages to answer, by `SESSION.MESSAGE`.
const PENDING: Rows = Rows("flowstone_api_pending");
/// Milliseconds until a session whose generation is in progress is tried again.
const RETRY_MS: i64 = 200;
/// As [`RETRY_MS`], while the generation waits for outputs. The server asks at once when it has answered their submission.
const PAUSED_MS: i64 = 5_000;
/// Milliseconds after which a message is answered whose request started no generation, because the server was killed.
const GRACE_MS: i64 = 5_000;

/// A message that was added, and the generation that answers it.
#[derive(Debug, Clone)]
pub struct Received {
    pub message: Json,
    pub is_new: bool,
    pub run: Option<RunId>,
    /// Whether the message waits for the delay of the session, or for the end of its generation.
    pub is_delayed: bool,
}

impl Received {
    /// Adds the place of the message in the conversation.
    async fn place(
        &mut self,
        engine: &Engine,
        session: &Session,
        draft: &Draft,
    ) -> Result<(), ApiError> {
        self.message["position"] = json!(session.position(engine, draft).await?);
        Ok(())
    }
}

/// Adds a message of the user, and answers it if the session does so by itself: after the generation that is not over, if there is
/// one.
///
/// # Errors
/// When the body is not valid, or the session takes no messages.
pub async fn receive(
    engine: &Engine,
    session: &mut Session,
    who: &Who,
    body: &Json,
) -> Result<Received, ApiError> {
    let draft = session.draft(engine, who, body).await?;
    let key = draft.key().to_owned();
    let mut received = Received {
        message: draft.message(),
        is_new: draft.is_new,
        run: None,
        is_delayed: false,
    };
    if draft.is_stored || !session.generates_by_itself() {
        session.add(engine, &draft).await?;
        received.place(engine, session, &draft).await?;
        return Ok(received);
    }
    let delay_ms = session.delay_ms();
    let due_ms = engine.now_ms().saturating_add(delay_ms.unwrap_or(GRACE_MS));
    let mut row = json!({
        "key": key,
        "agent_id": session.agent.record.id(),
        "session_id": session.id(),
        "due_ms": due_ms,
        "started_by": who.started_by,
        "token": who.token,
    });
    // Before the message, so that it is answered even if the server is killed now.
    PENDING.put(engine, &key, &row).await?;
    session.add(engine, &draft).await?;
    received.place(engine, session, &draft).await?;
    received.is_delayed = delay_ms.is_some();
    if received.is_delayed {
        return Ok(received);
    }
    match session.generate(engine, who, json!({})).await {
        Ok(run) => received.run = Some(run),
        Err(error) if is_busy(&error) => {
            row["due_ms"] = json!(engine.now_ms());
            PENDING.put(engine, &key, &row).await?;
            received.is_delayed = true;
            return Ok(received);
        }
        Err(error) => {
            PENDING.delete(engine, &key).await?;
            return Err(error);
        }
    }
    PENDING.delete(engine, &key).await?;
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
            false => answer(engine, row).await?.map(|wait| now + wait),
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

/// Answers the message of a row. Returns the milliseconds after which to try again, because a generation of the session is not over.
async fn answer(engine: &Engine, row: &Json) -> Result<Option<i64>, ApiError> {
    match start(engine, row).await {
        Ok(None) => {}
        Ok(Some(State::RequiresAction)) => return Ok(Some(PAUSED_MS)),
        Ok(Some(State::InProgress | State::Completed | State::Failed)) => {
            return Ok(Some(RETRY_MS));
        }
        Err(error) if is_busy(&error) => return Ok(Some(RETRY_MS)),
        Err(ApiError::Engine(error)) => return Err(error.into()),
        // The session was closed or deleted, or its agent cannot run.
        Err(ApiError::Refused(refusal)) => {
            tracing::warn!(
                session = text(row, "session_id"),
                "a message is not answered: {}",
                refusal.message
            );
            note(engine, row, &refusal).await?;
        }
    }
    PENDING.delete(engine, text(row, "key")).await?;
    Ok(None)
}

/// Notes in the session of a row why its message is not answered, if there is still such a session.
async fn note(engine: &Engine, row: &Json, refusal: &Refusal) -> Result<(), ApiError> {
    match Session::find(engine, text(row, "agent_id"), text(row, "session_id")).await {
        Ok(session) => session.note_refusal(engine, refusal).await,
        Err(ApiError::Refused(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Starts a generation, unless there is nothing to answer. Returns the state of a generation that is not over.
async fn start(engine: &Engine, row: &Json) -> Result<Option<State>, ApiError> {
    let (agent, session) = (text(row, "agent_id"), text(row, "session_id"));
    let mut session = Session::find(engine, agent, session).await?;
    if !session.has_unseen(engine).await? {
        return Ok(None);
    }
    if let Some(state) = session.unfinished(engine).await? {
        return Ok(Some(state));
    }
    let who = Who {
        started_by: text(row, "started_by").to_owned(),
        caller: Caller::default(),
        is_operator: false,
        token: row["token"].as_str().map(str::to_owned),
        narrowed: None,
    };
    session
        .generate(engine, &who, json!({}))
        .await
        .map(|_| None)
}
