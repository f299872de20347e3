//! Documents of runs that end without a driver: those that are cancelled, or run out of their time.

use flowstone_engine::Engine;
use flowstone_engine::codec;
use flowstone_engine::ids::RunId;
use flowstone_lang::value::Value;

use super::document;
use super::driver::Trees;
use super::error::TreeError;

pub use super::handle::FILE as DOCUMENT_MARK;

/// Writes the document of a run that has ended, if it has one that is behind. Other runs are left alone.
///
/// # Errors
/// When the store cannot be read, or the document was edited or cannot be written.
pub async fn write_ended(engine: &Engine, run: &RunId) -> Result<(), TreeError> {
    let row = engine.run(run).await?;
    let name = row.external_id.as_deref().unwrap_or_default();
    if !row.status.is_final() || !name.starts_with(DOCUMENT_MARK) {
        return Ok(());
    }
    let input = codec::decode(&row.input).unwrap_or(Value::Nil);
    let Some(uri) = input.get("handle").and_then(Value::as_str) else {
        return Ok(());
    };
    let trees = Trees::new(engine, "", None);
    let handle = trees.handle(uri)?;
    let found = trees.find_whole(&handle).await?;
    let is_current = found.is_some_and(|found| found.row.id == row.id);
    if is_current && document::exists(&trees, &handle)? {
        trees.resume(&handle).await?;
    }
    Ok(())
}
