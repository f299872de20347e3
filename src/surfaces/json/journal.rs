//! Entries of journals.

use flowstone_engine::RunEventRow;
use serde::Serialize;
use serde_json::Value as Json;
use utoipa::ToSchema;

use super::values::{Values, instant, object};

/// An entry of a journal.
#[derive(Debug, Serialize, ToSchema)]
pub struct JournalEntry {
    /// Its position in the journal.
    seq: i64,
    pass: i64,
    at: Json,
    kind: &'static str,
    /// The path of its step.
    path: String,
    r#type: String,
    digest: String,
    /// The beginning of the request, as EDN text.
    request: Option<String>,
    payload: Json,
}

/// Returns an entry of a journal as JSON, with its payload in a form. The names of the fields are stable.
pub fn event_json(event: &RunEventRow, values: Values) -> Json {
    let entry = &event.entry;
    object(&JournalEntry {
        seq: event.seq,
        pass: event.pass,
        at: instant(entry.at_ms),
        kind: entry.kind.name(),
        path: entry.path.clone(),
        r#type: entry.what.clone(),
        digest: entry.digest.clone(),
        request: entry.request.clone(),
        payload: values.shown(&entry.payload),
    })
}
