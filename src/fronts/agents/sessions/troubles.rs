//! Why messages of a session are not answered: the start of the generation that would have answered them was refused, when nobody was
//! there to read it.

use flowstone_engine::Engine;
use flowstone_engine::feed_event::instant;
use serde_json::{Value as Json, json};

use crate::agents::error::{ApiError, Refusal};
use crate::agents::records::Record;
use crate::rows::Rows;

/// The last refusals, by session.
const TROUBLES: Rows = Rows("flowstone_api_session_troubles");

/// Notes a refusal, until a generation starts.
///
/// # Errors
/// When the store cannot be written.
pub(super) async fn note(
    engine: &Engine,
    session: &Record,
    refusal: &Refusal,
) -> Result<(), ApiError> {
    let row = json!({
        "type": "generation_refused",
        "code": refusal.name,
        "message": refusal.message,
        "created_at": instant(engine.now_ms()),
    });
    Ok(TROUBLES.put(engine, session.key(), &row).await?)
}

/// Returns what keeps messages of a session from being answered.
///
/// # Errors
/// When the store cannot be read.
pub(super) async fn of(engine: &Engine, session: &Record) -> Result<Json, ApiError> {
    let row = TROUBLES.get(engine, session.key()).await?;
    Ok(row.into_iter().collect())
}

/// Removes the refusals of a session.
///
/// # Errors
/// When the store cannot be written.
pub(super) async fn forget(engine: &Engine, session: &Record) -> Result<(), ApiError> {
    TROUBLES.delete(engine, session.key()).await?;
    Ok(())
}
