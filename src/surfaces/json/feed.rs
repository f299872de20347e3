//! The numbered events of runs.

use flowstone_engine::feed_event::FeedEvent;
use serde_json::{Value as Json, json};

/// Returns an event as JSON, with its name. The names of the fields are stable.
pub fn feed_event_json(event: &FeedEvent) -> Json {
    let mut json = event.to_json();
    if let Some(fields) = json.as_object_mut() {
        fields.insert("event".to_owned(), json!(event.name));
    }
    json
}
