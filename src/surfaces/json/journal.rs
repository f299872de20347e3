//! Entries of journals.

use flowstone_engine::RunEventRow;
use serde_json::{Value, json};

use super::values::{instant, stored_json};

/// Returns an entry of a journal as JSON. The names of the fields are stable.
pub fn event_json(event: &RunEventRow) -> Value {
    let entry = &event.entry;
    json!({
        "seq": event.seq,
        "pass": event.pass,
        "at": instant(entry.at_ms),
        "kind": entry.kind.name(),
        "path": entry.path,
        "type": entry.what,
        "digest": entry.digest,
        "request": entry.request,
        "payload": stored_json(&entry.payload),
    })
}
