//! Streamed generations whose stream did not reach its end: the client left, or the server was killed.
//!
//! A stream is noted when it begins, and forgotten when it ends well.

use flowstone_engine::Engine;
use flowstone_engine::ids::RunId;
use serde_json::json;

use super::error::ApiError;
use crate::rows::Rows;

const LEFT: Rows = Rows("flowstone_api_left_streams");

/// Notes that a generation is streamed.
///
/// # Errors
/// When the store cannot be written.
pub async fn note(engine: &Engine, run: &RunId) -> Result<(), ApiError> {
    let row = json!({"generation": run.as_str()});
    Ok(LEFT.put(engine, run.as_str(), &row).await?)
}

/// Notes that the stream of a generation reached its end.
///
/// # Errors
/// When the store cannot be written.
pub async fn forget(engine: &Engine, run: &RunId) -> Result<(), ApiError> {
    LEFT.delete(engine, run.as_str()).await?;
    Ok(())
}

/// Tells whether the stream of a generation did not reach its end.
///
/// # Errors
/// When the store cannot be read.
pub async fn is_left(engine: &Engine, run: &RunId) -> Result<bool, ApiError> {
    Ok(LEFT.get(engine, run.as_str()).await?.is_some())
}
