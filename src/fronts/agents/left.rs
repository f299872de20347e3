//! Streamed generations whose client left before their end.

use flowstone_engine::Engine;
use flowstone_engine::ids::RunId;
use serde_json::json;

use super::error::ApiError;
use crate::rows::Rows;

const LEFT: Rows = Rows("flowstone_api_left_streams");

/// Notes that the client of a generation left.
///
/// # Errors
/// When the store cannot be written.
pub async fn note(engine: &Engine, run: &RunId) -> Result<(), ApiError> {
    let row = json!({"generation": run.as_str()});
    Ok(LEFT.put(engine, run.as_str(), &row).await?)
}

/// Tells whether the client of a generation left before its end.
///
/// # Errors
/// When the store cannot be read.
pub async fn is_left(engine: &Engine, run: &RunId) -> Result<bool, ApiError> {
    Ok(LEFT.get(engine, run.as_str()).await?.is_some())
}
