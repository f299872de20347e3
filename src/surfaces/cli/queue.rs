//! Output about queued runs.

use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{QueuePlace, QueueReason};
use flowstone_engine::read_instant;
use serde_json::Value;

/// Describes the place of a run in the queue.
pub fn place_text(place: &QueuePlace) -> String {
    let place_text = match place.position {
        1 => "next".to_owned(),
        position => format!("at place {position}"),
    };
    match (place.waits_for, place.due_ms) {
        (QueueReason::Rate, Some(due_ms)) => {
            format!(
                "queued, {place_text}, until {}",
                flowstone_engine::codec::instant(due_ms)
            )
        }
        (QueueReason::Rate, None) => {
            format!("queued, {place_text}: its rate limit allows no further start now")
        }
        (QueueReason::Limit | QueueReason::Slot, _) => {
            format!("queued behind {}, {place_text}", runs_text(&place.behind))
        }
    }
}

/// Describes the place of a queued run that is given as JSON.
pub fn place_of_json(place: &Value) -> String {
    let waits_for = [QueueReason::Limit, QueueReason::Rate, QueueReason::Slot]
        .into_iter()
        .find(|reason| place["waitsFor"] == reason.name());
    let behind = place["behind"].as_array().into_iter().flatten();
    place_text(&QueuePlace {
        waits_for: waits_for.unwrap_or(QueueReason::Slot),
        position: place["position"]
            .as_u64()
            .and_then(|it| it.try_into().ok())
            .unwrap_or(1),
        behind: behind
            .filter_map(Value::as_str)
            .map(RunId::from_text)
            .collect(),
        due_ms: place["due"].as_str().and_then(|due| read_instant(due, 0)),
    })
}

/// Names runs.
pub fn runs_text(runs: &[RunId]) -> String {
    let names: Vec<&str> = runs.iter().map(RunId::as_str).collect();
    match &names[..] {
        [] => "others".to_owned(),
        names => names.join(", "),
    }
}
