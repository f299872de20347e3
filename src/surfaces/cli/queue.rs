//! Output about queued runs.

use flowstone_engine::StartedRun;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{QueuePlace, QueueReason};
use serde_json::{Map, Value, json};

use super::outcome::instant;

/// Describes the place of a run in the queue.
pub fn place_words(place: &QueuePlace) -> String {
    let place_words = match place.position {
        1 => "next".to_owned(),
        position => format!("at place {position}"),
    };
    match (place.waits_for, place.due_ms) {
        (QueueReason::Rate, Some(due_ms)) => {
            format!(
                "queued, {place_words}, until {}",
                flowstone_engine::codec::instant(due_ms)
            )
        }
        (QueueReason::Rate, None) => {
            format!("queued, {place_words}: its rate limit allows no further start now")
        }
        (QueueReason::Limit | QueueReason::Slot, _) => {
            format!("queued behind {}, {place_words}", runs_words(&place.behind))
        }
    }
}

/// Names runs.
pub fn runs_words(runs: &[RunId]) -> String {
    let names: Vec<&str> = runs.iter().map(RunId::as_str).collect();
    match &names[..] {
        [] => "others".to_owned(),
        names => names.join(", "),
    }
}

/// Returns the place of a run in the queue as JSON. The names of the fields are stable.
pub fn place_json(place: &QueuePlace) -> Value {
    json!({
        "waitsFor": place.waits_for.name(),
        "position": place.position,
        "behind": place.behind.iter().map(RunId::as_str).collect::<Vec<_>>(),
        "due": place.due_ms.map(instant),
    })
}

/// Adds to the object about a run how it was started. The names of the fields are stable.
pub fn add_decision(fields: &mut Map<String, Value>, started: &StartedRun) {
    let key = started.key.as_deref().map(super::outcome::stored_json);
    let replaced: Vec<&str> = started.replaced.iter().map(RunId::as_str).collect();
    fields.insert("concurrencyDecision".into(), json!(started.decision.name()));
    fields.insert("concurrencyKey".into(), json!(key));
    fields.insert("replaced".into(), json!(replaced));
}
