//! The values of resources that are not blobs: keys, and the results of steps and runs.

use crate::ids::RunId;
use crate::ports::{EntryKind, ResourceRow, StoreError, Stores};
use crate::resource::ResourceKind;

/// Returns the value of a resource in another store, as EDN text; `None` for a blob, a table or a tree, and for a
/// resource that is gone.
///
/// # Errors
/// When a store cannot be read.
pub async fn value_text(
    stores: &Stores,
    row: &ResourceRow,
    now_ms: i64,
) -> Result<Option<String>, StoreError> {
    let run = row.run.as_deref().map(RunId::from_text);
    match (row.kind, run) {
        (ResourceKind::Kv, _) => match &row.name {
            Some(key) => stores.kv.get(key, now_ms).await,
            None => Ok(None),
        },
        (ResourceKind::FlowOutput, Some(run)) => {
            let row = stores.runs.find(&run).await?;
            Ok(row.and_then(|row| row.result))
        }
        (ResourceKind::StepOutput, Some(run)) => {
            let entries = stores.journal.load(&run).await?;
            let is_it = |path: &str| row.path.as_deref() == Some(path);
            let found = entries
                .into_iter()
                .rev()
                .find(|entry| entry.kind == EntryKind::Result && is_it(&entry.path));
            Ok(found.map(|entry| entry.payload))
        }
        _ => Ok(None),
    }
}
