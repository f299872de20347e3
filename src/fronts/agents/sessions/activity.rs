//! When sessions were used last. It has rows of its own, so that a message does not write the session, which another request may close at
//! the same time.

use std::collections::HashMap;

use flowstone_engine::Engine;
use serde_json::{Value as Json, json};

use crate::agents::error::ApiError;
use crate::agents::records::Record;
use crate::rows::Rows;

/// The last uses, by session.
const ACTIVITY: Rows = Rows("flowstone_api_session_activity");
/// The member of a session with the time of its last use.
pub(super) const LAST: &str = "last_activity_ms";

/// Notes that a session is used now. Returns the instant.
///
/// # Errors
/// When the store cannot be written.
pub(super) async fn note(engine: &Engine, session: &Record) -> Result<i64, ApiError> {
    let now = engine.now_ms();
    let row = json!({"session": session.key(), "ms": now});
    ACTIVITY.put(engine, session.key(), &row).await?;
    Ok(now)
}

/// Removes what is known of a session.
///
/// # Errors
/// When the store cannot be written.
pub(super) async fn forget(engine: &Engine, session: &Record) -> Result<(), ApiError> {
    ACTIVITY.delete(engine, session.key()).await?;
    Ok(())
}

/// Returns a session with the time of its last use.
///
/// # Errors
/// When the store cannot be read.
pub(super) async fn with(engine: &Engine, mut session: Record) -> Result<Record, ApiError> {
    if let Some(row) = ACTIVITY.get(engine, session.key()).await? {
        set(&mut session, &row);
    }
    Ok(session)
}

/// As [`with`], for several sessions.
///
/// # Errors
/// When the store cannot be read.
pub(super) async fn with_all(
    engine: &Engine,
    mut sessions: Vec<Record>,
) -> Result<Vec<Record>, ApiError> {
    let rows = ACTIVITY.list(engine).await?.into_iter();
    let rows = rows.filter_map(|row| Some((row["session"].as_str()?.to_owned(), row)));
    let rows: HashMap<String, Json> = rows.collect();
    for session in &mut sessions {
        if let Some(row) = rows.get(session.key()) {
            set(session, row);
        }
    }
    Ok(sessions)
}

fn set(session: &mut Record, row: &Json) {
    let known = session.get(LAST).and_then(Json::as_i64).unwrap_or(0);
    let ms = row["ms"].as_i64().unwrap_or(0).max(known);
    session.members.insert(LAST.to_owned(), json!(ms));
}
