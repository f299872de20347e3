//! Output about queued runs.

use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{QueuePlace, QueueReason};

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
